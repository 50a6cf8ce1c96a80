package cuda_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/site"
)

// reaching is several devices under one checker, which knows the memory that each of them can access. Kernels of the second one
// access memory of the first.
type reaching struct {
	*several
	checked *hazard.Driver
	touch   *cuda.Function // of the second device
	add     *cuda.Function
	// unseen: memory that kernels have touched is unmapped after a wait of its own device alone, which the checker of the
	// kernels' device does not see.
	unseen bool
}

// kernelTime is how long each kernel takes.
const kernelTime = time.Second

func newReaching(t *testing.T) *reaching {
	t.Helper()
	machine := sim.New(sim.Config{Devices: 3, Bytes: true, TimedKernels: true, KernelTime: func(string, cudadrv.Geometry) time.Duration { return kernelTime }})
	faults := fault.Wrap(machine)
	r := &reaching{&several{T: t, machine: machine, faults: faults}, hazard.Wrap(faults), nil, nil, false}
	for ordinal := range 3 {
		checker := r.checked.Checker(ordinal)
		dev, err := vram.Open(vram.Config{Driver: r.checked.Allocator(), Ordinal: ordinal, Observer: vram.Observer{
			Allocated: func(e vram.BufferEvent) {
				checker.Allocated(hazard.Buffer{Ptr: e.Ptr, Bytes: e.Bytes, Stream: e.Handle, Tag: e.Tag, Allocated: e.Place})
			},
			Freed:  func(e vram.BufferEvent) { checker.Freed(e.Ptr, e.Place) },
			Closed: func() { checker.Closed(site.Here(0)) },
		}})
		require.NoError(t, err)
		t.Cleanup(func() {
			r.faults.Clear()
			_ = dev.Close() // a test that looks at its error has closed before
			if !r.unseen || ordinal != 1 {
				assert.NoError(t, r.checked.Checker(ordinal).Err())
			}
		})
		r.devices = append(r.devices, dev)
	}
	c := r.context(1)
	m, err := c.LoadModule([]byte(ptx))
	require.NoError(t, err)
	r.touch, err = m.Function("touch")
	require.NoError(t, err)
	r.add, err = m.Function("add")
	require.NoError(t, err)
	require.NoError(t, r.devices[1].EnablePeerAccess(r.devices[0]))
	return r
}

var oneThread = cuda.Cover(1, 1)

// after returns the time of the machine after a stream's work.
func (r *reaching) after(c *cuda.Context) time.Duration {
	r.Helper()
	require.NoError(r, c.Synchronize(r.Context()))
	return r.machine.Device(0).Now()
}

// A launch waits for the work of a foreign buffer's stream, and later work of that stream waits for the launch: so the memory
// may be freed, and overwritten, at once.
func TestLaunchesOnForeignBuffersAreOrdered(t *testing.T) {
	r := newReaching(t)
	home, c := r.context(0), r.context(1)
	x := r.filled(home, mib, 1)
	r.busy(home)
	require.NoError(t, c.Launch(r.touch, oneThread, cuda.InOut(x)))
	at := x.Ptr()
	r.free(x)
	y := r.filled(home, mib, 9)
	assert.Equal(t, at, y.Ptr(), "the memory is reused")
	assert.Zero(t, r.machine.Device(0).Now(), "the host has not waited")
	assert.GreaterOrEqual(t, r.after(c), 2*time.Second, "the launch waits for the stream")
	r.free(y)

	x = r.filled(home, mib, 1)
	before := r.after(home)
	r.busy(c)
	require.NoError(t, c.Launch(r.touch, oneThread, cuda.In(x).Of(8, 16)))
	r.free(x)
	y = r.filled(home, mib, 9)
	assert.Equal(t, at, y.Ptr())
	assert.GreaterOrEqual(t, r.after(home)-before, 2*time.Second, "the stream waits for the launch")
	r.free(y)
}

// A launch waits for the work of other streams on foreign buffers, and one on buffers of several streams is ordered with all of
// them, and with its own device's.
func TestLaunchesOnBuffersOfManyStreams(t *testing.T) {
	r := newReaching(t)
	home, user, second, own, c := r.context(0), r.context(0), r.context(0), r.context(1), r.context(1)
	x, y, z := r.filled(home, mib, 1), r.filled(second, mib, 2), r.filled(own, mib, 3)
	begin := max(r.after(home), r.after(second), r.after(own))
	r.busy(user)
	require.NoError(t, user.Fill8(cuda.Whole(x), 4)) // a second after begin
	r.busy(second)
	r.busy(second)
	require.NoError(t, c.Launch(r.add, oneThread, cuda.InOut(x), cuda.In(y), cuda.In(z), cuda.Value(uint32(1))))
	for _, waits := range []*cuda.Context{home, second} {
		assert.GreaterOrEqual(t, r.after(waits)-begin, 3*time.Second)
	}
	// Work of the other stream on the buffer waits for the launch, too.
	begin = r.after(c)
	r.busy(c)
	require.NoError(t, c.Launch(r.touch, oneThread, cuda.InOut(x)))
	require.NoError(t, user.Fill8(cuda.Whole(x), 5))
	assert.GreaterOrEqual(t, r.after(user)-begin, 2*time.Second)

	begin = r.after(c)
	r.busy(user)
	require.NoError(t, user.Fill8(cuda.Whole(x), 6))
	require.NoError(t, c.Launch(r.touch, oneThread, cuda.InOut(x)))
	assert.GreaterOrEqual(t, r.after(c)-begin, 2*time.Second, "it waits for the other stream's work")
	r.free(x, y, z)
}

func TestForeignBuffersAreRefused(t *testing.T) {
	r := newReaching(t)
	home, c := r.context(0), r.context(1)
	x, own := r.filled(home, mib, 1), r.filled(c, mib, 1)
	third := r.filled(r.context(2), mib, 1)
	launch := func(a cuda.Arg) error { return c.Launch(r.touch, oneThread, a) }
	require.NoError(t, launch(cuda.In(x)))
	calls := r.faults.Calls("cuLaunchKernel")

	var argument *cuda.ArgumentError
	err := launch(cuda.In(third))
	require.ErrorAs(t, err, &argument)
	require.ErrorIs(t, err, cuda.ErrForeign, "no access")
	var outside *cuda.RangeError
	require.ErrorAs(t, launch(cuda.In(x).Of(mib, 1)), &outside)
	require.ErrorIs(t, c.Copy(cuda.Whole(own), cuda.Whole(x)), cuda.ErrForeign, "copies are CopyPeer's")
	require.ErrorIs(t, c.Fill8(cuda.Whole(x), 1), cuda.ErrForeign)
	g, err := c.Capture(func() error {
		require.ErrorIs(t, launch(cuda.In(x)), cuda.ErrForeign)
		require.ErrorIs(t, home.Wait(c), cuda.ErrForeign)
		return c.Launch(r.touch, oneThread, cuda.In(own))
	})
	require.NoError(t, err)
	require.ErrorIs(t, g.SetArgs(0, oneThread, cuda.In(x)), cuda.ErrForeign)
	require.ErrorIs(t, g.Launch(home), cuda.ErrForeign)
	require.ErrorIs(t, g.Upload(home), cuda.ErrForeign)
	pool, err := home.NewPool()
	require.NoError(t, err)
	none, err := c.Capture(func() error { t.Error("the capture runs"); return nil }, cuda.Shared(pool))
	require.ErrorIs(t, err, cuda.ErrForeign, "memory of the other device")
	assert.Nil(t, none)
	require.NoError(t, pool.Close())
	require.NoError(t, g.Close())
	var held cuda.Buffer
	g, err = home.Capture(func() (err error) {
		held, err = home.AllocZeroed(mib)
		return err
	})
	require.NoError(t, err)
	require.ErrorIs(t, launch(cuda.In(held)), cuda.ErrForeign, "a graph has it")
	require.NoError(t, g.Close())
	r.free(held)

	// A capture that this package does not know of.
	for _, captured := range []*cuda.Context{home, c} {
		gpu, h := r.machine.Device(captured.Info().Ordinal), captured.Stream().Handle()
		require.NoError(t, gpu.BeginCapture(h))
		var forbidden *vram.CaptureError
		require.ErrorAs(t, launch(cuda.In(x)), &forbidden)
		_, err = gpu.EndCapture(h)
		require.NoError(t, err)
	}
	r.free(x)
	require.ErrorIs(t, launch(cuda.In(x)), cuda.ErrNotLive)
	x = r.filled(home, mib, 1)
	require.NoError(t, home.Stream().Close())
	require.ErrorIs(t, launch(cuda.In(x)), vram.ErrClosed)
	r.free(x, own, third)
	assert.Equal(t, calls+1, r.faults.Calls("cuLaunchKernel"))
}

// A launch that cannot be ordered is not made, and one that no stream can be made to wait for is waited for.
func TestForeignLaunchesThatCannotBeOrdered(t *testing.T) {
	r := newReaching(t)
	home, c := r.context(0), r.context(1)
	x := r.filled(home, mib, 1)
	require.NoError(t, r.faults.Add(fault.Rule{Func: "cuStreamWaitEvent", Result: cudadrv.Unknown}))
	require.ErrorIs(t, c.Launch(r.touch, oneThread, cuda.InOut(x)), cudadrv.Unknown)
	assert.Zero(t, r.faults.Calls("cuLaunchKernel"))
	r.faults.Clear()
	require.NoError(t, r.faults.Add(fault.Rule{Func: "cuLaunchKernel", Result: cudadrv.Unknown}))
	var refused *cuda.LaunchError
	require.ErrorAs(t, c.Launch(r.touch, oneThread, cuda.InOut(x)), &refused)
	r.faults.Clear()

	y := r.filled(r.context(0), mib, 1)
	before := r.after(home)
	waits := r.faults.Calls("cuStreamWaitEvent")
	require.NoError(t, r.faults.Add(fault.Rule{Func: "cuStreamWaitEvent", First: 3, Count: 1, Result: cudadrv.Unknown}))
	var late *cuda.OrderError
	err := c.Launch(r.add, oneThread, cuda.InOut(x), cuda.In(y), cuda.In(y), cuda.Value(uint32(1)))
	require.ErrorAs(t, err, &late)
	assert.True(t, late.Waited)
	assert.GreaterOrEqual(t, r.machine.Device(0).Now()-before, kernelTime, "the host has waited")
	assert.Equal(t, uint64(4), r.faults.Calls("cuStreamWaitEvent")-waits, "the other stream waits all the same")
	r.faults.Clear()

	// Neither of the two streams can be made to wait: both are told.
	require.NoError(t, r.faults.Add(fault.Rule{Func: "cuStreamWaitEvent", First: 3, Count: 2, Result: cudadrv.Unknown}))
	err = c.Launch(r.add, oneThread, cuda.InOut(x), cuda.In(y), cuda.In(y), cuda.Value(uint32(1)))
	require.ErrorAs(t, err, &late)
	var both interface{ Unwrap() []error }
	require.ErrorAs(t, err, &both)
	assert.Len(t, both.Unwrap(), 2)
	r.faults.Clear()
	r.free(x, y)
}

// Either device may be closed first: the one with the memory waits for the launches on it.
func TestDevicesCloseInAnyOrder(t *testing.T) {
	for first := range 2 {
		r := newReaching(t)
		home, c := r.context(0), r.context(1)
		x := r.filled(home, mib, 1)
		before := r.after(home)
		r.busy(c)
		require.NoError(t, c.Launch(r.touch, oneThread, cuda.InOut(x)))
		if first == 0 {
			r.unseen = true
			var used *vram.InUseError
			require.ErrorAs(t, r.devices[0].Close(), &used)
			assert.GreaterOrEqual(t, r.machine.Device(0).Now()-before, 2*time.Second, "Close has waited for the launch")
			require.Error(t, c.Launch(r.touch, oneThread, cuda.InOut(x)))
			require.ErrorIs(t, r.devices[1].EnablePeerAccess(r.devices[0]), vram.ErrClosed)
			y := r.filled(c, mib, 7)
			require.NoError(t, c.Launch(r.touch, oneThread, cuda.InOut(y)))
			r.free(y)
			require.NoError(t, r.devices[1].Close())
			continue
		}
		require.NoError(t, r.devices[1].Close())
		y := r.filled(home, 64*mib, 7)
		r.holds(home, y, 7)
		r.free(x, y)
		require.NoError(t, r.devices[0].Close())
	}
}
