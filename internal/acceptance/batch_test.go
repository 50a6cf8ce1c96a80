package acceptance_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A batch that the stream's own memory serves makes no heap allocation and no driver call, however
// many buffers of however many sizes.
func TestAWarmBatchAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{}, sim.Config{})
		s := h.stream()
		for name, sizes := range map[string][]int64{
			"64 of one class":    repeated(64, 4*kib),
			"64 classes":         rising(64, kib, kib),
			"64 large":           repeated(64, mib),
			"2000 of all kinds":  append(rising(1000, 512, 512), rising(1000, 70*kib, 4*kib)...),
			"of nothing":         repeated(3, 0),
			"one that is larger": {200 * mib},
		} {
			dst := make([]vram.Buffer, len(sizes))
			pair := func() {
				if s.AllocBatch(dst, sizes) != nil || s.FreeBatch(dst) != nil {
					t.Error("a batch failed")
				}
			}
			for range 5 {
				pair()
			}
			calls := h.driverCalls()
			allocs := testing.AllocsPerRun(50, pair)
			assert.Equal(t, calls, h.driverCalls(), name)
			if !raceDetector { // under it every turn is checked for being inside another
				assert.Zero(t, allocs, name)
			}
		}
		assert.Zero(t, h.Stats().LiveBytes)
	})
}

func repeated(n int, bytes int64) []int64 { return rising(n, bytes, 0) }

func rising(n int, from, step int64) []int64 {
	sizes := make([]int64, n)
	for i := range sizes {
		sizes[i] = from + int64(i)*step
	}
	return sizes
}

// Thousands of sizes, most of them different, come in one call, from the driver and again from the
// cache; they share nothing, and all of them go back.
func TestThousandsOfSizes(t *testing.T) {
	t.Parallel()
	h := openHouse(t, vram.Config{}, sim.Config{})
	s := h.stream()
	random := rand.New(rand.NewPCG(1, 2))
	sizes := make([]int64, 10_000)
	var sum int64
	for i := range sizes {
		sizes[i] = random.Int64N(1 << random.IntN(24))
		sum += sizes[i]
	}
	for range 3 {
		f := s.AllocBatchAsync(context.Background(), sizes)
		b, err := f.Await(context.Background())
		require.NoError(t, err)
		require.Len(t, b.Buffers(), len(sizes))
		ends := map[vram.Ptr]bool{}
		for i, x := range b.Buffers() {
			require.Equal(t, sizes[i], x.Bytes())
			require.False(t, ends[x.Ptr()], "an address twice")
			ends[x.Ptr()] = true
		}
		n := h.Stats()
		assert.GreaterOrEqual(t, n.LiveBytes, sum)
		assert.Less(t, n.ReservedBytes, sum+sum/4)
		require.NoError(t, b.Free())
	}
	assert.Zero(t, h.Stats().LiveBytes)
}

// A device that is closed with tagged buffers names them.
func TestTheTagIsInTheReport(t *testing.T) {
	t.Parallel()
	h := openHouse(t, vram.Config{}, sim.Config{})
	_, err := h.stream().AllocFor(context.Background(), vram.Request{Bytes: mib, Tag: "optimizer state"})
	require.NoError(t, err)
	var inUse *vram.InUseError
	err = h.Close()
	require.ErrorAs(t, err, &inUse)
	assert.Equal(t, "optimizer state", inUse.Buffers[0].Tag)
	require.ErrorContains(t, err, `"optimizer state"`)
}
