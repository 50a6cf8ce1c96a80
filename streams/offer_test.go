package streams

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-vram/vram/futures"

	"github.com/go-vram/vram/pool"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/pool/admission"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/stream/core"
)

// waitsInPool is a request of the stream's that waits in the pool alone: the stream has withdrawn
// it, and the goroutine that performs the effects of that turn is held up.
func (r *rig) waitsInPool(s *Stream, pages uint32) {
	bytes := int64(pages) * 2 * mib
	r.pool.Refill(s.client, poolcore.Refill{
		Client: s.id, Token: 1 << 40, Pages: pages, Bytes: bytes, RequestedBytes: bytes, BlockBytes: bytes,
		LiveBytes: s.turn.state.core.LiveBytes(), Patience: poolcore.Waiting, Place: poolcore.Place{Account: admission.Account(s.id), Age: 1},
	})
}

// The pool offers memory to a request that the stream has given up. The stream withdraws that once
// more, so that the pool does not try it again.
func TestAnOfferToARequestThatIsGivenUpWithdrawsIt(t *testing.T) {
	r := newRig(t, 8*mib)
	s := r.stream(core.Budget{})
	b := must(t, s, 6*mib)
	r.waitsInPool(s, 4)
	r.until(func() bool { return r.books().Waits.Waiting == 0 }) // the offer, and the withdrawal, may come in turns of other goroutines
	require.NoError(t, b.Free())
}

// A closed stream returns at once the memory that the pool offers it for a withdrawn request. That
// return is no reason to try the request again: pool and stream would do so without end, one inside
// the other.
func TestAClosedStreamIsOfferedMemoryOnce(t *testing.T) {
	r := newRig(t, 8*mib)
	s := r.stream(core.Budget{})
	kept, freed := must(t, s, 2*mib), must(t, s, 4*mib)
	entered, release := r.holdUp("cuStreamSynchronize")
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	<-entered
	r.waitsInPool(s, 4)
	require.NoError(t, freed.Free()) // returned with the end of the synchronisation, before the pool hears that the stream has left
	release()
	require.NoError(t, <-closed)
	r.until(func() bool { return r.books().Waits.Waiting == 0 })
	assert.EqualValues(t, 2*mib, r.books().LentBytes)
	require.NoError(t, kept.Free())
}

// An offer is taken if its request waits, is still wanted and finds memory. One whose request does not wait is withdrawn.
func TestWhichOffersAreTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 8*mib).Free())
	small := Request{Bytes: mib, Wait: true}
	served, canceled, large := s.request(small), s.request(small), s.request(Request{Bytes: 32 * mib, Wait: true})
	require.True(t, canceled.promise.Future().Cancel())
	tokens := parks(r, s, served, canceled, large)
	for _, offer := range []struct {
		what               string
		token              uint64
		taken, isWithdrawn bool
	}{
		{"its request waits", tokens[0], true, false},
		{"it was canceled", tokens[1], false, false},
		{"there is no memory", tokens[2], false, false},
		{"it was served", tokens[0], false, true},
		{"no request had the token", 1 << 40, false, true},
	} {
		require.NoError(t, s.inTurn(t.Context(), func() {
			d := &s.turn.dispatch
			assert.Equal(t, offer.taken, d.serveOffer(claims.Offer{Token: offer.token, RunsGranted: s.turn.state.claims.ReceivedRuns()}), offer.what)
			assert.Nil(t, d.current, offer.what)
			var withdrawn []uint64
			if d.state.out != nil {
				withdrawn = effect.Left(&d.state.out.withdrawals)
			}
			assert.Equal(t, offer.isWithdrawn, len(withdrawn) == 1 && withdrawn[0] == offer.token, offer.what)
		}))
	}
	b, err := served.promise.Future().Await(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.Free())
	require.NoError(t, s.inTurn(t.Context(), func() {
		s.turn.dispatch.endWaiting(&canceled.claim)
		s.turn.dispatch.endWaiting(&large.claim)
	}))
}

// freer is a buffer or a batch.
type freer interface{ Free() error }

// A request that waits takes an offer if the free memory of its stream serves it, a batch if that serves all its buffers, and the stream
// has the hits: it asked the pool for no page. A request that misses memory takes nothing.
func TestAnOfferIsServedByTheStream(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		bytes  []int64
		batch  bool
		served bool
	}{
		{[]int64{600 * kib}, false, true},
		{[]int64{3 * mib}, false, false},
		{[]int64{600 * kib}, true, true},
		{[]int64{300 * kib, 4 * kib, 4 * kib, 200 * kib}, true, true},
		{[]int64{600 * kib, 3 * mib}, true, false},
		{[]int64{3 * mib, 600 * kib}, true, false},
	} {
		r, s, other := pair(t, 64*mib)
		pin, hole := must(t, s, kib), must(t, s, 700*kib) // in one page, which stays
		require.NoError(t, hole.Free())
		before := r.stats(s)
		one := s.request(Request{Bytes: row.bytes[0]})
		c, answered := &one.claim, func() (freer, error) { return one.promise.Future().Await(t.Context()) }
		if row.batch {
			many := s.batching(make([]Buffer, len(row.bytes)), row.bytes)
			c, answered = &many.claim, func() (freer, error) { return many.promise.Future().Await(t.Context()) }
		}
		require.NoError(t, s.inTurn(t.Context(), func() {
			d := &s.turn.dispatch
			d.park(c)
			token := c.Token()
			effect.Reset(&d.state.effects().refills) // the pool does not know it
			assert.Equal(t, row.served, d.serveOffer(claims.Offer{Token: token}), "%+v", row)
			d.endWaiting(c)
		}))
		after := r.stats(s)
		hits := uint64(0)
		if row.served {
			hits = uint64(len(row.bytes))
		}
		assert.Equal(t, before.RangeHits+hits, after.RangeHits, "%+v", row)
		assert.Equal(t, before.PoolHits, after.PoolHits, "%+v", row)
		assert.Equal(t, before.LiveCount+hits, after.LiveCount, "%+v", row)
		if row.served {
			got, err := answered()
			require.NoError(t, err)
			require.NoError(t, got.Free())
		}
		require.NoError(t, pin.Free())
		goesOn(t, r, s, other)
	}
}

// A request that the pool denies has its answer, or waits no longer; a later panic of the turn does not fail it. A report of missing
// memory has its tag, and counts unless it was cancelled; its wait counts once.
func TestADeniedRequestIsOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	var short, waits uint64
	for _, state := range []claims.State{claims.Parked, claims.Asked} {
		for _, isCanceled := range []bool{false, true} {
			for _, cause := range []error{errors.New("denied"), &pool.OutOfMemoryError{}} {
				x := s.request(Request{Bytes: 80 * mib, Tag: "named"})
				x.parkedAt = time.Now()
				f := x.promise.Future()
				require.NoError(t, s.inTurn(t.Context(), func() {
					d := &s.turn.dispatch
					token := d.hold(&x.claim, state)
					if state == claims.Parked { // which is not missed in the stream
						d.state.core.Wait(-x.claim.want.missingBytes())
					}
					if isCanceled {
						assert.True(t, f.Cancel())
					}
					d.denied(&denied{token: token, err: cause})
					assert.Nil(t, d.current)
					assert.Nil(t, d.waiting(token))
					if isCanceled {
						d.changed(&x.claim)
						d.changed(&x.claim) // as a goroutine that waited for it reports
					}
				}))
				_, err := f.Await(t.Context())
				assert.Equal(t, isCanceled, !errors.Is(err, cause), state)
				if e, ok := errors.AsType[*pool.OutOfMemoryError](err); ok {
					short++
					assert.Equal(t, "named", e.Tag)
				}
				waits++
				assert.Equal(t, short, s.tally.Counts().OutOfMemoryCount)
				assert.Equal(t, waits, r.books().Waits.Durations.Count())
			}
		}
	}
	require.NoError(t, control(s).Check(t.Context()))
}

// A reclaim request waits for the runs that the pool has granted, or for a look at fences, or is answered: in one of these ways at a
// time, so that it has one answer.
func TestAReclaimRequestHasOneAnswer(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	b := must(t, home, 8*mib)
	require.NoError(t, b.RecordStream(other))
	r.work(other, time.Second)
	require.NoError(t, b.Free())
	require.NoError(t, home.inTurn(t.Context(), func() {
		home.turn.state.core.Drain()
		x := &home.turn.reclaims
		a := &reclaim{runsGranted: x.state.claims.ReceivedRuns() + 1}
		x.handle(a)
		assert.Same(t, a, x.due, "a run is on its way")
		a.runsGranted--
		x.resume()
		assert.Nil(t, x.due)
		assert.Same(t, a, x.state.out.reclaim, "fences keep memory")
		x.resume()
		assert.Empty(t, effect.Left(&x.state.out.returns))
		x.state.out.reclaim = nil
		x.handle(a)
		assert.Nil(t, x.due)
		assert.Len(t, effect.Left(&x.state.out.returns), 1)
		effect.Reset(&x.state.out.returns) // the pool has not asked
	}))
}

// A tenant's request that may wait queues if others wait, and no other does.
func TestWhichRequestsQueue(t *testing.T) {
	t.Parallel()
	r, s, other := pair(t, 8*mib)
	b := must(t, s, 4*mib)
	small := must(t, s, 4*kib) // keeps a page, with free memory for small buffers
	require.NoError(t, must(t, s, 8*kib).Free())
	assert.False(t, s.queues(true))
	f := other.AllocAsync(t.Context(), Request{Bytes: 6 * mib, Wait: true})
	r.until(func() bool { return r.books().Waits.Waiting == 1 })
	assert.True(t, s.queues(true), "a request waits")
	assert.False(t, s.queues(false))
	owner := pool.NewTenant("owner", 1, pool.Quota{LimitBytes: 64 * mib})
	r.pool.AddTenants(owner)
	for _, waits := range []bool{false, true} {
		for _, tenant := range []*pool.Tenant{nil, owner} {
			before := r.books().Waits.Count
			one, err := s.AllocFor(t.Context(), Request{Bytes: 8 * kib, Wait: waits, Tenant: tenant})
			require.NoError(t, err)
			many, err := s.AllocBatchFor(t.Context(), BatchRequest{Bytes: []int64{4 * kib, 8 * kib}, Wait: waits, Tenant: tenant})
			require.NoError(t, err)
			queued := uint64(0)
			if waits && tenant != nil {
				queued = 2
			}
			assert.Equal(t, before+queued, r.books().Waits.Count, "Wait %v, tenant %v", waits, tenant != nil)
			require.NoError(t, one.Free())
			require.NoError(t, many.Free())
		}
	}
	require.NoError(t, b.Free())
	require.NoError(t, small.Free())
	b, err := f.Await(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.Free())
}

// parking is a claim that waits in the pool, as effects see it.
type parking struct {
	parkedClaim
	wanted, isBlocked bool
	told              int
}

func (p *parking) isWanted() bool { return p.wanted }
func (p *parking) blocked() bool  { return p.isBlocked }
func (p *parking) changed() message {
	p.told++
	return &woken{}
}

// A request that changes before the pool knows of it is reported again, and withdrawn if it was canceled. Reports have numbers: the
// pool knows the last one.
func TestARequestThatChangesOnItsWay(t *testing.T) {
	t.Parallel()
	r := newRig(t, 8*mib)
	s := r.stream(core.Budget{})
	b := must(t, s, 8*mib)
	e := &effects{stream: &s.wiring}
	for i, x := range []parking{{wanted: true}, {wanted: true, isBlocked: true}, {}, {isBlocked: true}} {
		for _, blocked := range []bool{false, true} {
			x.told = 0
			token := uint64(1)<<40 + uint64(2*i)
			e.refill(outgoingRefill{poolcore.Refill{
				Client: s.id, Token: token, Pages: 4, Bytes: 8 * mib, RequestedBytes: 8 * mib, BlockBytes: 8 * mib, LiveBytes: 8 * mib,
				Patience: poolcore.Waiting, Place: poolcore.Place{Account: admission.Account(s.id), Age: r.pool.NextAge(), Align: 1, Blocked: blocked},
			}, &x})
			assert.Equal(t, x.wanted && x.isBlocked != blocked, x.told == 1, "%+v", x)
			r.pool.Withdraw(s.id, token)
		}
	}
	parked := s.request(Request{Bytes: mib, Wait: true})
	token := parks(r, s, parked)[0]
	require.NoError(t, s.inTurn(t.Context(), func() {
		d := &s.turn.dispatch
		for number := range uint64(3) {
			d.changed(&parked.claim)
			report := effect.Left(&d.state.effects().blocks)[number]
			assert.Equal(t, token, report.Token)
			assert.Equal(t, number+1, report.Number)
		}
		effect.Reset(&d.state.effects().blocks) // the pool does not know it
		d.state.claims.Take(&parked.claim.Claim)
	}))
	require.NoError(t, b.Free())
}

// A request that may wait asks the pool to be patient, and has its priority; one that may not has neither.
func TestWhatARequestAsksFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, 8*mib)
	s := r.stream(core.Budget{})
	for _, waits := range []bool{false, true} {
		x := s.request(Request{Bytes: mib, Wait: waits, Priority: 3})
		require.NoError(t, s.inTurn(t.Context(), func() {
			m := x.askRefill(&s.turn.searches, 7, []uint32{2, 1})
			assert.EqualValues(t, 7, m.Token)
			assert.EqualValues(t, 2, m.Pages)
			assert.Equal(t, []uint32{1}, m.More)
			assert.Equal(t, waits, m.Patience == poolcore.Patient)
			assert.Equal(t, waits, m.Place.Priority == 3)
			x.draws = nil
		}))
	}

	// One that is parked has its place: also when it is parked again.
	s.Exclusive()
	owner := pool.NewTenant("owner", 1, pool.Quota{LimitBytes: 4 * mib})
	control := (*pool.TenantControl)(owner)
	require.True(t, control.Charge(4*mib)) // by others
	set, err := r.pool.Reserve(t.Context(), 99, 2*mib)
	require.NoError(t, err)
	for _, owes := range []bool{false, true} {
		x := s.request(Request{Bytes: 3 * mib, Wait: true, Priority: 3, Align: 4 * kib})
		if owes {
			require.NoError(t, x.charge(owner, 3*mib))
		}
		x.awaiting.Add(1)
		x.draws = set
		require.NoError(t, s.inTurn(t.Context(), func() {
			d := &s.turn.dispatch
			var first poolcore.Place
			for parks := range 3 {
				d.park(&x.claim)
				m, ok := effect.Pop(&d.state.effects().refills)
				require.True(t, ok)
				assert.Equal(t, parks > 0, m.Place.Again)
				m.Place.Again = false
				if parks == 0 {
					first = m.Place
				}
				assert.Equal(t, first, m.Place)
				assert.Equal(t, poolcore.Waiting, m.Patience)
				assert.Equal(t, 3*mib, m.Bytes)
				assert.Equal(t, 3*mib, m.RequestedBytes)
				assert.Equal(t, 3*mib, m.BlockBytes)
				d.endWaiting(&x.claim)
				ask := x.askRefill(&s.turn.searches, 7, []uint32{2})
				assert.Equal(t, (*pool.ReservationControl)(set).ID(), ask.From, "it draws from its reservation also then")
				assert.Equal(t, 3, ask.Place.Priority)
			}
			assert.Equal(t, poolcore.Place{
				Account: x.account(), ChargedBytes: x.Cost(), Priority: 3, Age: x.age, Align: 4 * kib, Blocked: !owes, Unready: owes,
			}, first)
			assert.Equal(t, x.age, x.place.Load())
			effect.Reset(&d.state.effects().refills) // the pool does not know it
		}))
	}
}

// An offer is served by memory that was freed before it, also if no turn has collected that yet.
func TestAnOfferSeesMemoryThatWasJustFreed(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int64{4 * kib, 3 * mib} {
		r, s, other := pair(t, 16*mib)
		held, b := must(t, other, 8*mib), must(t, s, bytes)
		waits := other.AllocAsync(t.Context(), Request{Bytes: 14 * mib, Wait: true})
		r.until(func() bool { return r.books().Waits.Waiting == 1 })
		require.NoError(t, s.inTurn(t.Context(), s.turn.dispatch.updateDemand))
		parked := s.request(Request{Bytes: 2 * mib, Wait: true})
		token := parks(r, s, parked)[0]
		leave := r.occupy(s)
		s.client.Offered(token, 0)
		require.NoError(t, b.Free())
		leave()
		r.until(parked.promise.Future().Completed)
		b, err := parked.promise.Future().Await(t.Context())
		require.NoError(t, err)
		require.NoError(t, b.Free())
		require.NoError(t, held.Free())
		b, err = waits.Await(t.Context())
		require.NoError(t, err)
		require.NoError(t, b.Free())
	}
}

// Memory that a refused batch puts back serves a request that waits, on another stream, without a tick.
func TestMemoryOfARefusedBatchServesOneThatWaits(t *testing.T) {
	t.Parallel()
	for _, cancels := range []bool{false, true} {
		r, s, other := pair(t, 16*mib)
		held := must(t, other, 4*mib)
		require.NoError(t, must(t, s, 8*mib).Free())
		leave := r.occupy(s)
		batch := s.AllocBatchAsync(t.Context(), []int64{8 * mib, 6 * mib})
		sent := make(chan futures.Future[Buffer], 1)
		go func() { sent <- other.AllocAsync(t.Context(), Request{Bytes: 10 * mib, Wait: true}) }()
		waits := <-sent
		if cancels {
			batch.Cancel()
		}
		leave()
		r.until(waits.Completed)
		b, err := waits.Await(t.Context())
		require.NoError(t, err)
		_, err = batch.Await(t.Context())
		require.Error(t, err)
		require.NoError(t, b.Free())
		require.NoError(t, held.Free())
	}
}

// A request that waits is listed with all its options, a batch as a single one.
func TestWhatIsListedOfARequestThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, s, other := pair(t, 16*mib)
		owner := pool.NewTenant("owner", 1, pool.Quota{LimitBytes: 64 * mib})
		r.pool.AddTenants(owner)
		held := must(t, other, 12*mib)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, count := range []int{1, 2} {
			for _, tenant := range []*pool.Tenant{nil, owner} {
				var ended func() bool
				if count == 1 {
					f := s.AllocAsync(ctx, Request{Bytes: 6 * mib, Wait: true, Priority: 3, Tag: "named", Tenant: tenant})
					ended = f.Cancel
				} else {
					f := s.AllocBatchForAsync(ctx, BatchRequest{Bytes: []int64{5 * mib, mib}, Wait: true, Priority: 3, Tag: "named", Tenant: tenant})
					ended = f.Cancel
				}
				synctest.Wait()
				all, err := control(s).Waiting(t.Context())
				require.NoError(t, err)
				require.Len(t, all, 1)
				assert.Positive(t, all[0].Age)
				assert.Positive(t, all[0].Waited)
				all[0].Age, all[0].Waited = 0, 0
				assert.Equal(t, WaitingRequest{
					Stream: s.ID(), Bytes: 6 * mib, Count: count, Tag: "named", Tenant: tenant.Name(), Priority: 3, For: WaitForMemory,
					Left: time.Minute, HasDeadline: true,
				}, all[0])
				require.True(t, ended())
				all, err = control(s).Waiting(t.Context())
				require.NoError(t, err)
				assert.Empty(t, all)
			}
		}
		require.NoError(t, held.Free())
	})
}

// A request that names a reservation draws the pages from it that its stream does not have, a batch as a single one, of a tenant or of
// none; without one it is refused.
func TestARequestDrawsFromItsReservation(t *testing.T) {
	t.Parallel()
	r, s, other := pair(t, 16*mib)
	owner := pool.NewTenant("owner", 1, pool.Quota{LimitBytes: 64 * mib})
	r.pool.AddTenants(owner)
	held := must(t, other, 8*mib)
	for _, tenant := range []*pool.Tenant{nil, owner} {
		for _, waits := range []bool{false, true} {
			for _, batch := range []bool{false, true} {
				set, err := r.pool.Reserve(t.Context(), 99, 8*mib)
				require.NoError(t, err)
				send := func(from *pool.Reservation) ([]Buffer, error) {
					if batch {
						b, err := s.AllocBatchFor(t.Context(), BatchRequest{
							Bytes: []int64{4 * mib, 2 * mib}, Wait: waits && from != nil, Tenant: tenant, Reservation: from,
						})
						return b.Buffers(), err
					}
					b, err := s.AllocFor(t.Context(), Request{Bytes: 6 * mib, Wait: waits && from != nil, Tenant: tenant, Reservation: from})
					return []Buffer{b}, err
				}
				_, err = send(nil)
				require.ErrorIs(t, err, pool.ErrOutOfMemory)
				all, err := send(set)
				require.NoError(t, err)
				assert.Equal(t, 2*mib, r.books().SetAsideBytes, "batch %v, Wait %v, tenant %v", batch, waits, tenant != nil)
				set.Release()
				require.NoError(t, s.FreeBatch(all))
				require.NoError(t, s.Trim(t.Context()))
			}
		}
	}
	require.NoError(t, held.Free())
}
