package acceptance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// With Debug a refused free names where its buffer was allocated and freed.
func TestDebugNamesThePlacesOfARefusedFree(t *testing.T) {
	h := openHouse(t, vram.Config{Debug: true}, sim.Config{})
	s := h.stream()
	b, err := s.Alloc(4096)
	require.NoError(t, err)
	require.NoError(t, b.Free())
	err = b.Free()
	require.ErrorIs(t, err, vram.ErrDoubleFree)
	var refused *vram.FreeError
	require.ErrorAs(t, err, &refused)
	assert.Regexp(t, `allocated at acceptance_test\.TestDebug.* \(places_test.go:\d+\), freed at acceptance_test\.TestDebug.* \(places_test.go:\d+\)$`, err.Error())

	plain := openHouse(t, vram.Config{}, sim.Config{})
	b, err = plain.stream().Alloc(4096)
	require.NoError(t, err)
	require.NoError(t, b.Free())
	assert.Equal(t, vram.ErrDoubleFree, b.Free(), "without it nothing is kept")
}

// With Debug the list of live buffers at Close has where each was allocated.
func TestDebugNamesThePlacesOfWhatIsInUse(t *testing.T) {
	h := openHouse(t, vram.Config{Debug: true}, sim.Config{})
	_, err := h.stream().AllocFor(t.Context(), vram.Request{Bytes: 4096, Tag: "weights"})
	require.NoError(t, err)
	err = h.Close()
	var inUse *vram.InUseError
	require.ErrorAs(t, err, &inUse)
	require.Len(t, inUse.Buffers, 1)
	assert.Equal(t, "weights", inUse.Buffers[0].Tag)
	assert.Regexp(t, `tag "weights", allocated at acceptance_test\.TestDebug.* \(places_test.go:\d+\)$`, err.Error())
}

// An observer gets each buffer, and the end of all of them before their memory is released.
func TestAnObserverHearsOfBuffersAndOfTheEnd(t *testing.T) {
	var told []string
	var h *house
	h = openHouse(t, vram.Config{Observer: vram.Observer{
		Allocated: func(e vram.BufferEvent) { told = append(told, "allocated "+e.Tag) },
		Freed:     func(e vram.BufferEvent) { told = append(told, "freed "+e.Tag) },
		Closed: func() {
			told = append(told, "closed")
			assert.Positive(t, h.usedBytes())
		},
	}}, sim.Config{})
	s := h.stream()
	a, err := s.AllocFor(t.Context(), vram.Request{Bytes: 4096, Tag: "a"})
	require.NoError(t, err)
	_, err = s.AllocFor(t.Context(), vram.Request{Bytes: 4096, Tag: "b"})
	require.NoError(t, err)
	require.NoError(t, a.Free())
	var inUse *vram.InUseError
	require.ErrorAs(t, h.Close(), &inUse)
	require.ErrorAs(t, h.Close(), &inUse)
	assert.Equal(t, []string{"allocated a", "allocated b", "freed a", "closed"}, told)
}
