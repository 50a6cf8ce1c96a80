package streams

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// ledger is a host that compares, at each reclaim request and offer, the runs that the pool has granted with those that the stream
// has received. Nothing is in flight at those of this test.
type ledger struct {
	*yieldHost
	stream  *Stream
	asked   int
	unequal [][2]uint64
}

func (l *ledger) Behavior(_ string, b actors.Behavior) actors.Behavior { return &auditing{b, l} }

// Wait implements actors.Host.
func (l *ledger) Wait(closed ...<-chan struct{}) {
	cases := make([]reflect.SelectCase, len(closed))
	for i, c := range closed {
		cases[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)}
	}
	reflect.Select(cases)
}

type auditing struct {
	actors.Behavior
	ledger *ledger
}

func (a *auditing) Receive(m actors.Message) {
	switch m := m.(type) {
	case *reclaim:
		a.ledger.compare(m.runsGranted)
	case *offered:
		a.ledger.compare(m.offer.RunsGranted)
	}
	a.Behavior.Receive(m)
}

func (l *ledger) compare(granted uint64) {
	l.asked++
	if received := l.stream.turn.state.claims.ReceivedRuns(); granted != received {
		l.unequal = append(l.unequal, [2]uint64{granted, received})
	}
}

// Each run that the pool grants counts once, for the pool as for the stream, and a run that comes back since no fence could be
// recorded does not count: else a reclaim request or an offer is answered before, or never after, the runs that overtake it.
func TestGrantedRunsCountOnceOnBothSides(t *testing.T) {
	asked := 0
	for seed := range uint64(12) {
		draw := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // reproducible is the point
		r := newRig(t, 96*mib)
		l := &ledger{yieldHost: newYieldHost()}
		handle, err := r.device.StreamCreate()
		require.NoError(t, err)
		s, _, err := Open(Config{
			ID: 1, Pool: r.pool, Device: r.device, Fences: r.fences, Handle: handle, Adopted: seed%3 == 0, Limit: &r.limit, Peers: &r.peers, Host: l,
		})
		require.NoError(t, err)
		l.stream = s
		r.streams = append(r.streams, s)
		other := r.stream(core.Budget{})
		for range 30 {
			var pins []Buffer // leave single free pages between them: a batch needs several runs
			for range 20 {
				if b, err := other.Alloc(2 * mib); err == nil {
					pins = append(pins, b)
				}
			}
			for i := 0; i < len(pins); i += 2 {
				require.NoError(t, pins[i].Free())
			}
			require.NoError(t, control(other).Trim(context.Background()))
			var held []Buffer
			for range 1 + draw.IntN(3) {
				sizes := make([]int64, 1+draw.IntN(4))
				for i := range sizes {
					sizes[i] = mib + draw.Int64N(mib)*(1+6*draw.Int64N(2))
				}
				dst := make([]Buffer, len(sizes))
				if s.AllocBatch(dst, sizes) == nil { // several runs
					held = append(held, dst...)
				}
			}
			if draw.IntN(2) == 0 {
				r.fail("cuEventRecord", "cuStreamSynchronize") // no fence: returns are kept
				require.NoError(t, r.gpu.Launch(handle, 1000))
			}
			for _, b := range held {
				require.NoError(t, b.Free())
			}
			r.stats(s)
			b, err := other.Alloc(50*mib + draw.Int64N(20*mib)) // the pool asks for the memory that the stream keeps
			r.faults.Clear()
			if r.gpu.AdvanceTo(r.gpu.Drained()); err == nil {
				require.NoError(t, b.Free())
			}
			for i := 1; i < len(pins); i += 2 {
				require.NoError(t, pins[i].Free())
			}
			if draw.IntN(3) == 0 {
				require.NoError(t, control(other).Trim(context.Background()))
			}
		}
		assert.Empty(t, l.unequal, "seed %d: runs granted, received", seed)
		asked += l.asked
	}
	assert.Greater(t, asked, 50)
}

// A panic while delayed claims are served costs the claim of that turn its memory, and no other claim its answer: wherever it
// happens, and however many wait. Each that is tried again counts, also the one that panics.
func TestAPanicInTheRetriesLosesNoOther(t *testing.T) {
	for _, at := range []point{beforeSearch, beforeAnswer} {
		for count := 1; count <= 4; count++ {
			for n := 1; n <= count; n++ {
				for _, passed := range []bool{true, false} {
					r := newRig(t, 64*mib)
					s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
					require.NoError(t, must(t, s, 16*mib).Free())
					var waiting []futures.Future[Buffer]
					leave := r.occupy(s)
					for range count {
						x := s.request(Request{Bytes: mib})
						x.claim.Refusal = errPlanned
						waiting = append(waiting, x.promise.Future())
						s.turn.dispatch.hold(&x.claim, claims.Delayed)
					}
					s.turn.dispatch.fenceWait.Begin()
					leave()
					crash(s, at, n, nil)
					s.ref.Call(&fenceWaited{passed: passed})
					r.settled(s)
					panics := 0
					for i, f := range waiting {
						require.True(t, f.Completed(), "claim %d of %d, panic %d at %v", i, count, n, at)
						b, err := f.Await(t.Context())
						var crash *actors.PanicError
						switch {
						case errors.As(err, &crash):
							panics++
						case err == nil:
							require.NoError(t, b.Free())
						default:
							require.ErrorIs(t, err, errPlanned)
						}
					}
					if passed {
						assert.Equal(t, 1, panics)
						assert.EqualValues(t, count, s.tally.Counts().RetryCount)
					}
					goesOn(t, r, s, other)
				}
			}
		}
	}
}

// A request that a handler has tried again counts before the second search. One that it lets fail does not count.
func TestARetryCountsBeforeItsSearch(t *testing.T) {
	for _, retry := range []bool{true, false} {
		r := newRig(t, 64*mib)
		s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
		require.NoError(t, must(t, s, 16*mib).Free())
		x := s.request(Request{Bytes: mib})
		leave := r.occupy(s)
		token := s.turn.dispatch.hold(&x.claim, claims.Consulted)
		leave()
		crash(s, beforeSearch, 1, nil)
		s.ref.Call(&consulted{token: token, retry: retry, err: &pool.OutOfMemoryError{}})
		r.settled(s)
		require.True(t, x.promise.Future().Completed())
		want := uint64(0)
		if retry {
			want = 1
		}
		assert.Equal(t, want, s.tally.Counts().RetryCount)
		goesOn(t, r, s, other)
	}
}

var errPlanned = recoveredtest.Planted("refused")

// A fence that the driver refuses to record for the background is no fence: memory that waits for it is not returned under it.
func TestARefusedFenceOfTheBackgroundIsNone(t *testing.T) {
	r := newRig(t, 64*mib)
	handle, err := r.device.StreamCreate()
	require.NoError(t, err)
	s, _, err := Open(Config{ID: 1, Pool: r.pool, Device: r.device, Fences: r.fences, Handle: handle, Adopted: true, Limit: &r.limit, Peers: &r.peers, Budget: core.Budget{CacheBytes: 2 * mib}})
	require.NoError(t, err)
	r.streams = append(r.streams, s)
	other := r.stream(core.Budget{})
	for _, result := range []cudadrv.Result{cudadrv.Unknown, cudadrv.OutOfMemory} {
		b := must(t, s, 16*mib)
		require.NoError(t, r.gpu.Launch(handle, 1e9))
		require.NoError(t, r.faults.Add(fault.Rule{Func: "cuEventRecord", Result: result}))
		before := r.faults.Calls("cuEventRecord")
		require.NoError(t, b.Free())
		for range 3 {
			c := must(t, s, 3*mib) // callers' turns order fences for later returns
			require.NoError(t, c.Free())
			r.tick(s)
		}
		assert.Greater(t, r.faults.Calls("cuEventRecord"), before, "no fence was ordered")
		leave := r.occupy(s)
		p := s.turn.lent.prepared
		leave()
		assert.True(t, p.fence == 0 || !p.mark.Zero(), "a prepared fence that nobody has: %+v", p)
		r.faults.Clear()
		for range 2 { // another is ordered
			r.tick(s)
			require.NoError(t, must(t, s, 3*mib).Free())
		}
		leave = r.occupy(s)
		p = s.turn.lent.prepared
		leave()
		assert.False(t, p.mark.Zero(), "no fence was prepared")
		r.gpu.AdvanceTo(r.gpu.Drained())
		require.NoError(t, control(s).Trim(context.Background()))
		require.NoError(t, must(t, other, 40*mib).Free())
		require.NoError(t, control(other).Trim(context.Background()))
		r.balanced(s, other)
	}
}
