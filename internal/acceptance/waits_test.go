package acceptance_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// busyUntil is when the work of a stream ends.
func (h *house) busyUntil(s *vram.Stream) time.Duration {
	h.t.Helper()
	e, err := h.gpu.EventCreate()
	require.NoError(h.t, err)
	require.NoError(h.t, h.gpu.EventRecord(e, s.Handle()))
	at, ok := h.gpu.Passes(e)
	require.True(h.t, ok)
	require.NoError(h.t, h.gpu.EventDestroy(e))
	return at
}

// Under pressure a stream gets memory at once that another has returned after queueing work on it: the host
// does not wait, the stream does.
func TestAStreamWaitsOnTheDevice(t *testing.T) {
	for _, policy := range []vram.Waits{vram.WaitsAvoidGrowth, vram.WaitsAlways} {
		t.Run(policy.String(), func(t *testing.T) {
			h := openHouse(t, vram.Config{LimitBytes: 32 * mib, Waits: policy}, sim.Config{})
			a, b := h.stream(), h.stream()
			x := must(t, a, 32*mib)
			require.NoError(t, h.gpu.Launch(a.Handle(), time.Second))
			freeAll(t, x)
			y := must(t, b, 32*mib)
			assert.Equal(t, x.Ptr(), y.Ptr())
			assert.Zero(t, h.gpu.Now(), "the host has not waited")
			assert.GreaterOrEqual(t, h.busyUntil(b), time.Second, "the stream does")
			assert.EqualValues(t, 1, h.faults.Calls("cuStreamWaitEvent"))
			freeAll(t, y)
			h.addsUp()
		})
	}
}

// A wait that the driver refuses costs nothing but the wait on the host.
func TestAWaitThatFails(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 32 * mib, Waits: vram.WaitsAvoidGrowth}, sim.Config{})
	a, b := h.stream(), h.stream()
	x := must(t, a, 32*mib)
	require.NoError(t, h.gpu.Launch(a.Handle(), time.Second))
	freeAll(t, x)
	require.NoError(t, h.faults.Add(fault.Rule{Func: "cuStreamWaitEvent", Result: cudadrv.Unknown}))
	y := must(t, b, 32*mib)
	assert.Equal(t, x.Ptr(), y.Ptr())
	assert.GreaterOrEqual(t, h.gpu.Now(), time.Second)
	assert.EqualValues(t, 1, h.faults.Calls("cuStreamWaitEvent"), "it is not tried again")
	freeAll(t, y)
	h.addsUp()
}

// ordered is a device that holds every wait against the records before it.
type ordered struct {
	cudadrv.Device
	t        *testing.T
	mu       sync.Mutex
	recorded map[cudadrv.Event]cudadrv.Stream
	waits    int
}

type orderedDriver struct {
	cudadrv.Driver
	device *ordered
}

func (d *orderedDriver) Open(ordinal int) (cudadrv.Device, error) {
	inner, err := d.Driver.Open(ordinal)
	d.device.Device = inner
	return d.device, err
}

func (d *ordered) EventRecord(e cudadrv.Event, s cudadrv.Stream) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.recorded[e] = s
	return d.Device.EventRecord(e, s)
}

func (d *ordered) StreamWaitEvent(s cudadrv.Stream, e cudadrv.Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	of, ok := d.recorded[e]
	assert.True(d.t, ok, "a wait for an event that was not recorded yet")
	assert.NotEqual(d.t, of, s, "a stream waits for itself")
	d.waits++
	return d.Device.StreamWaitEvent(s, e)
}

// Streams that take memory from each other all the time wait only for marks recorded before: every
// edge leads to work that was submitted earlier, so that there is no cycle and all work ends.
func TestWaitsMakeNoCircle(t *testing.T) {
	machine := sim.New(sim.Config{})
	device := &ordered{t: t, recorded: map[cudadrv.Event]cudadrv.Stream{}}
	dev, err := vram.Open(vram.Config{
		Driver: &orderedDriver{machine, device}, LimitBytes: 64 * mib, Waits: vram.WaitsAlways, Debug: true,
	})
	require.NoError(t, err)
	gpu := machine.Device(0)
	var streams [4]*vram.Stream
	for i := range streams {
		streams[i], err = dev.NewStream()
		require.NoError(t, err)
	}
	r := rand.New(rand.NewPCG(1, 7)) //nolint:gosec // reproducible is the point
	for range 200 {                  // in rounds: goroutines that run one after the other would find nothing to wait for
		var round sync.WaitGroup
		for _, s := range streams {
			bytes := (1 + r.Int64N(8)) * 2 * mib
			round.Go(func() {
				b, err := s.Alloc(bytes)
				if err != nil {
					assert.ErrorIs(t, err, vram.ErrOutOfMemory)
					return
				}
				assert.NoError(t, gpu.Launch(s.Handle(), time.Millisecond))
				assert.NoError(t, b.Free())
			})
		}
		round.Wait()
	}
	assert.Positive(t, device.waits)
	require.NoError(t, dev.Close())
}
