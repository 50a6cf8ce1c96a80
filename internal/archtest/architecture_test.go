package archtest

import (
	"flag"
	"fmt"
	"go/doc"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The page with the picture, and the marks around it.
const (
	architecturePage = "../../docs/architecture.md"
	pictureBegins    = "<!-- drawn from the code by go test ./internal/archtest -run Architecture -update -->\n"
	pictureEnds      = "<!-- end of what is drawn -->\n"
)

var update = flag.Bool("update", false, "write the picture of docs/architecture.md and the ceilings of words from the code")

// The picture in docs/architecture.md matches the code; -update redraws it.
func TestTheArchitectureIsDrawn(t *testing.T) {
	house := wholeHouse(t)
	page, err := os.ReadFile(architecturePage)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(page), pictureBegins)
	require.True(t, found, "the page has no picture")
	picture, after, found := strings.Cut(rest, pictureEnds)
	require.True(t, found, "the picture has no end")
	drawn := draw(house, houseLayers())
	if *update {
		require.NoError(t, os.WriteFile(architecturePage, []byte(before+pictureBegins+drawn+pictureEnds+after), 0o600))
		return
	}
	assert.Equal(t, picture, drawn, "go test ./internal/archtest -run Architecture -update redraws it")
}

// draw prints the packages that the root needs as a diagram of imports, and all packages as a table from the top layer down.
func draw(t *tree, layers []layer) string {
	var b strings.Builder
	imports := importsOf(t)
	levels := make([][]string, len(layers))
	for _, dir := range slices.Sorted(maps.Keys(imports)) {
		if level, _, found := berth(layers, dir); found {
			levels[level] = append(levels[level], dir)
		}
	}
	product := t.reach(rootDir, func(string) bool { return false })
	b.WriteString("```mermaid\nflowchart TD\n")
	for _, dir := range slices.Sorted(maps.Keys(product)) {
		for _, below := range needed(imports, dir) {
			fmt.Fprintf(&b, "  %s --> %s\n", node(dir), node(below))
		}
	}
	b.WriteString("```\n\n| layer | package | is |\n|---|---|---|\n")
	for level := range slices.Backward(layers) {
		for _, dir := range levels[level] {
			fmt.Fprintf(&b, "| %d | `%s` | %s |\n", level+1, shown(dir), purpose(t, dir))
		}
	}
	return b.String()
}

// importsOf returns the packages of the module that each one imports, in order.
func importsOf(t *tree) map[string][]string {
	all := map[string][]string{}
	for _, s := range t.shipped() {
		all[s.dir] = slices.Concat(all[s.dir], slices.Collect(maps.Keys(t.house(s))))
	}
	for dir, imports := range all {
		slices.Sort(imports)
		all[dir] = slices.Compact(imports)
	}
	return all
}

// needed returns the imports of a package that none of its other imports reaches: the arrows of the diagram.
func needed(imports map[string][]string, dir string) []string {
	reached := map[string]bool{}
	var walk func(from string)
	walk = func(from string) {
		for _, below := range imports[from] {
			if !reached[below] {
				reached[below] = true
				walk(below)
			}
		}
	}
	for _, below := range imports[dir] {
		walk(below)
	}
	return slices.DeleteFunc(slices.Clone(imports[dir]), func(below string) bool { return reached[below] })
}

// purposeColumns is the width of a package's purpose in the table: with the layer and the longest name a row stays below 160
// columns.
const purposeColumns = 100

// purpose returns the first clause of a package's comment without the package's name.
func purpose(t *tree, dir string) string {
	for _, s := range t.shipped() {
		if s.dir != dir || s.file.Doc == nil {
			continue
		}
		sentence := new(doc.Package).Synopsis(s.file.Doc.Text())
		for _, word := range []string{"Package ", "Command "} {
			if rest, ok := strings.CutPrefix(sentence, word); ok {
				_, sentence, _ = strings.Cut(rest, " ")
			}
		}
		return strings.ReplaceAll(clause(strings.TrimSuffix(strings.TrimPrefix(sentence, "is "), ".")), "|", "\\|")
	}
	return ""
}

// clause returns a sentence up to its first colon or semicolon, and a longer one up to the last comma or word that fits.
func clause(sentence string) string {
	if at := strings.IndexAny(sentence, ":;"); at >= 0 {
		sentence = sentence[:at]
	}
	if len(sentence) <= purposeColumns {
		return sentence
	}
	sentence = sentence[:purposeColumns]
	if at := strings.LastIndex(sentence, ", "); at > purposeColumns/3 {
		return sentence[:at]
	}
	return sentence[:strings.LastIndexByte(sentence, ' ')] + " …"
}

// shown returns the name of a package on the page.
func shown(dir string) string {
	if dir == rootDir {
		return "vram"
	}
	return dir
}

// node prints a package of the diagram: a name without slashes, and its text.
func node(dir string) string {
	name := shown(dir)
	return strings.ReplaceAll(name, "/", "_") + `["` + name + `"]`
}

// The picture of a small house has an arrow for each needed import, and a row for each package.
func TestAnArchitectureIsDrawn(t *testing.T) {
	layers := []layer{{folders: []string{"low"}}, {folders: []string{"mid"}}, {folders: []string{rootDir}}}
	files := fstest.MapFS{
		"go.mod":      {Data: []byte("module example.org/house\n")},
		"doc.go":      {Data: []byte("// Package vram is the top. It has more to say.\npackage vram\n\nimport (\n\t_ \"example.org/house/low\"\n\t_ \"example.org/house/mid/in\"\n)\n")},
		"mid/in/a.go": {Data: []byte("// Package in keeps a|b.\npackage in\n\nimport _ \"example.org/house/low\"\n")},
		"low/a.go":    {Data: []byte("package low\n")},
	}
	house, err := loadTree(files)
	require.NoError(t, err)
	assert.Equal(t, "```mermaid\nflowchart TD\n"+
		"  vram[\"vram\"] --> mid_in[\"mid/in\"]\n  mid_in[\"mid/in\"] --> low[\"low\"]\n```\n\n"+
		"| layer | package | is |\n|---|---|---|\n"+
		"| 3 | `vram` | the top |\n| 2 | `mid/in` | keeps a\\|b |\n| 1 | `low` |  |\n", draw(house, layers))
}

func TestClause(t *testing.T) {
	long := strings.Repeat("word ", 30)
	assert.Equal(t, "the top", clause("the top: of the house"))
	assert.Equal(t, strings.TrimSuffix(long[:60], " "), clause(strings.TrimSuffix(long[:60], " ")+", "+long))
	assert.Equal(t, long[:purposeColumns-1]+" …", clause(long))
}
