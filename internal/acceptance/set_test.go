package acceptance_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// openSet opens all devices of a simulated machine, each with 64 GiB.
func openSet(t *testing.T, devices int, cfg vram.Config) (*vram.Set, *sim.Driver, *fault.Driver) {
	t.Helper()
	machine := sim.New(sim.Config{Devices: devices, TotalBytes: 64 * gib})
	faults := fault.Wrap(machine)
	cfg.Driver = faults
	s, err := vram.OpenAll(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		faults.Clear()
		_ = s.Close() // a test that looks at its error has closed before
	})
	return s, machine, faults
}

func place(t *testing.T, s *vram.Set, bytes int64) vram.Placement {
	t.Helper()
	p, err := s.Place(bytes)
	require.NoError(t, err)
	return p
}

func TestSetsOfAnySize(t *testing.T) {
	for _, count := range []int{1, 2, 3, 8} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			s, _, faults := openSet(t, count, vram.Config{})
			assert.Zero(t, faults.Calls("cuDevicePrimaryCtxRetain"), "opening touches no GPU")
			require.Len(t, s.Devices(), count)
			// Each placement is allocated before the next: they go around.
			for i := range 2 * count {
				p := place(t, s, gib)
				assert.Equal(t, i%count, p.Device.Info().Ordinal)
				assert.Equal(t, fmt.Sprintf("1 GiB on device %d", i%count), p.String())
				stream, err := p.Device.NewStream()
				require.NoError(t, err)
				b, err := stream.Alloc(gib)
				require.NoError(t, err)
				p.Done()
				t.Cleanup(func() { _ = b.Free() })
			}
			assert.Equal(t, uint64(count), faults.Calls("cuDevicePrimaryCtxRetain"))
			// The one that has the most room is preferred, in any place.
			for i, d := range s.Devices() {
				if i < count-1 {
					stream, err := d.NewStream()
					require.NoError(t, err)
					_, err = stream.Alloc(4 * gib)
					require.NoError(t, err)
				}
			}
			p := place(t, s, 60*gib)
			assert.Same(t, s.Devices()[count-1], p.Device)
			_, err := s.Place(60 * gib)
			var full *vram.PlaceError
			require.ErrorAs(t, err, &full)
			require.ErrorIs(t, err, vram.ErrOutOfMemory)
			assert.Less(t, full.RoomBytes, 60*gib)
			p.Done()
			p.Done()
			assert.Same(t, s.Devices()[count-1], place(t, s, 60*gib).Device, "a booking has one end")
			_, err = s.Place(60 * gib)
			require.ErrorAs(t, err, &full)
		})
	}
}

// Goroutines that place at the same time are spread evenly, before any of them has allocated.
func TestPlacementsAtTheSameTime(t *testing.T) {
	const devices, each = 3, 20
	s, _, _ := openSet(t, devices, vram.Config{})
	var all sync.WaitGroup
	placed := make([]vram.Placement, devices*each)
	for i := range placed {
		all.Go(func() {
			var err error
			placed[i], err = s.Place(gib)
			assert.NoError(t, err)
		})
	}
	all.Wait()
	count := map[*vram.Device]int{}
	for _, p := range placed {
		count[p.Device]++
	}
	for _, d := range s.Devices() {
		assert.Equal(t, each, count[d])
	}
	for _, p := range placed {
		all.Go(p.Done)
	}
	all.Wait()
	for range devices {
		place(t, s, 64*gib)
	}
}

// Memory of the GPU that others have taken is seen after a while, and cuMemGetInfo is not called for each placement.
func TestPlacementsSeeTheWholeGPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, machine, faults := openSet(t, 2, vram.Config{LimitBytes: 48 * gib})
		assert.Equal(t, 0, place(t, s, 0).Device.Info().Ordinal)
		machine.Device(0).SetCapacity(16 * gib)
		for range 10 {
			p := place(t, s, 48*gib)
			assert.Equal(t, 0, p.Device.Info().Ordinal, "the driver was not asked again")
			p.Done()
		}
		assert.Equal(t, uint64(2), faults.Calls("cuMemGetInfo"))
		time.Sleep(time.Second) //nolint:forbidigo // time of the bubble
		p := place(t, s, 48*gib)
		assert.Equal(t, 1, p.Device.Info().Ordinal)
		assert.Equal(t, uint64(4), faults.Calls("cuMemGetInfo"))
		p.Done()

		// Memory that a device holds and nobody uses is room.
		stream, err := s.Devices()[1].NewStream()
		require.NoError(t, err)
		b, err := stream.Alloc(40 * gib)
		require.NoError(t, err)
		assert.Equal(t, 0, place(t, s, gib).Device.Info().Ordinal)
		require.NoError(t, b.Free())
		require.NoError(t, stream.Trim(t.Context()))
		time.Sleep(time.Second) //nolint:forbidigo // time of the bubble
		assert.Equal(t, 1, place(t, s, 47*gib).Device.Info().Ordinal)
		require.NoError(t, s.Close())
	})
}

// The driver's report and the device's books are of different moments: memory that the device took in between was free in the
// report, and what it gave back since is still its own there.
func TestARoomIsOfOneMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, machine, faults := openSet(t, 1, vram.Config{})
		machine.Device(0).SetCapacity(16 * gib)
		d := s.Devices()[0]
		stream, err := d.NewStream()
		require.NoError(t, err)
		var live []vram.Buffer
		for used := int64(0); used <= 12*gib; used += 4 * gib {
			place(t, s, 16*gib-used).Done()
			_, err := s.Place(16*gib - used + 1)
			var full *vram.PlaceError
			require.ErrorAs(t, err, &full)
			assert.Equal(t, vram.PlaceError{RequestedBytes: 16*gib - used + 1, RoomBytes: 16*gib - used}, *full)
			live = append(live, must(t, stream, 4*gib))
		}
		freeAll(t, live...)
		require.NoError(t, stream.Trim(t.Context()))
		_, err = d.Trim(t.Context(), 0)
		require.NoError(t, err)
		place(t, s, 16*gib).Done()
		_, err = s.Place(16*gib + 1)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		assert.Equal(t, uint64(1), faults.Calls("cuMemGetInfo"), "one report serves all")
		require.NoError(t, s.Close())
	})
}

// withoutDevices is a driver of a machine without a GPU.
type withoutDevices struct{ cudadrv.Driver }

func (withoutDevices) DeviceCount() (int, error) { return 0, nil }

// The devices that were opened before one that cannot be are closed, also while they warm up.
func TestASetThatDoesNotOpenLeavesNothing(t *testing.T) {
	for _, ordinals := range [][]int{{0, 1, 5}, {1, 0, 1}} {
		synctest.Test(t, func(t *testing.T) {
			driver := sim.New(sim.Config{Devices: 2})
			_, err := vram.OpenAll(vram.Config{Driver: driver, Warm: []vram.Demand{{Bytes: 4 << 20, Count: 1}}}, ordinals...)
			require.Error(t, err)
			synctest.Wait()
			for ordinal := range 2 {
				for kind, count := range driver.Device(ordinal).Objects() {
					assert.Zero(t, count, kind)
				}
			}
		})
	}
}

func TestSetsAreRefused(t *testing.T) {
	driver := sim.New(sim.Config{Devices: 3})
	var config *vram.ConfigError
	_, err := vram.OpenAll(vram.Config{Driver: driver, Ordinal: 1})
	require.ErrorAs(t, err, &config)
	_, err = vram.OpenAll(vram.Config{Driver: driver}, 2, 0, 2)
	require.ErrorAs(t, err, &config)
	assert.Equal(t, "ordinals", config.Field)
	_, err = vram.OpenAll(vram.Config{Driver: driver}, 0, 3)
	require.ErrorIs(t, err, vram.ErrNoDevice)
	_, err = vram.OpenAll(vram.Config{Driver: driver, LimitBytes: -1})
	require.ErrorAs(t, err, &config)
	_, err = vram.OpenAll(vram.Config{Driver: sim.New(sim.Config{Devices: -1})})
	require.ErrorIs(t, err, vram.ErrNoDriver)
	_, err = vram.OpenAll(vram.Config{Driver: withoutDevices{driver}})
	require.ErrorIs(t, err, vram.ErrNoDevice)
	var none *vram.Set
	_, err = none.Place(1)
	require.ErrorIs(t, err, vram.ErrNotOpen)
	require.ErrorIs(t, none.Close(), vram.ErrNotOpen)
	assert.Empty(t, none.Devices())
	_, err = new(vram.Set).Place(1)
	require.ErrorIs(t, err, vram.ErrNotOpen)
	vram.Placement{}.Done()

	s, err := vram.OpenAll(vram.Config{Driver: driver}, 2, 0)
	require.NoError(t, err)
	assert.Equal(t, "set of 2 devices", s.String())
	assert.Equal(t, 2, place(t, s, 1).Device.Info().Ordinal, "the first of the set")
	_, err = s.Place(-1)
	require.ErrorAs(t, err, &config)
	require.NoError(t, s.Close())
	_, err = s.Place(1)
	require.ErrorIs(t, err, vram.ErrClosed)
}

// Close closes all devices, and has the errors of all; a device that does not open fails a placement by name.
func TestClosingASet(t *testing.T) {
	s, _, faults := openSet(t, 3, vram.Config{})
	require.NoError(t, faults.Add(fault.Rule{Func: "cuDevicePrimaryCtxRetain", First: 2, Result: cudadrv.Unknown}))
	_, err := s.Place(1)
	require.ErrorIs(t, err, cudadrv.Unknown)
	require.ErrorContains(t, err, "(device 1)")
	faults.Clear()
	require.NoError(t, faults.Add(fault.Rule{Func: "cuMemGetInfo", Result: cudadrv.Unknown}))
	_, err = s.Place(1)
	require.ErrorIs(t, err, cudadrv.Unknown)
	faults.Clear()
	for i, d := range s.Devices() {
		stream, err := d.NewStream()
		require.NoError(t, err)
		if i != 1 {
			_, err = stream.Alloc(mib)
			require.NoError(t, err)
		}
	}
	err = s.Close()
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	assert.Len(t, joined.Unwrap(), 2, "both devices with a live buffer")
	for _, one := range joined.Unwrap() {
		var inUse *vram.InUseError
		require.ErrorAs(t, one, &inUse)
	}
	require.Error(t, s.Close(), "a further call returns the same")
}

// A placement counts all memory that is in use or about to be: buffers, memory in the middle of a driver job, reservations, and other
// placements. What it promises is there.
func TestARoomIsWhatIsLeft(t *testing.T) {
	t.Parallel()
	const limit = 32
	room := func(s *vram.Set) int64 {
		var full *vram.PlaceError
		_, err := s.Place(1 << 50)
		require.ErrorAs(t, err, &full)
		assert.EqualValues(t, 1<<50, full.RequestedBytes)
		assert.Zero(t, full.Ordinal)
		return full.RoomBytes / gib
	}
	s, _, faults := openSet(t, 1, vram.Config{LimitBytes: limit * gib, Footprint: vram.Fast})
	d := s.Devices()[0]
	stream, err := d.NewStream()
	require.NoError(t, err)
	assert.EqualValues(t, limit, room(s))
	b := must(t, stream, 4*gib)
	assert.EqualValues(t, limit-4, room(s))

	at, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	faults.SetBefore(func(f string) {
		if f == "cuMemSetAccess" {
			once.Do(func() {
				close(at)
				<-leave
			})
		}
	})
	f := stream.AllocAsync(t.Context(), vram.Request{Bytes: 8 * gib})
	<-at
	assert.LessOrEqual(t, room(s), int64(limit-4-8), "a job has it")
	close(leave)
	more, err := f.Await(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, limit-4-8, room(s))

	r, err := d.Reserve(t.Context(), 4*gib)
	require.NoError(t, err)
	assert.EqualValues(t, limit-4-8-4, room(s))
	p := place(t, s, 2*gib)
	assert.EqualValues(t, limit-4-8-4-2, room(s))
	rest := place(t, s, (limit-4-8-4-2)*gib)
	for _, limitBytes := range []int64{limit * gib, (limit - 1) * gib, (limit - 8) * gib} {
		require.NoError(t, d.Reconfigure(vram.Settings{LimitBytes: new(limitBytes)}))
		var full *vram.PlaceError
		_, err := s.Place(1)
		require.ErrorAs(t, err, &full)
		assert.Equal(t, vram.PlaceError{RequestedBytes: 1}, *full, "a room is never negative")
	}
	require.NoError(t, d.Reconfigure(vram.Settings{LimitBytes: new(limit * gib)}))
	rest.Done()
	p.Done()
	r.Release()
	freeAll(t, b, more)
	require.NoError(t, stream.Trim(t.Context()))
	assert.EqualValues(t, limit, room(s))
}
