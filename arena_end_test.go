//go:build !race

// A thousand streams of which each is asked for what the others lack take minutes under the race detector.

package vram_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// So many streams that their memory, which lies apart, reaches the end of the address space: what lies there comes home as anywhere else.
func TestStreamsUpToTheEndOfTheArena(t *testing.T) {
	h := openHouse(t, vram.Config{Footprint: vram.Lean}, sim.Config{})
	streams := make([]*vram.Stream, 1024)
	live := make([]vram.Buffer, len(streams))
	for i := range streams {
		streams[i] = h.stream()
		live[i] = must(t, streams[i], 2*mib)
	}
	freeAll(t, live...)
	require.NoError(t, vram.CheckStreams(t.Context(), h.Device))
	h.trim()
	assert.Zero(t, h.addsUp().ReservedBytes)
}
