package core

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Runs of one client that merge wait for the latest of their fences, whichever side it comes from.
func TestMergedRunsWaitForTheLatestFence(t *testing.T) {
	t.Parallel()
	for _, fences := range [][3]Fence{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
		for _, order := range [][3]uint32{{0, 1, 2}, {0, 2, 1}, {2, 1, 0}, {1, 0, 2}} {
			p := newPages()
			p.extend(3)
			p.setState(Run{0, 3}, lent, 1)
			for i, page := range order {
				p.addFree(Run{page, 1}, 1, fences[i])
			}
			assert.EqualValues(t, 3, p.table[0].run)
			assert.EqualValues(t, 3, p.table[0].fence, "%v in the order %v", fences, order)
		}
	}
}

// told is a free page as whoever returned it would have it.
type told struct {
	free   bool
	client Client // 0: clean
	fence  Fence
}

// Every page of a free run lies under the tag that it was freed with, and under a fence that is no earlier, however runs are
// cut and merged; and under no later one than the latest that its neighbours had.
func TestFreePagesKeepTheirTags(t *testing.T) {
	t.Parallel()
	const pageCount = 24
	rapid.Check(t, func(t *rapid.T) {
		p := newPages()
		p.extend(pageCount)
		p.setState(Run{0, pageCount}, lent, 9)
		var model [pageCount]told
		var latest Fence
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			at := uint32(rapid.IntRange(0, pageCount-1).Draw(t, "page"))
			pages := uint32(rapid.IntRange(1, 6).Draw(t, "pages"))
			if !model[at].free {
				run := Run{at, 0}
				for run.Pages < pages && at+run.Pages < pageCount && !model[at+run.Pages].free {
					run.Pages++
				}
				tag := told{free: true, client: Client(rapid.IntRange(0, 2).Draw(t, "client"))}
				if tag.client != 0 {
					tag.fence = Fence(rapid.IntRange(1, 9).Draw(t, "fence"))
					latest = max(latest, tag.fence)
				}
				p.addFree(run, tag.client, tag.fence)
				for i := run.First; i < run.First+run.Pages; i++ {
					model[i] = tag
				}
			} else {
				first := runAround(p, at)
				end := min(at+pages, first+p.table[first].run)
				p.takeFree(first, Run{at, end - at}, lent, 9)
				for i := at; i < end; i++ {
					model[i] = told{}
				}
			}
			checkTags(t, p, model[:], latest)
		}
	})
}

// runAround is the first page of the free run that a page lies in.
func runAround(p *pages, page uint32) uint32 {
	for at := uint32(0); ; {
		switch n := p.table[at].run; {
		case p.table[at].state != free:
			at++
		case page < at+n:
			return at
		default:
			at += n
		}
	}
}

// checkTags holds the runs against the pages.
func checkTags(t *rapid.T, p *pages, model []told, latest Fence) {
	for at := uint32(0); at < p.top(); {
		if p.table[at].state != free {
			require.False(t, model[at].free, "page %d", at)
			at++
			continue
		}
		run := p.table[at]
		for i := at; i < at+run.run; i++ {
			require.True(t, model[i].free, "page %d", i)
			require.Equal(t, model[i].client, run.client, "the client of page %d", i)
			require.GreaterOrEqual(t, run.fence, model[i].fence, "the fence of page %d", i)
		}
		require.LessOrEqual(t, run.fence, latest)
		at += run.run
	}
}

// The pages of an arena of any length end where a client can still count their units in 32 bits: the last one that does not is never
// mapped, for whomever.
func TestTheEndOfTheLongestArena(t *testing.T) {
	t.Parallel()
	const twoMiB, all = 2 << 20, uint32(1 << 20) // pages of an arena of 2 TiB
	for name, make := range map[string]func(int64, uint32, Settings) *Core{"virtual memory": New, "plain": NewPlain} {
		c := make(twoMiB, all, Settings{LimitBytes: 2 << 40})
		w, ok := c.room(1, all-3)
		assert.True(t, ok, name)
		assert.LessOrEqual(t, (uint64(w.run.First)+uint64(w.run.Pages))*(twoMiB/512), uint64(1<<32-twoMiB/512), name)
		_, ok = c.room(1, all)
		assert.False(t, ok, name)
	}
	assert.EqualValues(t, 7, New(twoMiB, 7, Settings{}).maxPages)
	assert.EqualValues(t, 7, New(1, 7, Settings{}).maxPages)
}

// A stream waits, for each other client whose pages it gets, for the latest of their fences, wherever in the window that lies; not for its
// own.
func TestAWindowAwaitsTheLatestFenceOfEachClient(t *testing.T) {
	t.Parallel()
	parts := []part{{Run{0, 1}, 1, 5}, {Run{1, 1}, 0, 0}, {Run{2, 1}, 1, 3}, {Run{3, 2}, 2, 2}, {Run{5, 1}, 3, 9}, {Run{6, 1}, 2, 4}, {Run{8, 1}, 1, 4}}
	for range 2 {
		j := &Job{request: &request{client: 3}, parts: slices.Clone(parts)}
		new(Core).awaitOps(j)
		assert.Equal(t, []Op{{Verb: Await, Of: 1, Fence: 5}, {Verb: Await, Of: 2, Fence: 4}}, j.Ops)
		assert.EqualValues(t, 3, j.Waiter)
		slices.Reverse(parts)
	}
	own := &Job{request: &request{client: 3}, parts: []part{{Run{5, 1}, 3, 9}, {Run{6, 1}, 0, 0}}}
	new(Core).awaitOps(own)
	assert.Empty(t, own.Ops)
	assert.Zero(t, own.Waiter)
}
