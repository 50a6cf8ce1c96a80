package streams

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/core"
)

// Buffers that live when their lane is closed stay valid, are freed the ordinary way, and their
// memory comes home; the next lane goes on with the rest of their spans.
func TestBuffersOutliveTheirLane(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	l := r.lane(s, 32*mib)
	require.NoError(t, must(t, s, 32*mib).Free())
	var all []Buffer
	for range 100 {
		all = append(all, alloc(t, l, 512), alloc(t, l, 100*kib))
	}
	require.NoError(t, l.Close())
	held := r.stats(s)
	assert.Equal(t, 100*(512+100*kib), held.LiveBytes)
	assert.Zero(t, held.LaneBytes)
	r.sound(s)

	for i, b := range all { // half by the lane that was, half by themselves; all but the first two
		switch {
		case i < 2:
		case i%2 == 0:
			require.NoError(t, l.Free(b))
			require.ErrorIs(t, l.Free(b), ErrDoubleFree)
		default:
			require.NoError(t, b.Free())
		}
	}
	n := r.stats(s)
	assert.Equal(t, 512+100*kib, n.LiveBytes)
	r.sound(s)

	next := r.lane(s, 32*mib)
	b := alloc(t, next, 512)
	assert.Same(t, all[0].slot.Magazine(), b.slot.Magazine(), "beside the one that lives")
	require.NoError(t, all[0].Free())
	require.NoError(t, next.Free(b))
	require.NoError(t, all[1].Free())
	require.NoError(t, next.Close())
	r.tick(s)
	n = r.stats(s)
	assert.Zero(t, n.LiveBytes)
	r.sound(s)
	require.NoError(t, s.Close())
	require.Zero(t, r.books().LentBytes, "all is back")
}

// Once the stream is closed a lane serves nothing; its buffers stay valid, and its memory is
// returned in its next call.
func TestStreamIsClosedUnderALane(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	l := r.lane(s, 32*mib)
	var all []Buffer
	for range 5 {
		all = append(all, alloc(t, l, 512), alloc(t, l, mib))
	}
	require.NoError(t, l.Free(all[0]))
	require.NoError(t, s.Close())
	_, err := s.Lane(0)
	require.ErrorIs(t, err, ErrClosed)
	require.True(t, all[1].Live())
	require.NoError(t, l.Free(all[2]))
	require.ErrorIs(t, l.Free(all[2]), ErrDoubleFree)
	_, err = l.Alloc(512)
	require.ErrorIs(t, err, ErrClosed)
	for i, b := range all[3:] {
		if i%2 == 0 {
			require.NoError(t, l.Free(b))
		} else {
			require.NoError(t, b.Free())
		}
	}
	assert.Equal(t, mib, r.stats(s).LiveBytes)
	require.NoError(t, all[1].Free())
	require.NoError(t, l.Close())
	r.until(control(s).Gone)
	assert.Zero(t, r.books().LentBytes)
}

// A lane that is not called keeps its stream from being gone; Close of the lane ends that.
func TestIdleLaneKeepsItsMemoryUntilItIsClosed(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	l := r.lane(s, 32*mib)
	require.NoError(t, must(t, s, mib).Free())
	for range 2 {
		require.NoError(t, l.Free(alloc(t, l, mib)))
	}
	require.NoError(t, s.Close())
	assert.False(t, control(s).Gone())
	assert.Equal(t, 2*mib, r.books().LentBytes)
	require.NoError(t, l.Close())
	r.until(control(s).Gone)
	assert.Zero(t, r.books().LentBytes)
}

// After the device's end frees through a lane return ErrClosed, and so do allocations.
func TestDeviceEndsUnderALane(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	l, idle := r.lane(s, 32*mib), r.lane(s, 32*mib)
	require.NoError(t, l.Free(alloc(t, l, mib)))
	b, c := alloc(t, l, mib), alloc(t, l, 512)
	require.NoError(t, s.Close())
	control(s).End()
	require.ErrorIs(t, l.Free(b), ErrClosed)
	require.ErrorIs(t, c.Free(), ErrClosed)
	_, err := l.Alloc(512)
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, l.Close())
	require.NoError(t, idle.Close())
}

// A free of a buffer with an announced use goes the slow way and comes home to the lane.
func TestAnnouncedFreeOfALane(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	l := r.lane(s, 32*mib)
	require.NoError(t, must(t, s, 16*mib).Free())
	for _, bytes := range []int64{512, mib} {
		b := alloc(t, l, bytes)
		require.NoError(t, b.slot.Announce(b.word, 1))
		require.NoError(t, l.Free(b))
		require.ErrorIs(t, l.Free(b), ErrDoubleFree)
		r.tick(s)
		require.NoError(t, l.Free(alloc(t, l, 2*bytes)))
		c := alloc(t, l, bytes)
		assert.Equal(t, b.Ptr(), c.Ptr())
		require.NoError(t, l.Free(c))
	}
	assert.Zero(t, r.stats(s).LiveBytes)
	r.sound(s)
}

// A turn that panics while a lane is in it fails: the lane's request goes to the stream, and the
// lane goes on.
func TestPanicInALanesTurn(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	l := r.lane(s, 32*mib)
	require.NoError(t, l.Free(alloc(t, l, mib)))
	crash(s, beforeLane, 1, nil)
	b := alloc(t, l, 512)

	leave := r.occupy(s)
	crash(s, beforeLane, 1, nil)
	v := &callback{run: func() { _, _ = s.turn.serveLane(&l.lane, allocLane, 512) }}
	s.ref.Call(v)
	leave()
	_, err := v.promise.Future().Await(t.Context())
	isPanic(t, err)

	crash(s, beforeReturn, 1, nil) // with a leased slot and pages in transit
	s.client.Asked(0, 0)
	require.NoError(t, must(t, s, 8*mib).Free())
	leave = r.occupy(s)
	s.turn.state.core.AskLanes()
	leave()
	crash(s, beforeReturn, 1, nil)
	c := alloc(t, l, 4*kib)
	require.NoError(t, l.Free(c))
	s.turn.state.hook = nil

	require.NoError(t, l.Free(b))
	for range 3 {
		require.NoError(t, l.Free(alloc(t, l, 512)))
	}
	r.sound(s)
	require.NoError(t, l.Close())
	n := r.stats(s)
	assert.Zero(t, n.LiveBytes)
	assert.Zero(t, n.LaneBytes)
	r.sound(s)
}

// By message, while another goroutine is in the turn, a lane gets the same.
func TestLaneOfABusyStream(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	l := r.lane(s, 32*mib)
	require.NoError(t, must(t, s, mib).Free())
	leave := r.occupy(s)
	var b Buffer
	v := &callback{run: func() { b, _ = s.turn.serveLane(&l.lane, allocLane, 512) }}
	s.ref.Call(v)
	leave()
	_, err := v.promise.Future().Await(t.Context())
	require.NoError(t, err)
	require.NoError(t, l.Free(b))
	assert.Zero(t, r.stats(s).LiveBytes)
}

// A lane of a stream that is quarantined serves nothing more.
func TestQuarantineUnderALane(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	l, idle := r.lane(s, 32*mib), r.lane(s, 32*mib)
	require.NoError(t, l.Free(alloc(t, l, mib)))
	b := alloc(t, l, mib)
	s.ref.Stop(ErrQuarantined)
	<-s.ref.Done()
	require.NoError(t, l.Free(b), "as any buffer")
	_, err := l.Alloc(mib)
	require.ErrorIs(t, err, ErrQuarantined)
	require.NoError(t, l.Close(), "it has heard of it")
	require.ErrorIs(t, idle.Close(), ErrQuarantined)
	require.NoError(t, idle.Close())
	_, err = s.Lane(0)
	require.ErrorIs(t, err, ErrQuarantined)
}
