package memorymap_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/memorymap"
)

// Equal neighbours are one range; others stay apart.
func TestEqualNeighboursAreOneRange(t *testing.T) {
	t.Parallel()
	var b memorymap.Builder
	b.Add(memorymap.Range{Start: 0, Bytes: 10, State: memorymap.Live, Stream: 1, Tag: "a", Buffers: 1})
	b.Add(memorymap.Range{Start: 10, Bytes: 10, State: memorymap.Live, Stream: 1, Tag: "a", Buffers: 1})
	b.Add(memorymap.Range{Start: 20, Bytes: 10, State: memorymap.Live, Stream: 1, Tag: "b", Buffers: 1})
	b.Add(memorymap.Range{Start: 30, Bytes: 0, State: memorymap.Free})
	b.Add(memorymap.Range{Start: 30, Bytes: 10, State: memorymap.Live, Stream: 2, Tag: "b", Buffers: 1})
	b.Add(memorymap.Range{Start: 50, Bytes: 10, State: memorymap.Live, Stream: 2, Tag: "b", Buffers: 1})
	b.Add(memorymap.Range{Start: 60, Bytes: 10, State: memorymap.Live, Stream: 2, Tag: "b", Asleep: true, Buffers: 1})
	assert.Equal(t, []memorymap.Range{
		{Start: 0, Bytes: 20, State: memorymap.Live, Stream: 1, Tag: "a", Buffers: 2},
		{Start: 20, Bytes: 10, State: memorymap.Live, Stream: 1, Tag: "b", Buffers: 1},
		{Start: 30, Bytes: 10, State: memorymap.Live, Stream: 2, Tag: "b", Buffers: 1},
		{Start: 50, Bytes: 10, State: memorymap.Live, Stream: 2, Tag: "b", Buffers: 1},
		{Start: 60, Bytes: 10, State: memorymap.Live, Stream: 2, Tag: "b", Asleep: true, Buffers: 1},
	}, b.List())
	assert.Empty(t, b.List())

	b.Add(memorymap.Range{Start: 0, Bytes: 1, State: memorymap.Live, Buffers: 1})
	b.Add(memorymap.Range{Start: 1, Bytes: 1, State: memorymap.Live, Buffers: 1})
	assert.Equal(t, []memorymap.Range{{Start: 0, Bytes: 2, State: memorymap.Live, Buffers: 2}}, b.List())
}

// Neighbours are one range wherever they begin and however long each is, and only those without a gap between them are.
func TestNeighboursOfAnyPlaceAndLength(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var b memorymap.Builder
		var want []memorymap.Range
		next := rapid.Int64Range(0, 4).Draw(t, "start")
		for i := range rapid.IntRange(1, 6).Draw(t, "ranges") {
			bytes, gap := rapid.Int64Range(1, 4).Draw(t, "bytes"), rapid.Int64Range(0, 1).Draw(t, "gap")
			next += gap
			b.Add(memorymap.Range{Start: next, Bytes: bytes, State: memorymap.Live, Buffers: 1})
			if i == 0 || gap > 0 {
				want = append(want, memorymap.Range{Start: next, State: memorymap.Live})
			}
			last := &want[len(want)-1]
			last.Bytes += bytes
			last.Buffers++
			next += bytes
		}
		require.Equal(t, want, b.List())
	})
}

// Short neighbours in one cell are mixed, with their sums; a long range keeps its borders.
func TestShortNeighboursAreMixed(t *testing.T) {
	t.Parallel()
	b := memorymap.Builder{ResolutionBytes: 100}
	b.Add(memorymap.Range{Start: 0, Bytes: 30, State: memorymap.Live, Stream: 1, Buffers: 2})
	b.Add(memorymap.Range{Start: 30, Bytes: 30, State: memorymap.Free, Stream: 1})
	b.Add(memorymap.Range{Start: 60, Bytes: 60, State: memorymap.Pending, Stream: 2, Asleep: true})
	b.Add(memorymap.Range{Start: 120, Bytes: 200, State: memorymap.CachedRange, Stream: 1})
	b.Add(memorymap.Range{Start: 320, Bytes: 10, State: memorymap.Busy})
	sums := &memorymap.Sums{AsleepBytes: 60, UnpassedBytes: 30}
	sums.Bytes[memorymap.Live], sums.Bytes[memorymap.Free], sums.Bytes[memorymap.Pending] = 30, 30, 60
	assert.Equal(t, []memorymap.Range{
		{Start: 0, Bytes: 120, State: memorymap.Mixed, Buffers: 2, Sums: sums},
		{Start: 120, Bytes: 200, State: memorymap.CachedRange, Stream: 1},
		{Start: 320, Bytes: 10, State: memorymap.Busy},
	}, b.List())
}

// A range of just the resolution is separate, and one of a byte less is short.
func TestARangeOfTheResolutionIsSeparate(t *testing.T) {
	t.Parallel()
	for _, resolutionBytes := range []int64{1, 2, 100, 512} {
		for bytes := max(1, resolutionBytes-1); bytes <= resolutionBytes+1; bytes++ {
			for _, ranges := range [][]memorymap.Range{
				{{Bytes: bytes, State: memorymap.Live, Buffers: 1}, {Start: bytes, Bytes: 1, State: memorymap.Free}},
				{{Bytes: 1, State: memorymap.Free}, {Start: 1, Bytes: bytes, State: memorymap.Live, Buffers: 1}},
			} {
				b := memorymap.Builder{ResolutionBytes: resolutionBytes}
				for _, r := range ranges {
					b.Add(r)
				}
				list := b.List()
				if bytes < resolutionBytes {
					require.Len(t, list, 1, "%d bytes of %d", bytes, resolutionBytes)
					assert.Equal(t, memorymap.Mixed, list[0].State)
					continue
				}
				assert.Equal(t, ranges, list, "%d bytes of %d", bytes, resolutionBytes)
			}
		}
	}
}

// Short neighbours in the same state keep it; their other differences are dropped.
func TestShortNeighboursInOneStateKeepIt(t *testing.T) {
	t.Parallel()
	b := memorymap.Builder{ResolutionBytes: 100}
	b.Add(memorymap.Range{Start: 0, Bytes: 30, State: memorymap.Live, Stream: 1, Tag: "a", Buffers: 1})
	b.Add(memorymap.Range{Start: 30, Bytes: 30, State: memorymap.Live, Stream: 2, Tag: "a", Buffers: 1})
	b.Add(memorymap.Range{Start: 60, Bytes: 10, State: memorymap.Live, Stream: 2, Tag: "b", Buffers: 1})
	assert.Equal(t, []memorymap.Range{{Start: 0, Bytes: 70, State: memorymap.Live, Buffers: 3}}, b.List())

	b.Add(memorymap.Range{Start: 0, Bytes: 1, State: memorymap.Live, Stream: 1, Tag: "a", Buffers: 1})
	b.Add(memorymap.Range{Start: 1, Bytes: 30, State: memorymap.Live, Stream: 2, Tag: "a", Buffers: 1})
	assert.Equal(t, []memorymap.Range{{Start: 0, Bytes: 31, State: memorymap.Live, Tag: "a", Buffers: 2}}, b.List(), "a tag in common stays")

	b.Add(memorymap.Range{Start: 0, Bytes: 30, State: memorymap.Free})
	b.Add(memorymap.Range{Start: 30, Bytes: 30, State: memorymap.Free, Stream: 2})
	sums := &memorymap.Sums{UnpassedBytes: 30}
	sums.Bytes[memorymap.Free] = 60
	assert.Equal(t, []memorymap.Range{{Start: 0, Bytes: 60, State: memorymap.Mixed, Sums: sums}}, b.List(),
		"how much of it is for one stream alone is known")
}

// A list covers the added ranges, without overlaps, with the same sums, in at most two ranges for each cell;
// a list of that list does, too.
func TestListsKeepWhatWasAdded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := memorymap.Builder{ResolutionBytes: rapid.Int64Range(0, 64).Draw(t, "resolution")}
		second := memorymap.Builder{ResolutionBytes: rapid.Int64Range(1, 256).Draw(t, "next resolution")}
		covered, gaps, at, buffers := map[int64]bool{}, 1, int64(0), 0
		var want memorymap.Sums
		for range rapid.IntRange(0, 60).Draw(t, "ranges") {
			if skip := rapid.Int64Range(-20, 9).Draw(t, "gap"); skip > 0 {
				at += skip
				gaps++
			}
			r := memorymap.Range{
				Start: at, Bytes: rapid.Int64Range(0, 90).Draw(t, "bytes"),
				State:  memorymap.State(rapid.IntRange(0, memorymap.StateSize-1).Draw(t, "state")), //nolint:gosec // a few
				Stream: rapid.Uint32Range(0, 2).Draw(t, "stream"), Asleep: rapid.Bool().Draw(t, "asleep"),
			}
			if r.Bytes > 0 {
				r.Buffers = 1
			}
			for i := range r.Bytes {
				covered[r.Start+i] = true
			}
			at += r.Bytes
			buffers += r.Buffers
			r.AddTo(&want)
			first.Add(r)
		}
		list := first.List()
		resolution := first.ResolutionBytes
		for range 2 {
			var sums memorymap.Sums
			end, bytes, begun := int64(0), 0, 0
			for _, r := range list {
				require.GreaterOrEqual(t, r.Start, end, "ranges overlap")
				require.Positive(t, r.Bytes)
				end = r.End()
				for i := range r.Bytes {
					require.True(t, covered[r.Start+i])
				}
				bytes += int(r.Bytes)
				begun += r.Buffers
				r.AddTo(&sums)
			}
			require.Len(t, covered, bytes)
			require.Equal(t, want, sums)
			require.Equal(t, buffers, begun)
			if resolution > 0 {
				require.LessOrEqual(t, int64(len(list)), 2*(at/resolution+1)+int64(gaps))
			}
			for _, r := range list {
				second.Add(r)
			}
			resolution = second.ResolutionBytes
			list = second.List()
		}
	})
}
