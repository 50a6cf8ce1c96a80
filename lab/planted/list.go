package planted

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// listed has a file for each promise.
//
//go:embed list/*.txt
var listed embed.FS

// SyntaxError says where a file of the list is wrong.
type SyntaxError struct {
	File    string // in the folder of this package
	Line    int
	Problem string
}

// Error names the file and line, as compilers do.
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem) }

// Promises reads the list, files in the order of their names. Errors: *SyntaxError.
func Promises() (all []Promise, err error) {
	err = fs.WalkDir(listed, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := listed.ReadFile(file)
		if err != nil {
			return err
		}
		p, err := parse(file, string(text))
		all = append(all, p)
		return err
	})
	return all, err
}

// followers returns the kinds of lines that may come after a line of each kind. No line precedes the first one, and a file ends
// after a text.
func followers() map[string][]string {
	return map[string][]string{
		"the begin": {"promise:"},
		"promise:":  {""},
		"":          {"bug:"},
		"bug:":      {"package:"},
		"package:":  {"run:"},
		"run:":      {"edit:"},
		"edit:":     {"-"},
		"-":         {"-", "+", "edit:", ""},
		"+":         {"+", "edit:", ""},
	}
}

// cutKind returns the kind of a line and the rest of it.
func cutKind(line string) (kind, rest string) {
	if strings.HasPrefix(line, "-") || strings.HasPrefix(line, "+") {
		return line[:1], line[1:]
	}
	if strings.HasPrefix(line, " ") {
		return line, ""
	}
	kind, rest, _ = strings.Cut(line, " ")
	return kind, rest
}

// parse reads a file of the list; the package comment describes it. Errors: *SyntaxError.
func parse(file, text string) (p Promise, err error) {
	before, at := "the begin", 0
	for line := range strings.Lines(text) {
		at++
		kind, rest := cutKind(strings.TrimSuffix(line, "\n"))
		if want := followers()[before]; !slices.Contains(want, kind) {
			return p, &SyntaxError{file, at, fmt.Sprintf("the line begins with %q, want one of %q", kind, want)}
		}
		if strings.HasSuffix(kind, ":") && (rest == "" || strings.TrimSpace(rest) != rest) {
			return p, &SyntaxError{file, at, fmt.Sprintf("want a text after %q and one space, and none after it", kind)}
		}
		p.add(kind, rest, kind == before)
		before = kind
	}
	if before != "-" && before != "+" {
		return p, &SyntaxError{file, at, fmt.Sprintf("the file ends, want one of %q", followers()[before])}
	}
	return p, nil
}

// add adds a line to the promise, to its last bug, or to the last edit of that: a line of the same text comes after a newline.
func (p *Promise) add(kind, rest string, sameText bool) {
	var b *Bug
	var e *Edit
	if len(p.Bugs) > 0 {
		b = &p.Bugs[len(p.Bugs)-1]
		if len(b.Edits) > 0 {
			e = &b.Edits[len(b.Edits)-1]
		}
	}
	if sameText {
		rest = "\n" + rest
	}
	switch kind {
	case "promise:":
		p.Says = rest
	case "bug:":
		p.Bugs = append(p.Bugs, Bug{Name: rest})
	case "package:":
		b.Package = rest
	case "run:":
		b.Run = rest
	case "edit:":
		b.Edits = append(b.Edits, Edit{At: rest})
	case "-":
		e.Old += rest
	case "+":
		e.New += rest
	}
}
