package acceptance_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/futures"
)

// While the device has memory nobody waits for a kernel of another stream, neither on the host nor
// on the device, in no footprint mode: not if it takes a day.
func TestNobodyWaitsForAKernelWhileThereIsMemory(t *testing.T) {
	for _, mode := range []vram.Footprint{vram.Lean, vram.Balanced, vram.Fast} {
		for _, segments := range []vram.Segments{vram.SegmentsVMM, vram.SegmentsPlain} {
			t.Run(mode.String()+"/"+segments.String(), func(t *testing.T) {
				t.Parallel()
				h := openHouse(t, vram.Config{Footprint: mode, Segments: segments}, sim.Config{})
				slow, quick := h.stream(), h.stream()
				random := rand.New(rand.NewPCG(1, uint64(mode)))
				var live []vram.Buffer
				for range 2000 {
					x := must(t, slow, 1+random.Int64N(8*mib))
					require.NoError(t, h.gpu.Launch(slow.Handle(), 24*time.Hour/2000))
					freeAll(t, x)
					live = append(live, must(t, quick, 1+random.Int64N(8*mib)))
					if len(live) > 20 {
						at := random.IntN(len(live))
						freeAll(t, live[at])
						live = append(live[:at], live[at+1:]...)
					}
				}
				assert.Zero(t, h.gpu.Now(), "the host has waited")
				assert.Zero(t, h.busyUntil(quick), "the quick stream has work of the slow one before it")
				assert.Zero(t, h.faults.Calls("cuStreamWaitEvent")+h.faults.Calls("cuEventSynchronize"))
				freeAll(t, live...)
			})
		}
	}
}

// stragglers is a device with streams whose events pass only when a test says so.
type stragglers struct {
	cudadrv.Device
	mu      sync.Mutex
	late    map[cudadrv.Stream]chan struct{}
	on      map[cudadrv.Event]cudadrv.Stream
	waiting map[cudadrv.Stream]int // calls of EventSynchronize
}

type stragglersDriver struct {
	cudadrv.Driver
	device *stragglers
}

func (d *stragglersDriver) Open(ordinal int) (cudadrv.Device, error) {
	inner, err := d.Driver.Open(ordinal)
	d.device.Device = inner
	return d.device, err
}

func (d *stragglers) EventRecord(e cudadrv.Event, s cudadrv.Stream) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on[e] = s
	return d.Device.EventRecord(e, s)
}

// gate is closed once the event may pass; nil if it is none of a straggler's.
func (d *stragglers) gate(e cudadrv.Event, synchronises bool) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if synchronises {
		d.waiting[d.on[e]]++
	}
	return d.late[d.on[e]]
}

// StreamQuery is false while the stream's events may not pass.
func (d *stragglers) StreamQuery(s cudadrv.Stream) (bool, error) {
	d.mu.Lock()
	gate := d.late[s]
	d.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		default:
			return false, nil
		}
	}
	return d.Device.StreamQuery(s)
}

func (d *stragglers) EventQuery(e cudadrv.Event) (bool, error) {
	if gate := d.gate(e, false); gate != nil {
		select {
		case <-gate:
		default:
			return false, nil
		}
	}
	return d.Device.EventQuery(e)
}

func (d *stragglers) EventSynchronize(e cudadrv.Event) error {
	if gate := d.gate(e, true); gate != nil {
		<-gate
	}
	return d.Device.EventSynchronize(e)
}

// straggle makes the stream's events late, and returns the function that lets them pass.
func (d *stragglers) straggle(s *vram.Stream) (pass func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	gate := make(chan struct{})
	d.late[s.Handle()] = gate
	return sync.OnceFunc(func() { close(gate) })
}

func openStragglers(t *testing.T, cfg vram.Config) (*vram.Device, *stragglers) {
	t.Helper()
	d := &stragglers{late: map[cudadrv.Stream]chan struct{}{}, on: map[cudadrv.Event]cudadrv.Stream{}, waiting: map[cudadrv.Stream]int{}}
	cfg.Driver = &stragglersDriver{sim.New(sim.Config{}), d}
	device, err := vram.Open(cfg)
	require.NoError(t, err)
	return device, d
}

func streamOf(t *testing.T, d *vram.Device) *vram.Stream {
	t.Helper()
	s, err := d.NewStream()
	require.NoError(t, err)
	return s
}

// At the limit a request waits for pending memory: for the first fence that passes, whosever it is.
// Nobody else waits with it: a request that other memory serves is served at once, by driver
// calls, too.
func TestARequestAtTheLimitWaitsForTheFirstFence(t *testing.T) {
	for _, segments := range []vram.Segments{vram.SegmentsVMM, vram.SegmentsPlain} {
		t.Run(segments.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				device, d := openStragglers(t, vram.Config{LimitBytes: 40 * mib, Segments: segments})
				a, b, c, e := streamOf(t, device), streamOf(t, device), streamOf(t, device), streamOf(t, device)
				endless, brief := d.straggle(a), d.straggle(c)
				x, y := must(t, a, 16*mib), must(t, c, 16*mib)
				freeAll(t, x, y)
				wanted := b.AllocAsync(t.Context(), vram.Request{Bytes: 16 * mib})
				synctest.Wait()
				_, _, err := wanted.Poll()
				require.NoError(t, err)
				soon, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				other, err := e.AllocFor(soon, vram.Request{Bytes: 4 * mib})
				require.NoError(t, err, "the driver goroutine is free")
				single := b.AllocAsync(t.Context(), vram.Request{Bytes: 2 * mib})
				synctest.Wait()
				z, done, err := single.Poll()
				require.NoError(t, err)
				require.True(t, done, "a later request of the same stream")
				brief()
				synctest.Wait()
				w, done, err := wanted.Poll()
				require.NoError(t, err)
				require.True(t, done, "a fence has passed, and the memory behind it serves the request")
				endless()
				freeAll(t, w, other, z)
				require.NoError(t, device.Close())
			})
		})
	}
}

// Memory in use on another stream is waited for in the same way.
func TestARequestWaitsForTheFirstUseThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		device, d := openStragglers(t, vram.Config{LimitBytes: 32 * mib})
		a, b, user, other := streamOf(t, device), streamOf(t, device), streamOf(t, device), streamOf(t, device)
		endless, brief := d.straggle(user), d.straggle(other)
		x, y := must(t, a, 16*mib), must(t, a, 16*mib)
		require.NoError(t, x.RecordStream(user))
		require.NoError(t, y.RecordStream(other))
		freeAll(t, x, y)
		wanted := b.AllocAsync(t.Context(), vram.Request{Bytes: 12 * mib})
		synctest.Wait()
		_, done, _ := wanted.Poll()
		require.False(t, done)
		brief()
		synctest.Wait()
		z, done, err := wanted.Poll()
		require.NoError(t, err)
		require.True(t, done)
		endless()
		freeAll(t, z)
		require.NoError(t, device.Close())
	})
}

// Nobody waits for a stream that is excluded: a request that only its memory could serve is refused
// at once.
func TestNobodyWaitsForAnExcludedStream(t *testing.T) {
	for _, uses := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			device, d := openStragglers(t, vram.Config{LimitBytes: 32 * mib})
			a, b, slow := streamOf(t, device), streamOf(t, device), streamOf(t, device)
			endless := d.straggle(slow)
			slow.ExcludeFromWaits(true)
			if uses {
				x := must(t, a, 32*mib)
				require.NoError(t, x.RecordStream(slow))
				freeAll(t, x)
			} else {
				freeAll(t, must(t, slow, 32*mib))
			}
			soon, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := b.AllocFor(soon, vram.Request{Bytes: 32 * mib})
			require.ErrorIs(t, err, vram.ErrOutOfMemory)
			assert.Zero(t, d.waiting[slow.Handle()])

			late := b.AllocAsync(t.Context(), vram.Request{Bytes: 32 * mib})
			synctest.Wait()
			_, _, err = late.Poll()
			require.ErrorIs(t, err, vram.ErrOutOfMemory)
			slow.ExcludeFromWaits(false)
			late = b.AllocAsync(t.Context(), vram.Request{Bytes: 32 * mib})
			synctest.Wait()
			_, done, _ := late.Poll()
			require.False(t, done, "now it waits")
			endless()
			synctest.Wait()
			y, done, err := late.Poll()
			require.NoError(t, err)
			require.True(t, done)
			freeAll(t, y)
			require.NoError(t, device.Close())
		})
	}
}

// A request that waits for a stream's work when that stream is excluded is refused, and so are later ones, though the pool still
// watches that work.
func TestARequestStopsWaitingForAStreamThatIsExcluded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		device, d := openStragglers(t, vram.Config{LimitBytes: 32 * mib})
		b, slow := streamOf(t, device), streamOf(t, device)
		endless := d.straggle(slow)
		freeAll(t, must(t, slow, 32*mib))
		refused := func(f futures.Future[vram.Buffer]) {
			t.Helper()
			synctest.Wait()
			_, _, err := f.Poll()
			require.ErrorIs(t, err, vram.ErrOutOfMemory)
		}
		waiting := b.AllocAsync(t.Context(), vram.Request{Bytes: 32 * mib})
		synctest.Wait()
		_, done, _ := waiting.Poll()
		require.False(t, done)
		slow.ExcludeFromWaits(true)
		refused(waiting)
		refused(b.AllocAsync(t.Context(), vram.Request{Bytes: 32 * mib}))
		endless()
		synctest.Wait()
		freeAll(t, must(t, b, 32*mib))
		require.NoError(t, device.Close())
	})
}
