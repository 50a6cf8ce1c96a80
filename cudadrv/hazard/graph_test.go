package hazard_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/site"
)

// captured captures f's work on stream one.
func (y *yard) captured(f func()) cudadrv.Graph {
	y.t.Helper()
	require.NoError(y.t, y.StreamBeginCapture(y.one, cudadrv.CaptureRelaxed))
	f()
	g, err := y.StreamEndCapture(y.one)
	require.NoError(y.t, err)
	return g
}

// graph makes a graph of that which can be launched.
func (y *yard) graph(f func()) cudadrv.GraphExec {
	y.t.Helper()
	x, err := y.GraphInstantiate(y.captured(f))
	require.NoError(y.t, err)
	return x
}

// A caller's work between two launches of a graph that writes a buffer, and the report of the second.
func TestWhatIsSeenOfAGraph(t *testing.T) {
	for name, c := range map[string]struct {
		between func(y *yard)
		want    []hazard.Kind
	}{
		"nothing": {func(*yard) {}, nil},
		"the buffer was freed": {func(y *yard) {
			y.checker.Freed(y.arena, site.Here(0))
		}, []hazard.Kind{hazard.UseAfterFree}},
		"the buffer was freed and its memory given to another stream": {func(y *yard) {
			y.checker.Freed(y.arena, site.Here(0))
			y.alloc(4096, y.two)
		}, []hazard.Kind{hazard.EarlyReuse, hazard.UseAfterFree}},
		"the same, in order, and that stream works": {func(y *yard) {
			y.checker.Freed(y.arena, site.Here(0))
			y.joins(y.two, y.one)
			y.alloc(4096, y.two)
			y.writes(y.two, 4096)
		}, []hazard.Kind{hazard.Race, hazard.UseAfterFree}},
		"another stream writes": {func(y *yard) { y.writes(y.two, 8) }, []hazard.Kind{hazard.Race, hazard.Race}},
		"another stream writes in order": {func(y *yard) {
			y.joins(y.two, y.one)
			y.writes(y.two, 8)
			y.joins(y.one, y.two)
		}, nil},
		"the memory was unmapped": {func(y *yard) {
			require.NoError(y.t, y.CtxSynchronize())
			y.checker.Freed(y.arena, site.Here(0))
			require.NoError(y.t, y.allocator.MemUnmap(y.arena, granule))
		}, []hazard.Kind{hazard.Unmapped}},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			y.alloc(4096, y.one)
			f := y.kernel()
			x := y.graph(func() {
				y.launch(f, y.one, y.whole(4096, true))
				require.NoError(t, y.MemsetD32Async(y.arena, 0, 2, y.one))
			})
			require.NoError(t, y.checker.Err())
			require.NoError(t, y.GraphLaunch(x, y.one))
			c.between(y)
			require.NoError(t, y.GraphLaunch(x, y.one))
			kinds := map[hazard.Kind]bool{}
			for _, k := range y.kinds() {
				kinds[k] = true
			}
			want := map[hazard.Kind]bool{}
			for _, k := range c.want {
				want[k] = true
			}
			assert.Equal(t, want, kinds, "%v", y.checker.Err())
		})
	}
}

// A graph that was captured and never launched has touched nothing.
func TestACaptureTouchesNothing(t *testing.T) {
	y := newYard(t)
	y.alloc(4096, y.one)
	y.writes(y.two, 4096)
	g := y.captured(func() { y.writes(y.one, 4096) })
	require.NoError(t, y.GraphDestroy(g))
	y.writes(y.two, 4096)
	require.NoError(t, y.checker.Err())
}

// Launches of one graph run one after the other, on any stream; later work of the streams follows them.
func TestLaunchesOfAGraphAreInOrder(t *testing.T) {
	y := newYard(t)
	y.alloc(4096, y.one)
	g := y.captured(func() { y.writes(y.one, 4096) })
	x, err := y.GraphInstantiate(g)
	require.NoError(t, err)
	other, err := y.GraphInstantiate(g)
	require.NoError(t, err)
	require.NoError(t, y.GraphLaunch(x, y.one))
	require.NoError(t, y.GraphLaunch(x, y.two))
	y.writes(y.two, 4096)
	require.NoError(t, y.checker.Err())
	require.NoError(t, y.GraphLaunch(other, y.one))
	assert.Equal(t, []hazard.Kind{hazard.Race}, y.kinds(), "another graph of the same work")
}

// Branches of a graph that race are reported when they are captured.
func TestARaceInsideAGraph(t *testing.T) {
	for name, ordered := range map[string]bool{"branches": false, "one after the other": true} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			y.alloc(4096, y.one)
			x := y.graph(func() {
				if ordered {
					y.writes(y.one, 8)
				}
				y.joins(y.two, y.one)
				if !ordered {
					y.writes(y.one, 8)
				}
				y.writes(y.two, 4096)
				y.joins(y.one, y.two)
			})
			if ordered {
				require.NoError(t, y.checker.Err())
			} else {
				reports, _ := y.checker.Reports()
				require.Len(t, reports, 1)
				assert.Equal(t, hazard.Race, reports[0].Kind)
				assert.Contains(t, reports[0].Hint, "branches")
			}
			before := len(y.kinds())
			require.NoError(t, y.GraphLaunch(x, y.one))
			assert.Len(t, y.kinds(), before, "no further report of each launch")
			y.writes(y.two, 1)
			assert.Len(t, y.kinds(), before+1, "the second stream is not captured any more, and its work does not wait for the launch")
		})
	}
}

func TestAGraphWithNewParameters(t *testing.T) {
	for name, ask := range map[string]bool{"known nodes": true, "nodes that nobody asked for": false} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			y.alloc(8192, y.one)
			f := y.kernel()
			work := func() {
				require.NoError(t, y.MemsetD8Async(y.arena, 0, 0, y.one))
				y.launch(f, y.one, y.whole(4096, true))
				require.NoError(t, y.MemsetD8Async(y.arena+4096, 0, 8, y.one))
			}
			g := y.captured(work)
			x, err := y.GraphInstantiate(g)
			require.NoError(t, err)
			nodes, err := y.gpu.GraphGetNodes(g)
			require.NoError(t, err)
			require.Len(t, nodes, 2)
			if ask {
				nodes, err = y.GraphGetNodes(g)
				require.NoError(t, err)
			}
			require.NoError(t, y.GraphExecKernelNodeSetParams(x, nodes[0], f, block, make([]byte, 8)))
			require.NoError(t, y.GraphLaunch(x, y.one))
			y.writes(y.two, 8)
			require.NoError(t, y.checker.Err(), "the kernel's accesses are not known any more")
			y.writes(y.two, 8192)
			if ask {
				assert.Equal(t, []hazard.Kind{hazard.Race}, y.kinds(), "the memset's accesses are known")
			} else {
				assert.Empty(t, y.kinds())
			}
			sync := func() {
				require.NoError(t, y.StreamSynchronize(y.one))
				require.NoError(t, y.StreamSynchronize(y.two))
			}
			sync()
			before := len(y.kinds())
			fresh, err := y.GraphInstantiate(g)
			require.NoError(t, err)
			require.NoError(t, y.GraphLaunch(fresh, y.one))
			y.writes(y.two, 8)
			require.Len(t, y.kinds(), before+1, "the graph itself stays as it was")
			sync()
			before++
			require.NoError(t, y.GraphExecUpdate(x, y.captured(work)))
			require.NoError(t, y.GraphLaunch(x, y.one))
			y.writes(y.two, 8)
			assert.Len(t, y.kinds(), before+1, "the update declares them again")
		})
	}
}

// A caller may use its slice of accesses again.
func TestAccessesOfACaptureAreItsOwn(t *testing.T) {
	y := newYard(t)
	y.alloc(4096, y.one)
	f := y.kernel()
	x := y.graph(func() {
		accesses := y.whole(4096, true)
		y.launch(f, y.one, accesses)
		accesses[0].Ptr = 0x10
	})
	require.NoError(t, y.GraphLaunch(x, y.one))
	require.NoError(t, y.checker.Err())
}

// The driver refuses a launch in a capture: it touches nothing, and there is no graph of it.
func TestALaunchInACapture(t *testing.T) {
	y := newYard(t)
	y.alloc(4096, y.one)
	x := y.graph(func() { y.writes(y.one, 4096) })
	y.checker.Freed(y.arena, site.Here(0))
	require.NoError(t, y.StreamBeginCapture(y.one, cudadrv.CaptureRelaxed))
	require.ErrorIs(t, y.GraphLaunch(x, y.one), cudadrv.CaptureViolation)
	_, err := y.StreamEndCapture(y.one)
	require.ErrorIs(t, err, cudadrv.CaptureBroken)
	require.NoError(t, y.checker.Err())
	require.NoError(t, y.GraphLaunch(x, y.one))
	assert.Equal(t, []hazard.Kind{hazard.UseAfterFree}, y.kinds())
}

// A capture that another thread has ended is over: later work of its stream runs.
func TestACaptureEndedOnTheWrongThread(t *testing.T) {
	y := newYard(t)
	y.alloc(4096, y.one)
	ended := make(chan error)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, y.StreamBeginCapture(y.one, cudadrv.CaptureGlobal))
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		_, err := y.StreamEndCapture(y.one)
		ended <- err
	}()
	require.ErrorIs(t, <-ended, cudadrv.CaptureWrongThread)
	y.writes(y.one, 8192)
	assert.Equal(t, []hazard.Kind{hazard.NeverAllocated}, y.kinds())
}

// A capture that fails leaves no graph, and the streams work as before.
func TestACaptureThatFails(t *testing.T) {
	y := newYard(t)
	y.alloc(4096, y.one)
	require.NoError(t, y.StreamBeginCapture(y.one, cudadrv.CaptureRelaxed))
	y.writes(y.one, 4096)
	y.joins(y.two, y.one)
	_, err := y.StreamEndCapture(y.two)
	require.ErrorIs(t, err, cudadrv.CaptureUnmatched)
	require.Error(t, y.Kernel(y.one, time.Second, hazard.Access{Ptr: 0x10, Bytes: 1}), "it is invalid, and continues")
	_, err = y.StreamEndCapture(y.one)
	require.ErrorIs(t, err, cudadrv.CaptureBroken)
	require.NoError(t, y.checker.Err())
	y.writes(y.two, 4096)
	y.writes(y.one, 4096)
	reports, _ := y.checker.Reports()
	require.Len(t, reports, 1)
	assert.Equal(t, hazard.Race, reports[0].Kind)
	assert.Empty(t, reports[0].Hint, "both run; they are in no graph")

	require.NoError(t, y.StreamBeginCapture(y.one, cudadrv.CaptureRelaxed))
	y.joins(y.two, y.one)
	require.NoError(t, y.StreamDestroy(y.one))
	require.NoError(t, y.StreamSynchronize(y.two))
	y.writes(y.two, 8192)
	assert.Equal(t, []hazard.Kind{hazard.Race, hazard.NeverAllocated}, y.kinds(), "the capture ended with its stream")
	_, err = y.StreamEndCapture(y.two)
	require.ErrorIs(t, err, cudadrv.IllegalState)
}

// An event that was recorded in a capture orders nothing outside, also if it did before.
func TestAnEventThatWentIntoAGraph(t *testing.T) {
	y := newYard(t)
	y.alloc(4096, y.one)
	e, err := y.EventCreate()
	require.NoError(t, err)
	y.writes(y.one, 4096)
	require.NoError(t, y.EventRecord(e, y.one))
	y.captured(func() { require.NoError(t, y.EventRecord(e, y.one)) })
	require.ErrorIs(t, y.StreamWaitEvent(y.two, e), cudadrv.InvalidValue)
	require.NoError(t, y.EventRecord(e, y.one))
	require.NoError(t, y.StreamWaitEvent(y.two, e), "recorded anew, outside")
	y.writes(y.two, 4096)
	require.NoError(t, y.checker.Err())
}

// Graphs that were made past the checker are work that touches nothing as far as it knows.
func TestGraphsPastTheChecker(t *testing.T) {
	y := newYard(t)
	y.alloc(4096, y.one)
	require.NoError(t, y.gpu.StreamBeginCapture(y.one, cudadrv.CaptureRelaxed))
	g, err := y.StreamEndCapture(y.one)
	require.NoError(t, err)
	x, err := y.GraphInstantiate(g)
	require.NoError(t, err)
	require.NoError(t, y.GraphLaunch(x, y.one))
	require.NoError(t, y.GraphExecUpdate(x, g))
	require.NoError(t, y.GraphExecDestroy(x))
	require.NoError(t, y.checker.Err())
}

// A graph that keeps its memory may be launched after its buffers were freed, and may reuse memory of its hold, but not memory
// of a new buffer.
func TestWhatIsSeenOfAGraphThatKeepsItsMemory(t *testing.T) {
	for name, c := range map[string]struct {
		between func(y *yard)
		want    bool
	}{
		"the buffer was freed": {func(y *yard) { y.checker.Freed(y.arena, site.Here(0)) }, false},
		"the buffer was freed and its memory given to another": {func(y *yard) {
			y.checker.Freed(y.arena, site.Here(0))
			y.joins(y.two, y.one)
			y.alloc(4096, y.two)
		}, true},
		"its memory is that of a hold": {func(y *yard) {
			y.HoldBegins(y.two)
			y.checker.Freed(y.arena, site.Here(0))
			y.joins(y.two, y.one)
			y.alloc(4096, y.two)
			y.checker.Freed(y.arena, site.Here(0))
		}, false},
		"its memory was that of a hold": {func(y *yard) {
			y.HoldBegins(y.two)
			y.checker.Freed(y.arena, site.Here(0))
			y.joins(y.two, y.one)
			y.alloc(4096, y.two)
			y.HoldEnds(y.two)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			y.alloc(4096, y.one)
			x := y.graph(func() { y.writes(y.one, 8) })
			y.GraphKeeps(x)
			require.NoError(t, y.GraphLaunch(x, y.one))
			c.between(y)
			require.NoError(t, y.GraphLaunch(x, y.one))
			reports, _ := y.checker.Reports()
			if c.want {
				require.NotEmpty(t, reports)
				require.Equal(t, hazard.UseAfterFree, reports[0].Kind)
			} else {
				require.Empty(t, reports)
			}
		})
	}
}

// A kernel that was given other arguments touches those from then on, and no longer the former ones.
func TestArgumentsOfANodeAreAccesses(t *testing.T) {
	for name, c := range map[string]struct {
		ordered bool
		second  cudadrv.Ptr // written by the other stream, from the begin of the buffer on
		want    []hazard.Kind
	}{
		"the new argument":           {false, 4096, []hazard.Kind{hazard.Race}},
		"the new argument, in order": {true, 4096, nil},
		"the former argument":        {false, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			y.alloc(8192, y.one)
			f := y.kernel()
			g := y.captured(func() {
				y.launch(f, y.one, y.whole(4096, true))
				require.NoError(t, y.MemsetD32Async(y.arena+8, 0, 2, y.one))
			})
			x, err := y.GraphInstantiate(g)
			require.NoError(t, err)
			nodes, err := y.GraphGetNodes(g)
			require.NoError(t, err)
			require.NoError(t, y.KernelNodeSetParamsTouching(x, nodes[0], f, block, make([]byte, 8),
				[]cudadrv.Access{{Ptr: y.arena + 4096, Bytes: 4096, Write: true}}))
			require.NoError(t, y.GraphLaunch(x, y.one))
			if c.ordered {
				y.joins(y.two, y.one)
			}
			require.NoError(t, y.MemsetD8Async(y.arena+c.second, 1, 8, y.two))
			assert.Equal(t, c.want, y.kinds(), "%v", y.checker.Err())
			if reports, _ := y.checker.Reports(); len(reports) > 0 {
				assert.Regexp(t, `^kernel, set at .*\(graph_test.go:\d+\), writes$`, reports[0].Before.What)
			}
		})
	}
}
