package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// Jobs that come and go on eight streams never fail under a limit of 1.10 times what lives at most, hold no more than
// that, cost the driver no more late than early, and leave nothing behind. The command plays ten million operations, the
// test a few thousand from two seeds.
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

// Under a limit with no room beside what lives the same jobs do fail: the check can.
func TestTooShortALimitFails(t *testing.T) {
	s, err := open(plan{liveBytes: 4 << 30, limit: 1.001, seed: 1}, vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	_, err = s.stretch(20_000)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	require.NoError(t, s.close())
}
