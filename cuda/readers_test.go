package cuda_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// reading is a table, its owner and streams that read it. A kernel takes a second.
type reading struct {
	*failing
	owner   *cuda.Context
	table   cuda.Buffer
	readers []*cuda.Context
	calls   atomic.Int64 // of the driver, on streams and events
}

func newReading(t *testing.T, readers int) *reading {
	t.Helper()
	f, owner := newFailing(t, sim.Config{Bytes: true, KernelTime: func(string, cudadrv.Geometry) time.Duration { return kernelTime }})
	r := &reading{failing: f, owner: owner, table: f.alloc(owner, mib)}
	for range readers {
		r.readers = append(r.readers, f.context())
	}
	f.faults.SetBefore(func(function string) {
		if strings.HasPrefix(function, "cuLaunch") || strings.HasPrefix(function, "cuGraphLaunch") || strings.HasPrefix(function, "cuEvent") ||
			strings.HasPrefix(function, "cuStream") {
			r.calls.Add(1)
		}
	})
	return r
}

// counted returns the driver calls of f.
func (r *reading) counted(f func()) int64 {
	before := r.calls.Load()
	f()
	return r.calls.Load() - before
}

// span returns the device's time for the work that f submits.
func (r *reading) span(f func()) time.Duration {
	r.Helper()
	r.sync()
	before := r.machine.Device(0).Now()
	f()
	r.sync()
	return (r.machine.Device(0).Now() - before).Truncate(kernelTime / 2)
}

func (r *reading) sync() {
	r.Helper()
	for _, c := range append(r.readers, r.owner) {
		require.NoError(r, c.Synchronize(context.Background()))
	}
}

func (r *reading) touch(c *cuda.Context, a cuda.Arg) {
	r.Helper()
	require.NoError(r, c.Launch(r.failing.touch, oneThread, a))
}

// foreign is work of the caller's own that takes as long as a kernel.
func (r *reading) foreign(device cudadrv.Device, on cudadrv.Stream) error {
	if err := device.MemsetD8Async(r.table.Ptr(), 1, mib, on); err != nil {
		return err
	}
	return r.machine.Device(0).Launch(on, kernelTime)
}

func (r *reading) readAll() {
	r.Helper()
	for _, c := range r.readers {
		r.touch(c, cuda.In(r.table))
	}
}

// Kernels of sixteen streams that read one buffer run at the same time, wait for its last writer once, and cost one driver call
// each from then on. A work that writes waits for all of them.
func TestReadersOfABufferRunSideBySide(t *testing.T) {
	for _, count := range []int{1, 2, 4, 8, 16} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			r := newReading(t, count)
			r.touch(r.owner, cuda.Out(r.table))
			assert.Equal(t, kernelTime, r.span(r.readAll), "the first time")
			for range 3 {
				calls := int64(0)
				assert.Equal(t, kernelTime, r.span(func() { calls = r.counted(r.readAll) }))
				assert.EqualValues(t, count, calls, "a launch is a call")
			}
			assert.Equal(t, kernelTime, r.span(func() {
				r.readAll()
				r.touch(r.owner, cuda.In(r.table))
			}), "the owner reads, too")
			writer := r.readers[count-1]
			for _, c := range []*cuda.Context{r.owner, writer} {
				assert.Equal(t, 3*kernelTime, r.span(func() {
					r.readAll()
					r.touch(c, cuda.InOut(r.table))
					r.readAll()
				}), "a write is alone")
			}
			assert.Equal(t, 2*kernelTime, r.span(func() {
				r.touch(writer, cuda.Out(r.table))
				r.touch(r.owner, cuda.In(r.table))
			}), "the owner waits for the last writer")
			require.NoError(t, r.table.Free())
		})
	}
}

// An owner that works on other buffers does not hold up readers that have waited for it.
func TestReadersDoNotWaitForTheOwnersOtherWork(t *testing.T) {
	r := newReading(t, 4)
	own := r.alloc(r.owner, mib)
	r.touch(r.owner, cuda.Out(r.table))
	r.readAll()
	assert.Equal(t, 5*kernelTime, r.span(func() {
		for range 5 {
			r.touch(r.owner, cuda.InOut(own))
		}
		for range 5 {
			r.readAll()
		}
	}))
	require.NoError(t, own.Free())
	require.NoError(t, r.table.Free())
}

// Graphs that read one buffer run side by side, and a graph that writes it is alone.
func TestGraphsThatReadRunSideBySide(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		r := newReading(t, 8)
		r.touch(r.owner, cuda.Out(r.table))
		capture := func(c *cuda.Context, a cuda.Arg) *cuda.Graph {
			g, err := c.Capture(func() error { return c.Launch(r.failing.touch, oneThread, a) })
			require.NoError(t, err)
			return g
		}
		var graphs []*cuda.Graph
		for _, c := range r.readers {
			graphs = append(graphs, capture(c, cuda.In(r.table)))
		}
		writing := capture(r.owner, cuda.InOut(r.table))
		if frozen {
			require.NoError(t, r.owner.Freeze(r.table))
		}
		launch := func() {
			for i, g := range graphs {
				require.NoError(t, g.Launch(r.readers[i]))
			}
		}
		assert.Equal(t, kernelTime, r.span(launch), "the first time")
		calls := int64(0)
		assert.Equal(t, kernelTime, r.span(func() { calls = r.counted(launch) }))
		assert.EqualValues(t, len(graphs), calls)
		if frozen {
			r.refused(writing.Launch(r.owner), "Graph.Launch")
			r.refused(graphs[0].SetArgs(0, oneThread, cuda.InOut(r.table)), "")
			require.NoError(t, r.owner.Thaw(r.table))
		}
		assert.Equal(t, 3*kernelTime, r.span(func() {
			launch()
			require.NoError(t, writing.Launch(r.owner))
			launch()
		}))
		require.NoError(t, graphs[0].SetArgs(0, oneThread, cuda.InOut(r.table)))
		assert.Equal(t, 2*kernelTime, r.span(launch), "one of them writes now, first")
		require.NoError(t, r.table.Free())
		assert.Equal(t, 2*kernelTime, r.span(launch), "also after the free")
		for _, g := range append(graphs, writing) {
			require.NoError(t, g.Close())
		}
	}
}

// refused checks the error of a write to the frozen table.
func (r *reading) refused(err error, call string) {
	r.Helper()
	require.ErrorIs(r, err, cuda.ErrFrozen)
	var frozen *cuda.FrozenError
	require.ErrorAs(r, err, &frozen)
	assert.Contains(r, frozen.Frozen, "readers_test.go")
	assert.Contains(r, err.Error(), "readers_test.go", "the place")
	assert.Equal(r, call, frozen.Call)
	if call == "Graph.Launch" {
		assert.Zero(r, frozen.Bytes)
	} else {
		assert.Equal(r, r.table.Bytes(), frozen.Bytes, "of the frozen one")
	}
}

// A frozen buffer costs its readers nothing after the first time, and no call writes it. After Thaw a write waits for all of
// them.
func TestAFrozenBufferIsReadForNothing(t *testing.T) {
	const count = 16
	r := newReading(t, count)
	r.touch(r.owner, cuda.Out(r.table))
	require.NoError(t, r.owner.Freeze(r.table))
	require.NoError(t, r.readers[0].Freeze(r.table), "again")
	assert.True(t, cuda.Frozen(r.table))
	assert.Equal(t, kernelTime, r.span(func() {
		r.readAll()
		r.touch(r.owner, cuda.In(r.table))
	}))
	calls := int64(0)
	assert.Equal(t, kernelTime, r.span(func() {
		calls = r.counted(func() {
			r.readAll()
			r.touch(r.owner, cuda.In(r.table))
		})
	}))
	assert.EqualValues(t, count+1, calls)
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = r.readers[0].Launch(r.failing.touch, oneThread, cuda.In(r.table)) }))

	other := r.alloc(r.owner, 2*mib)
	host := make([]byte, mib)
	two, err := r.owner.Kernel(".version 7.0\n.target sm_70\n.visible .entry two(.param .u64 x, .param .u64 y) { ret; }", "two")
	require.NoError(t, err)
	submit := func(cudadrv.Device, cudadrv.Stream) error {
		assert.Fail(t, "called")
		return nil
	}
	for _, c := range []*cuda.Context{r.owner, r.readers[0], r.context()} {
		launches := r.faults.Calls("cuLaunchKernel")
		r.refused(c.Launch(r.failing.touch, oneThread, cuda.Out(r.table)), "")
		r.refused(c.Launch(r.failing.touch, oneThread, cuda.InOut(r.table)), "")
		var argument *cuda.ArgumentError
		for _, err := range []error{
			c.LaunchWith("library", submit, cuda.In(other), cuda.Out(r.table)),
			c.LaunchPacked(r.failing.touch, oneThread, make([]byte, 8), cuda.In(other), cuda.InOut(r.table)),
			c.Launch(two, oneThread, cuda.InOut(other), cuda.Out(r.table)),
		} {
			r.refused(err, "")
			require.ErrorAs(t, err, &argument)
			assert.Equal(t, 1, argument.Index)
		}
		r.refused(c.Submit(submit, cuda.Whole(r.table)), "Context.Submit")
		r.refused(c.Submit(submit, cuda.Part(other, 0, 8), cuda.Whole(r.table)), "Context.Submit")
		r.refused(cuda.CopyIn(c, r.table, host), "Context.CopyIn")
		r.refused(c.CopyInAsync(cuda.Whole(r.table), host), "Context.CopyIn")
		r.refused(c.Copy(cuda.Whole(r.table), cuda.Part(other, 0, mib)), "Context.Copy")
		r.refused(c.Copy2D(cuda.Rows{Buffer: r.table, Pitch: 64}, cuda.Rows{Buffer: other, Pitch: 64}, 32, 8), "Context.Copy2D")
		r.refused(c.Fill8(cuda.Part(r.table, 0, 8), 1), "Context.Fill8")
		r.refused(c.Fill16(cuda.Part(r.table, 0, 8), 1), "Context.Fill16")
		r.refused(c.Fill32(cuda.Part(r.table, 0, 8), 1), "Context.Fill32")
		assert.Equal(t, launches, r.faults.Calls("cuLaunchKernel"))
		g, err := c.Capture(func() error {
			r.refused(c.Fill8(cuda.Whole(r.table), 1), "Context.Fill8")
			return c.Launch(r.failing.touch, oneThread, cuda.In(r.table))
		})
		require.NoError(t, err)
		require.NoError(t, g.Launch(c))
		require.NoError(t, c.Copy(cuda.Part(other, 0, mib), cuda.Whole(r.table)))
		require.NoError(t, cuda.CopyOut(c, host, r.table))
		require.NoError(t, c.CopyOutAsync(host, cuda.Whole(r.table)))
		require.NoError(t, c.Copy2D(cuda.Rows{Buffer: other, Pitch: 64}, cuda.Rows{Buffer: r.table, Pitch: 64}, 32, 8))
		require.NoError(t, c.LaunchPacked(r.failing.touch, oneThread, make([]byte, 8), cuda.In(r.table)))
		_, err = cuda.Load[byte](c, cuda.Whole(r.table), 64)
		require.NoError(t, err)
		q := c.NewQueue()
		cuda.Read(q, host[:64], cuda.Whole(r.table))
		require.NoError(t, q.Close())
		require.NoError(t, g.Close())
	}
	require.ErrorContains(t, r.owner.Fill8(cuda.Whole(r.table), 1), "Context.Fill8: the buffer of 1 MiB is frozen since")

	assert.Equal(t, 3*kernelTime, r.span(func() {
		r.readAll()
		require.NoError(t, r.readers[0].Thaw(r.table))
		require.NoError(t, r.owner.Thaw(r.table), "again")
		assert.False(t, cuda.Frozen(r.table))
		r.touch(r.owner, cuda.InOut(r.table))
		r.readAll()
	}))
	// The free ends it.
	require.NoError(t, r.owner.Freeze(r.table))
	require.NoError(t, r.table.Free())
	require.ErrorIs(t, r.owner.Freeze(r.table), cuda.ErrNotLive)
	require.ErrorIs(t, r.owner.Thaw(r.table), cuda.ErrNotLive)
	assert.False(t, cuda.Frozen(r.table))
	assert.False(t, cuda.Frozen(cuda.Buffer{}))
	require.NoError(t, other.Free())
}

func TestBuffersThatCannotBeFrozen(t *testing.T) {
	r, c := newRig(t)
	other, _ := newRig(t)
	x := r.alloc(c, mib)
	require.ErrorIs(t, other.context().Freeze(x), cuda.ErrForeign)
	require.ErrorIs(t, c.Freeze(cuda.Buffer{}), cuda.ErrNotLive)
	var held cuda.Buffer
	g, err := c.Capture(func() (err error) {
		held, err = c.AllocZeroed(mib)
		return err
	})
	require.NoError(t, err)
	require.ErrorIs(t, c.Freeze(held), cuda.ErrGraphMemory)
	require.NoError(t, g.Close())
	r.free(held, x)
	require.NoError(t, c.Close())
	require.ErrorIs(t, c.Freeze(x), cuda.ErrNotOpen)
	require.ErrorIs(t, c.Thaw(x), cuda.ErrNotOpen)
}

// The memory of a freed buffer is not reused before its readers have ended, frozen or not.
func TestAFreeWaitsForReaders(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		r, owner := newRig(t)
		var readers []*cuda.Context
		for range 4 {
			readers = append(readers, r.context())
		}
		for range 10 {
			table := r.alloc(owner, 8*mib)
			require.NoError(t, owner.Fill8(cuda.Part(table, 0, mib/4), 1))
			if frozen {
				require.NoError(t, owner.Freeze(table))
			}
			for range 3 {
				for _, c := range readers {
					scratch := r.alloc(c, 8*mib)
					require.NoError(t, c.Launch(r.touch, oneThread, cuda.In(table)))
					require.NoError(t, c.Copy(cuda.Part(scratch, 0, mib/4), cuda.Part(table, 0, mib/4)))
					r.free(scratch)
				}
			}
			r.free(table)
			next := r.alloc(owner, 8*mib)
			require.NoError(t, owner.Fill8(cuda.Part(next, 0, mib/4), 2)) // the checker reports an early reuse
			r.free(next)
		}
	}
}

// A work that meets another one between the looks at its buffers and its submission is before it or after it on the device,
// where one of the two writes.
func TestAWorkMeetsAnotherAtItsLaunch(t *testing.T) {
	for name, test := range map[string]struct {
		shared, frozen bool
		first, second  func(r *reading)
	}{
		"the owner's write, and the first read of another stream": {
			first:  func(r *reading) { r.touch(r.owner, cuda.InOut(r.table)) },
			second: func(r *reading) { r.touch(r.readers[0], cuda.In(r.table)) },
		},
		"the owner's write, and Freeze": {
			first: func(r *reading) { r.touch(r.owner, cuda.InOut(r.table)) },
			second: func(r *reading) {
				assert.NoError(r, r.owner.Freeze(r.table))
				r.touch(r.readers[0], cuda.In(r.table))
			},
		},
		"the owner's write in a profile, and the first read of another stream": {
			first: func(r *reading) {
				p, err := r.owner.StartProfile()
				require.NoError(r, err)
				r.touch(r.owner, cuda.InOut(r.table))
				_, err = p.Stop()
				require.NoError(r, err)
			},
			second: func(r *reading) { r.touch(r.readers[0], cuda.In(r.table)) },
		},
		"the owner's write by a library, and the first read of another stream": {
			first:  func(r *reading) { require.NoError(r, r.owner.LaunchWith("library", r.foreign, cuda.InOut(r.table))) },
			second: func(r *reading) { r.touch(r.readers[0], cuda.In(r.table)) },
		},
		"the owner's write by Submit, and the first read of another stream": {
			first:  func(r *reading) { require.NoError(r, r.owner.Submit(r.foreign, cuda.Whole(r.table))) },
			second: func(r *reading) { r.touch(r.readers[0], cuda.In(r.table)) },
		},
		"a write, and a read": {
			shared: true,
			first:  func(r *reading) { r.touch(r.readers[1], cuda.InOut(r.table)) },
			second: func(r *reading) { r.touch(r.readers[0], cuda.In(r.table)) },
		},
		"a read, and a write": {
			shared: true,
			first:  func(r *reading) { r.touch(r.readers[0], cuda.In(r.table)) },
			second: func(r *reading) { r.touch(r.owner, cuda.InOut(r.table)) },
		},
		"a write, and Freeze": {
			shared: true,
			first:  func(r *reading) { r.touch(r.readers[1], cuda.InOut(r.table)) },
			second: func(r *reading) {
				assert.NoError(r, r.owner.Freeze(r.table))
				r.touch(r.readers[0], cuda.In(r.table))
			},
		},
		"a read of a frozen buffer, and Thaw": {
			shared: true, frozen: true,
			first: func(r *reading) { r.touch(r.readers[0], cuda.In(r.table)) },
			second: func(r *reading) {
				assert.NoError(r, r.owner.Thaw(r.table))
				r.touch(r.owner, cuda.InOut(r.table))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReading(t, 2)
			if test.shared {
				r.readAll()
			}
			if test.frozen {
				require.NoError(t, r.owner.Freeze(r.table))
				r.readAll()
			}
			over := make(chan struct{})
			var met atomic.Bool
			assert.Equal(t, 2*kernelTime, r.span(func() {
				r.faults.SetBefore(func(function string) {
					if function != "cuLaunchKernel" && function != "cuMemsetD8Async" || met.Swap(true) {
						return
					}
					go func() {
						defer close(over)
						test.second(r)
					}()
					for range 2000 { // it is held up until this launch has returned
						runtime.Gosched()
					}
				})
				test.first(r)
				<-over
			}))
			require.NoError(t, r.table.Free())
		})
	}
}

// Reads of a frozen buffer are not counted, but a write after Thaw waits for them, also where its stream waits for an earlier
// read already.
func TestAWriteAfterThawWaitsForReads(t *testing.T) {
	r := newReading(t, 2)
	other := r.alloc(r.owner, mib)
	require.NoError(t, r.owner.Freeze(r.table))
	r.readAll()
	r.touch(r.readers[0], cuda.In(other))
	r.touch(r.owner, cuda.InOut(other)) // waits for the reader
	assert.Equal(t, 2*kernelTime, r.span(func() {
		r.touch(r.readers[0], cuda.In(r.table))
		require.NoError(t, r.owner.Thaw(r.table))
		r.touch(r.owner, cuda.InOut(r.table))
	}))
	require.NoError(t, other.Free())
	require.NoError(t, r.table.Free())
}

// A stream that has read a frozen buffer by a graph, which kept the memory, announces its own reads.
func TestAReadAfterAGraphsIsAnnounced(t *testing.T) {
	r, owner := newRig(t)
	c := r.context()
	table, own := r.alloc(owner, 8*mib), r.alloc(c, 8*mib)
	require.NoError(t, owner.Fill8(cuda.Whole(table), 1))
	require.NoError(t, owner.Freeze(table))
	g := r.graph(c, func() { require.NoError(t, c.Launch(r.touch, oneThread, cuda.In(table))) })
	require.NoError(t, g.Launch(c))
	require.NoError(t, g.Close())
	require.NoError(t, c.Copy(cuda.Whole(own), cuda.Whole(table)))
	r.free(table)
	next := r.alloc(owner, 8*mib)
	require.NoError(t, owner.Fill8(cuda.Whole(next), 2)) // the checker reports an early reuse
	r.free(next, own)
}

// Goroutines that read, write, freeze and thaw the same buffers, each on its own stream, are in an order on the device: a
// checker sees no two accesses without one.
func TestAStormOfReadersAndWriters(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 60
	}
	r, owner := newRig(t)
	tables := []cuda.Buffer{r.alloc(owner, mib), r.alloc(owner, mib), r.alloc(owner, mib)}
	contexts := []*cuda.Context{owner}
	for range 5 {
		contexts = append(contexts, r.context())
	}
	var wrote, refused atomic.Int64
	var all sync.WaitGroup
	graphs := make([][]*cuda.Graph, len(contexts))
	for i, c := range contexts {
		for _, arg := range []cuda.Arg{cuda.In(tables[i%3]), cuda.InOut(tables[i%3])} {
			g, err := c.Capture(func() error { return c.Launch(r.touch, oneThread, arg) })
			require.NoError(t, err)
			graphs[i] = append(graphs[i], g)
		}
	}
	for i, c := range contexts {
		own := r.alloc(c, mib)
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 3)) //nolint:gosec // a test
			note := func(err error) {
				switch {
				case err == nil:
					wrote.Add(1)
				case assert.ErrorIs(t, err, cuda.ErrFrozen):
					refused.Add(1)
				}
			}
			for range rounds {
				a, b := tables[random.IntN(3)], tables[random.IntN(3)]
				switch random.IntN(10) {
				case 0:
					assert.NoError(t, c.Freeze(a))
				case 1:
					assert.NoError(t, c.Thaw(a))
				case 2:
					note(c.Fill8(cuda.Whole(a), 1))
				case 3:
					note(c.Launch(r.add, oneThread, cuda.InOut(a), cuda.In(b), cuda.In(own), cuda.Value(uint32(1))))
				case 4:
					note(graphs[i][1].Launch(c))
				case 5:
					assert.NoError(t, graphs[i][0].Launch(c))
				case 6:
					assert.NoError(t, c.Launch(r.add, oneThread, cuda.InOut(own), cuda.In(a), cuda.In(b), cuda.Value(uint32(1))))
				default:
					assert.NoError(t, c.Copy(cuda.Whole(own), cuda.Whole(a)))
				}
			}
			for _, g := range graphs[i] {
				assert.NoError(t, g.Close())
			}
			assert.NoError(t, own.Free())
		})
	}
	all.Wait()
	assert.Positive(t, wrote.Load())
	assert.Positive(t, refused.Load())
	r.free(tables...)
}

// A free ends a freeze: a graph that keeps the memory writes it again, after the graphs that have read it for nothing.
func TestAFreeEndsAFreeze(t *testing.T) {
	for _, shared := range []bool{false, true} {
		r := newReading(t, 2)
		var with []cuda.Option
		if shared {
			pool, err := r.owner.NewPool()
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, pool.Close()) })
			with = append(with, cuda.Shared(pool))
		}
		capture := func(c *cuda.Context, a cuda.Arg, with ...cuda.Option) *cuda.Graph {
			g, err := c.Capture(func() error { return c.Launch(r.failing.touch, oneThread, a) }, with...)
			require.NoError(t, err)
			return g
		}
		writes := capture(r.owner, cuda.InOut(r.table), with...)
		reads := []*cuda.Graph{capture(r.readers[0], cuda.In(r.table)), capture(r.readers[1], cuda.In(r.table))}
		require.NoError(t, r.owner.Freeze(r.table))
		launch := func() {
			for i, g := range reads {
				require.NoError(t, g.Launch(r.readers[i]))
			}
		}
		launch()
		moved, err := r.table.Transfer(r.readers[0].Stream())
		require.NoError(t, err)
		r.refused(writes.Launch(r.owner), "Graph.Launch") // a transfer does not
		require.NoError(t, moved.Free())
		assert.Equal(t, 3*kernelTime, r.span(func() {
			launch()
			require.NoError(t, writes.Launch(r.owner))
			launch()
		}))
		for _, g := range append(reads, writes) {
			require.NoError(t, g.Close())
		}
	}
}
