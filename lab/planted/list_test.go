package planted

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	module = "github.com/go-vram/vram"
	root   = "../.."
)

// mostBugs bounds the list. Each takes 3 to 20 seconds of a processor, most of them to build; a new one replaces a weaker one.
const mostBugs = 200

// bugs returns the list.
func bugs(t *testing.T) []Bug {
	t.Helper()
	all, err := Named("")
	require.NoError(t, err)
	return all
}

// A file of the list is read line by line, and a wrong line is named.
func TestParse(t *testing.T) {
	const (
		head  = "promise: one holds\n\nbug: it does not\npackage: a/b\nrun: ^TestOne$\n"
		edit  = "edit: a.go\n-\tone()\n-\n+\ttwo()\n+\n+ \n"
		other = "edit: a.(*T).f\n-bug: x\n"
		more  = "\nbug: nor then\npackage: c\nrun: ^TestTwo\nedit: c.f\n-- 1\n++ 1\n"
	)
	got, err := parse("p.txt", head+edit+other+more)
	require.NoError(t, err)
	assert.Equal(t, Promise{"one holds", []Bug{
		{"it does not", "a/b", "^TestOne$", []Edit{{"a.go", "\tone()\n", "\ttwo()\n\n "}, {"a.(*T).f", "bug: x", ""}}},
		{"nor then", "c", "^TestTwo", []Edit{{"c.f", "- 1", "+ 1"}}},
	}}, got)
	for text, want := range map[string]string{
		"":                                      "p.txt:0: the file ends, want one of [\"promise:\"]",
		"bug: x\n":                              "p.txt:1: the line begins with \"bug:\", want one of [\"promise:\"]",
		head:                                    "p.txt:5: the file ends",
		head + "edit: a.go\n+x\n":               "p.txt:7: the line begins with \"+\", want one of [\"-\"]",
		head + edit + "-three\n":                "p.txt:12: the line begins with \"-\"",
		head + edit + "bug: x\n":                "p.txt:12: the line begins with \"bug:\"",
		head + edit + "\n\n":                    "p.txt:13: the line begins with \"\"",
		head + edit + "\n":                      "p.txt:12: the file ends",
		head + edit + " four\n":                 "p.txt:12: the line begins with \" four\"",
		head + edit + "edit:\n-x\n":             "p.txt:12: want a text after \"edit:\"",
		head + edit + "edit:  a.go\n-x\n":       "p.txt:12: want a text after \"edit:\"",
		head + edit + "edit: a.go \n-x\n":       "p.txt:12: want a text after \"edit:\"",
		"promise: x\n\nbug: y\nrun: ^TestOne\n": "p.txt:4: the line begins with \"run:\"",
	} {
		_, err := parse("p.txt", text)
		var wrong *SyntaxError
		require.ErrorAs(t, err, &wrong, text)
		assert.ErrorContains(t, err, want)
	}
}

// Each promise has bugs; each bug has all that it needs, and a name of its own.
func TestEveryBugIsWhole(t *testing.T) {
	assert.LessOrEqual(t, len(bugs(t)), mostBugs)
	promises, err := Promises()
	require.NoError(t, err)
	files, err := os.ReadDir("list")
	require.NoError(t, err)
	assert.Len(t, promises, len(files))
	for _, p := range promises {
		assert.GreaterOrEqual(t, len(p.Bugs), 3, p.Says)
	}
	names := map[string]bool{}
	for _, b := range bugs(t) {
		assert.False(t, names[b.Name], "%s: the name is taken", b.Name)
		names[b.Name] = true
		assert.True(t, strings.HasPrefix(b.Run, "^Test"), "%s: -run %s", b.Name, b.Run)
		assert.True(t, hasTest(t, b), "%s: no test of %s is %s", b.Name, b.Package, b.Run)
		for _, e := range b.Edits {
			assert.False(t, strings.HasSuffix(e.At, "_test.go"), "%s changes a test", b.Name)
			assert.NotEqual(t, e.Old, e.New, b.Name)
		}
	}
	for name, count := range map[string]int{bugs(t)[3].Name: 1, "no bug has this name": 0} {
		named, err := Named(name)
		require.NoError(t, err)
		assert.Len(t, named, count)
	}
}

// hasTest looks for a test function that the bug's pattern selects.
func hasTest(t *testing.T, b Bug) bool {
	t.Helper()
	pattern, err := regexp.Compile(b.Run)
	require.NoError(t, err, b.Name)
	files, err := filepath.Glob(filepath.Join(root, b.Package, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			if pattern.MatchString(found[1]) {
				return true
			}
		}
	}
	return false
}

// Every edit applies to the current sources, and the result is a well-typed package: a bug that does not build tests nothing.
func TestEveryBugApplies(t *testing.T) {
	var dirs []string
	for _, b := range bugs(t) {
		for _, e := range b.Edits {
			if dir, function := splitAnchor(e.At); function != "" || path.Ext(e.At) == ".go" {
				dirs = append(dirs, "./"+dir)
			}
		}
	}
	packages := exports(t, dirs)
	for _, b := range bugs(t) {
		texts, err := b.Planted(os.DirFS(root))
		if !assert.NoError(t, err) {
			continue
		}
		checked := map[string]bool{}
		for file := range texts {
			if dir := path.Dir(file); path.Ext(file) == ".go" && !checked[dir] {
				checked[dir] = true
				assert.NoError(t, check(dir, texts, packages), b.Name)
			}
		}
	}
}

// exports reads the types of all packages that the folders' packages import, from the go command's build cache.
func exports(t *testing.T, dirs []string) types.Importer {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}, dirs...)...)
	cmd.Dir = root
	var complained bytes.Buffer
	cmd.Stderr = &complained
	said, err := cmd.Output()
	require.NoError(t, err, complained.String())
	files := map[string]string{}
	for line := range strings.Lines(string(said)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[name] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(name string) (io.ReadCloser, error) {
		if files[name] == "" {
			return nil, fmt.Errorf("%s: nobody imported it before", name)
		}
		return os.Open(files[name])
	})
}

// check type-checks a package with the files in texts.
func check(dir string, texts map[string]string, packages types.Importer) error {
	found, err := build.ImportDir(filepath.Join(root, dir), 0)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range found.GoFiles {
		var text any
		if changed, ok := texts[path.Join(dir, name)]; ok {
			text = changed
		}
		file, err := parser.ParseFile(fset, filepath.Join(root, dir, name), text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	_, err = (&types.Config{Importer: packages}).Check(path.Join(module, dir), fset, files, nil)
	return err
}
