package acceptance_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/pool"
)

// A refusal says whose request it was: as the error, and to the program's handler.
func TestARefusalNamesItsRequest(t *testing.T) {
	var handled []vram.OutOfMemoryError
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib, OnOutOfMemory: func(e *vram.OutOfMemoryError) bool {
		handled = append(handled, *e)
		return false
	}}, sim.Config{})
	gold, err := h.Tenant("gold", vram.Quota{ShareBytes: mib})
	require.NoError(t, err)
	h.stream()
	s := h.stream()
	for _, refuse := range []func() error{
		func() error {
			_, err := s.AllocFor(context.Background(), vram.Request{Bytes: 64 * mib, Tag: "weights", Tenant: gold})
			return err
		},
		func() error {
			_, err := s.AllocBatchFor(context.Background(), vram.BatchRequest{Bytes: []int64{32 * mib, 32 * mib}, Tag: "weights", Tenant: gold})
			return err
		},
	} {
		x, err := s.Alloc(mib)
		require.NoError(t, err)
		err = refuse()
		var short *vram.OutOfMemoryError
		require.ErrorAs(t, err, &short)
		require.Len(t, handled, 1)
		for _, e := range []vram.OutOfMemoryError{*short, handled[0]} {
			assert.Equal(t, s.ID(), e.Stream)
			assert.Equal(t, "weights", e.Tag)
			assert.Equal(t, "gold", e.Tenant)
		}
		assert.ErrorContains(t, err, ` on stream 2 with tag "weights" for tenant "gold", free`)
		handled = nil
		require.NoError(t, x.Free())
	}
}

// Streams do not share pages: where many of them use theirs in part the refusal says so, and how much is free within them.
func TestARefusalCountsWhatIsFreeWithinPages(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	var short *vram.OutOfMemoryError
	for range 64 {
		if _, err := h.stream().Alloc(100_000); err != nil {
			require.ErrorAs(t, err, &short)
			break
		}
	}
	require.NotNil(t, short, "there is room for 32 pages")
	remedies := short.Remedies()
	i := len(remedies) - 2
	assert.Equal(t, pool.UseFewerStreams, remedies[i].Kind)
	assert.Greater(t, remedies[i].Bytes, 32*mib)
	assert.ErrorContains(t, short, "fewer streams: ")
	assert.ErrorContains(t, short, " are free within pages that streams use in part; a LimitBytes higher")
}
