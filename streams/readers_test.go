package streams

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/core"
)

// The order of a buffer has an entry for each stream that reads it, and for a few more: streams that have ended leave it when
// others join.
func TestEndedReadersLeaveTheOrder(t *testing.T) {
	r := newRig(t, 64*mib)
	home, lasting := r.stream(core.Budget{}), r.stream(core.Budget{})
	b, err := home.Alloc(4096)
	require.NoError(t, err)
	reads := func(s *Stream) {
		work, err := NewSubmitter(s)
		require.NoError(t, err)
		c := work.Crossing()
		require.NoError(t, c.Touch(b, false, 0))
		_, err = c.Begin()
		require.NoError(t, err)
		c.After()
		c.Leave()
	}
	reads(lasting)
	for range 50 {
		s := r.stream(core.Budget{})
		reads(s)
		require.NoError(t, s.Close())
		<-s.ref.Done()
	}
	o, ok := b.slot.Attached(b.word).(*order)
	require.True(t, ok)
	assert.NotNil(t, o.find(&lasting.cuda))
	assert.LessOrEqual(t, len(o.entries()), 2)
	require.NoError(t, b.Free())
}

// A work that could not lock an order leaves nothing: those that come later lock it.
func TestALockThatWasRefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	r, home, _ := pair(t, 16*mib)
	o := newOrder(home)
	for _, held := range []bool{true, false} {
		o.lock(held, nil)
		if held {
			assert.False(t, o.tryLock(false))
			assert.False(t, o.tryLock(true))
		} else {
			assert.True(t, o.tryLock(false))
			o.unlock(false)
		}
		o.unlock(held)
		assert.Zero(t, o.works.Load())
	}
	r.quiet(home)
}
