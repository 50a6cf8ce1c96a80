package nvrtc

import (
	"errors"
	"fmt"
	"strings"
)

// NotFoundError says that no library was found that can be opened.
type NotFoundError struct {
	Tried []string // file names and paths
	Err   error    // of them, joined
}

// Error names the files that were tried.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("nvrtc: not found as %s", strings.Join(e.Tried, ", "))
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

// Error has the compiler's words and the source with line numbers.
func (e *CompileError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "nvrtc: %s: error %d, with %s\n%s\n", e.Name, e.Result, strings.Join(e.Options, " "), strings.TrimSpace(e.Log))
	b.WriteString(Numbered(e.Source))
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
