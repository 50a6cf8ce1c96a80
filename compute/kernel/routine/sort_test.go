package routine_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/vramtest"
)

// Histogram, Scan and Reorder sort keys digit by digit, and keep the order of equal ones; a single tile needs no Scan.
func TestKeysAreSorted(t *testing.T) {
	dev := vramtest.Open(t, vramtest.Kernels())
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	load := func(k routine.Kernel) *cuda.Function {
		m, err := c.LoadModule([]byte(k.Text()))
		require.NoError(t, err)
		f, err := m.Function(k.Entry())
		require.NoError(t, err)
		return f
	}
	histogram, scan := load(routine.Kernel{Kind: routine.Histogram}), load(routine.Kernel{Kind: routine.Scan})
	reorder := map[bool]*cuda.Function{
		false: load(routine.Kernel{Kind: routine.Reorder}), true: load(routine.Kernel{Kind: routine.Reorder, Single: true}),
	}
	const digits = 1 << routine.DigitBits
	for _, count := range []int{1, 200, routine.TileLen, routine.TileLen + 1, 3*routine.TileLen + 17} {
		random := rand.New(rand.NewPCG(uint64(count), 5)) //nolint:gosec // a test
		keys, numbers := make([]uint32, count), make([]uint32, count)
		for i := range keys {
			keys[i], numbers[i] = uint32(random.IntN(300)), uint32(i) //nolint:gosec // small
		}
		want := slices.Clone(numbers)
		slices.SortStableFunc(want, func(a, b uint32) int { return cmp.Compare(keys[a], keys[b]) })

		tiles := (count + routine.TileLen - 1) / routine.TileLen
		var all [6]cuda.Buffer // keys, numbers, sorted ones, counts, totals
		for i, words := range []int{count, count, count, count, digits * tiles, digits} {
			all[i], err = c.Alloc(int64(4 * words))
			require.NoError(t, err)
		}
		require.NoError(t, cuda.CopyIn(c, all[0], keys))
		require.NoError(t, cuda.CopyIn(c, all[1], numbers))
		grid := func(blocks int) cuda.Geometry { return cuda.Cover(blocks*routine.BlockThreads, routine.BlockThreads) }
		word := func(n int) cuda.Arg { return cuda.Value(uint32(n)) } //nolint:gosec // small
		for _, shift := range []int{0, routine.DigitBits} {
			require.NoError(t, c.Launch(histogram, grid(tiles), cuda.In(all[0]), cuda.Out(all[4]), word(count), word(shift), word(tiles)))
			if tiles > 1 {
				require.NoError(t, c.Launch(scan, grid(digits), cuda.InOut(all[4]), cuda.Out(all[5]), word(tiles)))
			} else {
				require.NoError(t, c.Fill32(cuda.Whole(all[5]), 0))
			}
			require.NoError(t, c.Launch(reorder[tiles == 1], grid(tiles), cuda.In(all[0]), cuda.In(all[1]), cuda.Out(all[2]), cuda.Out(all[3]),
				cuda.In(all[4]), cuda.In(all[5]), word(count), word(shift), word(tiles)))
			all[0], all[1], all[2], all[3] = all[2], all[3], all[0], all[1]
		}
		got, sorted := make([]uint32, count), make([]uint32, count)
		require.NoError(t, cuda.CopyOut(c, got, all[1]))
		require.NoError(t, cuda.CopyOut(c, sorted, all[0]))
		assert.Equal(t, want, got, "%d", count)
		for i, n := range want {
			require.Equal(t, keys[n], sorted[i], "%d", count)
		}
		for _, b := range all {
			require.NoError(t, b.Free())
		}
	}
	require.NoError(t, c.Close())
}
