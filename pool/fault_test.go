package pool

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/recovered"
	"github.com/go-vram/vram/internal/recoveredtest"
)

// driverCalls are those that the pool makes between New and Close.
func (k kind) driverCalls() []string {
	return slices.Concat(k.grow, k.give,
		[]string{"cuEventCreate", "cuEventRecord", "cuEventQuery", "cuEventSynchronize", "cuEventDestroy"})
}

// day is a life of a pool in which every kind of job occurs. Every request gets an answer; which
// one depends on the failing calls.
func (h *house) day() {
	a, b := h.testClient(1), h.testClient(2)
	first, err := a.get(6)
	if err == nil {
		a.touch(first)
		_ = h.sim.Occupy(a.stream, h.sim.Now()+time.Millisecond)
		a.free(core.Run{First: first.First, Pages: 2}, core.Run{First: first.First + 3, Pages: 2})
	}
	second, err := b.get(5) // recycles at the limit of eight pages
	if err == nil {
		b.touch(second)
		_ = h.sim.Occupy(b.stream, h.sim.Now()+time.Millisecond)
		b.free(second)
	}
	_, _ = h.pool.Warm(h.t.Context(), []uint32{2, 1})
	waits := []<-chan answer{a.refill(3), b.refill(2), a.refill(1)}
	_, _ = h.pool.Trim(h.t.Context(), 3*page)
	for _, w := range waits {
		<-w
	}
	h.pool.Tick()
	_, _ = h.pool.Trim(h.t.Context(), 0)
}

// Any call may fail, at any occurrence, for good or once: every request gets an answer, the books
// balance, and the driver has all memory that the pool does not hold.
func TestEveryFailingCallLeavesBooksThatBalance(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		for _, function := range k.driverCalls() {
			t.Run(function, func(t *testing.T) {
				t.Parallel()
				for _, result := range []cudadrv.Result{cudadrv.OutOfMemory, cudadrv.Unknown} {
					for _, count := range []uint64{1, 2, fault.Forever} {
						k.failAll(t, function, count, result)
					}
				}
			})
		}
	})
}

// failAll lives days, with the first call failing, the second, and so on to the last.
func (k kind) failAll(t *testing.T, function string, count uint64, result cudadrv.Result) {
	t.Helper()
	for n := uint64(1); ; n++ {
		rule := fault.Rule{Func: function, First: n, Count: count, Result: result}
		h := k.prepare(t)
		h.open(roomy(8))
		require.NoError(t, h.faults.Add(rule))
		h.day()
		books := h.settle()
		require.LessOrEqual(t, books.ReservedBytes, 8*page, rule)
		injected := h.faults.Injected()
		h.faults.Clear() // the driver recovers before Close, which tries everything once more
		require.NoError(t, h.pool.Close(), rule)
		h.assertEmpty()
		if t.Failed() || injected == 0 {
			if t.Failed() {
				t.Logf("with the rule %v", rule)
			}
			return
		}
	}
}

// A driver that takes nothing back at the end is told of in Close's error, and nothing hangs.
func TestCloseSaysWhatTheDriverKeeps(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		for _, function := range k.give {
			h := k.prepare(t)
			h.open(roomy(16))
			h.testClient(1).must(7)
			require.NoError(t, h.faults.Add(fault.Rule{Func: function, Result: cudadrv.Unknown}))
			require.ErrorContains(t, h.pool.Close(), fmt.Sprintf("did not take back %d bytes", 7*page))
			require.NoError(t, h.sim.Audit())
		}
	})
}

// A failing call at Close loses its own handle and no other.
func TestCloseGivesBackTheOthers(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.prepare(t)
		h.open(roomy(16))
		c := h.testClient(1)
		for range 4 {
			c.must(2)
		}
		require.NoError(t, h.faults.Add(fault.Rule{Func: k.give[0], First: 2, Result: cudadrv.Unknown}))
		require.ErrorContains(t, h.pool.Close(), fmt.Sprintf("did not take back %d bytes", 2*page))
		free, total, err := h.sim.MemGetInfo()
		require.NoError(t, err)
		assert.EqualValues(t, 2*page, total-free)
	})
}

// Fences that cannot be queried any more keep no memory from going back.
func TestBrokenFencesDoNotStopCloseOrGrowth(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(16))
		a, b := h.testClient(1), h.testClient(2)
		a.free(a.must(3))
		a.mute = true
		require.NoError(t, h.faults.Add(fault.Rule{Func: "cuEventQuery", Result: cudadrv.Unknown}))
		b.touch(b.must(4))
		require.NoError(t, h.pool.Close())
	})
}

// exits are the ways in which a driver call does not return, by the text in its error.
func exits(t *testing.T) map[string]func() {
	t.Helper()
	recoveredtest.Expect(t, "vram-driver: the function ended its goroutine")
	return map[string]func(){
		"the driver's own mistake":         func() { panic(recoveredtest.Planted("the driver's own mistake")) },
		"the function ended its goroutine": runtime.Goexit,
	}
}

// A driver call that panics, or ends its goroutine, fails its job, and the pool continues. The day may leave eight pages in use: the
// ninth is for a later request.
func TestADriverCallThatDoesNotReturnFailsItsJobOnly(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		for _, function := range k.driverCalls() {
			t.Run(function, func(t *testing.T) {
				t.Parallel()
				if function == "cuEventCreate" || function == "cuEventRecord" { // a stream's call, not the pool's
					return
				}
				for _, exit := range exits(t) {
					for n := 1; ; n++ {
						h := k.prepare(t)
						h.open(roomy(9))
						calls := 0
						h.faults.SetBefore(func(name string) {
							if name == function {
								if calls++; calls == n {
									exit()
								}
							}
						})
						h.day()
						h.settle()
						h.faults.SetBefore(nil)
						c := h.testClient(9)
						c.touch(c.must(1))
						require.NoError(t, h.pool.Close())
						h.assertEmpty()
						if calls < n {
							break
						}
					}
				}
			})
		}
	})
}

// The caller learns why the call did not return, and it is counted once.
func TestADriverCallThatDoesNotReturnIsTold(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		for want, exit := range exits(t) {
			h := k.build(t, roomy(8))
			h.pool.panics = new(recovered.Log)
			a := h.testClient(1)
			h.faults.SetBefore(func(name string) {
				if name == k.usable() {
					exit()
				}
			})
			_, err := a.get(2)
			require.ErrorIs(t, err, ErrDriverPanic)
			require.ErrorContains(t, err, want)
			require.NotErrorIs(t, err, ErrOutOfMemory)
			assert.EqualValues(t, 1, h.pool.panics.Count())
			h.faults.SetBefore(nil)
			a.must(2)
		}
	})
}

// A client that panics when it gets its answer keeps no other from theirs.
func TestPanicOfAClientStopsNobodyElse(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(9)) // one for the warm-up, should it come after the rest was returned
		bad, good, hoard := h.testClient(1), h.testClient(2), h.testClient(3)
		bad.panics = true
		run := hoard.must(8)
		release := h.occupy() // so that all of the answers are effects of one turn
		hoard.sendReturn(false, run)
		waits := []<-chan answer{bad.refill(2), bad.refill(99), good.refill(2), bad.refill(1), good.refill(1), good.refill(99)}
		warmed := h.later(func() error { _, err := h.pool.Warm(context.Background(), []uint32{1}); return err })
		release()
		for i, w := range waits {
			if a := <-w; i == 1 || i == 5 {
				assert.ErrorIs(t, a.err, ErrOutOfMemory)
			} else {
				assert.NoError(t, a.err)
			}
		}
		require.NoError(t, <-warmed)
		h.settle()
	})
}

// A panic of the observer keeps no client from an answer, and no job from its begin: neither one that its turn has left, nor a later one.
func TestPanicOfTheObserverStopsNobody(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.prepare(t)
		var reported atomic.Int64
		h.observer = Observer{
			JobDone: func(JobReport) {
				reported.Add(1)
				panic(recoveredtest.Planted("an observer's mistake"))
			},
			Denied: func(*OutOfMemoryError) { panic(recoveredtest.Planted("an observer's mistake")) },
		}
		h.open(roomy(9))
		a, b := h.testClient(1), h.testClient(2)
		inside := make(chan struct{})
		release := h.hold(k.usable(), func() { close(inside) })
		waits := []<-chan answer{a.refill(2)}
		<-inside
		waits = append(waits, b.refill(3), a.refill(1), b.refill(99)) // the outcome of the first job begins the next
		release()
		for i, w := range waits {
			if got := <-w; i == 3 {
				require.ErrorIs(t, got.err, ErrOutOfMemory)
			} else {
				require.NoError(t, got.err)
			}
		}
		_, err := h.pool.Warm(t.Context(), []uint32{2})
		require.NoError(t, err)
		h.settle()
		assert.GreaterOrEqual(t, reported.Load(), int64(2))
		require.NoError(t, h.pool.Close())
		h.assertEmpty()
	})
}

// A mark is released once, also where the driver refuses to destroy its event: an event that two
// streams record would let one pass for the other.
func TestMarksAreGivenBackOnce(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(200))
		a := h.testClient(1)
		require.NoError(t, h.faults.Add(fault.Rule{Func: "cuEventDestroy", Result: cudadrv.Unknown}))
		var runs []core.Run
		for range 80 { // more than a source keeps
			runs = append(runs, a.must(1))
		}
		for _, r := range runs {
			a.free(r)
		}
		h.pool.Tick()
		for h.snapshot().PendingBytes > 0 {
			h.pool.Tick()
		}
		h.settle()
		seen := map[any]bool{}
		for range 64 {
			m, err := h.fences.Record(a.stream)
			require.NoError(t, err)
			require.False(t, seen[m], "an event is in use twice")
			seen[m] = true
		}
		h.ownEvents = 80 // those, and events that the driver did not take back
	})
}

// infoDevice reports its free memory as the test has it.
type infoDevice struct {
	cudadrv.Device
	info func() (free, total int64, err error)
}

func (d infoDevice) MemGetInfo() (free, total int64, err error) { return d.info() }

// The free memory of a driver that cannot tell it is 0, also if figures come with the error.
func TestFreeMemoryThatIsNotKnownIsNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		info func() (free, total int64, err error)
		want int64
	}{
		"known":   {func() (int64, int64, error) { return 7, 9, nil }, 7},
		"refused": {func() (int64, int64, error) { return 7, 9, cudadrv.Unknown }, 0},
		"a panic": {func() (int64, int64, error) { panic(recoveredtest.Planted("planted")) }, 0},
	} {
		d := &driver{pool: &Pool{device: infoDevice{info: c.info}}}
		assert.Equal(t, c.want, d.freeBytes(), name)
	}
}
