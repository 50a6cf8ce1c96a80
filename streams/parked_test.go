package streams

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// A batch that is parked asks the pool for the memory that its stream lacks, then for all its pages, since others may have taken the stream's, and
// then for all in one run, since the pieces did not fit. It is one wait, of one age.
func TestTheRunsOfAParkedBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, 256*mib)
	s := r.stream(core.Budget{})
	pin, hole := must(t, s, kib), must(t, s, 700*kib) // in one page, which stays
	require.NoError(t, hole.Free())
	many := s.batching(make([]Buffer, 3), []int64{600 * kib, 40 * mib, 60 * mib})
	var asked [][]uint32
	require.NoError(t, s.inTurn(t.Context(), func() {
		d := &s.turn.dispatch
		for range 4 {
			d.park(&many.claim)
			m, ok := effect.Pop(&d.state.effects().refills)
			require.True(t, ok)
			assert.Equal(t, len(asked) > 0, m.Place.Again)
			assert.Equal(t, many.age, m.Place.Age)
			asked = append(asked, append([]uint32{m.Pages}, m.More...))
			for _, b := range many.dst {
				assert.Zero(t, b, "a parked claim holds nothing")
			}
			d.endWaiting(&many.claim)
		}
	}))
	sum := func(runs []uint32) (pages uint32) {
		for _, n := range runs {
			pages += n
		}
		return pages
	}
	assert.EqualValues(t, 50, sum(asked[0]))
	assert.Greater(t, len(asked[1]), 1)
	assert.EqualValues(t, 51, sum(asked[1]))
	assert.Equal(t, []uint32{51}, asked[2])
	assert.Equal(t, asked[2], asked[3])
	require.NoError(t, pin.Free())
}

// A request that is parked asks for enough pages for any place of its block, and for one page if memory of its stream would serve it, so
// that it is offered that memory.
func TestThePagesOfAParkedRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	for _, row := range []struct {
		want  Request
		free  int64
		pages uint32
	}{
		{Request{Bytes: 8 * mib}, 0, 4},
		{Request{Bytes: 8 * mib}, 8 * mib, 1},
		{Request{Bytes: 3 * mib, Align: mib}, 0, 2},
		{Request{Bytes: 3*mib + 512*kib, Align: mib}, 0, 3},
	} {
		if row.free > 0 {
			require.NoError(t, must(t, s, row.free).Free())
		}
		x := s.request(row.want)
		require.NoError(t, s.inTurn(t.Context(), func() {
			d := &s.turn.dispatch
			d.park(&x.claim)
			m, ok := effect.Pop(&d.state.effects().refills)
			require.True(t, ok)
			assert.Equal(t, row.pages, m.Pages, "%+v", row.want)
			assert.Empty(t, m.More)
			d.endWaiting(&x.claim)
		}))
		require.NoError(t, s.Trim(t.Context()))
	}
}

// A batch whose tenant's charge was refunded when it had its blocks puts them back.
func TestARefundedBatchPutsItsBlocksBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
	owner := pool.NewTenant("owner", 1, pool.Quota{LimitBytes: 64 * mib})
	r.pool.AddTenants(owner)
	require.NoError(t, must(t, s, 16*mib).Free())
	leave := r.occupy(s)
	f := s.AllocBatchForAsync(t.Context(), BatchRequest{Bytes: []int64{kib, 5 * mib}, Tenant: owner})
	s.turn.state.hook = func(p point) {
		if p == beforeAnswer {
			assert.True(t, f.Cancel())
		}
	}
	leave()
	r.settled(s)
	assert.Zero(t, owner.Stats().ChargedBytes)
	goesOn(t, r, s, other)
}

// A batch whose buffers a reading of the statistics may have counted before they were booked says so, in the turn and without it.
func TestAReadingBeforeABatchIsBookedIsSeen(t *testing.T) {
	t.Parallel()
	r := newRig(t, 512*mib)
	s := r.cached()
	for _, busy := range []bool{false, true} {
		for _, reads := range []bool{false, true} {
			reading := s.parts.Reading()
			if reads {
				r.stats(s)
			}
			leave := func() {}
			if busy {
				leave = r.occupy(s)
			}
			dst := make([]Buffer, len(partlyThere))
			found, whole := s.batchSince(reading, dst, partlyThere)
			leave()
			assert.False(t, whole)
			assert.Equal(t, reads, found.counted, "busy: %v", busy)
			many := s.batching(dst, partlyThere)
			many.hold(dst, found)
			require.NoError(t, s.inTurn(t.Context(), func() { many.putBack(&s.turn.searches) }))
		}
	}
}

// A request is among those that wait in each state but the served one, with its cause, unless it was canceled.
func TestWhichRequestsWait(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	for state, cause := range map[claims.State]WaitFor{
		claims.Asked: WaitForPool, claims.Consulted: WaitForHandler, claims.Delayed: WaitForWork, claims.Parked: WaitForMemory,
	} {
		one, gone := s.request(Request{Bytes: mib}), s.request(Request{Bytes: 2 * mib})
		require.NoError(t, s.inTurn(t.Context(), func() {
			s.turn.state.claims.Hold(&one.claim.Claim, state)
			s.turn.state.claims.Hold(&gone.claim.Claim, state)
		}))
		require.True(t, gone.promise.Future().Cancel())
		all, err := control(s).Waiting(t.Context())
		require.NoError(t, err)
		if assert.Len(t, all, 1, state) {
			assert.Equal(t, mib, all[0].Bytes, state)
			assert.Equal(t, cause, all[0].For, state)
		}
		require.NoError(t, s.inTurn(t.Context(), func() {
			s.turn.state.claims.Take(&one.claim.Claim)
			s.turn.state.claims.Take(&gone.claim.Claim)
		}))
	}
}

// An offer retires spans that no buffer uses: they may be all that keeps an aligned request from its block.
func TestAnOfferRetiresIdleSpans(t *testing.T) {
	t.Parallel()
	r, s, end := wantedRig(t, false)
	runs := lentRuns(t, r, s, 4*mib)
	x := s.request(Request{Bytes: 4 * mib, Align: 4 * kib, Wait: true})
	require.NoError(t, s.inTurn(t.Context(), func() {
		d := &s.turn
		d.state.claims.Receive(len(runs))
		for _, run := range runs {
			d.state.core.Grant(run)
		}
		var all []Buffer
		for range 8 {
			slot, _ := d.state.core.Alloc(64*kib, 0)
			d.state.core.Served(false)
			all = append(all, Buffer{slot, slot.Word(), 64 * kib})
		}
		d.state.wakeDue.Store(true) // the message comes later
		for _, b := range all {
			assert.NoError(t, b.Free())
		}
		token := d.state.claims.Hold(&x.claim.Claim, claims.Parked)
		assert.True(t, d.dispatch.serveOffer(claims.Offer{Token: token}))
		d.state.wakeDue.Store(false)
	}))
	b, err := x.promise.Future().Await(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.Free())
	end()
}

// A look that a failed search leads to is followed by the search that the line which needs most asks for, in any order of the lines.
func TestALookTakesTheFencesOfEachLine(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{true, false} {
		r, home, other := pair(t, 64*mib)
		third := r.stream(core.Budget{})
		for i, s := range []*Stream{other, third} {
			r.work(s, time.Second)
			b := must(t, home, mib)
			require.NoError(t, b.RecordStream(s))
			require.NoError(t, b.Free())
			require.NoError(t, home.inTurn(t.Context(), home.turn.state.core.Drain))
			if (i == 0) == first {
				s.cuda.line.TakeNow()
			}
		}
		leave := r.occupy(home)
		assert.Equal(t, claims.AfterTake, home.turn.searches.pushLook(claims.First))
		assert.Equal(t, claims.AfterTake, home.turn.state.effects().sought)
		assert.Len(t, effect.Left(&home.turn.state.out.fences), 3, "one is taken, and both are queried")
		effect.Reset(&home.turn.state.out.fences)
		home.turn.state.out.sought = claims.First
		leave()
		r.gpu.Advance(time.Second)
		r.tick(home)
	}
}

// A request finds pending memory whose work has finished before it asks the pool: in its caller's turn, and as a message.
func TestARequestLooksAtFencesBeforeItAsksThePool(t *testing.T) {
	t.Parallel()
	for name, alloc := range map[string]func(r *rig, s *Stream) (Buffer, error){
		"a turn":    func(_ *rig, s *Stream) (Buffer, error) { return s.Alloc(16 * mib) },
		"a message": func(r *rig, s *Stream) (Buffer, error) { return async(t, r, s, 16*mib) },
		"aligned": func(_ *rig, s *Stream) (Buffer, error) {
			return s.AllocFor(t.Context(), Request{Bytes: 16 * mib, Align: 4 * kib})
		},
	} {
		r, home, other := pair(t, 64*mib)
		b := must(t, home, 16*mib)
		require.NoError(t, b.RecordStream(other))
		require.NoError(t, b.Free())
		before := r.stats(home)
		require.Equal(t, 16*mib, before.PendingBytes)
		b, err := alloc(r, home)
		require.NoError(t, err)
		n := r.stats(home)
		assert.Equal(t, before.PoolHits, n.PoolHits, name)
		assert.Equal(t, before.RangeHits+1, n.RangeHits, name)
		assert.Equal(t, before.HeldBytes, n.HeldBytes, name)
		assert.Equal(t, 16*mib, n.LiveBytes, name)
		assert.Equal(t, 16*mib, b.Bytes(), name)
		require.NoError(t, b.Free())
	}
}

// A tick queries each stream that memory waits for once, and takes the fences that are missing without a query of its own.
func TestATickQueriesEachStreamOnce(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	r.work(other, time.Second)
	for tick := range 3 {
		b := must(t, home, mib)
		require.NoError(t, b.RecordStream(other))
		require.NoError(t, b.Free())
		queries, records := r.faults.Calls("cuEventQuery"), r.faults.Calls("cuEventRecord")
		r.tick(home)
		assert.EqualValues(t, min(tick, 1), r.faults.Calls("cuEventQuery")-queries)
		assert.EqualValues(t, 1, r.faults.Calls("cuEventRecord")-records)
	}
	r.gpu.Advance(time.Second)
	r.tick(home)
	assert.Zero(t, r.stats(home).PendingBytes)
}

// A buffer that was freed is named as such by Check, and by the frees of a batch, which frees the others, also once the device is closed.
func TestFreedBuffersAreNamed(t *testing.T) {
	t.Parallel()
	_, home, other := pair(t, 64*mib)
	live, freed := must(t, home, mib), must(t, home, 2*mib)
	require.NoError(t, freed.Free())
	for _, s := range []*Stream{home, other} {
		_, err := Submitter{s}.Check(freed, false)
		require.ErrorIs(t, err, ErrNotLive)
	}
	var batch *BatchError
	require.ErrorAs(t, freeBatch([]Buffer{live, freed}), &batch)
	assert.Equal(t, 1, batch.Index)
	assert.False(t, live.Live())
	held, small, last := must(t, home, 3*mib), must(t, home, kib), must(t, home, 2*kib)
	require.NoError(t, small.Free())
	control(home).End()
	require.ErrorIs(t, freeBatch([]Buffer{held}), ErrClosed)
	require.ErrorAs(t, freeBatch([]Buffer{last, small}), &batch)
	assert.Equal(t, 1, batch.Index)
}

// The error of a memset that the driver refuses says of how many bytes, and has the driver's.
func TestTheErrorOfAMemset(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	for _, message := range []bool{false, true} {
		r.fail("cuMemsetD8Async")
		leave := func() {}
		if message {
			leave = r.occupy(s)
		}
		f := s.AllocAsync(t.Context(), Request{Bytes: 3000, Zero: true})
		leave()
		_, err := f.Await(t.Context())
		require.ErrorIs(t, err, cudadrv.Unknown)
		require.ErrorContains(t, err, "zeroing a buffer of 3000 bytes")
		r.faults.Clear()
	}
}

// A restore that the driver refuses is completed by the device, once for each refusal.
func TestARefusedRestoreIsCompleted(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	x := r.sleeper(t, r.stream(core.Budget{}))
	b, err := x.Alloc(8 * mib)
	require.NoError(t, err)
	require.NoError(t, x.Shut(t.Context()))
	_, err = x.Release(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.faults.Add(fault.Rule{Func: "cuMemCreate", Result: cudadrv.OutOfMemory}))
	completed := 0
	x.s.complete = func(short *pool.OutOfMemoryError) {
		completed++
		assert.ErrorIs(t, short.Cause, cudadrv.OutOfMemory)
	}
	require.ErrorIs(t, x.Restore(t.Context()), pool.ErrOutOfMemory)
	assert.Equal(t, 1, completed)
	r.faults.Clear()
	require.NoError(t, x.Restore(t.Context()))
	assert.Equal(t, 1, completed)
	require.NoError(t, b.Free())
}
