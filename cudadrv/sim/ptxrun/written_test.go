package ptxrun

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// After any fills, copies and copies of rows of two pitches, within a buffer, between buffers, and from and to other memory, the
// written bytes equal a reference, byte by byte.
func TestWrittenBytes(t *testing.T) {
	const buffers = 3
	start := func(buffer int) cudadrv.Ptr { return cudadrv.Ptr(1000 * (buffer + 1)) } //nolint:gosec // few
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 4)) //nolint:gosec // a test
		o := NewBuffers(false)
		bytes := []int{100, 128}[seed%2]
		var want [buffers][]bool // the last one is not the allocator's: all of it counts as written
		for buffer := range want {
			want[buffer] = slices.Repeat([]bool{buffer == buffers-1}, bytes)
		}
		for buffer := range buffers - 1 {
			o.BufferAllocated(cudadrv.BufferEvent{Ptr: start(buffer), Bytes: int64(bytes)})
		}
		for range 30 {
			to, from := rnd.IntN(buffers), rnd.IntN(buffers)
			width, rows := 1+rnd.IntN(12), 1+rnd.IntN(5)
			if rnd.IntN(3) == 0 {
				width, rows = 1+rnd.IntN(bytes), 1
			}
			var at, pitches [2]int
			for end := range at {
				pitches[end] = width + rnd.IntN(8)
				at[end] = rnd.IntN(bytes - width - (rows-1)*pitches[end] + 1)
			}
			transfer := sim.Transfer{
				Dst: start(to) + cudadrv.Ptr(at[0]), Bytes: int64(width), Rows: int64(rows), //nolint:gosec // few
				DstPitch: int64(pitches[0]), SrcPitch: int64(pitches[1]),
			}
			fills := rnd.IntN(2) == 0
			if !fills {
				if to == from && rows > 1 { // they may overlap
					continue
				}
				transfer.Src = start(from) + cudadrv.Ptr(at[1]) //nolint:gosec // few
			}
			performed := o.Queued(transfer)
			require.Equal(t, to == buffers-1, performed == nil)
			if performed == nil {
				continue
			}
			performed()
			before := slices.Clone(want[from])
			for row := range rows {
				for n := range width {
					want[to][at[0]+row*pitches[0]+n] = fills || before[at[1]+row*pitches[1]+n]
				}
			}
			for buffer := range buffers - 1 {
				words := o.at(start(buffer), o.event).contents.bits(int64(bytes))
				require.Equal(t, !slices.Contains(want[buffer], false), words == nil, "seed %d, buffer %d, after %+v", seed, buffer, transfer)
				for n, written := range want[buffer] {
					if got := words == nil || words[n/64]>>(n%64)&1 != 0; got != written {
						require.Equal(t, written, got, "seed %d, buffer %d, byte %d, after %+v", seed, buffer, n, transfer)
					}
				}
			}
		}
	}
}
