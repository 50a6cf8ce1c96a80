package archtest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	ceilingsFile = "testdata/words.json" // counted words per thousand comment words, for each package above the goal
	wordsGoal    = 1.2                   // twice the rate of Go's library
)

// counted finds the words that this house wrote much more often than Go's library: metaphors of place and time, and pronouns as
// subjects.
var counted = regexp.MustCompile(`(?i)\b(behind|besides?|in the place of|go on|goes on|went on|going on|what(?:ever)?|whoever|th(?:at|ose) of|home|under way|anew|meanwhile)\b`)

// wordCount sums comments.
type wordCount struct{ found, words int }

func (c *wordCount) add(file *ast.File) {
	for _, group := range file.Comments {
		text := group.Text() // without directives
		c.words += len(strings.Fields(text))
		c.found += len(counted.FindAllString(text, -1))
	}
}

// rate returns the counted words per thousand.
func (c wordCount) rate() float64 {
	if c.words == 0 {
		return 0
	}
	return 1000 * float64(c.found) / float64(c.words)
}

// wordsByFolder counts the comments of every package, tests included.
func wordsByFolder(t *tree) map[string]wordCount {
	all := map[string]wordCount{}
	for _, s := range t.sources {
		c := all[s.dir]
		c.add(s.file)
		all[s.dir] = c
	}
	return all
}

// ceiling rounds a rate up to a tenth.
func ceiling(rate float64) float64 { return math.Ceil(rate*10-1e-9) / 10 }

// overCeiling compares the packages with their ceilings.
func overCeiling(counts map[string]wordCount, ceilings map[string]float64) (found []finding) {
	for _, dir := range slices.Sorted(maps.Keys(counts)) {
		most := max(wordsGoal, ceilings[dir])
		if c := counts[dir]; c.rate() > most && c.found > 1 { // one word says nothing of a rate
			found = append(found, finding{dir, fmt.Sprintf("%d counted words of %d, %.2f per thousand, at most %.1f", c.found, c.words, c.rate(), most)})
		}
	}
	return found
}

// lowered returns the ceilings of the packages above the goal. None rises, and none is added.
func lowered(counts map[string]wordCount, ceilings map[string]float64) map[string]float64 {
	next := map[string]float64{}
	for dir, c := range counts {
		old, known := ceilings[dir] // a new package meets the goal
		if measured := min(ceiling(c.rate()), old); known && measured > wordsGoal {
			next[dir] = measured
		}
	}
	return next
}

// Comments of each package stay below its ceiling of counted words. Ceilings only fall: -update lowers them to the measured
// rates.
func TestWordsStayBelowTheirCeilings(t *testing.T) {
	counts := wordsByFolder(wholeHouse(t))
	text, err := os.ReadFile(ceilingsFile)
	require.NoError(t, err)
	ceilings := map[string]float64{}
	require.NoError(t, json.Unmarshal(text, &ceilings))
	if *update {
		ceilings = lowered(counts, ceilings)
		text, err := json.MarshalIndent(ceilings, "", "\t")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(ceilingsFile, append(text, '\n'), 0o600))
	}
	for _, f := range overCeiling(counts, ceilings) {
		assert.Fail(t, f.place+": "+f.what, "write a subject, an active verb and a noun; see the counted words in words_test.go")
	}
	for dir, most := range ceilings {
		if _, there := counts[dir]; !there {
			assert.Fail(t, dir+" has a ceiling and is no package")
		}
		assert.Greater(t, most, wordsGoal, "%s needs no ceiling", dir)
	}
}

// The goal is twice the rate of Go's own library, measured in the source of this toolchain.
func TestTheLibrarySetsTheGoal(t *testing.T) {
	var sum wordCount
	for _, folder := range []string{"runtime", "net/http", "database/sql"} {
		files, err := filepath.Glob(filepath.Join(build.Default.GOROOT, "src", folder, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, "the toolchain has no source of %s", folder)
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			require.NoError(t, err)
			sum.add(file)
		}
	}
	t.Logf("%d counted words of %d, %.2f per thousand", sum.found, sum.words, sum.rate())
	assert.InDelta(t, wordsGoal, 2*sum.rate(), 0.2, "the goal is twice the library's rate")
}

func TestWordsAreCounted(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n\n// It goes on, whatever comes.\n//\n//go:generate behind\nvar x int // beside a whatnot\n", parser.ParseComments)
	require.NoError(t, err)
	var c wordCount
	c.add(file)
	assert.Equal(t, wordCount{found: 3, words: 8}, c)

	counts := map[string]wordCount{"low": {1, 1000}, "mid": {5, 1000}, "new": {5, 1000}, "one": {1, 10}}
	assert.Len(t, overCeiling(counts, map[string]float64{"mid": 4.9}), 2)
	assert.Len(t, overCeiling(counts, map[string]float64{"mid": 5, "new": 9}), 0)
	assert.Equal(t, map[string]float64{"mid": 4.9}, lowered(counts, map[string]float64{"low": 1.5, "mid": 4.9}), "none rises, and none is added")
	assert.Empty(t, lowered(counts, nil))
	assert.Equal(t, map[string]float64{"mid": 5}, lowered(counts, map[string]float64{"low": 3, "mid": 7}))
}
