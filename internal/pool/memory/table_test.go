package memory

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
)

// Runs of one client that merge wait for the latest of their fences, whichever side it comes from.
func TestMergedRunsWaitForTheLatestFence(t *testing.T) {
	t.Parallel()
	for _, fences := range [][3]Fence{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
		for _, order := range [][3]uint32{{0, 1, 2}, {0, 2, 1}, {2, 1, 0}, {1, 0, 2}} {
			p := newTable()
			p.extend(3)
			p.setState(Run{First: 0, Pages: 3}, Lent, 1)
			for i, page := range order {
				p.addFree(Run{First: page, Pages: 1}, Tag{1, fences[i]})
			}
			assert.EqualValues(t, 3, p.pages[0].run)
			assert.EqualValues(t, 3, p.pages[0].fence, "%v in the order %v", fences, order)
		}
	}
}

// told is a free page as the client that returned it would describe it.
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
		p := newTable()
		p.extend(pageCount)
		p.setState(Run{First: 0, Pages: pageCount}, Lent, 9)
		var model [pageCount]told
		var latest Fence
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			at := uint32(rapid.IntRange(0, pageCount-1).Draw(t, "page"))
			pages := uint32(rapid.IntRange(1, 6).Draw(t, "pages"))
			if !model[at].free {
				run := Run{First: at, Pages: 0}
				for run.Pages < pages && at+run.Pages < pageCount && !model[at+run.Pages].free {
					run.Pages++
				}
				tag := told{free: true, client: Client(rapid.IntRange(0, 2).Draw(t, "client"))}
				if tag.client != 0 {
					tag.fence = Fence(rapid.IntRange(1, 9).Draw(t, "fence"))
					latest = max(latest, tag.fence)
				}
				p.addFree(run, Tag{tag.client, tag.fence})
				for i := run.First; i < run.End(); i++ {
					model[i] = tag
				}
			} else {
				first := runAround(p, at)
				end := min(at+pages, first+p.pages[first].run)
				p.takeFree(first, Run{First: at, Pages: end - at}, Lent, 9)
				for i := at; i < end; i++ {
					model[i] = told{}
				}
			}
			checkTags(t, p, model[:], latest)
		}
	})
}

// runAround returns the first page of the free run that a page lies in.
func runAround(p *table, page uint32) uint32 {
	for at := uint32(0); ; {
		switch n := p.pages[at].run; {
		case p.pages[at].state != Free:
			at++
		case page < at+n:
			return at
		default:
			at += n
		}
	}
}

// checkTags holds the runs against the pages.
func checkTags(t *rapid.T, p *table, model []told, latest Fence) {
	for at := uint32(0); at < p.top(); {
		if p.pages[at].state != Free {
			require.False(t, model[at].free, "page %d", at)
			at++
			continue
		}
		run := p.pages[at]
		for i := at; i < at+run.run; i++ {
			require.True(t, model[i].free, "page %d", i)
			require.Equal(t, model[i].client, run.client, "the client of page %d", i)
			require.GreaterOrEqual(t, run.fence, model[i].fence, "the fence of page %d", i)
		}
		require.LessOrEqual(t, run.fence, latest)
		at += run.run
	}
}

// Pages that a job took are free again, each under the tag that it had, less the fences that have passed since: for any parts
// the pages had, in whichever order these were noted, and wherever the free pages begin and end.
func TestPartsKeepTheirTags(t *testing.T) {
	t.Parallel()
	const pageCount = 16
	rapid.Check(t, func(t *rapid.T) {
		p := newTable()
		p.extend(pageCount)
		p.setState(Run{First: 0, Pages: pageCount}, Busy, 0)
		var model [pageCount]told
		var all []Part
		for at := uint32(0); at < pageCount; {
			part := Part{Run: Run{First: at, Pages: min(uint32(rapid.IntRange(1, 5).Draw(t, "pages")), pageCount-at)}}
			if part.Tag.Client = Client(rapid.IntRange(0, 2).Draw(t, "client")); part.Tag.Client != 0 {
				part.Tag.Fence = Fence(rapid.IntRange(1, 4).Draw(t, "fence"))
			}
			all = append(all, part)
			at = part.Run.End()
		}
		passed := Tag{Client(rapid.IntRange(1, 2).Draw(t, "passed client")), Fence(rapid.IntRange(0, 4).Draw(t, "passed fence"))}
		for _, part := range all {
			if part.Tag.Client == passed.Client && part.Tag.Fence <= passed.Fence {
				part.Tag = Tag{}
			}
			for at := part.Run.First; at < part.Run.End(); at++ {
				model[at] = told{client: part.Tag.Client, fence: part.Tag.Fence}
			}
		}
		var parts Parts
		for _, part := range rapid.Permutation(all).Draw(t, "parts") {
			parts.Add(part)
		}
		parts.Pass(passed.Client, passed.Fence)
		first := uint32(rapid.IntRange(0, pageCount-1).Draw(t, "first"))
		freed := Run{First: first, Pages: uint32(rapid.IntRange(1, int(pageCount-first)).Draw(t, "freed"))}
		p.FreeParts(parts, freed)
		for at := freed.First; at < freed.End(); at++ {
			model[at].free = true
		}
		checkTags(t, p, model[:], 4)
	})
}

// The pages of an arena of any length end where a client can still count their units in 32 bits: the last one that does not is
// never mapped, for whomever.
func TestTheEndOfTheLongestArena(t *testing.T) {
	t.Parallel()
	const twoMiB, all = 2 << 20, uint32(1 << 20) // pages of an arena of 2 TiB
	for _, plain := range []bool{false, true} {
		m := New(twoMiB, all, plain)
		w, ok := m.Room(User{Client: 1}, all-3)
		assert.True(t, ok, plain)
		assert.LessOrEqual(t, (uint64(w.Run.First)+uint64(w.Run.Pages))*(twoMiB/512), uint64(1<<32-twoMiB/512), plain)
		_, ok = m.Room(User{Client: 1}, all)
		assert.False(t, ok, plain)
	}
	for pageUnits := uint32(1); pageUnits <= 1<<20; pageUnits *= 2 {
		assert.Equal(t, heap.MostPages(pageUnits), New(int64(pageUnits)<<sizeclass.UnitShift, 1<<32-1, false).MaxPages())
	}
	assert.EqualValues(t, 7, New(twoMiB, 7, false).MaxPages())
	assert.EqualValues(t, 7, New(1, 7, false).MaxPages())
}

// A stream waits, for each other client whose pages it gets, for the latest of their fences, wherever in the window that lies;
// not for its own.
func TestAWindowAwaitsTheLatestFenceOfEachClient(t *testing.T) {
	t.Parallel()
	part := func(page uint32, id Client, f Fence) Part { return Part{Run{First: page, Pages: 1}, Tag{id, f}} }
	parts := Parts{part(0, 1, 5), part(2, 1, 3), part(3, 2, 2), part(5, 3, 9), part(6, 2, 4), part(8, 1, 4)}
	for range 2 {
		j := &Job{Parts: slices.Clone(parts)}
		j.await(3)
		assert.Equal(t, []Op{{Verb: Await, Of: 1, Fence: 5}, {Verb: Await, Of: 2, Fence: 4}}, j.Ops)
		assert.EqualValues(t, 3, j.Waiter)
		slices.Reverse(parts)
	}
	own := &Job{Parts: Parts{part(5, 3, 9)}}
	own.await(3)
	assert.Empty(t, own.Ops)
	assert.Zero(t, own.Waiter)
}

// A client gets the shortest run that it may use without a wait: of runs this short each length has a bin of its own.
func TestFitTakesTheShortestRun(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const top = 40
		p := newTable()
		p.extend(top)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				at := rapid.Uint32Range(0, top-1).Draw(t, "page")
				if p.pages[at].state == Hole {
					p.addFree(Run{First: at, Pages: 1}, Tag{rapid.SampledFrom([]Client{0, 0, 1, 2}).Draw(t, "tag"), 1})
				}
			},
			"add many": func(t *rapid.T) {
				at := rapid.Uint32Range(0, top-9).Draw(t, "page")
				for i := at; i < at+9; i++ {
					if p.pages[i].state == Hole {
						p.addFree(Run{First: i, Pages: 1}, Tag{})
					}
				}
			},
			"take": func(t *rapid.T) {
				client, n := rapid.SampledFrom([]Client{1, 2, 3}).Draw(t, "client"), rapid.Uint32Range(1, 9).Draw(t, "pages")
				first, ok := p.fit(client, n)
				shortest := uint32(top + 1)
				p.eachFree(Run{Pages: top}, func(r Run) {
					if tag := p.pages[r.First].tag(); (tag.Client == 0 || tag.Client == client) && r.Pages >= n {
						shortest = min(shortest, r.Pages)
					}
				})
				require.Equal(t, shortest <= top, ok)
				if ok {
					require.Equal(t, shortest, p.pages[first].run)
					p.takeFree(first, Run{First: first, Pages: n}, Hole, 0)
				}
			},
		})
	})
}

// Pages go back to the client that returned them, once. While no client may have pages back, no free run is visited.
func TestPagesGoHomeOnce(t *testing.T) {
	t.Parallel()
	p := newTable()
	p.extend(8)
	p.addFree(Run{First: 0, Pages: 8}, Tag{})
	asked, lent := 0, []Run(nil)
	lendHome := func() {
		p.LendHome(func(id Client) bool { asked++; return id == 2 }, func(_ Client, r Run) { lent = append(lent, r) })
	}
	lendHome()
	assert.Zero(t, asked)
	p.SetHome(Run{First: 2, Pages: 3}, 2)
	lendHome()
	assert.Equal(t, []Run{{First: 2, Pages: 3}}, lent)
	before := asked
	lendHome()
	assert.Equal(t, before, asked)
	assert.Len(t, lent, 1)
}

// Handles side by side are unmapped by one call, in whichever order they are named.
func TestHandlesSideBySideAreUnmappedByOneCall(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := New(pageBytes, 64, false)
		var fill Job
		m.PlanFill(&fill, Plan{Window: Run{First: 0, Pages: 12}, MaxHandlePages: 2})
		perform(m, &fill, len(fill.Ops))
		m.FreeParts(fill.Parts, fill.Window)
		ids, _ := m.Victims(12*pageBytes, Run{})
		require.Len(t, ids, 6)
		ids = rapid.Permutation(ids).Draw(t, "ids")[:rapid.IntRange(1, 6).Draw(t, "count")]
		gone := map[uint32]bool{}
		for _, id := range ids {
			gone[m.handleOf[id].run.First/2] = true
		}
		calls := 0
		for at := range uint32(6) {
			if gone[at] && !gone[at-1] {
				calls++
			}
		}
		var j Job
		m.PlanShrink(&j, ids)
		unmaps := 0
		for _, op := range j.Ops {
			if op.Verb == Unmap {
				unmaps++
			}
		}
		require.Equal(t, calls, unmaps, "%v", gone)
		require.NoError(t, m.Check(true, map[Client]uint64{}))
	})
}

// Victims fill a window the longest first, in whichever order they are named.
func TestVictimsFillAWindowTheLongestFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := New(pageBytes, 64, false)
		at := uint32(0)
		for _, pages := range []uint32{1, 2, 3, 4} {
			var fill Job
			m.PlanFill(&fill, Plan{Window: Run{First: at, Pages: pages}, MaxHandlePages: 4})
			perform(m, &fill, len(fill.Ops))
			m.FreeParts(fill.Parts, fill.Window)
			at += pages
		}
		ids, _ := m.Victims(10*pageBytes, Run{})
		require.Len(t, ids, 4)
		ids = rapid.Permutation(ids).Draw(t, "ids")
		var j Job
		m.PlanFill(&j, Plan{Window: Run{First: 20, Pages: rapid.Uint32Range(4, 12).Draw(t, "pages")}, Victims: ids, MaxHandlePages: 4})
		last := uint32(4)
		for _, op := range j.Ops {
			if op.Verb == Map && op.Handle != 0 {
				require.LessOrEqual(t, op.Run.Pages, last)
				last = op.Run.Pages
			}
		}
		require.NoError(t, m.Check(true, map[Client]uint64{}))
	})
}

// Of free runs of one length a client gets its own, which others may not use yet; never a longer one.
func TestAClientGetsItsOwnOfEqualRuns(t *testing.T) {
	t.Parallel()
	m := mapped(t, 12)
	m.Lend(0, Run{First: 0, Pages: 12}, 1)
	m.Free(Run{First: 0, Pages: 3}, Tag{})
	m.Free(Run{First: 4, Pages: 3}, Tag{Client: 1, Fence: 1})
	m.Free(Run{First: 8, Pages: 4}, Tag{Client: 2, Fence: 1})
	for id, want := range map[Client]uint32{0: 0, 1: 4, 2: 0, 3: 0} {
		free, ok := m.Fit(id, 3)
		assert.True(t, ok)
		assert.Equal(t, want, free.Run.First, "of client %d", id)
	}
	free, ok := m.Fit(2, 4)
	assert.True(t, ok)
	assert.EqualValues(t, 8, free.Run.First)
	_, ok = m.Fit(1, 4)
	assert.False(t, ok)
}

// A give-back that fails loses every handle of the call, each once, and no other; what goes back later is not lost any more.
func TestAFailedUnmapLosesItsHandles(t *testing.T) {
	t.Parallel()
	m := mapped(t, 2, 3, 4)
	var all Job
	m.Lend(0, Run{First: 0, Pages: 9}, 1)
	m.PlanClose(&all)
	undo := Job{Purpose: Rollback, Ops: append([]Op{{Verb: Unmap, Run: Run{First: 0, Pages: 5}}}, all.Ops[1], all.Ops[3], all.Ops[4], all.Ops[5])}
	rest := m.Finish(&undo, 0, true).Undo
	assert.Equal(t, 5*m.PageBytes(), m.LostBytes(), "both that the call unmaps")
	assert.Equal(t, []Op{all.Ops[4], all.Ops[5]}, rest.Ops, "the third goes back")
	m.Finish(&rest, len(rest.Ops), false)
	assert.Equal(t, [...]int64{5 * m.PageBytes(), 5 * m.PageBytes()}, [...]int64{m.LostBytes(), m.ReservedBytes()})
	var last Job
	m.PlanClose(&last)
	m.Finish(&last, len(last.Ops), false)
	assert.Equal(t, [...]int64{0, 0}, [...]int64{m.LostBytes(), m.ReservedBytes()})
}

// Of handles of one length those in the shortest runs go first, so that long runs stay, then the first.
func TestVictimsOfOneLengthLieInTheShortestRuns(t *testing.T) {
	t.Parallel()
	m := mapped(t, 2, 2, 1, 2, 1, 2, 1, 3)
	m.Lend(0, Run{First: 4, Pages: 1}, 1)
	m.Lend(5, Run{First: 7, Pages: 1}, 1)
	m.Lend(8, Run{First: 10, Pages: 1}, 1)
	var firsts []uint32
	ids, sumBytes := m.Victims(9*m.PageBytes(), Run{})
	for _, id := range ids {
		firsts = append(firsts, m.Handle(id).Run.First)
	}
	assert.Equal(t, []uint32{11, 5, 8, 0}, firsts)
	assert.Equal(t, 9*m.PageBytes(), sumBytes)
}
