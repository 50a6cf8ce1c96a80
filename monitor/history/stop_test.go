package history

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// Buffers that are allocated and freed while Stop has listed the live ones, and still records, are in its list as the events say.
func TestStopListsTheBuffersAfterItsLastEvent(t *testing.T) {
	d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	defer func() { assert.NoError(t, d.Close()) }()
	s, err := d.NewStream()
	require.NoError(t, err)
	alloc := func(bytes int64, tag string) vram.Buffer {
		b, err := s.AllocFor(t.Context(), vram.Request{Bytes: bytes, Tag: tag})
		require.NoError(t, err)
		return b
	}
	before, kept := alloc(5000, "before"), alloc(9000, "kept")
	r, err := Start(d, Options{})
	require.NoError(t, err)
	freed := alloc(3<<20, "freed")
	var late, again vram.Buffer
	stop := r.stop
	r.stop = func() {
		require.NoError(t, before.Free())
		require.NoError(t, freed.Free())
		late = alloc(70_000, "late")
		require.NoError(t, alloc(200_000, "short").Free())
		again = alloc(3<<20, "again") // may have the address of one that was freed
		stop()
	}
	r.Stop()
	want := []string{"again", "kept", "late"}
	live := r.Snapshot().Live
	var tags []string
	for _, e := range live {
		tags = append(tags, e.Tag)
		assert.Zero(t, e.Number)
		assert.True(t, e.Time.IsZero())
		assert.Equal(t, Allocated, e.Kind)
	}
	slices.Sort(tags)
	assert.Equal(t, want, tags)
	for _, b := range []vram.Buffer{kept, late, again} {
		require.NoError(t, b.Free())
	}
	assert.Equal(t, live, r.Snapshot().Live)
}
