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

// Each promise has bugs; each bug has all that it needs, and a name of its own.
func TestEveryBugIsWhole(t *testing.T) {
	assert.LessOrEqual(t, len(Bugs()), mostBugs)
	for _, p := range Promises() {
		assert.NotEmpty(t, p.Says)
		assert.GreaterOrEqual(t, len(p.Bugs), 3, p.Says)
	}
	names := map[string]bool{}
	for _, b := range Bugs() {
		assert.False(t, names[b.Name], "%s: the name is taken", b.Name)
		names[b.Name] = true
		assert.NotEmpty(t, b.Name)
		assert.NotEmpty(t, b.Edits, b.Name)
		assert.True(t, strings.HasPrefix(b.Run, "^Test"), "%s: -run %s", b.Name, b.Run)
		assert.True(t, hasTest(t, b), "%s: no test of %s is %s", b.Name, b.Package, b.Run)
		for _, e := range b.Edits {
			assert.False(t, strings.HasSuffix(e.At, "_test.go"), "%s changes a test", b.Name)
			assert.NotEqual(t, e.Old, e.New, b.Name)
		}
	}
	assert.Len(t, Named(""), len(Bugs()))
	assert.Len(t, Named(Bugs()[3].Name), 1)
	assert.Empty(t, Named("no bug has this name"))
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
	for _, b := range Bugs() {
		for _, e := range b.Edits {
			if _, _, ok := splitAnchor(e.At); ok || path.Ext(e.At) == ".go" {
				dirs = append(dirs, "./"+e.dir())
			}
		}
	}
	packages := exports(t, dirs)
	for _, b := range Bugs() {
		texts, err := b.Planted(os.DirFS(root))
		if !assert.NoError(t, err) {
			continue
		}
		checked := map[string]bool{}
		for file := range texts {
			if dir := path.Dir(file); path.Ext(file) == ".go" && !checked[dir] {
				checked[dir] = true
				assert.NoError(t, check(dir, b.Tags, texts, packages), b.Name)
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

// check type-checks a package with the files in texts, built with the tags.
func check(dir, tags string, texts map[string]string, packages types.Importer) error {
	tagged := build.Default
	tagged.BuildTags = strings.Split(tags, ",")
	found, err := tagged.ImportDir(filepath.Join(root, dir), 0)
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
