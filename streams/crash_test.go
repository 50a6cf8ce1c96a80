package streams

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/stream/core"
)

// underWay takes the free runs of a stream out of it, as if the pool's grants had not arrived yet,
// and returns them with the number of runs that the pool has granted in all.
func underWay(t *testing.T, r *rig, s *Stream) (runs []poolcore.Run, granted uint64) {
	t.Helper()
	leave := r.occupy(s)
	granted = s.turn.state.claims.ReceivedRuns()
	runs = append(runs, s.turn.state.core.Release(^uint32(0), false)...)
	s.turn.state.claims.Receive(-len(runs))
	leave()
	require.NotEmpty(t, runs)
	return runs, granted
}

// An ask that waits for a grant is answered also when the grant's turn panics, be it for the
// request that the grant was for or on the way of the answer itself: the pool waits for it.
func TestAPanicForgetsNoAskThatIsOwed(t *testing.T) {
	for _, at := range []point{beforeSearch, beforeReturn} {
		r := newRig(t, 64*mib)
		s := r.stream(core.Budget{})
		require.NoError(t, must(t, s, 8*mib).Free())
		runs, granted := underWay(t, r, s)
		waits := s.request(Request{Bytes: mib})
		leave := r.occupy(s)
		token := s.turn.dispatch.hold(&waits.claim, claims.Asked)
		leave()

		s.client.Asked(granted, 0)
		crash(s, at, 1, nil)
		s.client.Granted(token, runs, false)
		b, err := waits.promise.Future().Await(context.Background())
		if at == beforeSearch {
			isPanic(t, err)
		} else {
			require.NoError(t, err)
			require.NoError(t, b.Free())
		}
		r.until(func() bool { return r.books().FreeBytes >= 6*mib })
	}
}

// parks enters requests of a stream as parked claims, and returns their tokens. The pool does not
// know of them: its offers are made by the test.
func parks(r *rig, s *Stream, all ...*single) (tokens []uint64) {
	r.t.Helper()
	leave := r.occupy(s)
	for _, x := range all {
		tokens = append(tokens, s.turn.state.claims.Hold(&x.claim.Claim, claims.Parked))
	}
	leave()
	return tokens
}

// settled waits for all turns of a stream that messages of its own turns lead to.
func (r *rig) settled(s *Stream) {
	r.t.Helper()
	r.stats(s) // after the turn that panicked,
	r.stats(s) // and after the messages that it has sent
}

// An offer of the pool that waits for a grant is answered also when the grant's turn panics: else
// its request, and all later ones, would wait forever.
func TestAPanicForgetsNoOfferThatIsOwed(t *testing.T) {
	for _, at := range []point{beforeSearch, beforeAnswer} {
		r := newRig(t, 64*mib)
		s := r.stream(core.Budget{})
		require.NoError(t, must(t, s, 8*mib).Free())
		runs, granted := underWay(t, r, s)
		asked, parked := s.request(Request{Bytes: mib}), s.request(Request{Bytes: 2 * mib, Wait: true})
		leave := r.occupy(s)
		token := s.turn.dispatch.hold(&asked.claim, claims.Asked)
		leave()

		s.client.Offered(parks(r, s, parked)[0], granted)
		crash(s, at, 1, nil)
		s.client.Granted(token, runs, false)
		_, err := asked.promise.Future().Await(context.Background())
		isPanic(t, err)
		r.settled(s)
		require.True(t, parked.promise.Future().Completed(), "it costs the request at hand, and no other")
		b, err := parked.promise.Future().Await(context.Background())
		require.NoError(t, err)
		assert.Zero(t, r.stats(s).Waiting)
		require.NoError(t, b.Free())
		r.balanced(s)
	}
}

// A panic in the turn that answers one of several offers that have waited costs no other its answer.
func TestAPanicInAnOfferForgetsNoOther(t *testing.T) {
	for _, at := range []point{beforeSearch, beforeAnswer} {
		r := newRig(t, 64*mib)
		s := r.stream(core.Budget{})
		require.NoError(t, must(t, s, 8*mib).Free())
		runs, granted := underWay(t, r, s)
		first, second := s.request(Request{Bytes: mib, Wait: true}), s.request(Request{Bytes: 2 * mib, Wait: true})
		for _, token := range parks(r, s, first, second) {
			s.client.Offered(token, granted)
		}
		crash(s, at, 1, nil)
		s.client.Granted(0, runs, false)
		_, err := first.promise.Future().Await(context.Background())
		isPanic(t, err)
		r.settled(s)
		require.True(t, second.promise.Future().Completed())
		b, err := second.promise.Future().Await(context.Background())
		require.NoError(t, err)
		assert.Zero(t, r.stats(s).Waiting)
		require.NoError(t, b.Free())
		r.balanced(s)
	}
}

// A closed stream whose work could not be waited for keeps its memory, and records nothing on a
// destroyed CUDA stream, even with a new budget.
func TestABudgetOfAClosedStreamRecordsNothing(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 16*mib).Free())
	r.fail("cuStreamSynchronize")
	require.Error(t, s.Close())
	r.faults.Clear()
	records := r.faults.Calls("cuEventRecord")
	require.NoError(t, control(s).Reconfigure(context.Background(), core.Settings{Budget: core.Budget{CacheBytes: 2 * mib}}))
	assert.Equal(t, records, r.faults.Calls("cuEventRecord"))
	assert.Equal(t, 16*mib, r.stats(s).CachedBytes)
}

// The buffers of a batch that was answered are its caller's, also when the turn panics afterwards.
func TestAPanicAfterTheAnswerLeavesTheBatch(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 32*mib).Free())
	leave := r.occupy(s)
	f := s.AllocBatchAsync(context.Background(), []int64{mib, 2 * mib, kib})
	s.turn.state.core.SetBudget(core.Budget{CacheBytes: 4 * mib})
	s.turn.state.hook = crashing(beforeReturn, 1, nil)
	leave()
	got, err := f.Await(context.Background())
	require.NoError(t, err)
	assert.Equal(t, uint64(3), r.stats(s).LiveCount)
	for _, b := range got.Buffers() {
		assert.True(t, b.Live())
	}
	require.NoError(t, got.Free())
}

// Messages to a closed stream that is about to end return their memory to the pool, also when its
// turn panics.
func TestAPanicAtTheEndOfAStreamLosesNoPages(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	live := must(t, s, 2*mib)
	require.NoError(t, must(t, s, 6*mib).Free())
	runs, _ := underWay(t, r, s)
	require.NoError(t, s.Close())
	crash(s, beforeReturn, 1, nil)
	leave := r.occupy(s)
	s.client.Granted(7, runs, false)
	s.ref.Stop(ErrClosed)
	leave()
	<-s.ref.Done()
	r.until(func() bool { return r.books().LentBytes == 2*mib })
	require.NoError(t, live.Free())
}
