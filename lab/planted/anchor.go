package planted

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// rootName is the folder by which an anchor names the module's root package, as stack traces do.
const rootName = "vram"

// span is a range of bytes of a file.
type span struct {
	file       string
	begin, end int
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

// splitAnchor takes "internal/pool/core.(*Core).climb" apart. A file has no function: ok is false.
func splitAnchor(at string) (dir, function string, ok bool) {
	switch path.Ext(at) {
	case ".go", ".css", ".js", ".html":
		return "", "", false
	}
	folder := strings.LastIndex(at, "/") + 1
	last, function, ok := strings.Cut(at[folder:], ".")
	dir = at[:folder] + last
	if dir == rootName {
		dir = "."
	}
	return dir, function, ok
}

// spans returns the parts of the sources in which an edit may find its text: a whole file, or the declarations of a function
// without their comments. Files for different platforms may each declare it. texts has the files after earlier edits. Errors:
// *AnchorError, and the errors of reading.
func (b Bug) spans(module fs.FS, texts map[string]string, at string) ([]span, error) {
	dir, function, ok := splitAnchor(at)
	if !ok {
		text, err := textOf(module, texts, at)
		if err != nil {
			return nil, fmt.Errorf("planted: %s: %w", b.Name, err)
		}
		return []span{{at, 0, len(text)}}, nil
	}
	files, err := fs.ReadDir(module, dir)
	if err != nil {
		return nil, fmt.Errorf("planted: %s: %w", b.Name, err)
	}
	var found []span
	for _, entry := range files {
		name := path.Join(dir, entry.Name())
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := textOf(module, texts, name)
		if err != nil {
			return nil, fmt.Errorf("planted: %s: %w", b.Name, err)
		}
		found = append(found, declarations(name, text, function)...)
	}
	if len(found) == 0 {
		return nil, &AnchorError{b.Name, at}
	}
	return found, nil
}

func textOf(module fs.FS, texts map[string]string, file string) (string, error) {
	if text, changed := texts[file]; changed {
		return text, nil
	}
	text, err := fs.ReadFile(module, file)
	return string(text), err
}

// declarations returns the declarations of a function in a file, from the word func on. Two edits of one function must each
// leave valid Go.
func declarations(file, text, function string) (found []span) {
	name := function[strings.LastIndex(function, ".")+1:]
	if !strings.Contains(text, " "+name+"(") && !strings.Contains(text, " "+name+"[") {
		return nil // most files: they need not be parsed
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && functionName(f) == function {
			// Type.Pos is the word func.
			found = append(found, span{file, fset.Position(f.Type.Pos()).Offset, fset.Position(f.End()).Offset})
		}
	}
	return found
}

// functionName returns the name of a function as stack traces have it, without the package and type parameters.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	receiver, pointer := f.Recv.List[0].Type, false
	for {
		switch of := receiver.(type) {
		case *ast.StarExpr:
			receiver, pointer = of.X, true
			continue
		case *ast.IndexExpr:
			receiver = of.X
			continue
		case *ast.IndexListExpr:
			receiver = of.X
			continue
		case *ast.Ident:
			if pointer {
				return "(*" + of.Name + ")." + f.Name.Name
			}
			return of.Name + "." + f.Name.Name
		}
		return f.Name.Name
	}
}
