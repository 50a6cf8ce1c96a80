package soak

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

var (
	ops   = flag.Int("ops", 4000, "allocations and frees of TestSoak")
	live  = flag.Int64("live", 4<<30, "what lives at most in it, in `bytes`")
	limit = flag.Float64("limit", 1.10, "its limit, over what lives at most")
	seed  = flag.Uint64("seed", 1, "of its random numbers")
	rows  = flag.Int("rows", 20, "of its table")
)

// As many operations as the flags say, with a table.
func TestSoak(t *testing.T) {
	s, err := open(plan{liveBytes: *live, limit: *limit, seed: *seed}, vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	fmt.Println("| operations | live / most live | reserved / most live | free of reserved | ns/op | driver calls / op |")
	fmt.Println("|---|---|---|---|---|---|")
	for range *rows {
		r, err := s.stretch(*ops / *rows)
		require.NoError(t, err)
		fmt.Printf("| %d | %.3f | %.3f | %.1f %% | %.0f | %.1f |\n", r.ops, r.live, r.reserved, 100*r.free, r.nsPerOp, r.callsPerOp)
	}
	require.NoError(t, s.close())
}

// Jobs that begin and end on eight streams never fail under a limit of 1.10 times their peak, hold no more than that, cost the
// driver no more late than early, and leak nothing. A few thousand operations from two seeds.
func TestNothingFailsAndNothingDrifts(t *testing.T) {
	const stretches, ops = 4, 1500
	for seed := range uint64(2) {
		p := plan{liveBytes: 4 << 30, limit: 1.10, seed: seed + 1}
		s, err := open(p, vram.Config{Driver: sim.New(sim.Config{})})
		require.NoError(t, err)
		var calls [stretches]float64
		var fullest float64
		for i := range stretches {
			r, err := s.stretch(ops)
			require.NoError(t, err, "seed %d", p.seed)
			assert.LessOrEqual(t, r.reserved, p.limit)
			fullest = max(fullest, r.live)
			calls[i] = r.callsPerOp
		}
		assert.Greater(t, fullest, 0.9, "seed %d: the limit is felt", p.seed)
		assert.Less(t, calls[stretches-1], 3*max(calls[0], calls[1]), "seed %d: %v", p.seed, calls)
		require.NoError(t, s.close())
	}
}

// Under a limit without headroom the same jobs do fail: the check can.
func TestTooShortALimitFails(t *testing.T) {
	s, err := open(plan{liveBytes: 4 << 30, limit: 1.001, seed: 1}, vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	_, err = s.stretch(20_000)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	require.NoError(t, s.close())
}
