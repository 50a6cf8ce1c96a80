package streams

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/effect"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/recovered"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// owing is a batch whose tenant is not charged: its stream parks it.
func owing(t *testing.T, s *Stream, bytes ...int64) *several {
	t.Helper()
	owner := pool.NewTenant("owner", 1, pool.Quota{LimitBytes: 64 * mib})
	control := (*pool.TenantControl)(owner)
	require.True(t, control.Charge(64*mib))
	b := s.batching(make([]Buffer, len(bytes)), bytes)
	b.Waits = true
	require.NoError(t, b.charge(owner, sumOfBlocks(bytes)))
	require.True(t, b.Owes())
	return b
}

// A batch that its stream parks, and whose turn panics before the pool knows of it, gets an answer
// and waits no longer: also in the turn of a grant.
func TestAPanicWhileABatchIsParkedFailsIt(t *testing.T) {
	for _, granted := range []bool{false, true} {
		r := newRig(t, 64*mib)
		s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
		require.NoError(t, must(t, s, 8*mib).Free())
		b := owing(t, s, mib, 2*mib)
		f := b.promise.Future()
		crash(s, beforeReturn, 1, nil) // parking releases the stream's pages
		if granted {
			leave := r.occupy(s)
			token := s.turn.dispatch.hold(&b.claim, claims.Asked)
			leave()
			s.client.Granted(token, nil, false)
		} else {
			s.ref.Tell(&b.claim)
		}
		r.settled(s)
		require.True(t, f.Completed())
		_, err := f.Await(context.Background())
		isPanic(t, err)
		assert.Zero(t, r.pool.Demand())
		goesOn(t, r, s, other)
	}
}

// A request whose grant makes the turn panic before it is served gets an answer: no other grant
// comes for it.
func TestAPanicInAGrantFailsItsRequest(t *testing.T) {
	recoveredtest.Expect(t, "vram-stream-1: runtime error: invalid memory address")
	r := newRig(t, 64*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
	asked := s.request(Request{Bytes: mib})
	f := asked.promise.Future()
	leave := r.occupy(s)
	token := s.turn.dispatch.hold(&asked.claim, claims.Asked)
	s.pool = nil // as a defect that ends the turn before it gets to the request
	leave()
	s.client.Granted(token, nil, false)
	leave = r.occupy(s)
	s.pool = r.pool
	leave()
	r.settled(s)
	require.True(t, f.Completed())
	_, err := f.Await(context.Background())
	var crash *actors.PanicError
	require.ErrorAs(t, err, &crash)
	goesOn(t, r, s, other)
}

// A request that was served by an offer waits no longer when the turn panics after the answer, be
// the !waits at once or after a grant: the pool is told that it was taken, and nothing else.
func TestAPanicBehindATakenOffer(t *testing.T) {
	for _, waits := range []bool{false, true} {
		r := newRig(t, 64*mib)
		s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
		require.NoError(t, must(t, s, 8*mib).Free())
		var runs []poolcore.Run
		granted := s.turn.state.claims.ReceivedRuns()
		if waits {
			runs, granted = underWay(t, r, s)
		}
		parked := s.request(Request{Bytes: 2 * mib, Wait: true})
		offer := &offered{stream: &s.wiring, offer: claims.Offer{Token: parks(r, s, parked)[0], RunsGranted: granted}}
		leave := r.occupy(s)
		s.turn.state.core.SetSettings(core.Settings{Budget: core.Budget{CacheBytes: 2 * mib}}) // returns the rest after the answer
		leave()
		crash(s, beforeReturn, 1, nil)
		s.ref.Call(offer)
		if waits {
			s.client.Granted(1<<40, runs, false)
		}
		r.settled(s)
		require.True(t, parked.promise.Future().Completed())
		b, err := parked.promise.Future().Await(context.Background())
		require.NoError(t, err)
		assert.Zero(t, r.stats(s).Waiting)
		assert.Equal(t, !waits, offer.answered, "the failed message is no second answer")
		require.NoError(t, b.Free())
		goesOn(t, r, s, other)
	}
}

// The effects of a turn whose end panics are performed all the same, though the stream is quarantined: its
// requests leave the pool, and those in an effect get an answer. A message of that turn may have panicked
// before, and its audit, and one of the effects panics: that is counted and goes no further.
func TestAPanicAtTheEndOfATurnLosesNoEffects(t *testing.T) {
	recoveredtest.Expect(t, "vram-stream-1: runtime error: invalid memory address")
	for _, before := range []bool{false, true} {
		r := newRig(t, 8*mib)
		s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
		s.panics = new(recovered.Log)
		held := must(t, other, 6*mib)
		waits := s.AllocAsync(context.Background(), Request{Bytes: 4 * mib, Wait: true})
		r.until(func() bool { return r.books().Waits.Waiting == 1 })
		looks := s.request(Request{Bytes: mib})
		var host lazyHost
		books := s.turn.state.core
		s.post(func() {
			s.host = &host
			effect.Push[message](&s.turn.state.effects().again, &looks.claim)
			effect.Push[filler](&s.turn.state.effects().fills, filling(func() { panic(recoveredtest.Planted("in an effect")) }))
			s.turn.state.core = nil // the end of the turn reads it, as an audit does
			if before {
				panic(recoveredtest.Planted("before its end"))
			}
		})
		<-s.ref.Done()
		s.turn.state.core = books // for the end of the test
		counted := s.panics.Count()
		if before {
			assert.EqualValues(t, 1, counted, "the panic of the audit; the actor counts the others")
		}
		host.run()
		assert.Equal(t, counted+1, s.panics.Count(), "the panic of the effect")
		for _, f := range []futures.Future[Buffer]{waits, looks.promise.Future()} {
			r.until(f.Completed)
			_, err := f.Await(t.Context())
			var crash *actors.PanicError
			if !errors.As(err, &crash) { // of an audit that panics
				require.ErrorIs(t, err, ErrQuarantined)
			}
		}
		r.until(func() bool { return r.books().Waits.Waiting == 0 }) // it holds up no other request
		require.NoError(t, held.Free())
		require.NoError(t, must(t, other, 8*mib).Free())
	}
}
