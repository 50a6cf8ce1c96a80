package planted

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// selection is the environment variable that says which bug of a program that has several takes effect; without it none does.
const selection = "VRAM_PLANTED_BUG"

// selector is a file of each package that has bugs planted together.
const selector = `package %s

import (
	"os"
	"strconv"
)

var plantedBug, _ = strconv.Atoi(os.Getenv("` + selection + `"))
`

// body is the body of a function, from its brace to behind the other one.
type body struct {
	name       string // functionName
	begin, end int
	returns    bool // an empty return ends it
	labels     bool
}

// variants are what bugs make of the bodies of a file's functions: by the function's place in the file, and by the bug.
type variants map[int]map[int]string

// together are files in which several bugs are planted, of which the environment selects one when the program starts: the body of
// a function that bugs change begins with a switch, which has the changed bodies. apart are the bugs that need a program of their own: they
// change more than bodies of functions. A bug is named by its index plus one.
func together(module fs.FS, bugs []Bug) (texts map[string]string, apart []int, err error) {
	all := map[string]variants{}
	for i, b := range bugs {
		changed, err := b.Planted(module)
		if err != nil {
			return nil, nil, err
		}
		of := map[string]variants{}
		for file, text := range changed {
			original, err := fs.ReadFile(module, file)
			if err != nil {
				return nil, nil, fmt.Errorf("planted: %s: %w", b.Name, err)
			}
			if of[file] = differences(file, string(original), text, i+1); of[file] == nil {
				of = nil
				break
			}
		}
		if of == nil {
			apart = append(apart, i)
			continue
		}
		for file, found := range of {
			if all[file] == nil {
				all[file] = variants{}
			}
			for at, texts := range found {
				if all[file][at] == nil {
					all[file][at] = map[int]string{}
				}
				maps.Copy(all[file][at], texts)
			}
		}
	}
	texts = map[string]string{}
	for file, found := range all {
		original, err := fs.ReadFile(module, file)
		if err != nil {
			return nil, nil, fmt.Errorf("planted: %w", err)
		}
		var name string
		texts[file], name = merge(file, string(original), found)
		texts[path.Join(path.Dir(file), "planted_selector.go")] = fmt.Sprintf(selector, name)
	}
	return texts, apart, nil
}

// bodies are those of the functions of a file, in its order; nil where it is not Go.
func bodies(file, text string) (all []body, name string) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, ""
	}
	for _, decl := range parsed.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		b := body{name: functionName(f), begin: fset.Position(f.Body.Pos()).Offset, end: fset.Position(f.Body.End()).Offset}
		results := f.Type.Results
		b.returns = results == nil || len(results.List) == 0 || len(results.List[0].Names) > 0
		ast.Inspect(f.Body, func(n ast.Node) bool {
			_, ok := n.(*ast.LabeledStmt)
			b.labels = b.labels || ok
			return true
		})
		all = append(all, b)
	}
	return all, parsed.Name.Name
}

// differences are the bodies that a bug changes; nil where it changes more, or a body with labels, of which a function has one each.
func differences(file, original, changed string, bug int) variants {
	before, _ := bodies(file, original)
	after, _ := bodies(file, changed)
	if len(before) != len(after) {
		return nil
	}
	found := variants{}
	was, is := 0, 0 // the ends of the bodies before
	for i, b := range before {
		a := after[i]
		if a.name != b.name || original[was:b.begin] != changed[is:a.begin] {
			return nil
		}
		was, is = b.end, a.end
		if text := changed[a.begin:a.end]; text != original[b.begin:b.end] {
			if a.labels || b.labels {
				return nil
			}
			found[i] = map[int]string{bug: text}
		}
	}
	if original[was:] != changed[is:] {
		return nil
	}
	return found
}

// merge puts the variants into the bodies of a file, and returns the name of its package. Lines move.
func merge(file, original string, found variants) (text, name string) {
	all, name := bodies(file, original)
	var out strings.Builder
	at := 0
	for i, b := range all {
		if found[i] == nil {
			continue
		}
		out.WriteString(original[at:b.begin] + "{ switch plantedBug {\n")
		for _, bug := range slices.Sorted(maps.Keys(found[i])) {
			out.WriteString("case " + strconv.Itoa(bug) + ":\n" + found[i][bug] + "\n")
			if b.returns {
				out.WriteString("return\n")
			}
		}
		out.WriteString("}\n" + original[b.begin+1:b.end])
		at = b.end
	}
	out.WriteString(original[at:])
	return out.String(), name
}
