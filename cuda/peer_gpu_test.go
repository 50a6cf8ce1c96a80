//go:build gpu

package cuda_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
)

// BenchmarkCopyPeer compares the bandwidth of copies between two devices with the driver's call on the same memory, in turns.
// It fails below 90 % of the driver's.
func BenchmarkCopyPeer(b *testing.B) {
	const (
		bytes  = 256 * mib
		copies = 8 // of a turn
		least  = 0.9
	)
	g := openTwo(b)
	from, err := g.home.Alloc(bytes)
	require.NoError(b, err)
	to, err := g.c.Alloc(bytes)
	require.NoError(b, err)
	turn := func(submit func() error) time.Duration {
		begin := time.Now()
		for range copies {
			require.NoError(b, submit())
		}
		require.NoError(b, g.c.Synchronize(b.Context()))
		return time.Since(begin)
	}
	ours := func() error { return g.c.CopyPeer(cuda.Whole(to), g.home, cuda.Whole(from)) }
	raw := func() error { return cuda.RawCopyPeer(g.c, to.Ptr(), g.home, from.Ptr(), bytes) }
	turn(ours)
	turn(raw)
	var oursTook, rawTook time.Duration
	b.SetBytes(copies * bytes)
	for b.Loop() {
		oursTook += turn(ours)
		b.StopTimer()
		rawTook += turn(raw)
		b.StartTimer()
	}
	ratio := rawTook.Seconds() / oursTook.Seconds()
	b.ReportMetric(ratio, "of-raw")
	if ratio < least {
		b.Errorf("%.2f of the driver's bandwidth", ratio)
	}
	require.NoError(b, from.Free())
	require.NoError(b, to.Free())
}
