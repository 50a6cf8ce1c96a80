package streams

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// A small request is not refused for want of room for others of its class: where no span fits it
// gets a block of its own.
func TestASmallRequestIsServedWhereNoSpanFits(t *testing.T) {
	r := newRig(t, 2*mib)
	s := r.stream(core.Budget{})
	large := must(t, s, 2*mib-100*kib)
	small := must(t, s, 60*kib)
	assert.Greater(t, small.Ptr(), large.Ptr())
	_, err := s.Alloc(60 * kib)
	require.ErrorIs(t, err, pool.ErrOutOfMemory)
	require.NoError(t, small.Free())

	dst := make([]Buffer, 2)
	require.NoError(t, s.AllocBatch(dst, []int64{48 * kib, 48 * kib}))
	require.ErrorIs(t, s.AllocBatch(make([]Buffer, 1), []int64{30 * kib}), pool.ErrOutOfMemory)
	require.NoError(t, s.FreeBatch(dst))
	require.NoError(t, large.Free())
	assert.Zero(t, r.stats(s).LiveCount)
}
