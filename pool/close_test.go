package pool

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/recoveredtest"
)

// An unused pool is closed like any other.
func TestCloseOfAnUnusedPool(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(8))
		require.NoError(t, h.pool.Close())
		h.assertEmpty()
	})
}

// Close may be called again, at the same time and later; every call returns the first one's error.
func TestCloseIsIdempotent(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.prepare(t)
		h.open(roomy(8))
		h.testClient(1).must(4)
		require.NoError(t, h.faults.Add(fault.Rule{Func: k.last, First: 1, Result: cudadrv.Unknown}))
		errs := make([]error, 4)
		var group sync.WaitGroup
		for i := range errs {
			group.Go(func() { errs[i] = h.pool.Close() })
		}
		group.Wait()
		require.Error(t, errs[0])
		for _, err := range append(errs, h.pool.Close()) {
			assert.Equal(t, errs[0], err)
		}
	})
}

// Close denies waiting requests, waits for the job in flight, and takes lent memory back; after it
// everything is refused, and a late Return does nothing.
func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(32))
		a, b := h.testClient(1), h.testClient(2)
		held := a.must(5)
		inside := make(chan struct{})
		release := h.hold(k.grow[0], func() { close(inside) })
		inFlight := a.refill(6)
		<-inside
		behind := b.refill(7)
		warmed := h.later(func() error { _, err := h.pool.Warm(context.Background(), []uint32{3}); return err })
		trimmed := h.later(func() error { _, err := h.pool.Trim(context.Background(), 0); return err })
		closed := h.later(h.pool.Close)
		assert.ErrorIs(t, (<-inFlight).err, ErrClosed, "it is denied though its job still runs")
		assert.ErrorIs(t, (<-behind).err, ErrClosed)
		assert.ErrorIs(t, <-warmed, ErrClosed)
		assert.ErrorIs(t, <-trimmed, ErrClosed)
		release()
		require.NoError(t, <-closed)
		h.assertEmpty()

		_, err := a.get(1)
		require.ErrorIs(t, err, ErrClosed)
		a.free(held)
		for h.sim.Objects()["event"] > 0 { // of the mark, which a closed pool releases
			require.NoError(t, h.fences.Close())
			runtime.Gosched()
		}
		h.pool.Tick()
		h.pool.Leave(1, true)
		bytes, err := h.pool.Warm(t.Context(), []uint32{1})
		assert.Zero(t, bytes)
		require.ErrorIs(t, err, ErrClosed)
		bytes, err = h.pool.Trim(t.Context(), 0)
		assert.Zero(t, bytes)
		require.ErrorIs(t, err, ErrClosed)
		_, err = h.pool.Snapshot(t.Context())
		require.ErrorIs(t, err, ErrClosed)
		require.ErrorIs(t, h.pool.Reconfigure(t.Context(), roomy(1)), ErrClosed)
		require.ErrorIs(t, h.pool.ResetPeaks(t.Context(), nil), ErrClosed)
	})
}

// Close waits for the job in flight, and no job begins after it.
func TestNoJobBeginsAfterClose(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(32))
	a := h.testClient(1)
	inside := make(chan struct{})
	release := h.hold("cuMemCreate", func() { close(inside) })
	refill := a.refill(6)
	<-inside
	closed := h.later(h.pool.Close)
	require.ErrorIs(t, (<-refill).err, ErrClosed)
	release()
	require.NoError(t, <-closed)
	d := &h.pool.driver
	require.Same(t, &noMoreJobs, d.inFlight.Load())
	d.submit(&work{})
	require.Same(t, &noMoreJobs, d.inFlight.Load())
}

// waitingHost runs functions at once, and has waits told instead of waiting.
type waitingHost struct {
	actors.Host
	wait func()
}

func (waitingHost) Go(_ string, f func())     { f() }
func (h waitingHost) Wait(...<-chan struct{}) { h.wait() }

// The end of the driver goroutine does not cut off the job in flight: it waits for it, and stays when the job is over.
func TestTheDriverEndsAfterTheJobInFlight(t *testing.T) {
	t.Parallel()
	f := &inFlight{ended: make(chan struct{})}
	waits := 0
	p := &Pool{}
	d := &p.driver
	p.host = waitingHost{wait: func() {
		if waits++; waits == 1 {
			require.Same(t, f, d.inFlight.Load())
			d.inFlight.Store(nil)
			close(f.ended)
		}
	}}
	d.open(p)
	d.inFlight.Store(f)
	d.stop()
	assert.Same(t, &noMoreJobs, d.inFlight.Load())
	assert.Equal(t, 2, waits, "for the job, and for the goroutine")
}

// later runs f on a goroutine of its own, and returns once the pool has its message or f has ended.
func (h *house) later(f func() error) <-chan error {
	h.t.Helper()
	before := h.pool.tokens.Load()
	done := make(chan error, 1)
	go func() { done <- f() }()
	for h.pool.tokens.Load() == before { // drawn right before the message is sent
		runtime.Gosched()
	}
	return done
}

// An actor that protoactor stops in the middle of a job denies waiting requests. Close still releases all memory, including the
// job's, whose outcome was never received.
func TestStopByProtoactorDeniesAndCloseGivesBack(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		for _, function := range k.grow {
			t.Run(function, func(t *testing.T) {
				t.Parallel()
				h := k.build(t, roomy(32))
				a, b := h.testClient(1), h.testClient(2)
				a.must(5)
				inside := make(chan struct{})
				release := h.hold(function, func() { close(inside) })
				inFlight := a.refill(6)
				<-inside
				behind := b.refill(7)
				warmed := h.later(func() error { _, err := h.pool.Warm(context.Background(), []uint32{3}); return err })

				h.pool.ref.StopNow()
				assert.ErrorIs(t, (<-inFlight).err, actors.ErrStopped)
				assert.ErrorIs(t, (<-behind).err, actors.ErrStopped)
				assert.ErrorIs(t, <-warmed, actors.ErrStopped)
				_, err := h.pool.Snapshot(t.Context())
				require.ErrorIs(t, err, actors.ErrStopped)
				_, err = b.get(1)
				require.ErrorIs(t, err, actors.ErrStopped)
				release()
			})
		}
	})
}

// The same with a job that fails after the actor's end, and that has to be rolled back at Close.
func TestStoppedPoolRollsBackAtClose(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.prepare(t)
		h.open(roomy(32))
		a := h.testClient(1)
		a.free(a.must(5))
		require.NoError(t, h.faults.Add(fault.Rule{Func: k.usable(), First: 1, Result: cudadrv.Unknown}))
		inside := make(chan struct{})
		release := h.hold(k.usable(), func() { close(inside) })
		wait := a.refill(9)
		<-inside
		h.pool.ref.StopNow()
		require.ErrorIs(t, (<-wait).err, actors.ErrStopped)
		release()
		require.NoError(t, h.pool.Close())
		h.assertEmpty()
	})
}

// A pool stopped during its Close still releases the memory.
func TestStopDuringClose(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(32))
		a := h.testClient(1)
		a.free(a.must(9))
		inside := make(chan struct{})
		release := h.hold(k.give[0], func() { close(inside) })
		closed := make(chan error, 1)
		go func() { closed <- h.pool.Close() }()
		<-inside
		h.pool.ref.StopNow()
		release()
		require.NoError(t, <-closed)
		h.assertEmpty()
	})
}

// Books that do not balance after a panic quarantine the pool: requests fail, its memory is left
// alone.
func TestQuarantinedPoolLeavesMemoryAlone(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.prepare(t)
		h.open(roomy(32))
		a, b := h.testClient(1), h.testClient(2)
		run := a.must(4)
		inside := make(chan struct{})
		release := h.hold(k.grow[0], func() { close(inside) })
		granted := a.refill(6) // by the step before the panic
		<-inside
		behind := b.refill(5)
		h.panicInTurn(func() { h.pool.core.Step(core.JobDone{Job: h.pool.core.InFlight()}) }) // a lie: nothing was done
		require.ErrorContains(t, (<-behind).err, "quarantined")
		assert.Zero(t, h.pool.Demand())
		require.Len(t, granted, 1, "it has its answer, too")
		require.ErrorContains(t, (<-granted).err, "quarantined")
		_, err := b.get(1)
		require.ErrorContains(t, err, "quarantined")
		release()
		require.ErrorContains(t, h.pool.Close(), "quarantined")
		a.touch(run)
		require.NoError(t, h.sim.Audit())
	})
}

// An answer that a step had ready when it panicked is delivered by a quarantine, also to a Warm and to one that waits for memory,
// whose demand ends.
func TestAQuarantineDeliversAnswers(t *testing.T) {
	t.Parallel()
	h := prepare(t)
	h.open(roomy(8))
	a, b := h.testClient(1), h.testClient(2)
	a.must(6)
	waits, denied := b.expect(4)
	waits.Patience, waits.Place = core.Waiting, core.Place{Account: 2, Age: h.pool.NextAge(), Align: 1}
	h.pool.Refill(b, waits)
	require.Positive(t, h.pool.Demand())
	promise := futures.NewPromise[int64](nil)
	inside := make(chan struct{})
	release := h.hold("cuMemCreate", func() { close(inside) })
	a.refill(1)
	<-inside
	h.panicInTurn(func() {
		h.pool.core.Step(core.JobDone{Job: h.pool.core.InFlight()}) // a lie: nothing was done
		effect.Push(&h.pool.core.Left().Ends, core.End{Token: 1000, Bytes: 7})
		h.pool.waiting[1000] = promise
	})
	require.ErrorContains(t, (<-denied).err, "quarantined")
	assert.Zero(t, h.pool.Demand())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	bytes, err := promise.Await(ended) // it does not wait
	require.NoError(t, err)
	assert.EqualValues(t, 7, bytes)
	release()
	require.ErrorContains(t, h.pool.Close(), "quarantined")
}

// A Close after the end of the pool's actor gives the memory back, and says how many bytes the driver keeps.
func TestCloseAfterTheEndOfTheActor(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		for _, keeps := range []bool{false, true} {
			h := k.prepare(t)
			h.open(roomy(16))
			h.testClient(1).must(7)
			h.pool.ref.StopNow()
			<-h.pool.ref.Done()
			if !keeps {
				require.NoError(t, h.pool.Close())
				h.assertEmpty()
				continue
			}
			require.NoError(t, h.faults.Add(fault.Rule{Func: k.give[0], Result: cudadrv.Unknown}))
			require.ErrorContains(t, h.pool.Close(), fmt.Sprintf("did not take back %d bytes", 7*page))
			require.NoError(t, h.sim.Audit())
		}
	})
}

// With Debug the next message finds books that do not balance, without a panic, and Failure returns
// that.
func TestDebugFindsBrokenBooks(t *testing.T) {
	recoveredtest.Expect(t, "vram-pool: pool: page")
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.prepare(t)
		h.open(roomy(32))
		a := h.testClient(1)
		require.NoError(t, h.pool.Failure())
		inside := make(chan struct{})
		release := h.hold(k.grow[0], func() { close(inside) })
		a.refill(6)
		<-inside
		behind := a.refill(5)
		h.inTurn(func() { h.pool.core.Step(core.JobDone{Job: h.pool.core.InFlight()}) }) // a lie: nothing was done
		h.pool.Tick()
		require.ErrorContains(t, (<-behind).err, "quarantined")
		require.ErrorContains(t, h.pool.Failure(), "quarantined")
		release()
		require.ErrorContains(t, h.pool.Close(), "quarantined")
	})
}

// The pool continues after a panic if its books balance.
func TestPoolGoesOnAfterAPanicThatHarmedNothing(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(32))
		a := h.testClient(1)
		a.must(4)
		h.panicInTurn(func() {})
		a.must(6)
		assert.EqualValues(t, 10*page, h.snapshot().LentBytes)
	})
}

// Decisions of a step are carried out after the pool's turn has panicked: the request has its memory,
// the driver goroutine its job, and no other request waits for them for ever.
func TestAPanicOfThePoolLosesNoDecision(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(32))
		a := h.testClient(1)
		a.free(a.must(4))
		for _, pages := range []uint32{4, 8} { // that are free, and that a job has to map
			r, answer := a.expect(pages)
			h.enter()
			h.pool.core.Step(r)
			left, _ := h.pool.ref.Fault(recoveredtest.Planted("sabotage"))
			require.NotNil(t, left, "else nobody answers")
			h.pool.ref.Perform(left)
			require.NoError(t, (<-answer).err)
		}
	})
}

// brokenCharger is a request that panics when the pool asks first for its tenant.
type brokenCharger struct {
	tenant   *Tenant
	panicked bool
}

func (c *brokenCharger) Tenant() *Tenant {
	if !c.panicked {
		c.panicked = true
		panic(recoveredtest.Planted("a request's own mistake"))
	}
	return c.tenant
}

func (*brokenCharger) Take(func(int64) bool) (taken, gone bool) { return false, true }

// A request whose turn panics is denied, and blocks no later one.
func TestAPanicOfThePoolEndsTheWaitOfItsRequest(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(32))
		a := h.testClient(1)
		a.must(1) // so that waiting is not hopeless
		r, answer := a.expect(4)
		r.Patience, r.Place = core.Waiting, core.Place{Account: 1, Age: 1, Unready: true}
		h.pool.RefillLater(a, r, &brokenCharger{tenant: NewTenant("owner", 1, Quota{})})
		require.Error(t, (<-answer).err)
		assert.Zero(t, h.snapshot().Waits.Waiting)
		assert.Zero(t, h.pool.Demand())
	})
}

// panicInTurn does harm inside the pool's turn, which ends as by a panic.
func (h *house) panicInTurn(harm func()) {
	h.t.Helper()
	h.enter()
	harm()
	left, err := h.pool.ref.Fault(recoveredtest.Planted("sabotage"))
	require.ErrorContains(h.t, err, "sabotage")
	h.pool.ref.Perform(left)
}

// Close returns after the goroutines that wait for marks have ended: they make calls of the driver, which is closed next.
func TestCloseWaitsForThoseThatWatchMarks(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(4))
	a, b := h.testClient(1), h.testClient(2)
	held := a.must(4)
	watching := make(chan struct{})
	release := h.hold("cuEventSynchronize", func() { close(watching) })
	require.NoError(t, h.sim.Occupy(a.stream, time.Second))
	a.free(held)
	answer := b.refill(4)
	<-watching
	h.sim.Advance(time.Second)
	closed := h.later(h.pool.Close)
	<-answer
	for range 10000 { // a pool that does not wait ends now
		runtime.Gosched()
	}
	assert.Zero(t, h.faults.Calls("cuMemAddressFree"), "the address space goes last")
	release()
	require.NoError(t, <-closed)
	for _, w := range h.pool.driver.running {
		select {
		case <-w.ended:
		default:
			t.Error("a watch has not ended")
		}
	}
}
