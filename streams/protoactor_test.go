//go:build !vram_builtin

package streams

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/stream/core"
)

// Messages queued before a poison are served, later ones fail.
func TestPoisonThroughProtoactorServesWhatWasQueuedBefore(t *testing.T) {
	r := newRig(t, 256*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
	require.NoError(t, must(t, s, 32*mib).Free())

	leave := r.occupy(s)
	before := s.AllocAsync(context.Background(), Request{Bytes: 8 * mib})
	actors.Root().Poison(actors.PID(s.ref))
	behind := s.AllocAsync(context.Background(), Request{Bytes: 8 * mib})
	leave()
	<-s.ref.Done()
	b, err := before.Await(context.Background())
	require.NoError(t, err)
	_, err = behind.Await(context.Background())
	assert.Error(t, err)
	assert.True(t, b.Live())
	assert.Equal(t, uint64(1), control(s).LastStats().LiveCount)
	assert.NoError(t, b.Free())

	require.NoError(t, must(t, other, 8*mib).Free())
	assert.Equal(t, control(s).LastStats().HeldBytes+r.stats(other).HeldBytes, r.books().LentBytes)
	control(s).End()
	assert.ErrorIs(t, b.Free(), ErrBadFree, "it was freed before the end")
}
