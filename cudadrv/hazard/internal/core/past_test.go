package core

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// The past has the newest ranges, up to its limit, and finds the newest one that shares an address.
func TestPastHasTheNewestRanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var p past
	var all []buried
	find := func(start, end cudadrv.Ptr) (found *buried) {
		for i := max(len(all)-pastLimit, 0); i < len(all); i++ {
			if b := &all[i]; max(start, b.start) < min(end, b.end) {
				found = b
			}
		}
		return found
	}
	for range 2*pastLimit + 50 {
		start := cudadrv.Ptr(random.IntN(20_000))
		b := buried{start: start, end: start + 1 + cudadrv.Ptr(random.IntN(4)), use: &Use{}}
		p.add(b)
		all = append(all, b)
		if n := len(all); n%61 == 0 || n < 50 || n > pastLimit-5 && n < pastLimit+5 {
			for range 20 {
				at := cudadrv.Ptr(random.IntN(20_000))
				end := at + 1 + cudadrv.Ptr(random.IntN(3))
				got, want := p.last(at, end), find(at, end)
				require.Equal(t, want == nil, got == nil)
				if want != nil {
					require.Equal(t, *want, *got)
				}
			}
			require.Equal(t, b, *p.last(b.start, b.end))
		}
	}
	require.Len(t, p.ring, pastLimit)
}
