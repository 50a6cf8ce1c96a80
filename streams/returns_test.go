package streams

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/pressure"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// inItsTurn runs f in the stream's turn, and returns the Returns that it leaves, which the pool gets.
func (r *rig) inItsTurn(s *Stream, f func()) []outgoingReturn {
	r.t.Helper()
	leave := r.occupy(s)
	f()
	returns := slices.Clone(effect.Left(&s.turn.state.effects().returns))
	leave()
	return returns
}

// idles makes a stream idle: nothing happens for a tick under the highest pressure.
func (r *rig) idles(s *Stream) {
	r.t.Helper()
	leave := r.occupy(s)
	defer leave()
	c := s.turn.state.core
	c.SetPressure(pressure.Critical)
	for range 2 {
		c.Tick()
	}
	require.True(r.t, c.Idle())
}

// Each return decides how the pool treats its memory: memory that the stream gives up is lent to it again no sooner than to
// others, and surplus memory not at all. An answer to a reclaim request gives memory up if the stream is idle.
func TestWhatAReturnSaysOfItsMemory(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		idle, final, surplus bool
		returns              func(s *Stream)
	}{
		"Trim": {final: true, returns: func(s *Stream) { _ = s.turn.returnFree() }},
		"what exceeds the budget": {returns: func(s *Stream) {
			s.turn.configure(core.Settings{Budget: core.Budget{CacheBytes: 2 * mib}})
		}},
		"for a batch that waits":                    {returns: func(s *Stream) { s.turn.lent.releaseAll(false) }},
		"an idle stream's cache":                    {idle: true, final: true, returns: func(s *Stream) { s.turn.lent.decay() }},
		"memory that was not needed for a window":   {final: true, surplus: true, returns: func(s *Stream) { s.turn.lent.age() }},
		"a reclaim request":                         {returns: func(s *Stream) { s.turn.reclaims.handle(&reclaim{stream: &s.wiring}) }},
		"a reclaim request for pages":               {returns: func(s *Stream) { s.turn.reclaims.handle(&reclaim{stream: &s.wiring, pages: 2}) }},
		"a reclaim request of an idle stream":       {idle: true, final: true, returns: func(s *Stream) { s.turn.reclaims.handle(&reclaim{stream: &s.wiring}) }},
		"what becomes free once a stream is closed": {returns: func(s *Stream) { s.turn.finished() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s, _ := pair(t, 64*mib)
			require.NoError(t, control(s).Reconfigure(t.Context(), core.Settings{AgeTicks: 1}))
			kept := must(t, s, 2*mib)
			require.NoError(t, must(t, s, 8*mib).Free())
			require.NoError(t, s.inTurn(t.Context(), s.turn.state.core.Drain))
			require.NoError(t, s.inTurn(t.Context(), s.turn.lent.age)) // the next window begins with the free memory
			require.NoError(t, s.inTurn(t.Context(), s.turn.state.core.Drain))
			if row.idle {
				r.idles(s)
			}
			all := r.inItsTurn(s, func() { row.returns(s) })
			s.cuda.synced.Store(false)
			if assert.Len(t, all, 1) {
				assert.NotEmpty(t, all[0].Runs)
				assert.Equal(t, row.final, all[0].Final)
				assert.Equal(t, row.surplus, all[0].Surplus)
			}
			require.NoError(t, kept.Free())
		})
	}
}

// An answer to a reclaim request says that all buffers of the stream belong to tenants, if they do: then others wait for the tenants.
// Where the stream has memory of its own, pending or on an adopted stream without a fence, it does not.
func TestAnAnswerSaysThatTenantsHaveTheStreamsMemory(t *testing.T) {
	t.Parallel()
	for _, adopted := range []bool{false, true} {
		r := newRig(t, 64*mib)
		s := r.stream(core.Budget{})
		if adopted {
			s = r.adopt()
		}
		owner := pool.NewTenant("owner", 1, pool.Quota{})
		r.pool.AddTenants(owner)
		b, err := s.AllocFor(t.Context(), Request{Bytes: 2 * mib, Tenant: owner})
		require.NoError(t, err)
		assert.True(t, r.answered(s, 0)[0].LetsOnly)
		require.NoError(t, must(t, s, 4*mib).Free())
		assert.Equal(t, !adopted, r.answered(s, 0)[0].LetsOnly, "adopted: %v", adopted)
		require.NoError(t, s.Trim(t.Context()))
		assert.True(t, r.answered(s, 0)[0].LetsOnly)
		require.NoError(t, b.Free())
	}
}

// An adopted stream whose memory stays since no fence covers it asks its callers for one: when a reclaim request finds such memory,
// and when a fence could not be recorded. It orders one at a time.
func TestUncoveredMemoryAsksForAFence(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.adopt()
	l := &s.turn.lent
	frees := func() {
		require.NoError(t, must(t, s, 4*mib).Free())
		require.NoError(t, s.inTurn(t.Context(), s.turn.state.core.Drain))
	}
	wanted := func() (is bool) {
		require.NoError(t, s.inTurn(t.Context(), func() { is = s.turn.state.core.FenceWanted() }))
		return is
	}
	frees()
	require.False(t, wanted())
	assert.Positive(t, r.answered(s, 0)[0].UncoveredBytes)
	require.True(t, wanted())

	kept := must(t, s, 2*mib)
	leave := r.occupy(s)
	l.orderFence()
	assert.False(t, s.turn.state.core.FenceWanted())
	ordered := s.turn.state.out.recordFence
	s.turn.state.core.WantFence()
	assert.False(t, s.turn.state.core.FenceWanted(), "the ordered one covers all")
	assert.NoError(t, kept.Free())
	s.turn.state.core.Drain()
	s.turn.state.core.WantFence()
	assert.True(t, s.turn.state.core.FenceWanted(), "but for memory freed since")
	l.returnExcess(forCaller)
	assert.Equal(t, ordered, s.turn.state.out.recordFence, "one is ordered already")
	s.turn.state.out.recordFence = 0
	s.cuda.done()
	l.recorded(&recorded{stream: &s.wiring, fence: ordered})
	l.orderFence()
	s.turn.state.out.recordFence = 0
	s.cuda.done()
	l.recorded(&recorded{stream: &s.wiring, fence: ordered + 1, failed: true})
	s.turn.state.core.WantFence()
	assert.True(t, s.turn.state.core.FenceWanted(), "it was not recorded")
	leave()
	require.NoError(t, s.Trim(t.Context()))
}

// A turn that serves a request of the stream's callers records the fence that the background wants, and returns the excess over the budget:
// in each of the ways in which a turn serves one.
func TestATurnThatServesACallerRecordsTheFence(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(t *testing.T, s *Stream, x *single, granted uint64){
		"a request": func(_ *testing.T, s *Stream, x *single, _ uint64) { s.turn.dispatch.serve(&x.claim) },
		"an offer": func(_ *testing.T, s *Stream, x *single, granted uint64) {
			token := s.turn.state.claims.Hold(&x.claim.Claim, claims.Parked)
			s.turn.dispatch.offered(&offered{stream: &s.wiring, offer: claims.Offer{Token: token, RunsGranted: granted}})
		},
		"an offer that waited for runs": func(t *testing.T, s *Stream, x *single, granted uint64) {
			t.Helper()
			token := s.turn.state.claims.Hold(&x.claim.Claim, claims.Parked)
			s.turn.state.claims.Receive(-1)
			s.turn.dispatch.offered(&offered{stream: &s.wiring, offer: claims.Offer{Token: token, RunsGranted: granted}})
			assert.Empty(t, effect.Left(&s.turn.state.effects().offers))
			s.turn.state.claims.Receive(1)
			s.turn.dispatch.reoffer()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, 64*mib)
			s := r.adopt()
			require.NoError(t, control(s).Reconfigure(t.Context(), core.Settings{Budget: core.Budget{CacheBytes: 2 * mib}}))
			require.NoError(t, must(t, s, 8*mib).Free())
			r.tick(s)
			x := s.request(Request{Bytes: mib, Wait: true})
			leave := r.occupy(s)
			require.True(t, s.turn.state.core.FenceWanted())
			serve(t, s, x, s.turn.state.claims.ReceivedRuns())
			assert.NotZero(t, s.turn.state.effects().recordFence)
			assert.NotEmpty(t, effect.Left(&s.turn.state.out.returns))
			effect.Reset(&s.turn.state.out.offers) // the pool has made none
			leave()
			b, err := x.promise.Future().Await(t.Context())
			require.NoError(t, err)
			require.NoError(t, b.Free())
		})
	}
}

// While requests wait, a stream with a budget keeps its excess: reclaim requests take all free memory, and the pool lends the rest
// to it again. It returns the excess as soon as none waits.
func TestExcessStaysWhileRequestsWait(t *testing.T) {
	t.Parallel()
	r, s, _ := pair(t, 64*mib)
	require.NoError(t, control(s).Reconfigure(t.Context(), core.Settings{Budget: core.Budget{CacheBytes: 2 * mib}}))
	b := must(t, s, 8*mib)
	require.NoError(t, b.Free())
	assert.Empty(t, r.inItsTurn(s, func() {
		s.turn.state.core.Drain()
		s.turn.state.wanted = true
		s.turn.lent.returnExcess(inBackground)
		s.turn.state.wanted = false
	}))
	assert.Len(t, r.inItsTurn(s, func() { s.turn.lent.returnExcess(inBackground) }), 1)
}

// Pending memory whose fences have passed is within the budget of its stream at once.
func TestMemoryWhoseFencesHavePassedKeepsToTheBudget(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	require.NoError(t, control(home).Reconfigure(t.Context(), core.Settings{Budget: core.Budget{CacheBytes: 2 * mib}}))
	b := must(t, home, 8*mib)
	require.NoError(t, b.RecordStream(other))
	r.work(other, time.Second)
	require.NoError(t, b.Free())
	r.tick(home)
	r.gpu.Advance(time.Second)
	_, err := other.cuda.line.Look()
	require.NoError(t, err)
	require.NoError(t, home.inTurn(t.Context(), func() { require.Positive(t, home.turn.state.core.PendingBytes()) }))
	(*peerClient)(&home.turn).fencePassed()
	assert.LessOrEqual(t, r.stats(home).HeldBytes, 2*mib)
}

// A reclaim request for a number of pages is answered at once. One for all looks at the fences of pending memory first, once.
func TestWhichReclaimRequestsLookAtFences(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	b := must(t, home, 8*mib)
	require.NoError(t, b.RecordStream(other))
	r.work(other, time.Second)
	require.NoError(t, b.Free())
	for _, row := range []struct {
		pages  uint32
		looked bool
	}{{1, false}, {0, true}, {0, false}, {1, true}} {
		a := &reclaim{stream: &home.wiring, pages: row.pages, looked: row.looked}
		leave := r.occupy(home)
		home.turn.state.core.Drain()
		home.turn.reclaims.handle(a)
		looks := row.pages == 0 && !row.looked
		assert.Equal(t, looks, home.turn.state.out.reclaim == a, "%+v", row)
		assert.Equal(t, !looks, len(effect.Left(&home.turn.state.out.returns)) == 1, "%+v", row)
		assert.Nil(t, home.turn.reclaims.due)
		home.turn.state.out.reclaim = nil
		effect.Reset(&home.turn.state.out.returns) // the pool has asked for none
		leave()
	}
	r.gpu.Advance(time.Second)
}

// A tick acts on the level of pressure that it brings, and allows another wait for fences after one that failed.
func TestATickActsOnItsLevelAtOnce(t *testing.T) {
	t.Parallel()
	r, s, other := pair(t, 4<<30)
	record(t, s, other, 16*mib, 20000)
	require.Greater(t, r.stats(s).HeldBytes, 200*mib)
	peak := func() int64 {
		require.NoError(t, control(s).ResetPeak(t.Context()))
		record(t, s, other, 16*mib, 1000)
		return r.stats(s).PeakPendingBytes
	}
	leave := r.occupy(s)
	w := &s.turn.dispatch.fenceWait
	w.Begin()
	w.Resume()
	w.Resumed(false)
	assert.False(t, w.BeginForOthers(1))
	s.turn.tick(pressure.High)
	assert.True(t, w.BeginForOthers(1))
	*w = claims.FenceWait{}
	leave()
	assert.LessOrEqual(t, peak(), 48*mib)
}

// The pool hears of each of the figures that a turn publishes, and of nothing if none has changed.
func TestEachFigureIsPublished(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	c := &readClient{of: s}
	s.peer.reporter = r.pool.NewReporter(99, c)
	must(t, s, 4*mib)
	reads := func() (n int) {
		leave := r.occupy(s)
		s.peer.publish(s.turn.state.core)
		leave()
		r.pool.Tick()
		_, err := r.pool.Queue(t.Context())
		require.NoError(t, err)
		n, c.reads = c.reads, 0
		return n
	}
	reads()
	require.Zero(t, reads())
	published, actual := r.used(s)
	require.Equal(t, actual, published)
	for name, spoil := range map[string]func(){
		"the used bytes":    func() { s.peer.usedBytes.Add(512) },
		"the free pages":    func() { s.peer.freePages.Add(1) },
		"that it was stale": func() { s.peer.outdated.Store(true) },
	} {
		spoil()
		assert.Equal(t, 1, reads(), name)
		published, actual = r.used(s)
		assert.Equal(t, actual, published, name)
	}
}

// Other streams know after each turn whether a stream has pending memory, and how much it holds: also after the turn of an allocation.
func TestTurnsOfAllocationsPublishWhatOthersWaitFor(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	r.work(other, time.Second)
	for range 3 {
		b := must(t, home, 3*mib)
		require.NoError(t, b.RecordStream(other))
		require.NoError(t, b.Free())
	}
	r.tick(home)
	assert.True(t, home.peer.waits.Load())
	r.gpu.Advance(time.Second)
	_, err := other.cuda.line.Look()
	require.NoError(t, err)
	b := must(t, home, 5*mib)
	assert.False(t, home.peer.waits.Load())
	held := home.peer.heldBytes.Load()
	assert.Equal(t, r.stats(home).HeldBytes, held)
	require.NoError(t, b.Free())
}

// A request that waits in the pool counts as served by the driver only where it came to the pool for the memory that serves it.
func TestAGrantOfMappedPagesCountsOnce(t *testing.T) {
	t.Parallel()
	for _, state := range []claims.State{claims.Asked, claims.Parked} {
		r := newRig(t, 64*mib)
		s := r.stream(core.Budget{})
		one, many := s.request(Request{Bytes: 3 * mib, Wait: true}), s.batching(make([]Buffer, 2), []int64{mib, 2 * mib})
		many.Waits = true
		for _, c := range []*claim{&one.claim, &many.claim} {
			runs := lentRuns(t, r, s, 4*mib)
			var token uint64
			require.NoError(t, s.inTurn(t.Context(), func() {
				if state == claims.Asked {
					assert.False(t, c.want.search(&s.turn.searches))
					c.want.missingRuns(&s.turn.searches)
					token = s.turn.dispatch.hold(c, state)
				} else {
					token = s.turn.state.claims.Hold(&c.Claim, state)
				}
			}))
			before := r.stats(s)
			s.client.Granted(token, runs, true)
			n := r.stats(s)
			if state == claims.Asked {
				assert.Equal(t, before.DriverMisses+1, n.DriverMisses)
			} else {
				assert.Equal(t, before.DriverMisses, n.DriverMisses)
			}
			require.NoError(t, s.Trim(context.Background()))
		}
		b, err := one.promise.Future().Await(t.Context())
		require.NoError(t, err)
		all, err := many.promise.Future().Await(t.Context())
		require.NoError(t, err)
		require.NoError(t, b.Free())
		require.NoError(t, all.Free())
	}
}
