package batch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/sizeclass"
)

// blockUnits returns the length of the block that serves a request, by the package comment.
func blockUnits(units uint64) uint32 {
	if units <= sizeclass.MaxUnits {
		return sizeclass.BlockUnits(sizeclass.Of(units))
	}
	return uint32(units)
}

// members returns a group's requests.
func members(p *Plan, g *Group) []int {
	var all []int
	for i := g.First(); ; i = p.Next(i) {
		all = append(all, i)
		if len(all) == int(g.Count) {
			return all
		}
	}
}

// Each request is in the group of its block length, in the order of the requests, also in a plan that is used again.
func TestEveryRequestIsInItsGroup(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var p Plan
		length := rapid.OneOf(
			rapid.Uint64Range(1, sizeclass.MaxUnits), rapid.Uint64Range(sizeclass.MaxUnits, 1<<32-1),
			rapid.SampledFrom([]uint64{1, 2, sizeclass.MaxUnits, sizeclass.MaxUnits + 1, 1 << 20}),
		)
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			wanted := rapid.Uint64().Draw(t, "wanted")
			sizes := make([]int64, rapid.IntRange(0, Width).Draw(t, "count"))
			want := map[uint32][]int{}
			for i := range sizes {
				if i > 0 && rapid.Bool().Draw(t, "again") {
					sizes[i] = sizes[i-1]
				} else {
					sizes[i] = int64(length.Draw(t, "units")) * sizeclass.UnitBytes
				}
				if wanted>>i&1 != 0 {
					units := blockUnits(sizeclass.Units(sizes[i]))
					want[units] = append(want[units], i)
				}
			}
			p.Make(sizes, wanted)
			check := func() {
				require.Len(t, p.Groups(), len(want))
				for g := range p.Groups() {
					group := &p.Groups()[g]
					require.Equal(t, want[group.Units], members(&p, group), "%d units", group.Units)
				}
			}
			check()
			p.Order()
			check()
			for g := 1; g < len(p.Groups()); g++ {
				require.Greater(t, p.Groups()[g-1].Units, p.Groups()[g].Units)
			}
		}
	})
}

// Blocks that are laid one after the other into the runs of a packing, in the order of their requests, all fit. No run has a
// page too many, and no run with more than one block is longer than it may be.
func TestPackedBlocksFitTheirRuns(t *testing.T) {
	t.Parallel()
	const pageBytes = 2 << 20
	const pageUnits = pageBytes / sizeclass.UnitBytes
	rapid.Check(t, func(t *rapid.T) {
		p := NewPacking(pageBytes, make([]uint32, 3))
		var blocks []uint64
		for range rapid.IntRange(0, 12).Draw(t, "groups") {
			count := rapid.IntRange(1, 80).Draw(t, "count")
			if rapid.Bool().Draw(t, "small") {
				class := rapid.IntRange(0, sizeclass.Count-1).Draw(t, "class")
				p.Add(sizeclass.BlockUnits(class), count)
				n := int(sizeclass.SpanBlocks(class))
				for range (count + n - 1) / n {
					blocks = append(blocks, uint64(sizeclass.SpanUnits(class)))
				}
				continue
			}
			units := rapid.Uint32Range(sizeclass.MaxUnits+1, 1<<20).Draw(t, "units")
			p.Add(units, count)
			for range count {
				blocks = append(blocks, uint64(units))
			}
		}
		for _, pages := range p.Runs() {
			room := uint64(pages) * pageUnits
			var used uint64
			n := 0
			for n < len(blocks) && used+blocks[n] <= room && (n == 0 || used+blocks[n] <= packBytes/sizeclass.UnitBytes) {
				used += blocks[n]
				n++
			}
			require.Positive(t, n, "a run that holds no block")
			require.Less(t, room-used, uint64(pageUnits), "a run with a page too many")
			blocks = blocks[n:]
		}
		require.Empty(t, blocks)
	})
}

// A run is filled to its length and no further.
func TestARunIsFilled(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20 / sizeclass.UnitBytes
	p := NewPacking(2<<20, nil)
	p.Add(mib, 64)
	p.Add(40*mib, 1)
	p.Add(24*mib, 1)
	p.Add(mib, 1)
	p.Add(100*mib, 1)
	assert.Equal(t, []uint32{32, 32, 1, 50}, p.Runs())
}

// A block that is one unit longer than pages takes one page more.
func TestAUnitMoreTakesAPageMore(t *testing.T) {
	t.Parallel()
	const pageUnits = 2 << 20 / sizeclass.UnitBytes
	for pages := range uint32(4) {
		for more := range uint32(2) {
			if pages+more == 0 {
				continue
			}
			p := NewPacking(2<<20, nil)
			p.Add(pages*pageUnits+more, 1)
			assert.Equal(t, []uint32{pages + more}, p.Runs(), "%d pages and %d units", pages, more)
		}
	}
}

// An empty request needs no run.
func TestAnEmptyPackingHasNoRuns(t *testing.T) {
	t.Parallel()
	p := NewPacking(2<<20, nil)
	assert.Empty(t, p.Runs())
}

// BenchmarkPlan groups 64 requests: of one length, of eight, and each of its own.
func BenchmarkPlan(b *testing.B) {
	for _, c := range []struct {
		name    string
		lengths uint64
	}{{"one", 1}, {"eight", 8}, {"all", 64}} {
		b.Run(c.name, func(b *testing.B) {
			var p Plan
			sizes := make([]int64, Width)
			for i := range sizes {
				sizes[i] = int64(200+(uint64(i)%c.lengths)*16) * sizeclass.UnitBytes
			}
			for b.Loop() {
				p.Make(sizes, All)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/Width, "ns/request")
		})
	}
}
