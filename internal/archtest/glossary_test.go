package archtest

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// convertedPackages lists the packages without old words of docs/glossary.md.
func convertedPackages() []string {
	return append([]string{
		"batch",
		"cudadrv/drivertest",
		"cudadrv/fault",
		"cudadrv/internal/call",
		"cudadrv/internal/intercept",
		"cudadrv/meter",
		"cudadrv/sim",
		"cudadrv/site",
		"examples/batch",
		"examples/gorgonia",
		"examples/hello",
		"examples/internal/kernels",
		"examples/port",
		"examples/port/heat",
		"examples/port/kern",
		"examples/port/wrapper",
		"examples/quickstart",
		"internal/archtest",
		"lab/bench",
		"lab/bytecheck",
		"internal/heap",
		"internal/pressure",
		"internal/sizeclass",
		"lab/soak",
		"internal/transcript",
		"internal/units",
		"internal/stream/core",
	}, plainPackages()...)
}

// plainPackages lists converted packages, with their tests, whose comments also have no pronoun of the glossary's second table.
func plainPackages() []string {
	return []string{
		rootDir,
		"actors",
		"futures",
		"cudadrv/sim/ptxrun",
		"cudadrv/cpu",
		"host",
		"compute/kernel",
		"compute/kernel/elementary",
		"compute/kernel/expr",
		"compute/kernel/internal/code",
		"cuda/nvrtc",
		"compute/kernel/plan",
		"compute/kernel/routine",
		"compute/kernel/store",
		"compute/kernel/tune",
		"compute/kernel/tune/tables",
		"compute/ops",
		"pool",
		"compute/ptx",
		"compute/ptx/interp",
		"streams",
		"internal/stream/claims",
		"compute/tensor",
		"compute/tensor/half",
		"compute/tensor/internal/reference",
		"compute/tensor/layout",
	}
}

// tableRow matches a row of one of the glossary's tables of old words.
var tableRow = regexp.MustCompile(`(?m)^\| ([a-z]+(?: [a-z]+)*) \| `)

// tableWords returns the words of the glossary's table below a heading.
func tableWords(t *testing.T, heading string) (words []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/glossary.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), heading)
	require.True(t, found, heading)
	table, _, _ = strings.Cut(table, "\n\n")
	for _, match := range tableRow.FindAllStringSubmatch(table, -1) {
		words = append(words, match[1])
	}
	return words
}

// Identifiers and comments of converted packages have no old word of the glossary, nor have the tests of plain ones.
func TestOldWordsAreGone(t *testing.T) {
	house := wholeHouse(t)
	old := tableWords(t, "| old word | write |\n")
	require.GreaterOrEqual(t, len(old), 20)
	assert.Contains(t, old, "stands still")
	plain := plainPackages()
	for _, dir := range convertedPackages() {
		require.True(t, house.has(dir), dir)
		for _, f := range oldWordsIn(house, dir, old, slices.Contains(plain, dir)) {
			assert.Fail(t, f.place+": "+f.what, "docs/glossary.md has the word to write")
		}
	}
}

// Comments of plain packages and their tests have no pronoun of the glossary.
func TestCommentsNameThings(t *testing.T) {
	house := wholeHouse(t)
	pronouns := tableWords(t, "| pronoun | write |\n")
	require.GreaterOrEqual(t, len(pronouns), 6)
	for _, dir := range plainPackages() {
		for _, f := range commentsWith(house, dir, pronouns, true) {
			assert.Fail(t, f.place+": "+f.what, "docs/glossary.md has the noun to write")
		}
	}
}

// An old word is found as a part of an identifier and as a word of a comment, not inside other words.
func TestOldWordsAreFound(t *testing.T) {
	house, err := loadTree(fstest.MapFS{
		"go.mod": {Data: []byte("module example.org/house\n")},
		"a.go":   {Data: []byte("// Package a flows; it stands\n// still.\npackage a\n\n// At ebb, it stands  still.\ntype calmAt int\n\nfunc (calmAt) becomesCalm() {}\n\nvar calmly, webbed, itStandsStill int // Calm\n")},
		"b/b.go": {Data: []byte("// Package b is at ebb.\npackage b\n")},
	})
	require.NoError(t, err)
	var places []string
	for _, f := range oldWordsIn(house, rootDir, []string{"calm", "ebb", "stands still"}, false) {
		places = append(places, f.place+" "+f.what)
	}
	assert.ElementsMatch(t, []string{
		"a.go:1 the comment says stands still", "a.go:5 the comment says ebb", "a.go:5 the comment says stands still",
		"a.go:6 calmAt has the word calm", "a.go:8 calmAt has the word calm", "a.go:8 becomesCalm has the word calm",
		"a.go:10 the comment says calm", "a.go:10 itStandsStill has the word stands still",
	}, places)
}

// oldWordsIn finds the words in the files of a folder: in comments, and in declared names.
func oldWordsIn(t *tree, dir string, old []string, tests bool) (found []finding) {
	found = commentsWith(t, dir, old, tests)
	for _, s := range filesIn(t, dir, tests) {
		elsewhere := map[*ast.Ident]bool{} // names that another package may declare: fields and methods
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				elsewhere[n.Sel] = true
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok {
					elsewhere[key] = true
				}
			case *ast.Ident:
				for _, word := range old {
					if !elsewhere[n] && hasPart(n.Name, strings.ReplaceAll(word, " ", "")) {
						found = append(found, finding{t.place(n), n.Name + " has the word " + word})
					}
				}
			}
			return true
		})
	}
	return found
}

// commentsWith finds the words in the comments of a folder. A phrase may span two lines.
func commentsWith(t *tree, dir string, words []string, tests bool) (found []finding) {
	spoken := regexp.MustCompile(`(?i)\b(` + strings.ReplaceAll(strings.Join(words, "|"), " ", `\s+`) + `)\b`)
	for _, s := range filesIn(t, dir, tests) {
		for _, group := range s.file.Comments {
			if strings.HasPrefix(group.Text(), "Output:") {
				continue // printed by an example
			}
			for _, word := range spoken.FindAllString(group.Text(), -1) {
				found = append(found, finding{t.place(group), "the comment says " + strings.Join(strings.Fields(strings.ToLower(word)), " ")})
			}
		}
	}
	return found
}

// filesIn returns the files of a folder, with or without tests.
func filesIn(t *tree, dir string, tests bool) []source {
	return slices.DeleteFunc(slices.Clone(t.sources), func(s source) bool { return s.dir != dir || s.test && !tests })
}

// hasPart reports whether consecutive words of an identifier form the given one.
func hasPart(identifier, word string) bool {
	begins := []int{0}
	for i, r := range identifier + "A" {
		if !unicode.IsUpper(r) && r != '_' {
			continue
		}
		for _, begin := range begins {
			if strings.EqualFold(strings.ReplaceAll(identifier[begin:i], "_", ""), word) {
				return true
			}
		}
		begins = append(begins, i)
	}
	return false
}
