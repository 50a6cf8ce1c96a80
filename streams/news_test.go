package streams

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/stream/core"
)

// wantedRig is a pool in which a request waits that nothing can serve, and a stream that keeps 8 MiB of free memory, in the books or,
// as if the pool had just granted them, in runs.
func wantedRig(t *testing.T, adopted bool) (r *rig, s *Stream, end func()) {
	t.Helper()
	r = newRig(t, 64*mib)
	other := r.stream(core.Budget{})
	if adopted {
		s = r.adopt()
	} else {
		s = r.stream(core.Budget{})
	}
	pin := must(t, other, 8*mib)
	f := other.AllocAsync(t.Context(), Request{Bytes: 60 * mib, Wait: true})
	r.until(func() bool { return r.books().Waits.Waiting == 1 && r.wants(s) })
	return r, s, func() {
		s.setHook(nil)
		f.Cancel()
		require.NoError(t, pin.Free())
		r.until(func() bool { return r.books().Waits.Waiting == 0 && !r.wants(s) })
	}
}

// wants reports whether a stream knows that requests of the device wait.
func (r *rig) wants(s *Stream) (wanted bool) {
	r.t.Helper()
	require.NoError(r.t, s.inTurn(r.t.Context(), func() { wanted = s.turn.state.wanted }))
	return wanted
}

// lentRuns takes memory from the pool for a stream that has none, as runs that are on their way.
func lentRuns(t *testing.T, r *rig, s *Stream, bytes int64) (runs []core.Run) {
	t.Helper()
	b := must(t, s, bytes)
	leave := r.occupy(s)
	defer leave()
	d := &s.turn
	require.NoError(t, b.Free())
	d.state.core.DrainAll()
	d.state.core.TakeCame()
	runs = append(runs, d.state.core.Release(^uint32(0), false)...)
	d.state.claims.Receive(-len(runs))
	return runs
}

// While requests of the device wait, memory that becomes free in a stream is reported to the pool by the turn in which it does, in
// whichever way it does: else it would serve nobody before the next tick. A search that puts its memory back is no news.
func TestMemoryThatBecomesFreeIsReportedWhereItIsWanted(t *testing.T) {
	t.Parallel()
	claim := func(t *testing.T, _ *rig, s *Stream, x *single, state claims.State) (token uint64) {
		t.Helper()
		require.NoError(t, s.inTurn(t.Context(), func() { token = s.turn.dispatch.hold(&x.claim, state) }))
		return token
	}
	gets := func(t *testing.T, f futures.Future[Buffer]) {
		t.Helper()
		b, err := f.Await(t.Context())
		require.NoError(t, err)
		require.NoError(t, b.Free())
	}
	for name, row := range map[string]struct {
		adopted bool
		happens func(t *testing.T, r *rig, s *Stream) (event, after func())
	}{
		"a free": {happens: func(t *testing.T, _ *rig, s *Stream) (event, after func()) {
			t.Helper()
			b := must(t, s, 4*mib)
			return func() { require.NoError(t, b.Free()) }, nil
		}},
		"a free of a buffer that other streams have used": {happens: func(t *testing.T, r *rig, s *Stream) (event, after func()) {
			t.Helper()
			b := must(t, s, 4*mib)
			require.NoError(t, b.RecordStream(r.streams[0]))
			return func() { require.NoError(t, b.Free()) }, nil
		}},
		"a grant of more than its request needs": {happens: func(t *testing.T, r *rig, s *Stream) (event, after func()) {
			t.Helper()
			x := s.request(Request{Bytes: mib})
			f, runs := x.promise.Future(), lentRuns(t, r, s, 8*mib)
			token := claim(t, r, s, x, claims.Asked)
			return func() { s.client.Granted(token, runs, false) }, func() { gets(t, f) }
		}},
		"a grant for a request that was withdrawn": {happens: func(t *testing.T, r *rig, s *Stream) (event, after func()) {
			t.Helper()
			runs := lentRuns(t, r, s, 8*mib)
			return func() { s.client.Granted(1<<40, runs, false) }, nil
		}},
		"a grant for a request that was canceled": {happens: func(t *testing.T, r *rig, s *Stream) (event, after func()) {
			t.Helper()
			x := s.request(Request{Bytes: 8 * mib})
			runs, token := lentRuns(t, r, s, 8*mib), claim(t, r, s, x, claims.Asked)
			require.True(t, x.promise.Future().Cancel())
			return func() { s.client.Granted(token, runs, false) }, nil
		}},
		"a grant for a request that is canceled when it has its block": {happens: func(t *testing.T, r *rig, s *Stream) (event, after func()) {
			t.Helper()
			x := s.request(Request{Bytes: 8 * mib})
			f, runs, token := x.promise.Future(), lentRuns(t, r, s, 8*mib), claim(t, r, s, x, claims.Asked)
			s.setHook(func(p point) {
				if p == beforeAnswer {
					assert.True(t, f.Cancel())
				}
			})
			return func() { s.client.Granted(token, runs, false) }, nil
		}},
		"a grant whose turn panics": {happens: func(t *testing.T, r *rig, s *Stream) (event, after func()) {
			t.Helper()
			x := s.request(Request{Bytes: 8 * mib})
			f, runs, token := x.promise.Future(), lentRuns(t, r, s, 8*mib), claim(t, r, s, x, claims.Asked)
			crash(s, beforeSearch, 1, nil)
			return func() { s.client.Granted(token, runs, false) }, func() {
				_, err := f.Await(t.Context())
				isPanic(t, err)
			}
		}},
		"a free that a turn collects when it panics": {happens: func(t *testing.T, _ *rig, s *Stream) (event, after func()) {
			t.Helper()
			b := must(t, s, 4*mib)
			return func() {
				err := s.inTurn(t.Context(), func() {
					s.turn.state.wakeDue.Store(true) // the turn has the message,
					assert.NoError(t, b.Free())
					s.turn.state.wakeDue.Store(false) // and has begun to handle it
					panic(recoveredtest.Planted("planted"))
				})
				isPanic(t, err)
			}, nil
		}},
		"the refusal of a batch": {happens: func(t *testing.T, r *rig, s *Stream) (event, after func()) {
			t.Helper()
			many := s.batching(make([]Buffer, 2), []int64{4 * mib, 40 * mib})
			f, token := many.promise.Future(), uint64(0)
			runs := lentRuns(t, r, s, 4*mib)
			require.NoError(t, s.inTurn(t.Context(), func() {
				s.turn.state.claims.Receive(len(runs))
				for _, run := range runs {
					s.turn.state.core.Grant(run)
				}
				assert.False(t, many.search(&s.turn.searches))
				token = s.turn.dispatch.hold(&many.claim, claims.Asked)
			}))
			return func() { s.client.Denied(token, errPlanned) }, func() {
				_, err := f.Await(t.Context())
				require.ErrorIs(t, err, errPlanned)
			}
		}},
		"a fence of the background": {adopted: true, happens: func(t *testing.T, r *rig, s *Stream) (event, after func()) {
			t.Helper()
			runs := lentRuns(t, r, s, 8*mib)
			require.NoError(t, s.inTurn(t.Context(), func() {
				s.turn.state.claims.Receive(len(runs))
				for _, run := range runs {
					s.turn.state.core.Grant(run)
				}
			}))
			return func() { require.NoError(t, s.inTurn(t.Context(), s.turn.lent.orderFence)) }, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s, end := wantedRig(t, row.adopted)
			event, after := row.happens(t, r, s)
			r.settled(s)
			reports := func() (sent uint64) {
				r.settled(s)
				leave := r.occupy(s)
				defer leave()
				return s.turn.lent.sent
			}
			before := reports()
			event()
			require.Greater(t, reports(), before)
			s.setHook(nil)
			if after != nil {
				after()
			}
			r.until(func() bool { return r.stats(s).PageBytes == 0 }) // the pool has asked for it
			end()
		})
	}
}

// A stream knows after each message of the pool whether requests of the device wait, also where the message that says so comes later:
// another goroutine may deliver that one.
func TestEachMessageOfThePoolTellsOfDemand(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]func(r *rig, s *Stream){
		"Demanded": func(_ *rig, s *Stream) { s.client.Demanded() },
		"Asked":    func(_ *rig, s *Stream) { s.client.Asked(s.turn.state.claims.ReceivedRuns(), 1) },
		"Granted":  func(_ *rig, s *Stream) { s.client.Granted(1<<40, nil, false) },
	} {
		r, s, end := wantedRig(t, false)
		require.NoError(t, s.inTurn(t.Context(), func() { // as before the pool's message
			s.turn.state.wanted = false
			s.turn.state.core.SetWanted(false)
		}))
		message(r, s)
		assert.True(t, r.wants(s), name)
		b := must(t, s, 2*mib)
		require.NoError(t, b.Free())
		r.until(func() bool { return r.stats(s).PageBytes == 0 })
		end()
	}
}

// A refusal, and a reclaim request of the pool, take all memory that waits to share fences, until the next tick.
func TestShortMemoryEndsTheSlackUntilTheNextTick(t *testing.T) {
	t.Parallel()
	for name, event := range map[string]func(t *testing.T, r *rig, home *Stream){
		"a refusal": func(t *testing.T, _ *rig, home *Stream) {
			t.Helper()
			x := home.request(Request{Bytes: mib})
			f := x.promise.Future()
			require.NoError(t, home.inTurn(t.Context(), func() {
				d := &home.turn.dispatch
				d.denied(&denied{token: d.hold(&x.claim, claims.Asked), err: errPlanned})
			}))
			if b, err := f.Await(t.Context()); err == nil { // from memory that was pending
				require.NoError(t, b.Free())
			}
		},
		"a reclaim request for all pages": func(_ *testing.T, r *rig, home *Stream) { r.answered(home, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, home, other := pair(t, 4<<30)
			peak := func(count int) int64 {
				require.NoError(t, control(home).ResetPeak(t.Context()))
				record(t, home, other, 16*mib, count)
				return r.stats(home).PeakPendingBytes
			}
			require.Greater(t, peak(20000), 200*mib)
			event(t, r, home)
			assert.LessOrEqual(t, peak(1000), 48*mib)
			r.tick(home)
			assert.Greater(t, peak(20000), 200*mib)
		})
	}
}
