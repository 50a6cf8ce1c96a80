package heap

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestHeapFollowsTheReference takes random steps and compares the heap after each with an array that names
// one owner for each unit.
func TestHeapFollowsTheReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		page := rapid.Uint32Range(0, modelPages-1)
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { m.check() },
			"grant": func(t *rapid.T) {
				m.grant(page.Draw(t, "first"), rapid.Uint32Range(1, 24).Draw(t, "pages"))
			},
			"take short": func(t *rapid.T) { m.take(rapid.Uint32Range(1, 3*modelPageUnits).Draw(t, "units")) },
			"take long":  func(t *rapid.T) { m.take(rapid.Uint32Range(1, modelUnits).Draw(t, "units")) },
			"take many": func(t *rapid.T) {
				units := rapid.Uint32Range(1, 4*modelPageUnits).Draw(t, "units")
				for range rapid.IntRange(1, 12).Draw(t, "count") {
					m.take(units)
				}
			},
			"carve": func(t *rapid.T) {
				m.carve(rapid.Uint32Range(1, 3*modelPageUnits).Draw(t, "units"), rapid.IntRange(1, 20).Draw(t, "most"))
			},
			"take aligned": func(t *rapid.T) {
				align := uint32(1) << rapid.IntRange(0, 6).Draw(t, "align")
				m.takeAligned(rapid.Uint32Range(1, 4*modelPageUnits).Draw(t, "units"), align, rapid.Uint32Range(0, align-1).Draw(t, "phase"))
			},
			"give": func(t *rapid.T) { m.giveSome(t, 1) },
			"give many": func(t *rapid.T) {
				m.giveSome(t, rapid.IntRange(2, 12).Draw(t, "count"))
			},
			"take pages":     func(t *rapid.T) { m.takePages(rapid.Uint32Range(0, 8).Draw(t, "limit")) },
			"take ranges":    func(t *rapid.T) { m.takeRanges(rapid.IntRange(1, 3).Draw(t, "count")) },
			"take all pages": func(*rapid.T) { m.takePages(^uint32(0)) },
		})
		for _, b := range m.ref.blocks() {
			m.give(b)
		}
		m.takePages(^uint32(0))
		m.check()
		require.Zero(t, m.heap.HeldUnits(), "all memory was free, and some pages stayed")
	})
}

func (m *model) giveSome(t *rapid.T, count int) {
	for range count {
		if blocks := m.ref.blocks(); len(blocks) > 0 {
			m.give(rapid.SampledFrom(blocks).Draw(t, "block"))
		}
	}
}

// FuzzHeap reads steps of two bytes: the action, and its length or place.
func FuzzHeap(f *testing.F) {
	f.Add([]byte{0, 0, 1, 5, 1, 9, 2, 0, 3, 255})                                // one run, two blocks, one comes back, all pages go
	f.Add([]byte{0, 4, 0, 12, 0, 8, 1, 64, 2, 0, 3, 1})                          // a gap between two runs closes
	f.Add([]byte{4, 0, 1, 70, 1, 69, 1, 68, 1, 67, 2, 0, 2, 1, 1, 67, 3, 2})     // lengths of one bin
	f.Add([]byte{4, 0, 5, 20, 2, 1, 2, 3, 2, 5, 2, 7, 1, 21, 5, 20, 3, 0, 0, 9}) // holes that are a unit too short
	f.Add([]byte{4, 0, 1, 255, 1, 255, 1, 255, 2, 1, 3, 4, 4, 0})                // a hole of pages inside a run, filled again
	f.Fuzz(func(t *testing.T, steps []byte) {
		m := newModel(t)
		for ; len(steps) >= 2; steps = steps[2:] {
			how := uint32(steps[1])
			switch steps[0] % 8 {
			case 0:
				m.grant(how%modelPages, 1+how/modelPages)
			case 1:
				m.take(1 + how)
			case 2:
				if blocks := m.ref.blocks(); len(blocks) > 0 {
					m.give(blocks[int(how)%len(blocks)])
				}
			case 3:
				m.takePages(how)
			case 4:
				m.grant(how%modelPages, modelPages)
			case 5:
				for range 8 {
					m.take(1 + how)
				}
			case 6:
				m.carve(1+how&31, 1+int(how>>5))
			case 7:
				m.takeAligned(1+how&15, 1<<(how>>5), (how>>4&1)<<(how>>5)>>1)
			}
			m.check()
		}
	})
}

// TestTakePagesOfNothingLeavesRunsWhole checks that a limit of no pages changes nothing.
func TestTakePagesOfNothingLeavesRunsWhole(t *testing.T) {
	t.Parallel()
	h := New(8)
	h.Grant(0, 4)
	require.Zero(t, h.TakePages(0, func(first, pages uint32) bool {
		t.Errorf("visited %d pages from %d", pages, first)
		return true
	}))
	require.NoError(t, h.Check())
	assert.EqualValues(t, 32, h.LargestFree())
}

// TestTakePagesGrowsItsBooks checks that the search continues in the right place when nodes for the cuts move
// the array.
func TestTakePagesGrowsItsBooks(t *testing.T) {
	t.Parallel()
	const ranges = 300
	h := New(8)
	h.Grant(0, 4*ranges)
	for range 2 * ranges { // halves of four pages
		h.Take(16)
	}
	for i := range int32(2 * ranges) {
		if b := blockAt(h, 32*uint32(i)+16); b != None { // the second halves
			h.Give(b)
		}
	}
	nodes := h.Nodes()
	assert.EqualValues(t, 2*ranges, h.TakePages(^uint32(0), func(uint32, uint32) bool { return true }))
	assert.Greater(t, h.Nodes(), nodes)
	require.NoError(t, h.Check())
	assert.Zero(t, h.FreeUnits())
}

// A block as long as a page that lies across two has no whole page: no part of it is taken or visited.
func TestABlockAcrossTwoPages(t *testing.T) {
	t.Parallel()
	const pageUnits = 8
	all := func(first, end uint32) (uint32, uint32) { return first, end }
	for name, take := range map[string]func(h *Heap, visit func(first, n uint32) bool){
		"some": func(h *Heap, visit func(first, n uint32) bool) { h.TakeSomePages(4, all, visit) },
		"longest": func(h *Heap, visit func(first, n uint32) bool) {
			h.TakeLongest(4, true, all, func(first, n uint32) { visit(first, n) })
		},
		"any": func(h *Heap, visit func(first, n uint32) bool) { h.TakePages(4, visit) },
		"fitting": func(h *Heap, visit func(first, n uint32) bool) {
			if first, n, ok := h.TakeFitting(1); ok {
				visit(first, n)
			}
		},
		"each": func(h *Heap, visit func(first, n uint32) bool) {
			h.EachPages(func(first, end uint32) { visit(first, end-first) })
		},
	} {
		h := New(pageUnits)
		h.Grant(0, 2)
		h.Take(4)
		hole := h.Take(pageUnits)
		h.Take(4)
		h.Give(hole)
		take(h, func(first, n uint32) bool {
			t.Errorf("%s: %d pages from page %d", name, n, first)
			return true
		})
		require.NoError(t, h.Check(), name)
	}
}

// TestTakeSomePagesTakesAPartOfEachBlock checks that one call takes a part of every block that has one, up to the limit, and visits each
// part, and that the visitor can end it. The shorter blocks come first; the one of two pages has no part.
func TestTakeSomePagesTakesAPartOfEachBlock(t *testing.T) {
	t.Parallel()
	parts := [][2]uint32{{21, 1}, {31, 2}, {1, 3}}
	for _, c := range []struct {
		limit  uint32
		visits int
		want   [][2]uint32
	}{
		{100, 100, parts},
		{6, 100, parts},
		{5, 100, [][2]uint32{{21, 1}, {31, 2}, {1, 2}}},
		{3, 100, parts[:2]},
		{1, 100, parts[:1]},
		{0, 100, nil},
		{100, 2, parts[:2]},
		{100, 1, parts[:1]},
	} {
		h := New(8)
		h.Grant(0, 5) // not neighbours
		h.Grant(10, 2)
		h.Grant(20, 3)
		h.Grant(30, 4)
		var visited [][2]uint32
		taken := h.TakeSomePages(c.limit, func(first, end uint32) (from, to uint32) { return first + 1, end - 1 }, func(first, n uint32) bool {
			visited = append(visited, [2]uint32{first, n})
			return len(visited) < c.visits
		})
		assert.Equal(t, c.want, visited, c)
		sum := uint32(0)
		for _, part := range c.want {
			sum += part[1]
		}
		assert.Equal(t, sum, taken, c)
		assert.EqualValues(t, 8*(14-taken), h.FreeUnits(), c)
		require.NoError(t, h.Check())
	}
}

// blockAt returns the used block that starts at a unit, or None.
func blockAt(h *Heap, offset uint32) int32 {
	for i, n := range h.nodes {
		if n.state == Used && n.offset == offset {
			return int32(i)
		}
	}
	return None
}

// TestCheckSeesWhatIsWrong breaks each part of the books once.
func TestCheckSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	build := func() (h *Heap, used, hole int32) {
		h = New(8)
		h.Grant(2, 8)
		used, hole = h.Take(9), h.Take(17)
		h.Take(5)
		h.Give(hole)
		require.NoError(t, h.Check())
		return h, used, hole
	}
	for name, damage := range map[string]func(h *Heap, used, hole int32){
		"gap":              func(h *Heap, used, _ int32) { h.nodes[used].units-- },
		"left neighbour":   func(h *Heap, _, hole int32) { h.nodes[hole].prev = hole },
		"used though free": func(h *Heap, _, hole int32) { h.nodes[hole].state = Used },
		"free though used": func(h *Heap, used, _ int32) { h.nodes[used].state = Free },
		"binned length":    func(h *Heap, _, hole int32) { h.links[hole].length++ },
		"lost range":       func(h *Heap, _, hole int32) { h.bins.Remove(h.links, hole); h.bins.count++ },
		"range twice":      func(h *Heap, _, hole int32) { h.links[hole].next = hole },
		"lost node":        func(h *Heap, _, _ int32) { h.newNode() },
		"bound":            func(h *Heap, _, _ int32) { h.bins.bins[17].bound = 16 },
		"bound of nothing": func(h *Heap, _, _ int32) { h.bins.bins[40].bound = 16 },
		"bitmap":           func(h *Heap, _, _ int32) { h.bins.words[0] |= 2 },
		"summary":          func(h *Heap, _, _ int32) { h.bins.summary |= 4 },
		"free units":       func(h *Heap, _, _ int32) { h.freeUnits++ },
		"held units":       func(h *Heap, _, _ int32) { h.heldUnits-- },
		"start":            func(h *Heap, _, _ int32) { h.starts[3] = h.starts[2] },
		"end":              func(h *Heap, _, _ int32) { h.ends[9] = 0 },
		"no edge":          func(h *Heap, _, _ int32) { delete(h.ends, 10) },
		"not merged": func(h *Heap, used, hole int32) { // the books are right but for that
			h.bins.Insert(h.links, used, h.nodes[used].units)
			h.nodes[used].state = Free
			h.freeUnits += uint64(h.nodes[used].units)
			assert.Equal(t, hole, h.nodes[used].next)
		},
	} {
		h, used, hole := build()
		damage(h, used, hole)
		assert.Error(t, h.Check(), name)
	}
}

// Check ends, and sees a list of unused nodes that has no end, however many of the nodes are unused.
func TestCheckSeesUnusedNodesInACircle(t *testing.T) {
	t.Parallel()
	for pages := range uint32(3) {
		h := New(8)
		if pages > 0 {
			h.Grant(2, pages)
		}
		for range 2 {
			h.drop(h.newNode())
		}
		a, b := h.newNode(), h.newNode()
		h.drop(a)
		h.drop(b)
		require.NoError(t, h.Check())
		h.nodes[a].next = b
		assert.ErrorContains(t, h.Check(), "unused", "%d pages", pages)
	}
}

// The visit of runs is in the order of their pages, whichever was granted first, and has all of their blocks.
func TestRunsAreVisitedInOrder(t *testing.T) {
	t.Parallel()
	const runs = 40
	h := New(8)
	for i := range uint32(runs) {
		h.Grant(i*7%runs*3, 2)
		h.Take(3)
	}
	var at, units uint32
	h.EachRun(func(block int32, s State) {
		require.GreaterOrEqual(t, h.Offset(block), at)
		at = h.Offset(block) + h.Units(block)
		units += h.Units(block)
		require.Contains(t, []State{Free, Used}, s)
	})
	assert.Equal(t, h.HeldUnits(), uint64(units))
}

// The last page that a heap can name can be granted and taken: every end up to there fits 32 bits.
func TestTheLastPage(t *testing.T) {
	t.Parallel()
	for _, pageUnits := range []uint32{1, 8, 4096, 1 << 20} {
		last := MostPages(pageUnits) - 1
		assert.LessOrEqual(t, uint64(last+1)*uint64(pageUnits)+uint64(pageUnits)-1, uint64(1<<32-1), "rounded up to a page")
		h := New(pageUnits)
		h.Grant(last, 1)
		require.NoError(t, h.Check())
		h.Grant(last-1, 1)
		require.NoError(t, h.Check())
		b := h.Take(2 * pageUnits)
		require.NotEqual(t, None, b)
		assert.Equal(t, (last-1)*pageUnits, h.Offset(b))
		h.Give(b)
		var got []uint32
		assert.EqualValues(t, 2, h.TakePages(2, func(first, pages uint32) bool {
			got = append(got, first, pages)
			return true
		}))
		assert.Equal(t, []uint32{last - 1, 2}, got)
		assert.Zero(t, h.HeldUnits())
		require.NoError(t, h.Check())
	}
}

// Blocks that come and go in any order cost no memory in the long run: each merge leaves a node for the next block.
func TestMergesKeepNoNodes(t *testing.T) {
	t.Parallel()
	for _, count := range []int{4, 300} {
		h := New(8)
		h.Grant(0, uint32(count)) //nolint:gosec // a few
		round := func(order func(i int) int) {
			var blocks []int32
			for range count {
				block := h.Take(8)
				require.NotEqual(t, None, block)
				blocks = append(blocks, block)
			}
			for i := range count {
				h.Give(blocks[order(i)])
			}
			require.NoError(t, h.Check())
			require.Equal(t, 1, h.FreeRanges())
		}
		rising := func(i int) int { return i }
		round(rising)
		nodes := h.Nodes()
		for range 4 {
			round(rising)                                                 // with the left neighbour
			round(func(i int) int { return count - 1 - i })               // with the right one
			round(func(i int) int { return 2*i%count + 2*i/count })       // with both
			round(func(i int) int { return (2*i+1)%count - 2*i/count%2 }) // likewise
		}
		require.Equal(t, nodes, h.Nodes())
	}
}
