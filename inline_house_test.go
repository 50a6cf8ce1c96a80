package vram

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/sim"
)

// The functions for the compiler work.
func TestInlinedPairs(t *testing.T) {
	t.Parallel()
	d, err := Open(Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	l, err := s.Lane(1 << 20)
	require.NoError(t, err)
	require.NoError(t, pair(s))
	require.NoError(t, lanePair(l))
	require.NoError(t, l.Close())
	require.NoError(t, d.Close())
}
