package core

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A set of pages has what was added, by runs and by other sets, and no more.
func TestPageSetsHaveWhatWasAdded(t *testing.T) {
	t.Parallel()
	const pages = 300
	rapid.Check(t, func(t *rapid.T) {
		var sets [2]pageSet
		var want [2][pages]bool
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				i, first := rapid.IntRange(0, 1).Draw(t, "set"), rapid.Uint32Range(0, pages-1).Draw(t, "first")
				r := Run{First: first, Pages: rapid.Uint32Range(0, pages-first).Draw(t, "pages")}
				sets[i].add(r)
				for page := r.First; page < r.End(); page++ {
					want[i][page] = true
				}
			},
			"add all": func(t *rapid.T) {
				i := rapid.IntRange(0, 1).Draw(t, "set")
				sets[i].addAll(&sets[1-i])
				for page, has := range want[1-i] {
					want[i][page] = want[i][page] || has
				}
			},
			"clear": func(t *rapid.T) {
				i := rapid.IntRange(0, 1).Draw(t, "set")
				clear(sets[i].words)
				want[i] = [pages]bool{}
			},
			"forget": func(t *rapid.T) {
				i := rapid.IntRange(0, 1).Draw(t, "set")
				sets[i], want[i] = pageSet{}, [pages]bool{}
			},
			"": func(t *rapid.T) {
				for i := range sets {
					for page := range uint32(pages + 100) {
						require.Equal(t, page < pages && want[i][min(page, pages-1)], sets[i].has(page), "page %d of set %d", page, i)
					}
				}
			},
		})
	})
}
