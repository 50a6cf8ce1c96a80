package archtest

import (
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// convertedPackages are those that were rewritten in the words of docs/glossary.md: they have none of its old words. One more
// package is one more line.
func convertedPackages() []string {
	return []string{
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
		"examples/quickstart",
		"internal/archtest",
		"internal/bench",
		"internal/bytecheck",
		"internal/heap",
		"internal/pressure",
		"internal/sizeclass",
		"internal/soak",
		"internal/transcript",
		"internal/units",
		"streams/core",
		"streams/claims",
	}
}

// oldWord is a row of the glossary's table of old words.
var oldWord = regexp.MustCompile(`(?m)^\| ([a-z]+(?: [a-z]+)*) \| `)

// Converted packages have no old word of the glossary, in identifiers and comments.
func TestOldWordsAreGone(t *testing.T) {
	house, err := loadTree(os.DirFS("../.."))
	require.NoError(t, err)
	page, err := os.ReadFile("../../docs/glossary.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| old word | write |\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	var old []string
	for _, match := range oldWord.FindAllStringSubmatch(table, -1) {
		old = append(old, match[1])
	}
	require.GreaterOrEqual(t, len(old), 9)
	assert.Contains(t, old, "stands still")
	for _, dir := range convertedPackages() {
		require.True(t, house.has(dir), dir)
		for _, f := range oldWordsIn(house, dir, old) {
			assert.Fail(t, f.place+": "+f.what, "docs/glossary.md has the word to write")
		}
	}
}

// An old word is found as a part of an identifier and as a word of a comment, and not inside of other words.
func TestOldWordsAreFound(t *testing.T) {
	house, err := loadTree(fstest.MapFS{
		"go.mod": {Data: []byte("module example.org/house\n")},
		"a.go":   {Data: []byte("// Package a flows; it stands\n// still.\npackage a\n\n// At ebb, it stands  still.\ntype calmAt int\n\nfunc (calmAt) becomesCalm() {}\n\nvar calmly, webbed, itStandsStill int // Calm\n")},
		"b/b.go": {Data: []byte("// Package b is at ebb.\npackage b\n")},
	})
	require.NoError(t, err)
	var places []string
	for _, f := range oldWordsIn(house, rootDir, []string{"calm", "ebb", "stands still"}) {
		places = append(places, f.place+" "+f.what)
	}
	assert.ElementsMatch(t, []string{
		"a.go:1 the comment says stands still", "a.go:5 the comment says ebb", "a.go:5 the comment says stands still",
		"a.go:6 calmAt has the word calm", "a.go:8 calmAt has the word calm", "a.go:8 becomesCalm has the word calm",
		"a.go:10 the comment says calm", "a.go:10 itStandsStill has the word stands still",
	}, places)
}

// oldWordsIn is where the shipped files of a folder have one of the words.
func oldWordsIn(t *tree, dir string, old []string) (found []finding) {
	spoken := regexp.MustCompile(`(?i)\b(` + strings.ReplaceAll(strings.Join(old, "|"), " ", `\s+`) + `)\b`)
	for _, s := range t.shipped() {
		if s.dir != dir {
			continue
		}
		for _, group := range s.file.Comments {
			for _, word := range spoken.FindAllString(group.Text(), -1) { // a phrase may go over the end of a line
				found = append(found, finding{t.place(group), "the comment says " + strings.Join(strings.Fields(strings.ToLower(word)), " ")})
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			name, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			for _, word := range old {
				if hasPart(name.Name, strings.ReplaceAll(word, " ", "")) {
					found = append(found, finding{t.place(name), name.Name + " has the word " + word})
				}
			}
			return true
		})
	}
	return found
}

// hasPart reports whether some of the words in a row that an identifier is made of are that one.
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
