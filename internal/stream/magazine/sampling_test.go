package magazine

import (
	"cmp"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
)

// chiSquare compares counts of draws by cell with equal chances: so many standard
// deviations of the statistic above its mean.
func chiSquare(counts []int, draws int) (sigmas float64) {
	mean := float64(draws) / float64(len(counts))
	var sum float64
	for _, n := range counts {
		sum += (float64(n) - mean) * (float64(n) - mean) / mean
	}
	freedom := float64(len(counts) - 1)
	return (sum - freedom) / math.Sqrt(2*freedom)
}

const firstAddress cudadrv.Ptr = 0x7f40_0000_0000

// The draws of one slot that is used again and again, of many slots used once each, and of both, are spread
// evenly, and so are pairs of draws that follow each other by generation, by address, or at steps like those of
// loops that use several slots in turns.
func TestDrawsAreSpreadEvenly(t *testing.T) {
	const draws, cells = 1 << 18, 256
	cell := func(address cudadrv.Ptr, generation int) int {
		return int(Draw(address, uint64(generation)<<generationShift) >> (drawBits - 8))
	}
	for name, at := range map[string]func(i int) int{
		"one slot":                 func(i int) int { return cell(firstAddress, i) },
		"another slot":             func(i int) int { return cell(firstAddress+3<<20, i) },
		"first generations":        func(i int) int { return cell(firstAddress+cudadrv.Ptr(i)<<9, 0) },
		"slots of 1 MiB":           func(i int) int { return cell(firstAddress+cudadrv.Ptr(i)<<20, 7) },
		"62 slots in turns":        func(i int) int { return cell(firstAddress+cudadrv.Ptr(i%62)<<12, i/62) },
		"each second generation":   func(i int) int { return cell(firstAddress, 2*i) },
		"each 89th, by Fibonacci":  func(i int) int { return cell(firstAddress, 89*i) },
		"each 65536th generation":  func(i int) int { return cell(firstAddress, 65536*i) },
		"late generations":         func(i int) int { return cell(firstAddress, 1<<40+i) },
		"as streams number claims": func(i int) int { return int(DrawClaim(3, uint64(i)) >> (drawBits - 8)) },
	} {
		counts, pairs := make([]int, cells), make([]int, 1<<12)
		for i := range draws {
			counts[at(i)]++
			pairs[at(i)>>2<<6|at(i+1)>>2]++
		}
		assert.InDelta(t, 0, chiSquare(counts, draws), 4.5, name)
		assert.InDelta(t, 0, chiSquare(pairs, draws), 4.5, "pairs of %s", name)
	}
}

// A loop that uses one slot again and again is sampled at the right rate, for any slot and length,
// and its samples are as far apart as random ones are.
func TestOneSlotIsSampledAtItsRate(t *testing.T) {
	const generations = 1 << 20
	thresholds := [...]uint32{5 << 20, 1 << 18, 3 << 12, 1 << 9} // from the largest on
	for slot := range 64 {
		address := firstAddress + cudadrv.Ptr(slot)*7<<14
		var hits, longest, last [len(thresholds)]int // samples, the longest gap between two, and the generation of the last one
		for generation := range generations {
			drawn := Draw(address, uint64(generation)<<generationShift)
			for i := 0; i < len(thresholds) && drawn < thresholds[i]; i++ {
				hits[i]++
				longest[i], last[i] = max(longest[i], generation+1-last[i]), generation+1
			}
		}
		for i, threshold := range thresholds {
			p := float64(threshold) / float64(Everything)
			spread := math.Sqrt(generations * p * (1 - p))
			require.InDelta(t, generations*p, float64(hits[i]), 4.5*spread, "slot %d, threshold %d", slot, threshold)
			require.Less(t, float64(longest[i]), (math.Log(generations*p+1)+10)/-math.Log1p(-p)+1, "the longest gap of slot %d, threshold %d", slot, threshold)
		}
	}
}

// A threshold is the share of the block, at most everything, and a sampled block's weight is exact: the chance that
// it stands for is the chance with which it was drawn.
func TestThresholds(t *testing.T) {
	for _, c := range []struct {
		share Share
		units uint64
		want  uint32
	}{
		{0, 1, 0},
		{0, 1 << 31, 0},
		{1, 1, 1},
		{64, 8, 512},
		{64, 1 << 25, uint32(Everything)},
		{64, 1<<25 - 1, uint32(Everything) - 64},
		{Everything, 1, uint32(Everything)},
		{Everything, math.MaxUint32, uint32(Everything)},
	} {
		assert.Equal(t, c.want, c.share.Threshold(c.units), "%d of %d units", c.share, c.units)
	}
	for generation := range uint64(1 << 16) {
		require.Less(t, Draw(firstAddress, generation<<generationShift), uint32(Everything))
	}
}

// told counts the allocations that a cache tells.
type told struct {
	unserved
	sampled int
}

func (n *told) AllocSampled(s *Slot, handle uint64, bytes int64) (*Slot, uint64, int64, error) {
	n.sampled++
	return s, handle, bytes, nil
}

// Alloc samples as the draws decide, in each magazine, also where a bucket is sharded.
func TestAllocTellsWhatIsSampled(t *testing.T) {
	d := newDesk()
	count := &told{}
	d.cache.Extend(count)
	m := d.owner.Spans.New(0, 1, firstAddress)
	d.owner.Spans.Install(m, 0)
	const pairs = 1 << 16
	run := func() (drawn int) {
		count.sampled = 0
		for range pairs {
			s, handle, _, err := d.cache.Alloc(100)
			if err == nil && s.Draw(handle) < d.cache.Share().Threshold(uint64(s.magazine.UnitsOf(s))) {
				drawn++
			}
			if err = cmp.Or(err, s.Free(handle)); err != nil {
				require.NoError(t, err)
			}
		}
		return drawn
	}
	assert.Zero(t, run())
	assert.Zero(t, count.sampled)
	d.owner.SetShare(Everything >> 6)
	assert.Equal(t, run(), count.sampled)
	assert.InDelta(t, pairs>>6, count.sampled, 5*32)

	m.contended.Store(contendedLimit)
	require.True(t, d.owner.Spans.Shard(m, Hint()))
	assert.Equal(t, run(), count.sampled)
	assert.InDelta(t, pairs>>6, count.sampled, 5*32)

	d.cache.LowerShare(3)
	assert.Equal(t, run(), count.sampled)
	assert.InDelta(t, pairs>>9, count.sampled, 5*12)
	d.cache.LowerShare(31)
	assert.EqualValues(t, 1, d.cache.Share(), "a stream is never without samples")
	d.cache.LowerShare(0)
	assert.Equal(t, Everything>>6, d.cache.Share(), "the whole share again")
	d.owner.SetShare(Everything)
	d.cache.LowerShare(1)
	assert.Equal(t, pairs, run(), "what samples everything is not lowered")
	assert.Equal(t, pairs, count.sampled)

	d.owner.SetShare(0)
	d.cache.LowerShare(0)
	assert.Zero(t, d.cache.Share(), "no samples come back")
	assert.Zero(t, run())
	assert.Zero(t, count.sampled)
}

// The length of the block decides, not of the request, also where the bucket is contended.
func TestShortRequestsAreSampledAsTheirBlocks(t *testing.T) {
	t.Parallel()
	const bytes = 17 << sizeclass.UnitShift // in blocks of 18 units
	d := newDesk()
	count := &told{}
	d.cache.Extend(count)
	class := sizeclass.Of(17)
	m := d.owner.Spans.New(class, 1, firstAddress)
	d.owner.Spans.Install(m, 0)
	d.owner.SetShare(Everything / 36)
	for _, sharded := range []bool{false, true} {
		if sharded {
			m.contended.Store(contendedLimit)
			require.True(t, d.owner.Spans.Shard(m, Hint()))
		}
		differ := 0
		for range 2000 {
			before := count.sampled
			s, handle, _, err := d.cache.Alloc(bytes)
			require.NoError(t, err)
			require.EqualValues(t, 18, m.UnitsOf(s))
			want := d.cache.Share().Samples(s.Draw(handle), 18)
			require.Equal(t, want, count.sampled > before)
			if want != d.cache.Share().Samples(s.Draw(handle), 17) {
				differ++
			}
			require.NoError(t, s.Free(handle))
		}
		assert.Positive(t, differ)
	}
}

// Setting the share that is set already keeps a lowered one; another one replaces it.
func TestAShareThatIsSetAgainStaysLowered(t *testing.T) {
	t.Parallel()
	c, o, _ := cacheOf(0)
	o.SetShare(1 << 10)
	c.LowerShare(3)
	o.SetShare(1 << 10)
	assert.EqualValues(t, 1<<7, c.Share())
	o.SetShare(1 << 11)
	assert.EqualValues(t, 1<<11, c.Share())
}

// A handle that was found is watched, also if its block was moved since. One that was freed changes nothing: the slot, and its
// next handle, have what they have.
func TestAdoptWatchesAHandleThatLives(t *testing.T) {
	t.Parallel()
	c, _, _ := cacheOf(0)
	s, handle := c.Take(512)
	moved, err := s.Move(handle, nil, 0, nil)
	require.NoError(t, err)
	h := s.Adopt(handle, 512)
	require.NotNil(t, h)
	assert.Same(t, h, s.Adopt(moved, 512))
	assert.Same(t, h, s.History())

	require.NoError(t, s.Free(moved))
	word := s.word.Load()
	assert.Nil(t, s.Adopt(handle, 512))
	assert.Nil(t, s.Adopt(moved, 512))
	assert.Equal(t, word, s.word.Load())

	next := s.Word()
	s.SetTag(next, 512, "weights", time.Now())
	assert.Nil(t, s.Adopt(handle, 512))
	assert.Equal(t, "weights", s.Facts().Tag)
}
