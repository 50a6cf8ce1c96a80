package streams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// streamCall is a call on a CUDA stream, which another stream may have part in.
type streamCall struct {
	call string // of the error if the stream is being captured; empty: none
	// during are the driver's functions on a stream that is not captured, in order, each with the streams for which Close waits because
	// the call was counted, and those on which no capture begins.
	during []string
	make   func(s, other *Stream) error
}

// streamCalls returns all calls, by name. One of them has the tenant.
func streamCalls(owner *pool.Tenant) map[string]streamCall {
	const wait, event, sync = "cuStreamWaitEvent", "cuEventRecord", "cuStreamSynchronize"
	zeroed := func(s *Stream, owner *pool.Tenant) error {
		b, err := s.AllocFor(context.Background(), Request{Bytes: kib, Zero: true, Tenant: owner})
		if err == nil {
			err = b.Free()
		}
		return err
	}
	record := func(s *Stream) error {
		mark, err := s.cuda.mark()
		if err == nil {
			s.cuda.discard(mark)
		}
		return err
	}
	query := func(s *Stream) error { // a captured stream is not idle
		if s.cuda.idle() {
			return errPlanned
		}
		return nil
	}
	between := func(s, other *Stream) error {
		return Submitter{s}.Between(Submitter{other}, func() error {
			_, _, err := s.cuda.device.MemGetInfo()
			return err
		})
	}
	waits := []string{"cuEventRecord both both", "cuStreamWaitEvent both both"}
	works := slices.Concat(waits, []string{"cuMemGetInfo both both"}, waits)
	settles := func(s, other string) []string {
		return []string{"cuEventRecord " + s + " " + s, "cuEventQuery " + s + " " + s, "cuStreamWaitEvent both " + other, "cuEventSynchronize " + s + " none"}
	}
	return map[string]streamCall{
		"a memset":               {"cuMemsetD8Async", []string{"cuMemsetD8Async s s"}, func(s, _ *Stream) error { return zeroed(s, nil) }},
		"a tenant's memset":      {"cuMemsetD8Async", []string{"cuMemsetD8Async s s"}, func(s, _ *Stream) error { return zeroed(s, owner) }},
		"WaitStream":             {wait, waits, func(s, other *Stream) error { return s.WaitStream(other) }},
		"WaitStream of another":  {event, waits, func(s, other *Stream) error { return other.WaitStream(s) }},
		"a wait":                 {wait, waits, func(s, other *Stream) error { return s.cuda.waitFor(&other.cuda) }},
		"a wait of another":      {event, waits, func(s, other *Stream) error { return other.cuda.waitFor(&s.cuda) }},
		"Between":                {wait, works, between},
		"Between of another":     {wait, works, func(s, other *Stream) error { return between(other, s) }},
		"a synchronisation":      {sync, []string{"cuStreamSynchronize none s"}, func(s, _ *Stream) error { return s.cuda.synchronize() }},
		"Synchronize":            {sync, []string{"cuStreamSynchronize none s"}, func(s, _ *Stream) error { return Submitter{s}.Synchronize() }},
		"Close":                  {sync, []string{"cuStreamSynchronize none none", "cuStreamDestroy none none"}, func(s, _ *Stream) error { return s.Close() }},
		"a record":               {event, []string{"cuEventRecord none s", "cuEventQuery none s"}, func(s, _ *Stream) error { return record(s) }},
		"a wait for a mark":      {wait, nil, func(s, _ *Stream) error { return s.cuda.precede(fence.Mark{}) }},
		"a settle":               {event, settles("s", "other"), func(s, other *Stream) error { return s.cuda.settle(context.Background(), &other.cuda) }},
		"a settle before others": {wait, settles("other", "s"), func(s, other *Stream) error { return other.cuda.settle(context.Background(), &s.cuda) }},
		"a query":                {"", []string{"cuStreamQuery s s"}, func(s, _ *Stream) error { return query(s) }},
	}
}

// Each call on a CUDA stream that is being captured is refused with an error that names the stream, makes no driver call, and leaves
// nothing announced; and works once the capture has ended.
func TestEachCallOnACapturedStreamIsRefused(t *testing.T) {
	t.Parallel()
	owner := pool.NewTenant("owner", 1, pool.Quota{})
	for name, row := range streamCalls(owner) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, captured, other := pair(t, 64*mib)
			if name == "a tenant's memset" {
				r.pool.AddTenants(owner) // a tenant is of one pool
			}
			require.NoError(t, must(t, captured, 8*mib).Free())
			require.NoError(t, r.gpu.BeginCapture(captured.Handle()))
			calls := func() (n uint64) {
				for _, f := range []string{"cuMemsetD8Async", "cuStreamSynchronize", "cuStreamQuery", "cuStreamWaitEvent"} {
					n += r.faults.Calls(f)
				}
				return n
			}
			before := calls()
			err := row.make(captured, other)
			if row.call == "" {
				require.NoError(t, err)
			} else {
				forbidden(t, err, captured, row.call)
			}
			assert.Equal(t, before, calls())
			for _, s := range []*Stream{captured, other} {
				assert.Zero(t, s.cuda.calls.Load())
				assert.Zero(t, s.cuda.announcement.word.Load())
			}
			_, err = r.gpu.EndCapture(captured.Handle())
			require.NoError(t, err)
			if name != "a wait for a mark" && row.call != "" {
				require.NoError(t, row.make(captured, other))
			}
		})
	}
}

// which names those of two streams for which something holds.
func which(s, other *Stream, holds func(h *cudaStream) bool) string {
	switch a, b := holds(&s.cuda), holds(&other.cuda); {
	case a && b:
		return "both"
	case a:
		return "s"
	case b:
		return "other"
	}
	return "none"
}

// Each call is announced, on each stream that has part in it, until the driver has returned: Close waits for it, and no capture begins.
func TestEachCallIsAnnounced(t *testing.T) {
	t.Parallel()
	owner := pool.NewTenant("owner", 1, pool.Quota{})
	for name, row := range streamCalls(owner) {
		r, s, other := pair(t, 64*mib)
		if name == "a tenant's memset" {
			r.pool.AddTenants(owner)
		}
		require.NoError(t, must(t, s, 8*mib).Free())
		var during []string
		r.faults.SetBefore(func(function string) {
			if function != "cuStreamIsCapturing" && function != "cuEventCreate" {
				counted := which(s, other, func(h *cudaStream) bool { return h.calls.Load() > 0 || !h.line.Idle() })
				entered := which(s, other, func(h *cudaStream) bool { return h.announcement.busy() })
				during = append(during, function+" "+counted+" "+entered)
			}
		})
		_ = row.make(s, other)
		r.faults.SetBefore(nil)
		assert.Equal(t, row.during, during, name)
	}
}

// The mark of a stream is not used for another one before a wait for it has been ordered, or has ended.
func TestAMarkIsKeptForTheWait(t *testing.T) {
	t.Parallel()
	for function, wait := range map[string]func(s, other *Stream) error{
		"cuStreamWaitEvent":  func(s, other *Stream) error { return s.cuda.waitFor(&other.cuda) },
		"cuEventSynchronize": func(s, other *Stream) error { return other.cuda.settle(t.Context(), &s.cuda) },
	} {
		r, s, other := pair(t, 16*mib)
		third := r.stream(core.Budget{})
		r.work(third, time.Hour)
		var mark fence.Mark
		entered := false
		r.faults.SetBefore(func(f string) {
			if f == function && !entered {
				entered = true
				var err error
				mark, err = third.cuda.mark()
				assert.NoError(t, err)
			}
		})
		require.NoError(t, wait(s, other))
		require.NoError(t, s.cuda.synchronize())
		assert.True(t, entered, function)
		assert.Zero(t, r.gpu.Now(), "%s: nobody waits for the third stream", function)
		third.cuda.discard(mark)
	}
}

// Each effect of a turn is performed: of several of a kind all, in order.
func TestAllEffectsAreMade(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	s := r.stream(core.Budget{})
	r.work(s, time.Second)
	e := &effects{stream: &s.wiring, spare: func(*effects) {}}
	var made []string
	note := func(what string) { made = append(made, what) }
	var replies [2]callback
	for i := range 2 {
		s.cuda.order()
		effect.Push(&e.returns, outgoingReturn{Return: poolcore.Return{Client: s.id, Fence: poolcore.Fence(1000 + i), Stirred: true}})
		effect.Push(&e.replies, &replies[i])
		mark, err := s.cuda.mark()
		require.NoError(t, err)
		effect.Push(&e.discards, mark)
		effect.Push(&e.withdrawals, 1<<40)
		effect.Push(&e.blocks, poolcore.Block{Client: s.id, Token: 1 << 40})
		effect.Push(&e.offers, answeredOffer{1 << 40, false})
		effect.Push[filler](&e.fills, filling(func() { note(fmt.Sprint("fill ", i)) }))
		effect.Push(&e.fences, fencing{s.cuda.line, 0, true})
		effect.Push[message](&e.again, &callback{run: func() { note(fmt.Sprint("again ", i)) }})
		var none []LiveBuffer
		effect.Push(&e.consults, consulting{largest: &none, failed: errPlanned, refused: failing(func(err error) {
			require.ErrorIs(t, err, errPlanned)
			note(fmt.Sprint("consult ", i))
		})})
	}
	s.peers.largest(nil, true) // else others make the list, and the answers
	records := r.faults.Calls("cuEventRecord")
	e.Perform()
	assert.Equal(t, []string{"fill 0", "fill 1", "again 0", "again 1", "consult 0", "consult 1"}, made)
	assert.EqualValues(t, 2, r.faults.Calls("cuEventRecord")-records)
	for i := range replies {
		assert.True(t, replies[i].promise.Future().Completed())
	}
	r.gpu.Advance(time.Second)
}

// Each kind of effects is looked for again until there is none: the next one is performed, or there was none.
func TestEachKindOfEffectsIsEmptied(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	s := r.stream(core.Budget{})
	for name, kind := range map[string]struct {
		push func(e *effects)
		step func(e *effects) bool
		once bool
	}{
		"returns":     {push: func(e *effects) { effect.Push(&e.returns, outgoingReturn{}) }, step: (*effects).performReturn},
		"replies":     {push: func(e *effects) { effect.Push(&e.replies, &callback{}) }, step: (*effects).performReturn},
		"discards":    {push: func(e *effects) { mark, _ := s.cuda.mark(); effect.Push(&e.discards, mark) }, step: (*effects).performReturn},
		"a fence":     {push: func(e *effects) { s.cuda.order(); e.recordFence = 7 }, step: (*effects).performReturn, once: true},
		"withdrawals": {push: func(e *effects) { effect.Push(&e.withdrawals, 1<<40) }, step: (*effects).performRequest},
		"blocks":      {push: func(e *effects) { effect.Push(&e.blocks, poolcore.Block{Client: s.id, Token: 1 << 40}) }, step: (*effects).performRequest},
		"suspensions": {push: func(e *effects) { s.Suspend()(); e.suspends = true }, step: (*effects).performRequest, once: true},
		"offers":      {push: func(e *effects) { effect.Push(&e.offers, answeredOffer{1 << 40, false}) }, step: (*effects).performRequest},
		"fills":       {push: func(e *effects) { effect.Push[filler](&e.fills, filling(func() {})) }, step: (*effects).performLook},
		"looks":       {push: func(e *effects) { effect.Push(&e.fences, fencing{s.cuda.line, 0, true}) }, step: (*effects).performLook},
		"an advance":  {push: func(e *effects) { e.advanced = true }, step: (*effects).performLook, once: true},
		"repetitions": {push: func(e *effects) { effect.Push[message](&e.again, &callback{run: func() {}}) }, step: (*effects).performLook},
		"a reclaim":   {push: func(e *effects) { e.reclaim = &reclaim{stream: &s.wiring, runsGranted: 1 << 40} }, step: (*effects).finish, once: true},
		"waits":       {push: func(e *effects) { e.waitFences = true }, step: (*effects).finish, once: true},
	} {
		e := &effects{stream: &s.wiring}
		kind.push(e)
		if !kind.once {
			kind.push(e)
			assert.True(t, kind.step(e), name)
		}
		assert.True(t, kind.step(e), name)
		for _, step := range []func(*effects) bool{(*effects).performReturn, (*effects).performRequest, (*effects).performLook, (*effects).finish} {
			assert.False(t, step(e), name)
		}
	}
	require.NoError(t, s.inTurn(t.Context(), func() { s.turn.reclaims.due = nil }))
	r.settled(s)
}

// filling is a claim that is filled.
type filling func()

func (f filling) fill(*cudaStream) { f() }

// failing is a claim that fails.
type failing func(err error)

func (f failing) Fail(err error) { f(err) }

// A turn that queries fences is followed by a search, and a turn that has queried none is not.
func TestWhichSearchesAreRepeated(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	look := fencing{r.stream(core.Budget{}).cuda.line, 0, true}
	for _, before := range []claims.Searched{claims.First, claims.AfterFences, claims.AfterLook, claims.AfterTake} {
		var e effects
		assert.Equal(t, claims.First, e.searchAfter(before))
		effect.Push(&e.fences, look)
		want := claims.First
		if before == claims.First {
			want = claims.AfterFences
		}
		assert.Equal(t, want, e.searchAfter(before))
		e.sought = claims.AfterTake
		assert.Equal(t, claims.AfterTake, e.searchAfter(before))
	}
}

// A buffer's memory is reached through the stream that it belongs to, by kernels of another device that reach the memory of its device.
func TestWhichMemoryKernelsReach(t *testing.T) {
	t.Parallel()
	r, home, own := pair(t, 16*mib)
	_, foreign, _ := pair(t, 16*mib)
	b, freed := must(t, home, mib), must(t, home, mib)
	require.NoError(t, freed.Free())
	_, err := Submitter{foreign}.Reach(b)
	require.ErrorIs(t, err, ErrForeign)
	foreign.peers.Reach(home.peers)
	reached, err := Submitter{foreign}.Reach(b)
	require.NoError(t, err)
	assert.Same(t, home, reached.Stream())
	_, err = Submitter{own}.Reach(b)
	require.ErrorIs(t, err, ErrForeign, "the same device needs no other stream")
	_, err = Submitter{foreign}.Reach(freed)
	require.ErrorIs(t, err, ErrNotLive)
	home.sibling = func() (*Stream, error) { return r.stream(core.Budget{}), nil }
	h, err := submitter(t, home).NewHold()
	require.NoError(t, err)
	kept, err := h.Alloc(mib)
	require.NoError(t, err)
	_, err = Submitter{foreign}.Reach(kept)
	require.ErrorIs(t, err, ErrForeign, "nothing is submitted to the stream of a hold")
	require.NoError(t, kept.Free())
	require.NoError(t, h.End())
	require.NoError(t, b.Free())
}

// An allocation of a hold that fails returns the error.
func TestAnAllocationOfAHoldThatFails(t *testing.T) {
	t.Parallel()
	r, home, _ := pair(t, 16*mib)
	home.sibling = func() (*Stream, error) { return r.stream(core.Budget{}), nil }
	h, err := submitter(t, home).NewHold()
	require.NoError(t, err)
	_, err = h.Alloc(32 * mib)
	require.Error(t, err)
	_, err = h.AllocFor(t.Context(), Request{Bytes: 32 * mib})
	require.Error(t, err)
	require.NoError(t, h.End())
}

// Calls of a Handover that NewHandover did not make, or without a context, are refused. Len counts the values that were not received.
func TestWhichHandoversAreCallable(t *testing.T) {
	t.Parallel()
	_, from, to := pair(t, 16*mib)
	var none *Handover[int]
	made := NewHandover[int](from, to, 2)
	for _, row := range []struct {
		h    *Handover[int]
		ctx  context.Context
		want error
	}{
		{none, t.Context(), ErrNotOpen}, {&Handover[int]{}, t.Context(), ErrNotOpen}, {made, nil, futures.ErrNilContext},
	} {
		require.ErrorIs(t, row.h.Send(row.ctx, 1), row.want)
		_, err := row.h.Receive(row.ctx)
		require.ErrorIs(t, err, row.want)
		_, ok := row.h.TryReceive()
		assert.False(t, ok)
		assert.Zero(t, row.h.Len())
	}
	for n := range 3 {
		assert.Equal(t, n, made.Len())
		if n < 2 {
			require.NoError(t, made.Send(t.Context(), n))
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, made.Send(ended, 7), context.Canceled)
	for n := range 2 {
		v, err := made.Receive(t.Context())
		require.NoError(t, err)
		assert.Equal(t, n, v)
	}
	_, err := made.Receive(ended)
	require.ErrorIs(t, err, context.Canceled)
}

// Memory whose uses on a stream have ended is free once its own stream waits for that one on the device: without a fence, also if the
// work has not finished. A wait that fails is no order.
func TestAWaitOfItsStreamEndsTheUsesOfMemory(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		r, home, other := pair(t, 64*mib)
		b := must(t, home, 4*mib)
		use, err := b.Use(other)
		require.NoError(t, err)
		r.work(other, time.Second)
		require.NoError(t, use.Done())
		if fails {
			r.fail("cuStreamWaitEvent")
			require.ErrorIs(t, home.WaitStream(other), cudadrv.Unknown)
			r.faults.Clear()
		} else {
			require.NoError(t, home.WaitStream(other))
		}
		require.NoError(t, b.Free())
		assert.Equal(t, fails, r.stats(home).PendingBytes > 0)
		r.gpu.Advance(time.Second)
	}
}

// A tenant's request that may wait for its quota gets its memory with the free that makes room in it, and counts as a request of a byte
// if it is for none.
func TestARequestWaitsForItsQuota(t *testing.T) {
	t.Parallel()
	for _, batch := range []bool{false, true} {
		for _, bytes := range []int64{0, 2 * mib} {
			r := newRig(t, 64*mib)
			s := r.stream(core.Budget{})
			owner := pool.NewTenant("owner", 1, pool.Quota{LimitBytes: 4 * mib})
			r.pool.AddTenants(owner)
			b, err := s.AllocFor(t.Context(), Request{Bytes: 4 * mib, Tenant: owner})
			require.NoError(t, err)
			var answered func() bool
			var free func() error
			if batch {
				f := s.AllocBatchForAsync(t.Context(), BatchRequest{Bytes: []int64{bytes}, Wait: true, Tenant: owner})
				answered, free = f.Completed, func() error { b, _ := f.Await(t.Context()); return b.Free() }
			} else {
				f := s.AllocAsync(t.Context(), Request{Bytes: bytes, Wait: true, Tenant: owner})
				answered, free = f.Completed, func() error { b, _ := f.Await(t.Context()); return b.Free() }
			}
			all, err := control(s).Waiting(t.Context())
			require.NoError(t, err)
			if assert.Len(t, all, 1) {
				assert.Equal(t, WaitForQuota, all[0].For)
				assert.Equal(t, max(bytes, 1), all[0].Bytes)
			}
			assert.False(t, answered())
			require.NoError(t, b.Free())
			r.until(answered)
			require.NoError(t, free())
			assert.Zero(t, owner.Stats().ChargedBytes)
		}
	}
}

// Memory of a stream that was quarantined stays with it at its end, also if it was closed before, and so does memory of one whose Close has begun
// and has not waited for its work; other memory returns.
func TestTheEndOfAClosedStreamReturnsItsMemory(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		cause  error
		synced bool
		starts int
	}{
		{ErrClosed, true, 1}, {fmt.Errorf("%w: books", ErrQuarantined), true, 0}, {errors.New("stopped"), true, 1}, {ErrClosed, false, 0},
	} {
		r, s, _ := pair(t, 16*mib)
		kept, b := must(t, s, 2*mib), must(t, s, 4*mib)
		require.NoError(t, s.Close())
		var host lazyHost
		leave := r.occupy(s)
		s.turn.state.wakeDue.Store(true) // the free's turn comes later
		require.NoError(t, b.Free())
		s.host = &host
		s.cuda.synced.Store(row.synced)
		s.turn.ending.stopped(row.cause)
		assert.Len(t, host.due, row.starts, "%+v", row)
		s.cuda.synced.Store(true)
		s.turn.state.wakeDue.Store(false)
		leave()
		host.run()
		s.host = nil
		require.NoError(t, kept.Free())
	}
}

// Others know whether any stream of the device has pending memory.
func TestAnyStreamMayHavePendingMemory(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 16*mib)
	assert.False(t, r.peers.anyPending())
	b := must(t, home, mib)
	require.NoError(t, b.RecordStream(other))
	r.work(other, time.Second)
	require.NoError(t, b.Free())
	r.tick(home)
	assert.True(t, r.peers.anyPending())
	r.gpu.Advance(time.Second)
	r.tick(home)
	assert.False(t, r.peers.anyPending())
	assert.Zero(t, (*Stream)(nil).ID())
	assert.Zero(t, (*Stream)(nil).Handle())
	for _, await := range []bool{false, true} {
		assert.Equal(t, await, Submitter{home}.AwaitsLaunches())
		r.peers.RecordLaunches(true)
	}
	r.peers.recordsLaunches = false
	require.ErrorIs(t, error(&FaultError{Err: cudadrv.Unknown}), ErrDeviceFailed)
	require.NotErrorIs(t, error(&FaultError{Err: cudadrv.Unknown}), ErrClosed)
	assert.Equal(t, "1 buffer of 1 KiB, waits, priority 3", BatchRequest{Bytes: []int64{kib}, Wait: true, Priority: 3}.String())
	assert.Equal(t, "1 buffer of 1 KiB", BatchRequest{Bytes: []int64{kib}}.String())
}
