package cuda_test

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/eachcall"
)

// state is a device with one object of each kind, of contexts of one stream each. The calls below use c.
type state struct {
	*failing
	c, d     *cuda.Context
	own      cuda.Buffer // of c's stream, which alone has used it
	shared   cuda.Buffer // of d's stream; c has used it, too
	module   *cuda.Module
	variable cuda.Variable
	event    *cuda.Event
	earlier  *cuda.Event
	graph    *cuda.Graph // captured by d
	pool     *cuda.Pool  // of c
	numbers  []uint32
	longer   cuda.Buffer // of c; nil in most tests
}

// newState opens a device that has converts from the driver's, or the driver's for nil.
func newState(t *testing.T, has func(cudadrv.Device) cudadrv.Device) *state {
	t.Helper()
	f := &failing{T: t, machine: sim.New(sim.Config{Bytes: true, TimedKernels: true})}
	f.faults = fault.Wrap(f.machine)
	var driver cudadrv.Driver = f.faults
	if has != nil {
		driver = lackingDriver{f.faults, has}
	}
	var err error
	f.dev, err = vram.Open(vram.Config{Driver: driver})
	require.NoError(t, err)
	t.Cleanup(func() {
		f.faults.SetBefore(nil)
		f.faults.Clear()
		_ = f.dev.Close() // its buffers are live
	})
	open := func() *cuda.Context {
		stream, err := f.dev.NewStream()
		require.NoError(t, err)
		c, err := cuda.NewContext(stream)
		require.NoError(t, err)
		return c
	}
	s := &state{failing: f, c: open(), d: open(), numbers: make([]uint32, 1024)}
	s.own, s.shared = s.alloc(s.c, 4096), s.alloc(s.d, 4096)
	require.NoError(t, s.c.Fill8(cuda.Whole(s.shared), 1))
	s.earlier, err = s.c.Record()
	require.NoError(t, err)
	s.event, err = s.c.Record()
	require.NoError(t, err)
	if has != nil {
		return s
	}
	s.module, err = s.d.LoadModule([]byte(ptx + ".visible .global .align 4 .u32 variable[1024];\n"))
	require.NoError(t, err)
	s.touch, err = s.module.Function("touch")
	require.NoError(t, err)
	s.variable, err = s.module.Variable("variable")
	require.NoError(t, err)
	s.graph, err = s.d.Capture(func() error { return s.d.Launch(s.touch, oneThread, cuda.InOut(s.shared)) })
	require.NoError(t, err)
	s.pool, err = s.c.NewPool()
	require.NoError(t, err)
	s.machine.Device(0).Advance(time.Hour)
	return s
}

// lackingDriver is a driver whose devices lack some interfaces.
type lackingDriver struct {
	cudadrv.Driver

	has func(cudadrv.Device) cudadrv.Device
}

func (d lackingDriver) Open(ordinal int) (cudadrv.Device, error) {
	device, err := d.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	return d.has(device), nil
}

// stateCall is one exported call on open values, which refuses or fails.
type stateCall struct {
	name string
	call func(s *state) error
}

func second[T any](_ T, err error) error { return err }

// stateCalls are all calls of a context that return an error, and those of the objects that a context has made.
func stateCalls() []stateCall {
	ctx := context.Background()
	fill := func(b func(s *state) cuda.Buffer) func(device cudadrv.Device, on cudadrv.Stream, s *state) error {
		return func(device cudadrv.Device, on cudadrv.Stream, s *state) error {
			return device.MemsetD8Async(b(s).Ptr(), 1, 8, on)
		}
	}
	own := func(s *state) cuda.Buffer { return s.own }
	shared := func(s *state) cuda.Buffer { return s.shared }
	all := []stateCall{
		{"Context.Alloc", func(s *state) error { return second(s.c.Alloc(32 * mib)) }},
		{"Context.AllocZeroed", func(s *state) error { return second(s.c.AllocZeroed(32 * mib)) }},
		{"Context.AllocFor", func(s *state) error { return second(s.c.AllocFor(ctx, vram.Request{Bytes: 32 * mib})) }},
		{"Context.AllocBatch", func(s *state) error { return s.c.AllocBatch(make([]cuda.Buffer, 1), []int64{32 * mib}) }},
		{"Context.Workspace", func(s *state) error { return second(s.c.Workspace(32 * mib)) }},
		{"Context.Capture", func(s *state) error { return second(s.c.Capture(func() error { return nil })) }},
		{"Context.Capture, a shared pool", func(s *state) error {
			return second(s.c.Capture(func() error { return nil }, cuda.Shared(s.pool)))
		}},
		{"Context.Freeze", func(s *state) error { return s.c.Freeze(s.own) }},
		{"Context.Thaw", func(s *state) error { return s.c.Thaw(s.own) }},
		{"Context.Kernel", func(s *state) error { return second(s.c.Kernel(ptx, "touch")) }},
		{"Context.Link", func(s *state) error { return second(s.c.Link([]byte(ptx))) }},
		{"Context.LoadModule", func(s *state) error { return second(s.c.LoadModule([]byte(ptx))) }},
		{"Context.NewPool", func(s *state) error { return second(s.c.NewPool()) }},
		{"Context.NewStream", func(s *state) error { return second(s.c.NewStream()) }},
		{"Context.Record", func(s *state) error { return second(s.c.Record()) }},
		{"Context.StartProfile", func(s *state) error { return second(s.c.StartProfile()) }},
		{"Context.Synchronize", func(s *state) error { return s.c.Synchronize(ctx) }},
		{"Context.Synchronize, a context", func(s *state) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return s.c.Synchronize(ctx)
		}},
		{"Context.Wait", func(s *state) error { return s.c.Wait(s.d) }},
		{"Context.Wait, the other", func(s *state) error { return s.d.Wait(s.c) }},
		{"Context.WaitEvent", func(s *state) error { return s.c.WaitEvent(s.event) }},
		{"Context.WithContext", func(s *state) error { return s.c.WithContext(func() error { return nil }) }},
		{"Context.EncodeTensorMap", func(s *state) error {
			return second(s.c.EncodeTensorMap(cudadrv.TensorMap{
				Ptr: s.own.Ptr(), Type: cudadrv.TensorFloat32, Rank: 1, Dims: [cudadrv.MaxTensorRank]int64{64}, Box: [cudadrv.MaxTensorRank]int32{64},
			}))
		}},
		{"Set", func(s *state) error { return cuda.Set(s.c, s.variable, s.numbers) }},
		{"Get", func(s *state) error { return second(cuda.Get[uint32](s.c, s.variable, 1024)) }},
		{"From", func(s *state) error { return second(cuda.From(s.c, s.numbers)) }},
		{"Graph.Launch", func(s *state) error { return s.graph.Launch(s.c) }},
		{"Graph.Upload", func(s *state) error { return s.graph.Upload(s.c) }},
		{"Queue", func(s *state) error {
			q := s.c.NewQueue()
			q.Fill8(cuda.Whole(s.own), 1)
			return q.Err()
		}},
	}
	for name, b := range map[string]func(s *state) cuda.Buffer{"own": own, "shared": shared} {
		submit := fill(b)
		all = append(all, []stateCall{
			{"Context.Fill8, " + name, func(s *state) error { return s.c.Fill8(cuda.Whole(b(s)), 1) }},
			{"Context.Fill16, " + name, func(s *state) error { return s.c.Fill16(cuda.Whole(b(s)), 1) }},
			{"Context.Fill32, " + name, func(s *state) error { return s.c.Fill32(cuda.Whole(b(s)), 1) }},
			{"Context.Copy, " + name, func(s *state) error { return s.c.Copy(cuda.Part(b(s), 0, 8), cuda.Part(b(s), 8, 8)) }},
			{"Context.Copy2D, " + name, func(s *state) error {
				return s.c.Copy2D(cuda.Rows{Buffer: b(s), Pitch: 8}, cuda.Rows{Buffer: b(s), Offset: 1024, Pitch: 8}, 4, 2)
			}},
			{"Context.CopyInAsync, " + name, func(s *state) error { return s.c.CopyInAsync(cuda.Whole(b(s)), make([]byte, 4096)) }},
			{"Context.CopyOutAsync, " + name, func(s *state) error { return s.c.CopyOutAsync(make([]byte, 4096), cuda.Whole(b(s))) }},
			{"Context.CopyInAt, " + name, func(s *state) error { return s.c.CopyInAt(b(s), 8, make([]byte, 8)) }},
			{"Context.CopyOutAt, " + name, func(s *state) error { return s.c.CopyOutAt(make([]byte, 8), b(s), 8) }},
			{"CopyIn, " + name, func(s *state) error { return cuda.CopyIn(s.c, b(s), s.numbers) }},
			{"CopyOut, " + name, func(s *state) error { return cuda.CopyOut(s.c, s.numbers, b(s)) }},
			{"Load, " + name, func(s *state) error { return second(cuda.Load[uint32](s.c, cuda.Whole(b(s)), 1024)) }},
			{"Store, " + name, func(s *state) error { return cuda.Store(s.c, cuda.Whole(b(s)), s.numbers) }},
			{"Context.Launch, " + name, func(s *state) error { return s.c.Launch(s.touch, oneThread, cuda.InOut(b(s))) }},
			{"Context.LaunchPacked, " + name, func(s *state) error {
				return s.c.LaunchPacked(s.touch, oneThread, make([]byte, 8), cuda.InOut(b(s)))
			}},
			{"Context.LaunchWith, " + name, func(s *state) error {
				return s.c.LaunchWith("library", func(device cudadrv.Device, on cudadrv.Stream) error { return submit(device, on, s) }, cuda.InOut(b(s)))
			}},
			{"Context.Submit, " + name, func(s *state) error {
				return s.c.Submit(func(device cudadrv.Device, on cudadrv.Stream) error { return submit(device, on, s) }, cuda.Whole(b(s)))
			}},
		}...)
	}
	return all
}

// objectCalls are the calls of objects that need the device alone, and the free.
func objectCalls() []stateCall {
	return []stateCall{
		{"Event.Done", func(s *state) error { return second(s.event.Done()) }},
		{"Event.Synchronize", func(s *state) error { return s.event.Synchronize(context.Background()) }},
		{"Event.Since", func(s *state) error { return second(s.event.Since(s.earlier)) }},
		{"Module.Function", func(s *state) error { return second(s.module.Function("touch")) }},
		{"Module.Variable", func(s *state) error { return second(s.module.Variable("variable")) }},
		{"Function.Attribute", func(s *state) error { return second(s.touch.Attribute(cudadrv.MaxThreadsPerBlock)) }},
		{"Function.SetMaxSharedBytes", func(s *state) error { return s.touch.SetMaxSharedBytes(1024) }},
		{"Function.ActiveBlocks", func(s *state) error { return second(s.touch.ActiveBlocks(128, 0)) }},
		{"Function.BestBlock", func(s *state) error { _, _, err := s.touch.BestBlock(0); return err }},
		{"Graph.SetArgs", func(s *state) error { return s.graph.SetArgs(0, oneThread, cuda.InOut(s.shared)) }},
		{"Graph.SetArg", func(s *state) error { return s.graph.SetArg(0, 0, cuda.InOut(s.shared)) }},
		{"Context.FreeBatch", func(s *state) error { return s.c.FreeBatch([]cuda.Buffer{s.own}) }}, // the last one
	}
}

// bufferCalls are the names of the calls that have a buffer of their caller.
func bufferCalls() (names []string) {
	for _, one := range append(stateCalls(), objectCalls()...) {
		if strings.Contains(one.name, ", own") || strings.Contains(one.name, ", shared") {
			names = append(names, one.name)
		}
	}
	return append(names, "Context.Freeze", "Context.Thaw", "Graph.SetArg", "Graph.SetArgs", "Queue")
}

// submits are the functions of the driver that put work on a stream.
var submits = regexp.MustCompile("^cu(Memset|Memcpy|Launch|GraphLaunch|EventRecord|StreamWaitEvent|StreamBeginCapture)")

// Each call has the error of the state that it meets, and submits nothing: also on a buffer that needs no order.
func TestCallsInEachState(t *testing.T) {
	const (
		freeBatch    = "Context.FreeBatch"
		withContext  = "Context.WithContext" // the simulator has no contexts to make current
		startProfile = "Context.StartProfile"
	)
	objects := []string{
		"Event.Done", "Event.Synchronize", "Event.Since", "Module.Function", "Module.Variable", "Function.Attribute",
		"Function.SetMaxSharedBytes", "Function.ActiveBlocks", "Function.BestBlock", "Graph.SetArgs", "Graph.SetArg",
	}
	noCalls := []string{"Context.Freeze", "Context.Thaw", startProfile} // of the driver, nor of the stream
	for _, one := range []struct {
		name   string
		begin  func(s *state)
		only   []string // not for nil
		want   error
		others map[string]error // of calls with another error
	}{
		{name: "open", others: each(cudadrv.NotSupported, withContext)},
		{
			name: "context closed", begin: func(s *state) { require.NoError(s, s.c.Close()) },
			want: cuda.ErrNotOpen, others: each(nil, objects...), // their device is open
		},
		{
			name: "stream closed", begin: func(s *state) { require.NoError(s, s.c.Stream().Close()) },
			want: vram.ErrClosed, others: merged(each(nil, objects...), each(nil, noCalls...), each(nil, // that need no stream
				freeBatch, "Context.Link", "Context.NewPool", "Context.NewStream",
				"Context.Wait, the other", // its work has ended
			)),
		},
		{
			name: "device closed", begin: func(s *state) { require.Error(s, s.dev.Close()) },
			want: vram.ErrClosed, others: merged(each(cudadrv.InvalidContext, append(objects, "Context.Link")...), each(nil, noCalls...)),
		},
		{
			name: "device failed", begin: func(s *state) { s.breakDown(cudadrv.LaunchFailed) },
			want: vram.ErrDeviceFailed, others: merged(each(nil, noCalls...), each(nil, freeBatch), each(cudadrv.NotSupported, withContext)),
		},
		{
			name: "buffers freed", begin: func(s *state) { require.NoError(s, errors.Join(s.own.Free(), s.shared.Free())) },
			only: append(bufferCalls(), freeBatch), want: cuda.ErrNotLive, others: each(vram.ErrDoubleFree, freeBatch),
		},
	} {
		t.Run(one.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newState(t, nil)
				if one.begin != nil {
					one.begin(s)
				}
				for _, op := range append(stateCalls(), objectCalls()...) {
					if one.only != nil && !slices.Contains(one.only, op.name) {
						continue
					}
					want, other := one.others[op.name]
					if !other {
						want = one.want
					}
					submitted := []string{}
					s.faults.SetBefore(func(function string) {
						if submits.MatchString(function) {
							submitted = append(submitted, function)
						}
					})
					err := op.call(s)
					s.faults.SetBefore(nil)
					if want == nil {
						assert.NoError(t, err, op.name)
						continue
					}
					assert.ErrorIs(t, err, want, op.name)
					if want != vram.ErrDeviceFailed { //nolint:errorlint // not an error of a call: there the driver has refused the work
						assert.Empty(t, submitted, op.name)
					}
				}
			})
		})
	}
}

// bare is a device without any interface that package cuda can do without.
type bare struct {
	cudadrv.Device
	cudadrv.CaptureQueries
}

// A device that lacks an interface refuses the calls that need it: the others work.
func TestCallsOfADeviceThatLacksAnInterface(t *testing.T) {
	for name, one := range map[string]struct {
		has   func(cudadrv.Device) cudadrv.Device
		works func(name string) bool
	}{
		"all": {
			func(d cudadrv.Device) cudadrv.Device { return bare{d, d.(cudadrv.CaptureQueries)} },
			regexp.MustCompile("^(Context.(Alloc|AllocZeroed|AllocFor|AllocBatch|Workspace|Freeze|Thaw|FreeBatch|NewPool|NewStream|Record|Synchronize|Wait|WaitEvent)($|,)" +
				"|Context.(Fill8|Copy|Submit|LaunchWith), |Event.(Done|Synchronize)|Queue)").MatchString,
		},
		"all but wide work": {
			func(d cudadrv.Device) cudadrv.Device {
				return struct {
					bare
					cudadrv.WideWork
				}{bare{d, d.(cudadrv.CaptureQueries)}, d.(cudadrv.WideWork)}
			},
			regexp.MustCompile("^Context.(Fill16|Fill32|Copy2D), ").MatchString,
		},
		"all but host memory": {
			func(d cudadrv.Device) cudadrv.Device {
				return struct {
					bare
					cudadrv.HostMemory
				}{bare{d, d.(cudadrv.CaptureQueries)}, d.(cudadrv.HostMemory)}
			},
			regexp.MustCompile("^((Context.)?Copy(In|Out)(At|Async)?, |Load, |Store, |From$)").MatchString,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newState(t, one.has)
			for _, op := range append(stateCalls(), objectCalls()...) {
				if regexp.MustCompile("^(Context.Launch(Packed)?, |Module|Function|Graph|Context.Capture, )").MatchString(op.name) {
					continue // there is no module, and no graph
				}
				err := op.call(s)
				switch works := one.works(op.name); {
				case works:
					assert.NoError(t, err, op.name)
				case name == "all":
					assert.ErrorIs(t, err, cudadrv.NotSupported, op.name)
				}
			}
		})
	}
}

func each(err error, names ...string) map[string]error {
	all := map[string]error{}
	for _, name := range names {
		all[name] = err
	}
	return all
}

func merged(all ...map[string]error) map[string]error {
	sum := map[string]error{}
	for _, one := range all {
		maps.Copy(sum, one)
	}
	return sum
}

// Every operation of a context, and of its events, functions and graphs, is called in each state.
func TestEachOperationMeetsEachState(t *testing.T) {
	const (
		peers   = "it needs two devices: see TestCopiesBetweenDevicesAreRefused"
		calls   = "it makes the calls of its caller"
		streams = "package streams has it"
		none    = "it makes no calls that others do not make"
	)
	eachcall.Operations(t, "../api/vram.txt", "cuda", "states_test.go", map[string]string{
		"Context.CopyPeer": peers, "Context.TransferPeer": peers, "Context.Lazily": calls, "Together": calls, "Queue.Do": calls,
		"Graph.HeldBytes": none, "Pool.HeldBytes": none, "Module.Unload": none, "Profile.Stop": none,
		"Stream.AllocBatchFor": streams, "Stream.Stats": streams, "Stream.Trim": streams, "Stream.WaitStream": streams,
		"Buffer.RecordStream": streams, "Buffer.Transfer": streams, "Buffer.Use": streams,
	})
}
