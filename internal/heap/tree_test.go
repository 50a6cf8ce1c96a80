package heap

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTreeFindsTheLowestKey holds the tree against a table of keys that is looked through from the start.
func TestTreeFindsTheLowestKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const keys = 64
		var lengths [keys]uint32 // by key; 0 is not there
		var tree Tree
		tree.Reset()
		index := func(key int) int32 { return int32(key * 7 % keys) } // the order of indexes says nothing
		count := 0
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				require.Equal(t, count, tree.Count())
				require.NoError(t, tree.Check(func(int32, uint32, uint32) error { return nil }))
				for want := uint32(1); want <= 10; want++ {
					expected := None
					for key, length := range lengths {
						if length >= want {
							expected = index(key)
							break
						}
					}
					i, _ := tree.First(want)
					require.Equal(t, expected, i, "of at least %d in %v", want, lengths)
				}
			},
			"turn": func(t *rapid.T) {
				key := rapid.IntRange(0, keys-1).Draw(t, "key")
				if lengths[key] > 0 {
					tree.Remove(index(key))
					lengths[key] = 0
					count--
					return
				}
				lengths[key] = rapid.Uint32Range(1, 9).Draw(t, "length")
				tree.Insert(index(key), uint32(key), lengths[key])
				count++
			},
		})
	})
}

// TestFirstFitLooksAtFewRanges: a search looks at no more ranges than the tree is deep, and the depth stays
// logarithmic also where keys and indexes rise together.
func TestFirstFitLooksAtFewRanges(t *testing.T) {
	t.Parallel()
	for ranges, most := range map[int]uint64{1_000: 30, 100_000: 50} {
		h := perforated(ranges, 128, 4096)
		h.Configure(FirstFit, 0)
		require.NoError(t, h.Check())
		r := rand.New(rand.NewPCG(1, 2))
		for range 10_000 {
			before := h.Visits()
			b := h.Take(128 + r.Uint32N(3900))
			require.LessOrEqual(t, h.Visits()-before, most, "among %d ranges", ranges)
			if b != None {
				h.Give(b)
			}
		}
		assert.Equal(t, None, h.Take(1<<20))
	}
}

// TestKeptApartServesItsOwnLength: a short block that comes back is there as it was, and is merged when a longer
// one is wanted.
func TestKeptApartServesItsOwnLength(t *testing.T) {
	t.Parallel()
	h := New(64)
	h.Configure(BestFit, 16)
	h.Grant(0, 1)
	var blocks []int32
	for range 8 {
		blocks = append(blocks, h.Take(8))
	}
	for _, b := range blocks {
		assert.EqualValues(t, 8, h.Give(b))
	}
	require.NoError(t, h.Check())
	assert.Equal(t, 8, h.FreeRanges())
	h.Give(h.Take(8))
	assert.Equal(t, 8, h.FreeRanges())
	assert.EqualValues(t, 16, h.Units(h.Take(16)), "no piece is so long")
	assert.Equal(t, 1, h.FreeRanges(), "and the rest is one range")
	require.NoError(t, h.Check())
}
