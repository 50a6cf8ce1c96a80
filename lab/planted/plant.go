package planted

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"

	"github.com/go-vram/vram/lab/trial"
)

// rootName is the folder by which an anchor names the module's root package, as stack traces do.
const rootName = "vram"

// EditError says that an edit does not apply.
type EditError struct {
	Bug   string
	At    string
	Old   string
	Count int // of its occurrences; it must be 1
}

// Error names the bug, the place and the text.
func (e *EditError) Error() string {
	return fmt.Sprintf("planted: %s: %q occurs %d times in %s, want once", e.Bug, e.Old, e.Count, e.At)
}

// AnchorError says that an edit names a function that its package does not have.
type AnchorError struct {
	Bug    string
	Anchor string // as Edit.At has it
}

// Error names the bug and the function.
func (e *AnchorError) Error() string {
	return fmt.Sprintf("planted: %s: no function %s", e.Bug, e.Anchor)
}

// splitAnchor takes "internal/pool/core.(*Core).climb" apart. A file has no function.
func splitAnchor(at string) (dir, function string) {
	switch path.Ext(at) {
	case ".go", ".css", ".js", ".html":
		return path.Dir(at), ""
	}
	folder := strings.LastIndex(at, "/") + 1
	last, function, _ := strings.Cut(at[folder:], ".")
	if dir = at[:folder] + last; dir == rootName {
		dir = "."
	}
	return dir, function
}

// Planted returns the files that a bug changes, with the bug in them, by their paths from the module's root. Errors:
// *EditError, *AnchorError, errors of reading.
func (b Bug) Planted(module fs.FS) (map[string]string, error) {
	texts := map[string]string{}
	for _, e := range b.Edits {
		if err := b.apply(e, module, texts); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// apply applies an edit. Files for different platforms may each declare its function. texts has the files after earlier edits.
func (b Bug) apply(e Edit, module fs.FS, texts map[string]string) error {
	files := []string{e.At}
	dir, function := splitAnchor(e.At)
	if function != "" {
		var err error
		if files, err = fs.Glob(module, path.Join(dir, "*.go")); err != nil {
			return fmt.Errorf("planted: %s: %w", b.Name, err)
		}
	}
	declared, count := 0, 0
	var file, changed string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, read := texts[name]
		if !read {
			bytes, err := fs.ReadFile(module, name)
			if err != nil {
				return fmt.Errorf("planted: %s: %w", b.Name, err)
			}
			text = string(bytes)
		}
		for _, s := range parts(text, function) {
			declared++
			if n := strings.Count(text[s.begin:s.end], e.Old); n > 0 {
				count += n
				file, changed = name, text[:s.begin]+strings.Replace(text[s.begin:s.end], e.Old, e.New, 1)+text[s.end:]
			}
		}
	}
	switch {
	case declared == 0:
		return &AnchorError{b.Name, e.At}
	case count != 1:
		return &EditError{Bug: b.Name, At: e.At, Old: e.Old, Count: count}
	}
	texts[file] = changed
	return nil
}

// span is a range of bytes of a file.
type span struct{ begin, end int }

// parts returns the parts of a file in which an edit may find its text: the declarations of a function, from the word func on,
// or the whole file for "". Two edits of one function must each leave valid Go.
func parts(text, function string) (found []span) {
	if function == "" {
		return []span{{0, len(text)}}
	}
	name := function[strings.LastIndex(function, ".")+1:]
	if !strings.Contains(text, " "+name+"(") && !strings.Contains(text, " "+name+"[") {
		return nil // most files: they need not be parsed
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && trial.FunctionName(f) == function {
			// Type.Pos is the word func.
			found = append(found, span{fset.Position(f.Type.Pos()).Offset, fset.Position(f.End()).Offset})
		}
	}
	return found
}
