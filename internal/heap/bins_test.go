package heap

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestBinsRiseWithLength checks over all powers of two, their neighbours and every short length that a longer
// range never has a lower bin, and that all bins are used.
func TestBinsRiseWithLength(t *testing.T) {
	t.Parallel()
	var lengths []uint32
	for l := range uint32(1 << 14) {
		lengths = append(lengths, l)
	}
	for shift := 14; shift < 32; shift++ {
		for part := range uint64(64) { // each half bin of the doubling, and its neighbours
			at := uint64(1)<<shift + part<<shift>>6
			lengths = append(lengths, uint32(at-1), uint32(at), uint32(at+1))
		}
	}
	lengths = append(lengths, math.MaxUint32-1, math.MaxUint32)
	slices.Sort(lengths)
	used := map[int]bool{}
	for i, l := range lengths {
		bin := binOf(l)
		used[bin] = true
		require.True(t, 0 <= bin && bin < binCount, "length %d has bin %d", l, bin)
		if i > 0 {
			require.LessOrEqual(t, binOf(lengths[i-1]), bin, "lengths %d and %d", lengths[i-1], l)
		}
	}
	assert.Len(t, used, binCount)
	assert.Equal(t, binCount-1, binOf(math.MaxUint32))
}

// TestLengthsOfABinAreClose checks that the lengths of a bin differ by at most a 16th.
func TestLengthsOfABinAreClose(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Uint32Min(1).Draw(t, "a")
		b := a + a/16 + 1
		if b > a { // no overflow
			assert.Less(t, binOf(a), binOf(b))
		}
	})
}

// TestBinsFollowASortedSlice inserts, removes and finds ranges, and compares with a sorted slice of lengths.
func TestBinsFollowASortedSlice(t *testing.T) {
	t.Parallel()
	length := rapid.OneOf(rapid.Uint32Range(1, 40), rapid.Uint32Range(1000, 1100), rapid.Uint32Min(1))
	rapid.Check(t, func(t *rapid.T) {
		var b Bins
		b.Reset()
		var links []Link
		there := map[int32]uint32{}
		sorted := func() (lengths []uint32) {
			for _, l := range there {
				lengths = append(lengths, l)
			}
			slices.Sort(lengths)
			return lengths
		}
		insert := func(l uint32) {
			links = append(links, Link{})
			i := int32(len(links) - 1)
			b.Insert(links, i, l)
			there[i] = l
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				lengths := sorted()
				require.Equal(t, len(lengths), b.Count())
				if len(lengths) == 0 {
					require.Zero(t, b.Largest(links))
					return
				}
				require.Equal(t, lengths[len(lengths)-1], b.Largest(links))
			},
			"insert": func(t *rapid.T) { insert(length.Draw(t, "length")) },
			"insert many": func(t *rapid.T) {
				l := length.Draw(t, "length")
				for k := range uint32(12) {
					insert(max(l-k, 1))
				}
			},
			"remove": func(t *rapid.T) {
				if len(there) > 0 {
					i := rapid.SampledFrom(sortedKeys(there)).Draw(t, "range")
					b.Remove(links, i)
					delete(there, i)
				}
			},
			"fit": func(t *rapid.T) {
				want := length.Draw(t, "length")
				i, visits := b.Fit(links, want)
				lengths := sorted()
				at, _ := slices.BinarySearch(lengths, want)
				if at == len(lengths) {
					require.Equal(t, None, i)
					_, again := b.Fit(links, want)
					require.Zero(t, again, "a search in vain is not remembered")
					return
				}
				require.GreaterOrEqual(t, there[i], want, "missed a range of %d", lengths[at])
				require.LessOrEqual(t, visits, len(lengths))
			},
			"each": func(t *rapid.T) {
				from := length.Draw(t, "length")
				limit := rapid.IntRange(1, 20).Draw(t, "limit")
				var got []uint32
				b.Each(links, from, func(i int32) bool {
					got = append(got, there[i])
					return len(got) < limit
				})
				lengths := sorted()
				at, _ := slices.BinarySearch(lengths, from)
				require.Len(t, got, min(limit, len(lengths)-at))
				require.True(t, slices.IsSortedFunc(got, func(x, y uint32) int { return binOf(x) - binOf(y) }))
				for _, l := range got {
					require.GreaterOrEqual(t, l, from)
				}
			},
		})
	})
}

func sortedKeys(m map[int32]uint32) (keys []int32) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// TestFitTakesTheShortestOfThoseItLooksAt fixes the visited ranges: the newest of the wanted length's bin,
// else the newest of the next one.
func TestFitTakesTheShortestOfThoseItLooksAt(t *testing.T) {
	t.Parallel()
	fit := func(want uint32, oldestFirst ...uint32) (length uint32, visits int) {
		var b Bins
		b.Reset()
		links := make([]Link, len(oldestFirst))
		for i, l := range oldestFirst {
			b.Insert(links, int32(i), l)
		}
		i, visits := b.Fit(links, want)
		require.NotEqual(t, None, i)
		return links[i].length, visits
	}
	for name, c := range map[string]struct {
		want, length uint32
		visits       int
		ranges       []uint32 // oldest first
	}{
		"shortest of its own bin":               {1026, 1027, 3, []uint32{1028, 1027, 1029}},
		"exact ends the search":                 {1026, 1026, 2, []uint32{1027, 1026, 1028}},
		"too short ones of the bin are passed":  {1026, 1030, 3, []uint32{1024, 1030, 1025}},
		"oldest of its own bin is beyond limit": {1026, 1028, 8, []uint32{1027, 1028, 1028, 1028, 1028, 1028, 1028, 1028, 1028}},
		"shortest of the next bin":              {1026, 1089, 3, []uint32{1090, 1089, 1091}},
		"oldest of the next bin is beyond it":   {1026, 1090, 4, []uint32{1089, 1090, 1090, 1091, 1092}},
		"next bin after a limit of short ones":  {1026, 9000, 9, []uint32{1027, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 9000}},
		"rest of its own bin at last":           {1026, 1027, 9, []uint32{1027, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024}},
	} {
		length, visits := fit(c.want, c.ranges...)
		assert.Equal(t, c.length, length, name)
		assert.Equal(t, c.visits, visits, name)
	}
}

// TestEachLetsItsRangeGo removes every visited range and inserts a shorter one for it.
func TestEachLetsItsRangeGo(t *testing.T) {
	t.Parallel()
	var b Bins
	b.Reset()
	links := make([]Link, 200)
	for i := range int32(100) {
		b.Insert(links, i, 64+uint32(i))
	}
	visited := 0
	b.Each(links, 64, func(i int32) bool {
		visited++
		b.Remove(links, i)
		b.Insert(links, i+100, 63)
		return true
	})
	assert.Equal(t, 100, visited)
	assert.Equal(t, 100, b.Count())
	assert.EqualValues(t, 63, b.Largest(links))

	// The same range may come back, shorter.
	b.Reset()
	for i := range int32(100) {
		b.Insert(links, i, 64+uint32(i))
	}
	seen := map[int32]int{}
	b.Each(links, 64, func(i int32) bool {
		seen[i]++
		b.Remove(links, i)
		b.Insert(links, i, 1+uint32(i)%63)
		return true
	})
	assert.Len(t, seen, 100)
	for i, times := range seen {
		assert.Equal(t, 1, times, "range %d", i)
	}
}

// A visit from the longest down passes over ranges that are too short, also in the bin of the wanted length.
func TestEachLongestVisitsNoShorterRange(t *testing.T) {
	t.Parallel()
	var b Bins
	b.Reset()
	links := make([]Link, 300)
	for i := range int32(300) {
		b.Insert(links, i, 1+uint32(i))
	}
	for length := uint32(1); length <= 301; length++ {
		var seen []uint32
		b.EachLongest(links, length, func(i int32) bool { seen = append(seen, links[i].length); return true })
		require.Len(t, seen, int(301-length))
		for k, l := range seen {
			require.GreaterOrEqual(t, l, length)
			if k > 0 {
				require.LessOrEqual(t, binOf(l), binOf(seen[k-1]), "%d after %d", l, seen[k-1])
			}
		}
	}
}

// Bins that were emptied are like new ones.
func TestResetForgetsAll(t *testing.T) {
	t.Parallel()
	var b Bins
	b.Reset()
	links := make([]Link, 3)
	for i, length := range []uint32{1, 500, 1 << 20} {
		b.Insert(links, int32(i), length)
	}
	b.Reset()
	assert.Zero(t, b.Count())
	assert.Zero(t, b.Largest(links))
	i, visits := b.Fit(links, 1)
	assert.Equal(t, None, i)
	assert.Zero(t, visits)
	b.Each(links, 1, func(int32) bool { t.Error("a range of the past"); return true })
}

// A search that finds nothing does not hide the range that is a unit shorter, however many shorter ones are in its bin.
func TestASearchInVainHidesNothing(t *testing.T) {
	t.Parallel()
	const least = 1 << 12 // of a bin with 256 lengths
	for _, shorter := range []int{0, 1, scanLimit, 3 * scanLimit} {
		for _, wanted := range []uint32{least + 1, least + 100, least + 255} {
			var b Bins
			b.Reset()
			links := make([]Link, shorter+2)
			b.Insert(links, 0, wanted-1)
			for i := range shorter {
				b.Insert(links, int32(1+i), least)
			}
			i, _ := b.Fit(links, wanted)
			require.Equal(t, None, i)
			i, _ = b.Fit(links, wanted-1)
			require.NotEqual(t, None, i, "%d shorter than %d", shorter, wanted)
			require.Equal(t, wanted-1, links[i].length)
			longer := int32(shorter + 1)
			b.Insert(links, longer, wanted)
			i, _ = b.Fit(links, wanted)
			require.Equal(t, longer, i)
		}
	}
}
