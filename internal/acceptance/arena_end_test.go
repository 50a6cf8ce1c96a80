//go:build !race

// A thousand streams that each get reclaim requests for the others' memory take minutes under the
// race detector.

package acceptance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// So many streams that their memory, in separate places, reaches the end of the address space: the
// last pages are released like any others.
func TestStreamsUpToTheEndOfTheArena(t *testing.T) {
	h := openHouse(t, vram.Config{Footprint: vram.Lean}, sim.Config{})
	streams := make([]*vram.Stream, 1024)
	live := make([]vram.Buffer, len(streams))
	for i := range streams {
		streams[i] = h.stream()
		live[i] = must(t, streams[i], 2*mib)
	}
	freeAll(t, live...)
	h.trim()
	assert.Zero(t, h.addsUp().ReservedBytes)
}
