package streams

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/stream/core"
)

// waitingAndQueued leaves one request of the stream with the pool, whose driver is held up, and one
// in its mailbox, whose turn is held.
func waitingAndQueued(t *testing.T, r *rig, s *Stream) (waiting, queued futures.Future[Buffer], leave, release func()) {
	t.Helper()
	entered, release := r.holdUp("cuMemCreate")
	waiting = s.AllocAsync(context.Background(), Request{Bytes: 8 * mib})
	<-entered
	require.Equal(t, 1, r.stats(s).Waiting)
	leave = r.occupy(s)
	queued = s.AllocAsync(context.Background(), Request{Bytes: 16 * mib})
	return waiting, queued, leave, release
}

// A stop at once fails every request, whether it waits for the pool or for its turn; memory stays
// where it is, the books balance, other streams continue.
func TestStopNowFailsEveryRequest(t *testing.T) {
	r := newRig(t, 256*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
	live, cached := must(t, s, 4*kib), must(t, s, 4*kib)
	require.NoError(t, cached.Free())
	held := r.stats(s).HeldBytes

	waiting, queued, leave, release := waitingAndQueued(t, r, s)
	s.ref.StopNow()
	leave()
	<-s.ref.Done()
	for _, f := range []futures.Future[Buffer]{waiting, queued} {
		_, err := f.Await(context.Background())
		assert.Error(t, err)
	}
	release()

	_, err := s.Alloc(4 * kib) // a magazine has one
	assert.Error(t, err, "no magazine serves a stream that has ended")
	b := must(t, other, 8*mib)
	assert.NoError(t, b.Free())
	assert.Equal(t, held, control(s).LastStats().HeldBytes)
	assert.NoError(t, live.Free(), "the memory is still there")
	assert.GreaterOrEqual(t, r.books().LentBytes, held, "and not lent to anybody else")
	assert.False(t, control(s).Gone(), "so that the device's Close still ends it")
	assert.Error(t, s.Close(), "whose answer tells of the stop")
	late := must(t, other, mib)
	control(other).End()
	assert.ErrorIs(t, late.Free(), ErrClosed)
}

// After End frees return ErrClosed, also for a stream that was stopped from outside before.
func TestFreeAfterEndSaysClosedAlsoOfAStoppedStream(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	small, large := must(t, s, kib), must(t, s, mib)
	s.ref.StopNow()
	<-s.ref.Done()
	control(s).End()
	assert.ErrorIs(t, small.Free(), ErrClosed)
	assert.ErrorIs(t, large.Free(), ErrClosed)
}

// An order that has the stream give memory back is answered when that is with the pool, not before:
// not while the fence is recorded.
func TestAnOrderIsAnsweredWhenItsMemoryHasGone(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 16*mib).Free())
	entered, goOn := make(chan struct{}), make(chan struct{})
	r.faults.SetBefore(func(function string) {
		if function == "cuEventRecord" {
			close(entered)
			<-goOn
		}
	})
	o := &callback{run: func() { assert.NoError(t, s.turn.returnFree()) }, awaitsReturns: true}
	go s.ref.Call(o)
	<-entered
	assert.True(t, o.promise.Pending())
	r.faults.SetBefore(nil)
	close(goOn)
	_, err := o.promise.Future().Await(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 16*mib, r.books().FreeBytes)
	r.balanced(s)
}

// A Trim waits for no other call on its stream, which may last as long as the device works.
func TestATrimWaitsForNoOtherCall(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 16*mib).Free())
	x, err := NewSubmitter(s)
	require.NoError(t, err)
	entered, release := r.holdUp("cuStreamSynchronize")
	synchronized := make(chan error)
	go func() { synchronized <- x.Synchronize() }()
	<-entered
	require.NoError(t, s.Trim(t.Context()))
	assert.Equal(t, 16*mib, r.books().FreeBytes)
	release()
	require.NoError(t, <-synchronized)
	r.balanced(s)
}
