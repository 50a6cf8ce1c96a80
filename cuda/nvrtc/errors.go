package nvrtc

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// NotFoundError says that no library was found that can be opened.
type NotFoundError struct {
	Tried []string // file names and paths
	Err   error    // of them, joined
}

// Error names the files that were tried, and why the first of them cannot be opened.
func (e *NotFoundError) Error() string {
	if len(e.Tried) == 0 {
		return "nvrtc: not found: " + strings.TrimPrefix(fmt.Sprint(e.Err), "nvrtc: ")
	}
	reason, _, _ := strings.Cut(fmt.Sprint(e.Err), "\n")
	return fmt.Sprintf("nvrtc: not found as %s: %s", strings.Join(e.Tried, ", "), reason)
}

// Unwrap is why.
func (e *NotFoundError) Unwrap() error { return e.Err }

// ErrLibrary is a library that lacks a function, or fails in one that cannot.
var ErrLibrary = errors.New("nvrtc: the library failed")

// CompileError is source that the compiler refuses.
type CompileError struct {
	Name    string // of the source
	Source  string
	Options []string
	Log     string
	Result  int // NVRTC's: 6 for a mistake in the source, 5 for an option
}

// Error has the compiler's words and the lines that they name; the whole source where they name none.
func (e *CompileError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "nvrtc: %s: error %d, with %s\n%s\n", e.Name, e.Result, strings.Join(e.Options, " "), strings.TrimSpace(e.Log))
	b.WriteString(Excerpt(e.Source, e.Lines()))
	return b.String()
}

// Lines are the numbers of the source's lines that the log names, in order; the first line is 1.
func (e *CompileError) Lines() (all []int) {
	if e == nil {
		return nil
	}
	for line := range strings.Lines(e.Log) {
		rest, ok := strings.CutPrefix(line, e.Name+"(")
		if !ok {
			continue // of an included file, or more about the line before
		}
		number, _, _ := strings.Cut(rest, ")")
		if n, err := strconv.Atoi(number); err == nil {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// around is how many lines before and after a named one an Excerpt has.
const around = 2

// Excerpt is the lines of a source that are named, with their neighbours and their numbers: all lines where none is named that
// there is.
func Excerpt(source string, named []int) string {
	all := strings.Split(strings.TrimRight(source, "\n"), "\n")
	wanted := make([]bool, len(all))
	some := false
	for _, n := range named {
		if n < 1 || n > len(all) {
			continue
		}
		some = true
		for at := max(n-1-around, 0); at < min(n+around, len(all)); at++ {
			wanted[at] = true
		}
	}
	if !some {
		return Numbered(source)
	}
	width := len(strconv.Itoa(len(all)))
	var b strings.Builder
	for i, line := range all {
		switch {
		case wanted[i]:
			fmt.Fprintf(&b, "%*d  %s\n", width, i+1, line)
		case i > 0 && wanted[i-1]:
			b.WriteString("...\n")
		}
	}
	return b.String()
}

// Numbered is a source with a number before each line.
func Numbered(source string) string {
	lines := strings.Split(strings.TrimRight(source, "\n"), "\n")
	width := len(fmt.Sprint(len(lines)))
	var b strings.Builder
	for i, line := range lines {
		fmt.Fprintf(&b, "%*d  %s\n", width, i+1, line)
	}
	return b.String()
}
