package streams

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/core"
)

// When Send has returned the receiver counts as making progress, whether its goroutine has run or
// not; and a wait that it has begun since is not ended by that value.
func TestASendEndsTheWaitThatItServes(t *testing.T) {
	r := newRig(t, 64*mib)
	from, to := r.stream(core.Budget{}), r.stream(core.Budget{})
	to.Exclusive()
	suspended := func() bool {
		st := to.suspensions.progress.Load()
		return st != nil && len(to.suspensions.message(st).Waits) > 0
	}
	h := NewHandover[int](from, to, 2)
	over := waitFor(h.to, h.from, &h.receiver, &h.sent, 1) // the receiver waits for its first value, and does not come to run
	require.True(t, suspended())
	require.NoError(t, h.Send(t.Context(), 1))
	assert.False(t, suspended())
	over()

	late := &suspension{need: 2} // announced, and not begun
	h.receiver.Store(late)
	require.NoError(t, h.Send(t.Context(), 2))
	to.suspensions.suspend(late)
	assert.False(t, suspended(), "it was over before it began")
	assert.Empty(t, to.suspensions.progress.Load().all)

	over = waitFor(h.to, h.from, &h.receiver, &h.sent, 2)
	assert.False(t, suspended(), "the value is there")
	over()
	over = waitFor(h.to, h.from, &h.receiver, &h.sent, 3)
	endWait(h.to, &h.receiver, 2) // by the sender of the second value, late
	assert.True(t, suspended(), "it waits for the third")
	over()
	assert.False(t, suspended())
}

// A Send and a Receive that their contexts end count as no value: the next wait of the other side is still reported.
func TestACallThatItsContextEndsHandsNothingOver(t *testing.T) {
	r := newRig(t, 64*mib)
	from, to := r.stream(core.Budget{}), r.stream(core.Budget{})
	from.Exclusive()
	to.Exclusive()
	suspended := func(s *Stream) bool {
		st := s.suspensions.progress.Load()
		return st != nil && len(s.suspensions.message(st).Waits) > 0
	}
	ended, end := context.WithCancel(t.Context())
	end()
	h := NewHandover[int](from, to, 1)
	_, err := h.Receive(ended)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, h.Send(t.Context(), 1))
	over := waitFor(h.from, h.to, &h.sender, &h.received, h.receipts())
	assert.True(t, suspended(from), "there is no room")
	over()

	require.ErrorIs(t, h.Send(ended, 2), context.Canceled)
	_, ok := h.TryReceive()
	require.True(t, ok)
	over = waitFor(h.to, h.from, &h.receiver, &h.sent, h.received.Load()+1)
	assert.True(t, suspended(to), "there is no value")
	over()
}

// A wait that the other side serves before it is announced is over: the waiting side counts as making progress.
func TestAWaitThatIsServedBeforeItIsAnnounced(t *testing.T) {
	r := newRig(t, 64*mib)
	from, to := r.stream(core.Budget{}), r.stream(core.Budget{})
	to.Exclusive()
	h := NewHandover[int](from, to, 2)
	host := &leavingHost{place: beforeSuspending, leave: func() bool {
		return assert.NoError(t, h.Send(t.Context(), 1))
	}}
	to.host = host
	over := waitFor(h.to, h.from, &h.receiver, &h.sent, 1)
	to.host = nil
	assert.Nil(t, host.leave, "the place was reached")
	if p := to.suspensions.progress.Load(); p != nil {
		assert.Empty(t, p.all, "the value is there")
	}
	over()
}

// When a value was received, in either way, the sender that waits for room counts as making progress, whether its goroutine has run
// or not.
func TestAReceiptEndsTheWaitForRoom(t *testing.T) {
	for name, receive := range map[string]func(h *Handover[int]) int{
		"Receive": func(h *Handover[int]) int {
			v, err := h.Receive(t.Context())
			require.NoError(t, err)
			return v
		},
		"TryReceive": func(h *Handover[int]) int {
			v, ok := h.TryReceive()
			require.True(t, ok)
			return v
		},
	} {
		r := newRig(t, 64*mib)
		from, to := r.stream(core.Budget{}), r.stream(core.Budget{})
		from.Exclusive()
		suspended := func() bool { return len(from.suspensions.message(from.suspensions.progress.Load()).Waits) > 0 }
		h := NewHandover[int](from, to, 2)
		require.NoError(t, h.Send(t.Context(), 1))
		require.NoError(t, h.Send(t.Context(), 2))
		for i := range 5 {
			over := waitFor(h.from, h.to, &h.sender, &h.received, h.receipts()) // for room, and does not come to run
			require.True(t, suspended(), name)
			assert.Equal(t, i+1, receive(h), name)
			assert.False(t, suspended(), name)
			over()
			over = waitFor(h.from, h.to, &h.sender, &h.received, h.receipts())
			assert.False(t, suspended(), "there is room")
			over()
			require.NoError(t, h.Send(t.Context(), i+3))
		}
	}
}

// Of the streams that were handed memory a stream names those that have not ended, and not many more.
func TestEndedStreamsAreNoFreers(t *testing.T) {
	r := newRig(t, 64*mib)
	from, lasting := r.stream(core.Budget{}), r.stream(core.Budget{})
	require.NoError(t, NewHandover[int](from, lasting, 1).Send(t.Context(), 1))
	require.NoError(t, NewHandover[int](from, nil, 1).Send(t.Context(), 1))
	for range 10 * minFreers {
		to := r.stream(core.Budget{})
		require.NoError(t, NewHandover[int](from, to, 1).Send(t.Context(), 1))
		require.NoError(t, to.Close())
		<-to.ref.Done()
	}
	freers := from.suspensions.progress.Load().freedBy
	assert.LessOrEqual(t, len(freers), 2*minFreers)
	assert.Contains(t, freers, lasting.id)
	assert.Contains(t, freers, poolcore.Anybody)
}

// No suspension is reported for a stream with several callers, nor for a wait on goroutines that
// the pool does not know.
func TestAHandoverSaysNothingOfOthers(t *testing.T) {
	r := newRig(t, 64*mib)
	shared, exclusive := r.stream(core.Budget{}), r.stream(core.Budget{})
	exclusive.Exclusive()
	_, foreign, _ := pair(t, 16*mib) // of another device
	for _, h := range []*Handover[int]{
		NewHandover[int](exclusive, shared, 1), NewHandover[int](nil, exclusive, 1), NewHandover[int](exclusive, nil, 1),
		NewHandover[int](new(Stream), exclusive, 1), NewHandover[int](exclusive, new(Stream), 1),
		NewHandover[int](foreign, exclusive, 1),
	} {
		waitFor(h.to, h.from, &h.receiver, &h.sent, 1)
	}
	assert.Nil(t, shared.suspensions.progress.Load())
	assert.Nil(t, exclusive.suspensions.progress.Load())
}

// A zero stream stands for goroutines without a stream, as nil does: on either side, values are handed over.
func TestAHandoverOfAZeroStream(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	for _, none := range []*Stream{nil, {}} {
		for _, h := range []*Handover[int]{NewHandover[int](none, s, 1), NewHandover[int](s, none, 1), NewHandover[int](none, none, 1)} {
			require.NoError(t, h.Send(t.Context(), 1))
			v, err := h.Receive(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 1, v)
		}
	}
	assert.Equal(t, []poolcore.Client{poolcore.Anybody}, s.suspensions.progress.Load().freedBy, "anybody may free what it has sent")
}

// From the first value on that a stream sends, its next wait is no deadlock while the receiver may free: also if nobody waited when the
// value was sent.
func TestAStreamThatHasSentMemoryWaitsForTheReceiver(t *testing.T) {
	t.Parallel()
	r, from, to := pair(t, 16*mib)
	from.Exclusive()
	to.Exclusive()
	h := NewHandover[Buffer](from, to, 1)
	require.NoError(t, h.Send(t.Context(), must(t, from, 12*mib)))
	got := make(chan error, 1)
	go func() {
		b, err := from.AllocFor(t.Context(), Request{Bytes: 10 * mib, Wait: true})
		_ = b.Free()
		got <- err
	}()
	r.until(func() bool { return r.books().Waits.Waiting == 1 || len(got) == 1 })
	b, err := h.Receive(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.Free())
	require.NoError(t, <-got)
}
