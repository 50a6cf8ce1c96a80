package streams

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/internal/watermark/shared"
	"github.com/go-vram/vram/pool"
)

// submitter returns the Submitter of an open stream.
func submitter(t *testing.T, s *Stream) Submitter {
	t.Helper()
	x, err := NewSubmitter(s)
	require.NoError(t, err)
	return x
}

// forbidden checks that an error names the stream and the call that its capture forbids.
func forbidden(t *testing.T, err error, s *Stream, call string) {
	t.Helper()
	var captured *CaptureError
	require.ErrorAs(t, err, &captured)
	assert.Equal(t, s.ID(), captured.Stream)
	assert.Equal(t, call, captured.Call)
}

// begin begins work, which must be allowed, and ends it.
func begin(t *testing.T, x Submitter, captured bool) {
	t.Helper()
	require.NoError(t, x.Enter(captured))
	assert.True(t, x.s.cuda.announcement.busy())
	x.Leave()
	assert.False(t, x.s.cuda.announcement.busy())
}

// Of an announced capture only work for it is allowed, and of an unannounced one no call of Outside. A refused call has not
// begun: nothing waits for its end.
func TestWorkAndCaptures(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	s := r.stream(core.Budget{})
	x := submitter(t, s)
	quiet := func() {
		t.Helper()
		assert.False(t, s.cuda.announcement.busy(), "a refused call is counted")
	}
	const late = "work that is submitted as the capture begins or ends"

	begin(t, x, false)
	forbidden(t, x.Enter(true), s, late)
	quiet()
	require.NoError(t, x.Uncaptured("call"))
	require.NoError(t, x.Outside("call"))
	assert.True(t, s.cuda.announcement.busy())
	x.Leave()
	quiet()

	require.NoError(t, x.BeginCapture(func() error { return r.gpu.StreamBeginCapture(s.Handle(), cudadrv.CaptureRelaxed) }))
	forbidden(t, x.BeginCapture(func() error { assert.Fail(t, "a second capture"); return nil }), s, "cuStreamBeginCapture")
	begin(t, x, true)
	forbidden(t, x.Enter(false), s, late)
	quiet()
	forbidden(t, x.Outside("call"), s, "call")
	quiet()
	forbidden(t, x.Uncaptured("call"), s, "call")
	x.SettleCapture()
	x.EndCapture()

	begin(t, x, false) // no longer announced, and still begun
	forbidden(t, x.Outside("call"), s, "call")
	quiet()
	_, err := r.gpu.StreamEndCapture(s.Handle())
	require.NoError(t, err)
	require.NoError(t, x.Outside("call"))
	x.Leave()

	require.ErrorIs(t, x.BeginCapture(func() error { return cudadrv.Unknown }), cudadrv.Unknown)
	begin(t, x, false)

	require.NoError(t, s.Close())
	for name, call := range map[string]func() error{
		"Enter":        func() error { return x.Enter(false) },
		"Outside":      func() error { return x.Outside("call") },
		"Begin":        x.Begin,
		"BeginCapture": func() error { return x.BeginCapture(func() error { return nil }) },
	} {
		require.ErrorIs(t, call(), ErrClosed, name)
		quiet()
		assert.Zero(t, s.cuda.calls.Load(), name)
	}
	_, err = NewSubmitter(s)
	require.ErrorIs(t, err, ErrClosed)
	_, err = NewSubmitter(nil)
	require.ErrorIs(t, err, ErrNotOpen)
}

// Where neither stream of two can be made to wait for work, the host waits, and says so; where that fails, too, the error says
// that the work may still be in progress. Nothing was submitted if the first wait failed.
func TestWorkBetweenStreamsThatCannotWait(t *testing.T) {
	t.Parallel()
	r, s, other := pair(t, 16*mib)
	x, y := submitter(t, s), submitter(t, other)
	work := func() error {
		require.NoError(t, r.gpu.Launch(s.Handle(), time.Second))
		return nil
	}
	require.NoError(t, x.Between(y, work))
	require.ErrorIs(t, x.Between(y, func() error { return cudadrv.InvalidValue }), cudadrv.InvalidValue)

	r.fail("cuStreamWaitEvent")
	require.ErrorIs(t, x.Between(y, func() error { assert.Fail(t, "it must not be submitted"); return nil }), cudadrv.Unknown)
	r.faults.Clear()

	at := r.gpu.Now()
	err := x.Between(y, func() error { r.fail("cuEventRecord"); return work() })
	var order *OrderError
	require.ErrorAs(t, err, &order)
	assert.True(t, order.Waited)
	require.ErrorIs(t, err, cudadrv.Unknown)
	assert.GreaterOrEqual(t, r.gpu.Now(), at+time.Second, "the work has ended")
	r.faults.Clear()

	err = x.Between(y, func() error { r.fail("cuEventRecord", "cuStreamSynchronize"); return work() })
	require.ErrorAs(t, err, &order)
	assert.False(t, order.Waited)
	require.ErrorContains(t, err, "the host's wait")
	r.faults.Clear()

	at = r.gpu.Now()
	err = x.Between(y, func() error { // a wait for the work would end the capture
		require.NoError(t, work())
		return r.gpu.BeginCapture(s.Handle())
	})
	require.ErrorAs(t, err, &order)
	assert.False(t, order.Waited)
	require.ErrorIs(t, err, ErrCapturing)
	assert.Equal(t, at, r.gpu.Now(), "nobody has waited")
	_, err = r.gpu.EndCapture(s.Handle())
	require.NoError(t, err, "the capture was not disturbed")

	// The streams are open for all that: each call that had begun has ended.
	for _, of := range []*Stream{s, other} {
		assert.Zero(t, of.cuda.calls.Load())
		assert.False(t, of.cuda.announcement.busy())
		require.NoError(t, of.Close())
	}
	require.ErrorIs(t, x.Between(y, work), ErrClosed)
}

// Memory that the program has from the driver counts in the limit until Uncharge.
func TestAChargeOfASubmitter(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	s := r.stream(core.Budget{})
	x := submitter(t, s)
	require.NoError(t, x.Charge(12*mib))
	var short *pool.OutOfMemoryError
	require.ErrorAs(t, x.Charge(8*mib), &short)
	assert.Equal(t, 8*mib, short.RequestedBytes)
	assert.Equal(t, s.ID(), short.Stream)
	_, err := s.Alloc(8 * mib)
	require.ErrorAs(t, err, &short)
	assert.Equal(t, 12*mib, short.SharedBytes)
	x.Uncharge(12 * mib)
	require.NoError(t, must(t, s, 16*mib).Free())
	require.NoError(t, r.pool.Close())
	require.ErrorIs(t, x.Charge(mib), ErrClosed)
}

// entered is a gate with so many works.
func (g *gate) entered() int64 { return g.word.Load() &^ shutBit }

// A gate lets works in until it is shut; shut waits for those inside, and opens the gate if the wait is given up.
func TestGate(t *testing.T) {
	t.Parallel()
	g := &gate{empty: make(chan struct{}, 1)}
	require.NoError(t, g.enter())
	require.NoError(t, g.enter())
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, g.shut(ended), context.Canceled)
	assert.False(t, g.isShut())
	require.NoError(t, g.enter())
	assert.Equal(t, int64(3), g.entered())

	shut := make(chan error)
	go func() { shut <- g.shut(context.Background()) }()
	for !g.isShut() {
		runtime.Gosched()
	}
	require.ErrorIs(t, g.enter(), ErrAsleep)
	for range 3 {
		select {
		case err := <-shut:
			require.Fail(t, "it is shut with a work inside", "%v", err)
		default:
		}
		g.leave()
	}
	require.NoError(t, <-shut)
	require.ErrorIs(t, g.enter(), ErrAsleep)
	assert.Zero(t, g.entered())
	g.open()
	require.NoError(t, g.enter())
	g.leave()
	require.NoError(t, g.shut(ended), "empty: nothing to wait for")
}

// A work enters each gate once, however many there are, and leaves all of them; where one is shut it is inside those before.
func TestGatesOfAWork(t *testing.T) {
	t.Parallel()
	all := make([]*gate, 7) // more than fit without a slice
	for i := range all {
		all[i] = &gate{empty: make(chan struct{}, 1)}
	}
	var w gates
	for range 3 { // also after Leave
		for range 2 {
			require.NoError(t, w.enter(nil))
			for _, g := range all {
				require.NoError(t, w.enter(g))
			}
		}
		for i, g := range all {
			assert.Equal(t, int64(1), g.entered(), "gate %d", i)
		}
		w.leave()
		for i, g := range all {
			assert.Zero(t, g.entered(), "gate %d", i)
		}
	}
	for _, shut := range []int{1, 5} {
		require.NoError(t, all[shut].shut(t.Context()))
		for i, g := range all[:shut+1] {
			require.Equal(t, i == shut, w.enter(g) != nil)
		}
		assert.Zero(t, all[shut].entered())
		w.leave()
		for i, g := range all {
			assert.Zero(t, g.entered(), "gate %d", i)
		}
		all[shut].open()
	}
}

// The users of a stream's memory are each in the list once, and closed ones leave it. The count of another stream stays.
func TestUsersOfMemory(t *testing.T) {
	t.Parallel()
	r, home, a := pair(t, 64*mib)
	b := r.stream(core.Budget{})
	users := func() (all []uint32) {
		for _, u := range *home.cuda.crossings.users.Load() {
			all = append(all, u.id)
		}
		return all
	}
	for range 2 {
		home.cuda.crossings.add(&a.cuda)
		home.cuda.crossings.add(&b.cuda)
	}
	assert.Equal(t, []uint32{a.ID(), b.ID()}, users())
	last := home.cuda.crossings.of(&a.cuda)
	shared.RaiseUint64(&last.count, 5)
	shared.RaiseUint64(&last.count, 3)
	assert.EqualValues(t, 5, home.cuda.crossings.of(&a.cuda).count.Load())
	assert.Zero(t, home.cuda.crossings.of(&b.cuda).count.Load())
	assert.Same(t, last, home.cuda.crossings.of(&a.cuda))

	require.NoError(t, a.Close())
	control(a).End()
	c := r.stream(core.Budget{})
	home.cuda.crossings.add(&c.cuda)
	assert.Equal(t, []uint32{b.ID(), c.ID()}, users())
	assert.Zero(t, home.cuda.crossings.of(&c.cuda).count.Load())
	for _, one := range *home.cuda.crossings.seen.Load() {
		assert.NotSame(t, &a.cuda, one.of, "it has ended")
	}
}

// Work on a buffer of another stream waits, on the device, for the work of its stream and of other users, and the buffer's
// memory waits for that work.
func TestACrossingOrdersWork(t *testing.T) {
	t.Parallel()
	r, home, user := pair(t, 64*mib)
	later := r.stream(core.Budget{})
	b := must(t, home, mib)
	x, y, z := submitter(t, home), submitter(t, user), submitter(t, later)
	end := func(x Submitter) time.Duration {
		t.Helper()
		require.NoError(t, r.gpu.StreamSynchronize(x.s.Handle()))
		return r.gpu.Now()
	}
	plain, err := x.Check(b, true)
	require.NoError(t, err)
	assert.True(t, plain)
	r.work(home, time.Second)
	cross := y.Crossing()
	require.NoError(t, cross.Touch(b, true, 0))
	require.NoError(t, cross.Touch(b, true, 1), "once more")
	_, err = cross.Begin()
	require.NoError(t, err)
	r.work(user, time.Second)
	cross.After()
	cross.Leave()
	plain, err = x.Check(b, true)
	require.NoError(t, err)
	assert.False(t, plain, "another stream uses it")

	cross = z.Crossing()
	require.NoError(t, cross.Touch(b, false, 0))
	_, err = cross.Begin()
	require.NoError(t, err)
	cross.After()
	cross.Leave()
	assert.GreaterOrEqual(t, end(z), 2*time.Second, "after the work of both")

	r.work(user, time.Second)
	require.NoError(t, b.Free())
	assert.Positive(t, r.stats(home).PendingBytes)
	cross = y.Crossing()
	require.ErrorIs(t, cross.Touch(b, true, 0), ErrNotLive)
	cross.Leave()
	other := newRig(t, 16*mib).stream(core.Budget{})
	cross = y.Crossing()
	require.ErrorIs(t, cross.Touch(must(t, other, mib), true, 0), ErrForeign)
	cross.Leave()
}
