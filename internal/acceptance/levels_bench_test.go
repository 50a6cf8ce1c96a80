package acceptance_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

func benchStream(b *testing.B, cfg vram.Config) *vram.Stream {
	b.Helper()
	cfg.Driver = sim.New(sim.Config{})
	d, err := vram.Open(cfg)
	require.NoError(b, err)
	b.Cleanup(func() { _ = d.Close() }) // with live buffers
	s, err := d.NewStream()
	require.NoError(b, err)
	return s
}

// BenchmarkLevels is a pair, allocation and free, at each level of statistics.
func BenchmarkLevels(b *testing.B) {
	for _, level := range []vram.StatsLevel{vram.StatsOff, vram.StatsOn, vram.StatsExact} {
		for _, bytes := range []int64{4 * kib, mib} {
			b.Run(fmt.Sprintf("stats=%s/bytes=%d", level, bytes), func(b *testing.B) {
				s := benchStream(b, vram.Config{Stats: level})
				b.ReportAllocs()
				for b.Loop() {
					x, err := s.Alloc(bytes)
					if err != nil || x.Free() != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkSearch replaces one of 500 live buffers of sizes that do not repeat.
func BenchmarkSearch(b *testing.B) {
	s := benchStream(b, vram.Config{})
	random := rand.New(rand.NewPCG(1, 2))
	live := make([]vram.Buffer, 500)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		i := n % len(live)
		if n >= len(live) {
			if err := live[random.IntN(len(live))].Free(); err == nil {
				continue
			}
		}
		x, err := s.Alloc(64*kib + random.Int64N(4*mib))
		if err != nil {
			b.Fatal(err)
		}
		_ = live[i].Free() // it may be gone
		live[i] = x
	}
}
