package pool

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/units"
)

// Customers on their own goroutines never hold the same page, and every page that they hold is
// mapped. Shortage makes the pool ask, recycle, wait and deny all the while.
func TestGrantsOfManyGoroutinesNeverOverlap(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		s := roomy(40)
		s.Policy.Slack = 64
		h := k.build(t, s)
		owners := make([]atomic.Uint32, 4096)
		var denied atomic.Int64
		var group sync.WaitGroup
		for id := core.Client(1); id <= 6; id++ {
			c := h.testClient(id)
			group.Go(func() {
				random := rand.New(rand.NewPCG(uint64(id), 1))
				for range 60 {
					run, err := c.get(uint32(1 + random.IntN(8)))
					if err != nil {
						assert.ErrorIs(t, err, ErrOutOfMemory)
						denied.Add(1)
						continue
					}
					for i := run.First; i < run.First+run.Pages; i++ {
						assert.True(t, owners[i].CompareAndSwap(0, uint32(id)), "page %d has an owner", i)
					}
					c.touch(run)
					assert.NoError(t, h.sim.Launch(c.stream, time.Millisecond))
					for i := run.First; i < run.First+run.Pages; i++ {
						owners[i].Store(0)
					}
					if random.IntN(2) == 0 { // for the next ask
						c.use(-int64(run.Pages))
						c.mu.Lock()
						c.idle = append(c.idle, run)
						c.mu.Unlock()
					} else {
						c.free(run)
					}
				}
			})
		}
		group.Wait()
		books := h.settle()
		assert.LessOrEqual(t, books.PeakReservedBytes, books.LimitBytes)
		assert.Less(t, denied.Load(), int64(360), "somebody was served")
	})
}

// Memory of a busy stream goes to its own stream at once, and to another only after the work before
// its Return has finished. With room to grow no request waits for that.
func TestBusyMemoryGoesElsewhereOnlyAfterItsFence(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, waiting(roomy(8), core.WaitsNever))
		a, b := h.testClient(1), h.testClient(2)
		const work = 10 * time.Millisecond
		first := a.must(6)
		require.NoError(t, h.sim.Occupy(a.stream, work))
		a.free(first)
		again := a.must(6)
		assert.Equal(t, first, again, "its own stream needs no fence")
		assert.Zero(t, h.sim.Now())

		a.free(again)
		small := b.must(2)
		assert.Zero(t, h.sim.Now(), "there is room for two pages more")
		assert.GreaterOrEqual(t, small.First, first.First+first.Pages)

		run := b.must(6)
		assert.GreaterOrEqual(t, h.sim.Now(), work, "the pool has waited for the fence")
		b.touch(run)
		assert.LessOrEqual(t, h.snapshot().PeakReservedBytes, 8*page)
	})
}

// A fence that passes by itself is seen by the next query, without waiting.
func TestPassedFencesAreSeenAtTicks(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(8))
		a, b := h.testClient(1), h.testClient(2)
		run := a.must(8)
		require.NoError(t, h.sim.Occupy(a.stream, time.Second))
		a.free(run)
		h.pool.Tick()
		assert.EqualValues(t, 8*page, h.settle().PendingBytes)
		h.sim.Advance(time.Second)
		h.pool.Tick()
		for h.snapshot().PendingBytes > 0 { // the query is on its way
			h.pool.Tick()
		}
		before := h.faults.Calls("cuEventSynchronize")
		assert.Equal(t, core.Run{First: k.first, Pages: 8}, b.must(8))
		assert.Equal(t, before, h.faults.Calls("cuEventSynchronize"))
	})
}

// Returns of one client may overtake each other between its stream and the pool: the newest fence
// that has passed covers all before it, and none is left pending.
func TestReturnsThatOvertakeEachOtherAllPass(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(8))
	a, b := h.testClient(1), h.testClient(2)
	runs := []core.Run{a.must(2), a.must(2), a.must(2), a.must(2)}
	a.use(-8)
	for i, order := range []core.Fence{4, 1, 3, 2} {
		mark, err := h.fences.Record(a.stream)
		require.NoError(t, err)
		h.pool.Return(core.Return{Client: 1, Runs: runs[i : i+1], Fence: order}, mark)
	}
	assert.Equal(t, core.Run{First: 0, Pages: 8}, b.must(8))
}

// Pages whose fence was never recorded stay with their stream for good; a request of another that
// waits for them is denied and does not wait for ever.
func TestMemoryWithoutARecordIsNotWaitedForWithoutEnd(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(4))
		a, b := h.testClient(1), h.testClient(2)
		run := a.must(4)
		a.use(-4)
		h.pool.Return(core.Return{Client: 1, Runs: []core.Run{run}, Fence: 9}, fence.Mark{})
		_, err := b.get(4)
		var shortage *OutOfMemoryError
		require.ErrorAs(t, err, &shortage)
		assert.EqualValues(t, 4*page, shortage.PendingBytes)
		assert.Equal(t, run, a.must(4), "its own stream may have it")
	})
}

// The refusal has the requested and the free bytes, and the holders.
func TestDenialTellsTheFacts(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(10))
	a, b := h.testClient(1), h.testClient(2)
	run := a.must(9)
	a.free(core.Run{First: run.First + 3, Pages: 2})
	_, err := b.get(7)
	var shortage *OutOfMemoryError
	require.ErrorAs(t, err, &shortage)
	assert.Equal(t, &OutOfMemoryError{
		RequestedBytes: 7 * page, FreeBytes: 2 * page, LargestFreeBytes: 2 * page, ReservedBytes: 9 * page, LimitBytes: 10 * page,
		MissingBytes: 7 * page, Stream: 2,
		Streams: []Holding{{Stream: 1, HeldBytes: 7 * page, LiveBytes: 7 * page}, {Stream: 2}},
	}, shortage)
	require.ErrorIs(t, err, ErrOutOfMemory)
	assert.Equal(t, "vram: out of memory: requested 14 MiB on stream 2, free 4 MiB, reserved 18 MiB of a limit of 20 MiB; stream 1 holds 14 MiB, 14 MiB live; "+
		"what would help: Request.Wait, for frees of the 14 MiB that are live; a LimitBytes higher by at least 8 MiB", err.Error())

	require.NoError(t, h.pool.Reconfigure(t.Context(), roomy(20)))
	h.faults.SetCapacity(9 * page)
	_, err = b.get(3)
	require.ErrorIs(t, err, cudadrv.OutOfMemory, "the driver's refusal is the cause")
	require.ErrorIs(t, err, ErrOutOfMemory)
	assert.Contains(t, err.Error(), "cuMemCreate")
}

// A canceled wait for a Warm or a Trim ends at once; the work continues, and mapped memory stays.
func TestCancelEndsTheWaitAndNotTheWork(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(16))
		ctx, cancel := context.WithCancel(t.Context())
		release := h.hold(k.grow[0], cancel)
		_, err := h.pool.Warm(ctx, []uint32{4, 4})
		require.ErrorIs(t, err, context.Canceled)
		release()
		assert.EqualValues(t, 8*page, h.settle().FreeBytes)

		ctx, cancel = context.WithCancel(t.Context())
		release = h.hold(k.give[0], cancel)
		_, err = h.pool.Trim(ctx, 0)
		require.ErrorIs(t, err, context.Canceled)
		release()
		assert.Zero(t, h.settle().ReservedBytes)
	})
}

// hold makes the next call of the function call then, once, and wait for release.
func (h *house) hold(function string, then func()) (release func()) {
	gate := make(chan struct{})
	var once sync.Once
	h.faults.SetBefore(func(name string) {
		if name == function {
			once.Do(func() {
				then()
				<-gate
			})
		}
	})
	return func() { close(gate) }
}

// Free memory is granted while the driver is held up in a call for another request.
func TestStuckDriverDelaysNobodyWhomFreeMemoryServes(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(32))
		a, b := h.testClient(1), h.testClient(2)
		a.free(a.must(4))
		inside := make(chan struct{})
		release := h.hold(k.grow[0], func() { close(inside) })
		wait := b.refill(12)
		<-inside
		assert.Equal(t, core.Run{First: k.first, Pages: 3}, a.must(3))
		release()
		require.NoError(t, (<-wait).err)
	})
}

// A pool that knows a stream no more keeps nothing of it, and a request that comes late is refused.
func TestStreamsThatAreGoneAreForgotten(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(32))
		for id := core.Client(1); id <= 20; id++ {
			c := h.testClient(id)
			c.free(c.must(3))
			h.pool.Leave(id, true)
			_, err := c.get(1)
			require.ErrorIs(t, err, ErrClosed)
		}
		h.snapshot()
		require.NoError(t, h.pool.Close())
		assert.Empty(t, h.pool.clients)
		assert.Empty(t, h.pool.granted)
	})
}

// Settings hold from the next message on, peaks restart on request.
func TestReconfigure(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(4))
	a := h.testClient(1)
	_, err := a.get(6)
	require.ErrorIs(t, err, ErrOutOfMemory)
	require.NoError(t, h.pool.Reconfigure(t.Context(), roomy(8)))
	run := a.must(6)
	a.free(run)
	bytes, err := h.pool.Trim(t.Context(), 2*page)
	require.NoError(t, err)
	assert.EqualValues(t, 4*page, bytes)
	s := h.snapshot()
	assert.EqualValues(t, 6*page, s.PeakReservedBytes)
	assert.EqualValues(t, 6*page, s.PeakLiveBytes)
	require.NoError(t, h.pool.ResetPeaks(t.Context(), nil))
	assert.EqualValues(t, 2*page, h.snapshot().PeakReservedBytes)
	assert.Equal(t, h.snapshot().FreeBytes, h.snapshot().LargestFreeBytes, "one run is free")
	assert.EqualValues(t, 8*page, h.snapshot().LimitBytes)
}

// New undoes all that it has made when it fails.
func TestNewLeavesNothingBehindWhenItFails(t *testing.T) {
	t.Parallel()
	h := prepare(t)
	require.NoError(t, h.faults.Add(fault.Rule{Func: "cuMemAddressReserve", Result: cudadrv.OutOfMemory}))
	_, err := New(Config{Device: h.device, Fences: h.fences, Settings: roomy(1)})
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	h.assertEmpty()
}

// A warm-up reports its mapped bytes, and why it could not map more.
func TestWarmSaysWhatItDid(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(10))
	bytes, err := h.pool.Warm(t.Context(), []uint32{3, 3})
	require.NoError(t, err)
	assert.EqualValues(t, 6*page, bytes)
	bytes, err = h.pool.Warm(t.Context(), []uint32{6})
	require.NoError(t, err)
	assert.Zero(t, bytes, "it was there")
	bytes, err = h.pool.Warm(t.Context(), []uint32{4, 4, 4})
	require.ErrorContains(t, err, "the limit of "+units.Bytes(10*page))
	assert.EqualValues(t, 2*page, bytes, "what was mapped stays: with two free ones it made the second run")
	assert.EqualValues(t, 8*page, h.snapshot().FreeBytes)
}

// shifted returns plain memory at addresses that no driver returns.
type shifted struct{ cudadrv.Device }

func (d shifted) MemAlloc(bytes int64) (cudadrv.Ptr, error) {
	p, err := d.Device.MemAlloc(bytes + page)
	return p + 512, err
}

func (d shifted) MemFree(p cudadrv.Ptr) error { return d.Device.MemFree(p - 512) }

// A driver that does not align whole pages is refused, and its memory goes back.
func TestMisalignedSegmentsAreRefused(t *testing.T) {
	t.Parallel()
	h := plain().prepare(t)
	h.device = shifted{h.device}
	h.open(roomy(8))
	_, err := h.testClient(1).get(2)
	require.ErrorIs(t, err, errMisaligned)
	require.NoError(t, h.pool.Close())
	h.assertEmpty()
}

// Plain segments are freed only whole, and the pages of one lie side by side wherever the driver
// puts them.
func TestPlainSegmentsLieWhereTheDriverSays(t *testing.T) {
	t.Parallel()
	h := plain().build(t, roomy(40))
	a := h.testClient(1)
	var runs []core.Run
	for range 3 {
		runs = append(runs, a.must(4))
	}
	a.free(runs[1], core.Run{First: runs[0].First, Pages: 3})
	freed, err := h.pool.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.EqualValues(t, 4*page, freed)
	again := a.must(2) // fits the free part of the first segment
	assert.Equal(t, runs[0].First, again.First)
	for _, r := range append(runs[2:], again, a.must(9)) {
		a.touch(r)
		for i := range r.Pages {
			assert.Equal(t, h.pool.at(r.First)+cudadrv.Ptr(i)*cudadrv.Ptr(page), h.pool.Places()[r.First+i])
		}
	}
	assert.Zero(t, h.pool.Base())
}

// Outcomes of jobs are reported in order, and add up to the reserved bytes; refusals are reported
// with their figures.
func TestObserverIsTold(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.prepare(t)
		var mu sync.Mutex
		var reports []JobReport
		var denials []*OutOfMemoryError
		h.observer = Observer{
			JobDone: func(r JobReport) {
				mu.Lock()
				defer mu.Unlock()
				reports = append(reports, r)
			},
			Denied: func(e *OutOfMemoryError) {
				mu.Lock()
				defer mu.Unlock()
				denials = append(denials, e)
			},
		}
		h.open(roomy(8))
		a := h.testClient(1)
		a.free(a.must(6))
		_, err := a.get(9)
		refused, ok := errors.AsType[*OutOfMemoryError](err)
		require.True(t, ok, "%v", err)
		refused.Tag = "entered by the client"
		inside := make(chan struct{})
		release := h.hold(k.usable(), func() { close(inside) })
		first := a.refill(7)
		<-inside
		second := a.refill(1) // the outcome of the first job begins the job of this one
		release()
		for _, served := range []<-chan answer{first, second} {
			got := <-served
			require.NoError(t, got.err)
			a.free(got.run)
		}
		for h.snapshot().ReservedBytes > 0 { // runs that go back to the client may be on their way to it
			_, err = h.pool.Trim(t.Context(), 0)
			require.NoError(t, err)
		}
		require.NoError(t, h.faults.Add(fault.Rule{Func: k.usable(), Result: cudadrv.Unknown}))
		_, err = a.get(2)
		require.ErrorIs(t, err, cudadrv.Unknown)
		assert.Zero(t, h.faults.Calls("cuMemGetInfo"), "the driver had memory")
		h.faults.Clear()
		h.settle()
		require.NoError(t, h.pool.Close())
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, denials, 1)
		assert.EqualValues(t, 9*page, denials[0].RequestedBytes)
		assert.Empty(t, denials[0].Tag, "its own error")
		var reserved int64
		failed := 0
		for _, r := range reports {
			reserved += r.CreatedBytes - r.ReleasedBytes
			assert.Equal(t, reserved, r.ReservedBytes)
			if r.Err != nil {
				failed++
			}
		}
		assert.Zero(t, reserved)
		assert.Equal(t, 1, failed)
		assert.EqualValues(t, 6*page, reports[0].CreatedBytes)
		assert.Positive(t, reports[0].Calls)
	})
}

// A warm-up frees unused segments that do not help it, rather than break the limit.
func TestWarmFreesSegmentsThatDoNotFit(t *testing.T) {
	t.Parallel()
	h := plain().build(t, roomy(10))
	bytes, err := h.pool.Warm(t.Context(), []uint32{3, 3})
	require.NoError(t, err)
	assert.EqualValues(t, 6*page, bytes)
	bytes, err = h.pool.Warm(t.Context(), []uint32{3, 3})
	require.NoError(t, err)
	assert.Zero(t, bytes, "they were there")
	bytes, err = h.pool.Warm(t.Context(), []uint32{6})
	require.NoError(t, err)
	assert.EqualValues(t, 3*page, bytes, "one of three was freed for it")
	_, err = h.pool.Warm(t.Context(), []uint32{6, 3, 2})
	require.ErrorContains(t, err, "leaves no room")
	assert.EqualValues(t, 9*page, h.snapshot().FreeBytes)
}
