package sim_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// recorder is an executor that notes its calls and its executions.
type recorder struct {
	transfers []sim.Transfer
	performed []sim.Transfer
	claimed   []cudadrv.Ptr
	launches  []sim.KernelLaunch
	captures  []sim.KernelLaunch
	ran       []string
	refusal   error
	fault     error
}

func (r *recorder) Load([]byte, map[string]sim.Variable) (sim.Program, error) { return r, r.refusal }

func (r *recorder) Claimed(p cudadrv.Ptr, _ int64) { r.claimed = append(r.claimed, p) }

func (r *recorder) Queued(t sim.Transfer) func() {
	r.transfers = append(r.transfers, t)
	return func() { r.performed = append(r.performed, t) }
}

func (r *recorder) run(name string) sim.Execution {
	return func(func(cudadrv.Ptr) (cudadrv.Ptr, []byte, bool)) error {
		r.ran = append(r.ran, name)
		return r.fault
	}
}

func (r *recorder) Launch(k sim.KernelLaunch) (sim.Execution, error) {
	r.launches = append(r.launches, k)
	return r.run("launch"), r.refusal
}

func (r *recorder) Capture(k sim.KernelLaunch) (func() sim.Execution, error) {
	r.captures = append(r.captures, k)
	return func() sim.Execution { return r.run("graph") }, r.refusal
}

func (r *recorder) Library(w cudadrv.LibraryWork) sim.Execution {
	if w.Library != "stands" {
		return nil
	}
	return r.run("library")
}

var oneThread = cudadrv.Geometry{Grid: cudadrv.Dim3{X: 1, Y: 1, Z: 1}, Block: cudadrv.Dim3{X: 1, Y: 1, Z: 1}}

// An executor prepares each launch, and each change of a graph's kernel, and its refusals are the calls'. Its work runs on the stream,
// once for a launch, and at each launch of a graph.
func TestAnExecutorIsAskedForEachLaunch(t *testing.T) {
	r := &recorder{}
	device, err := sim.New(sim.Config{Bytes: true, Executor: r, KernelTime: func(_ string, g cudadrv.Geometry) time.Duration {
		return time.Duration(g.Grid.X) * time.Millisecond
	}}).Open(0)
	require.NoError(t, err)
	dev := device.(*sim.Device)
	s, err := dev.StreamCreate()
	require.NoError(t, err)
	m, err := dev.ModuleLoadData([]byte(".version 7.0\n.target sm_70\n.entry step(.param .u64 p) { ret; }"))
	require.NoError(t, err)
	f, err := dev.ModuleGetFunction(m, "step")
	require.NoError(t, err)
	params := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	accesses := []cudadrv.Access{{Ptr: 1, Bytes: 2}}
	require.NoError(t, dev.LaunchKernelDeclared(f, oneThread, params, s, accesses))
	params[0] = 9
	require.Len(t, r.launches, 1)
	assert.Equal(t, "step", r.launches[0].Kernel)
	assert.Equal(t, []byte{1, 2, 3, 4, 5, 6, 7, 8}, r.launches[0].Params, "they are the executor's")
	assert.Equal(t, accesses, r.launches[0].Accesses)
	assert.False(t, r.launches[0].Replaces)
	stands, err := dev.LaunchLibrary(cudadrv.LibraryWork{Library: "stands"}, s)
	require.NoError(t, err)
	assert.True(t, stands)
	stands, err = dev.LaunchLibrary(cudadrv.LibraryWork{Library: "does not"}, s)
	require.NoError(t, err)
	assert.False(t, stands)
	stands, err = dev.LaunchLibrary(cudadrv.LibraryWork{Library: "stands"}, 12345)
	require.ErrorIs(t, err, cudadrv.InvalidHandle)
	assert.True(t, stands, "the error is the work's")
	require.NoError(t, dev.StreamSynchronize(s))
	assert.Equal(t, []string{"launch", "library"}, r.ran)

	require.NoError(t, dev.StreamBeginCapture(s, cudadrv.CaptureRelaxed))
	require.NoError(t, dev.LaunchKernel(f, oneThread, params, s))
	stands, err = dev.LaunchLibrary(cudadrv.LibraryWork{Library: "stands"}, s)
	require.NoError(t, err)
	assert.True(t, stands)
	g, err := dev.StreamEndCapture(s)
	require.NoError(t, err)
	assert.Len(t, r.captures, 1)
	x, err := dev.GraphInstantiate(g)
	require.NoError(t, err)
	nodes, err := dev.GraphGetNodes(g)
	require.NoError(t, err)
	require.Len(t, nodes, 2)
	r.ran = nil
	for range 2 {
		require.NoError(t, dev.GraphLaunch(x, s))
	}
	require.NoError(t, dev.StreamSynchronize(s))
	assert.Equal(t, []string{"graph", "library", "graph", "library"}, r.ran)

	require.NoError(t, dev.KernelNodeSetParamsDeclared(x, nodes[0], f, oneThread, params, accesses))
	require.Len(t, r.captures, 2)
	assert.True(t, r.captures[1].Replaces)
	assert.Equal(t, accesses, r.captures[1].Accesses)
	r.refusal = errors.New("planted")
	for name, err := range map[string]error{
		"launch": dev.LaunchKernel(f, oneThread, params, s), "node": dev.KernelNodeSetParamsDeclared(x, nodes[0], f, oneThread, params, nil),
		"change": dev.GraphExecKernelNodeSetParams(x, nodes[0], f, cudadrv.Geometry{Grid: cudadrv.Dim3{X: 1000, Y: 1, Z: 1}, Block: oneThread.Block}, params),
	} {
		require.ErrorIs(t, err, r.refusal, name)
		require.ErrorIs(t, err, cudadrv.NotSupported, name)
	}
	_, err = dev.ModuleLoadData([]byte(".version 7.0\n.target sm_70\n"))
	require.ErrorIs(t, err, r.refusal)
	require.ErrorIs(t, err, cudadrv.InvalidPTX)
	r.refusal = nil
	before := dev.Now()
	require.NoError(t, dev.GraphLaunch(x, s))
	require.NoError(t, dev.StreamSynchronize(s))
	assert.Less(t, dev.Now()-before, time.Second, "the node has its own geometry still")
	for name, err := range map[string]error{
		"no node":   dev.KernelNodeSetParamsDeclared(x, 12345, f, oneThread, params, nil),
		"no graph":  dev.KernelNodeSetParamsDeclared(12345, nodes[0], f, oneThread, params, nil),
		"no kernel": dev.KernelNodeSetParamsDeclared(x, nodes[0], 12345, oneThread, params, nil),
		"no block":  dev.KernelNodeSetParamsDeclared(x, nodes[0], f, cudadrv.Geometry{}, params, nil),
		"no params": dev.LaunchKernelDeclared(f, oneThread, nil, s, nil),
	} {
		var refused *cudadrv.CallError
		require.ErrorAs(t, err, &refused, name)
	}

	r.fault = errors.New("a fault")
	require.NoError(t, dev.LaunchKernel(f, oneThread, params, s))
	for range 2 { // as on hardware, until the device is closed
		err = dev.StreamSynchronize(s)
		require.ErrorIs(t, err, cudadrv.LaunchFailed)
		require.ErrorIs(t, err, r.fault)
		require.ErrorContains(t, err, "kernel step: a fault")
	}
	_, err = dev.StreamQuery(s)
	require.ErrorIs(t, err, cudadrv.LaunchFailed)
	e, err := dev.EventCreate()
	if err == nil {
		_ = dev.EventRecord(e, s)
		_, err = dev.EventQuery(e)
	}
	require.ErrorIs(t, err, cudadrv.LaunchFailed)
}

// steps is an executor whose kernels do one step each, in the order of their launches.
type steps []func() error

func (s *steps) Load([]byte, map[string]sim.Variable) (sim.Program, error) { return s, nil }

func (s *steps) Launch(sim.KernelLaunch) (sim.Execution, error) {
	step := (*s)[0]
	*s = (*s)[1:]
	return func(func(cudadrv.Ptr) (cudadrv.Ptr, []byte, bool)) error { return step() }, nil
}

// A fault that happens while a call looks at the clock is the error of that call.
func TestAFaultDuringACall(t *testing.T) {
	fault := errors.New("a fault")
	for name, call := range map[string]func(dev *sim.Device, p cudadrv.Ptr, s cudadrv.Stream, e cudadrv.Event) error{
		"StreamQuery": func(dev *sim.Device, _ cudadrv.Ptr, s cudadrv.Stream, _ cudadrv.Event) error {
			return second(dev.StreamQuery(s))
		},
		"EventQuery": func(dev *sim.Device, _ cudadrv.Ptr, _ cudadrv.Stream, e cudadrv.Event) error {
			return second(dev.EventQuery(e))
		},
		"StreamSynchronize": func(dev *sim.Device, _ cudadrv.Ptr, s cudadrv.Stream, _ cudadrv.Event) error {
			return dev.StreamSynchronize(s)
		},
		"EventSynchronize": func(dev *sim.Device, _ cudadrv.Ptr, _ cudadrv.Stream, e cudadrv.Event) error {
			return dev.EventSynchronize(e)
		},
		"CtxSynchronize": func(dev *sim.Device, _ cudadrv.Ptr, _ cudadrv.Stream, _ cudadrv.Event) error {
			return dev.CtxSynchronize()
		},
		"MemFree": func(dev *sim.Device, p cudadrv.Ptr, _ cudadrv.Stream, _ cudadrv.Event) error { return dev.MemFree(p) },
	} {
		synctest.Test(t, func(t *testing.T) {
			_, dev := start(t, sim.Config{Bytes: true, Clock: sim.Running, KernelTime: func(string, cudadrv.Geometry) time.Duration { return ms }, Executor: &steps{
				func() error { time.Sleep(ms); return nil }, //nolint:forbidigo // In a bubble of synctest it takes no time.
				func() error { return fault },
			}})
			m, err := dev.ModuleLoadData([]byte(".version 7.0\n.target sm_70\n.entry step() { ret; }"))
			require.NoError(t, err)
			f, err := dev.ModuleGetFunction(m, "step")
			require.NoError(t, err)
			p, err := dev.MemAlloc(granule)
			require.NoError(t, err)
			s := newStream(t, dev)
			for range 2 {
				require.NoError(t, dev.LaunchKernel(f, oneThread, nil, s))
			}
			e := recorded(t, dev, s)
			time.Sleep(ms) //nolint:forbidigo // In a bubble of synctest it takes no time.
			require.ErrorIs(t, call(dev, p, s, e), fault, name)
			require.NoError(t, dev.Close())
		})
	}
}

// An executor that follows written bytes learns of each copy and memset, as it is, and of claims; once it is performed, too.
func TestAnExecutorFollowsTransfers(t *testing.T) {
	r := &recorder{}
	device, err := sim.New(sim.Config{Bytes: true, Executor: r}).Open(0)
	require.NoError(t, err)
	dev := device.(*sim.Device)
	p, err := dev.MemAlloc(4096)
	require.NoError(t, err)
	host := make([]byte, 16)
	require.NoError(t, dev.MemsetD8Async(p, 1, 64, 0))
	require.NoError(t, dev.MemsetD32Async(p, 1, 4, 0))
	require.NoError(t, dev.MemcpyDtoDAsync(p+128, p, 32, 0))
	require.NoError(t, dev.MemcpyHtoDAsync(p+256, host, 0))
	require.NoError(t, dev.MemcpyDtoHAsync(host, p+256, 0))
	require.NoError(t, dev.Memcpy2DAsync(cudadrv.Copy2D{Dst: p + 512, DstPitch: 16, Src: p, SrcPitch: 8, WidthBytes: 8, Rows: 1}, 0))
	require.NoError(t, dev.Memcpy2DAsync(cudadrv.Copy2D{Dst: p + 1024, DstPitch: 16, Src: p, SrcPitch: 8, WidthBytes: 8, Rows: 3}, 0))
	dev.Claim(p+2048, 8)
	require.NoError(t, dev.CtxSynchronize())
	want := []sim.Transfer{
		{Dst: p, Bytes: 64, Rows: 1},
		{Dst: p, Bytes: 16, Rows: 1},
		{Dst: p + 128, Src: p, Bytes: 32, Rows: 1},
		{Dst: p + 256, Bytes: 16, Rows: 1},
		{Src: p + 256, Bytes: 16, Rows: 1},
		{Dst: p + 512, Src: p, Bytes: 8, Rows: 1, DstPitch: 16, SrcPitch: 8},
		{Dst: p + 1024, Src: p, Bytes: 8, Rows: 3, DstPitch: 16, SrcPitch: 8},
	}
	assert.Equal(t, want, r.transfers)
	assert.Equal(t, want, r.performed)
	assert.Equal(t, []cudadrv.Ptr{p + 2048}, r.claimed)
	require.NoError(t, dev.MemFree(p))
	require.NoError(t, dev.Close())
}

// Page-locked memory of the driver's is refused as such where a caller registers a part of it.
func TestMemoryThatIsPageLockedAlready(t *testing.T) {
	dev := open(t, sim.Config{Bytes: true}).(cudadrv.HostMemory)
	b, err := dev.MemHostAlloc(4096)
	require.NoError(t, err)
	own := make([]byte, 4096)
	registered := dev.(interface{ MemHostRegister(b []byte) error })
	require.ErrorIs(t, registered.MemHostRegister(b[1:2]), cudadrv.InvalidValue)
	require.NoError(t, registered.MemHostRegister(own))
	require.ErrorIs(t, registered.MemHostRegister(own[1:2]), cudadrv.HostMemoryAlreadyRegistered)
	require.NoError(t, dev.MemFreeHost(b))
	require.NoError(t, dev.(interface{ MemHostUnregister(b []byte) error }).MemHostUnregister(own))
}
