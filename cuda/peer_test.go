package cuda_test

import (
	"fmt"
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
	"github.com/go-vram/vram/vramtest"
)

// several is devices of one simulated machine. Each has a checker of its own, which sees the work on the device's own streams:
// a read of the source by a copy between devices is not among it, and bytes show whether that came in time.
type several struct {
	*testing.T
	machine  *sim.Driver
	faults   *fault.Driver
	devices  []*vram.Device
	checkers []*hazard.Driver
}

func newSeveral(t *testing.T, machine sim.Config, config vram.Config) *several {
	t.Helper()
	machine.Bytes = true
	s := &several{T: t, machine: sim.New(machine)}
	s.faults = fault.Wrap(s.machine)
	for ordinal := range machine.Devices {
		config.Driver, config.Ordinal = s.faults, ordinal
		watched, checker := vramtest.Watch(config)
		dev, err := vram.Open(watched)
		require.NoError(t, err)
		t.Cleanup(func() {
			assert.NoError(t, dev.Close())
			assert.NoError(t, checker.Checker(ordinal).Err())
		})
		s.devices, s.checkers = append(s.devices, dev), append(s.checkers, checker)
	}
	return s
}

// context returns a context of a new stream of a device.
func (s *several) context(ordinal int) *cuda.Context {
	s.Helper()
	stream, err := s.devices[ordinal].NewStream()
	require.NoError(s, err)
	c, err := cuda.NewContext(stream)
	require.NoError(s, err)
	s.Cleanup(func() { assert.NoError(s, c.Close()) })
	return c
}

// busy has the stream of a context work for a second.
func (s *several) busy(c *cuda.Context) {
	s.Helper()
	require.NoError(s, s.machine.Device(c.Info().Ordinal).Launch(c.Stream().Handle(), time.Second))
}

// filled returns a new buffer that holds a value.
func (s *several) filled(c *cuda.Context, bytes int64, value byte) cuda.Buffer {
	s.Helper()
	b, err := c.Alloc(bytes)
	require.NoError(s, err)
	require.NoError(s, c.Fill8(cuda.Whole(b), value))
	return b
}

// holds checks that all of a buffer has a value.
func (s *several) holds(c *cuda.Context, b cuda.Buffer, value byte) {
	s.Helper()
	got := make([]byte, b.Bytes())
	require.NoError(s, c.CopyOutAt(got, b, 0))
	for i := range got {
		if got[i] != value {
			require.FailNow(s, "bytes differ", "byte %d of %v is %d, want %d", i, b, got[i], value)
		}
	}
}

func (s *several) free(all ...cuda.Buffer) {
	s.Helper()
	for _, b := range all {
		require.NoError(s, b.Free())
	}
}

// A copy waits for earlier work on both devices, and the source's stream waits for the copy, even if the source is freed and
// its memory overwritten at once. The host does not wait.
func TestCopyPeerIsOrderedOnBothDevices(t *testing.T) {
	for name, late := range map[string]int{"the source is late": 0, "the destination is late": 1} {
		t.Run(name, func(t *testing.T) {
			s := newSeveral(t, sim.Config{Devices: 2}, vram.Config{})
			c := []*cuda.Context{s.context(0), s.context(1)}
			y := s.filled(c[1], mib, 1)
			s.busy(c[late])
			x := s.filled(c[0], mib, 7)
			require.NoError(t, c[1].CopyPeer(cuda.Part(y, 0, mib-512), c[0], cuda.Part(x, 512, mib-512)))
			at := x.Ptr()
			s.free(x)
			x = s.filled(c[0], mib, 9)
			assert.Equal(t, at, x.Ptr(), "the memory of the source is reused")
			assert.Zero(t, s.machine.Device(0).Now(), "nobody has waited")
			require.NoError(t, c[1].Fill8(cuda.Part(y, mib-512, 512), 7))
			s.holds(c[1], y, 7)
			s.holds(c[0], x, 9)
			s.free(x, y)
		})
	}
}

// The source and the destination are of other streams of their devices than the contexts are.
func TestCopyPeerOfBuffersOfOtherStreams(t *testing.T) {
	s := newSeveral(t, sim.Config{Devices: 2}, vram.Config{})
	from, to, home, guest := s.context(0), s.context(1), s.context(0), s.context(1)
	s.busy(home)
	x := s.filled(home, mib, 7)
	s.busy(guest)
	y := s.filled(guest, mib, 1)
	s.busy(to)
	s.busy(to)
	require.NoError(t, to.CopyPeer(cuda.Whole(y), from, cuda.Whole(x)))
	// Later work of the source's own stream waits for the copy, and so does a reader of the destination.
	require.NoError(t, home.Fill8(cuda.Whole(x), 8))
	s.holds(guest, y, 7)
	s.holds(home, x, 8)

	// Freed memory waits for the copy: a new buffer of its stream has other memory.
	s.busy(to)
	require.NoError(t, to.CopyPeer(cuda.Whole(y), from, cuda.Whole(x)))
	at := x.Ptr()
	s.free(x)
	z := s.filled(home, mib, 9)
	assert.NotEqual(t, at, z.Ptr())
	s.holds(guest, y, 8)
	s.free(y, z)
}

func TestCopiesBetweenDevicesAreRefused(t *testing.T) {
	s := newSeveral(t, sim.Config{Devices: 3}, vram.Config{})
	from, to, beside, third := s.context(0), s.context(1), s.context(1), s.context(2)
	x, y := s.filled(from, 4096, 1), s.filled(to, 4096, 2)
	stale := s.filled(from, 4096, 3)
	s.free(stale)
	whole := cuda.Whole
	var none *cuda.Context
	for name, test := range map[string]struct {
		on, from *cuda.Context
		dst, src cuda.Range
		want     error
	}{
		"no context":             {none, from, whole(y), whole(x), cuda.ErrNotOpen},
		"no other context":       {to, none, whole(y), whole(x), cuda.ErrNotOpen},
		"a zero context":         {to, &cuda.Context{}, whole(y), whole(x), cuda.ErrNotOpen},
		"one device":             {to, beside, whole(y), whole(y), cuda.ErrSameDevice},
		"a freed source":         {to, from, whole(y), whole(stale), cuda.ErrNotLive},
		"a freed destination":    {from, to, whole(stale), whole(y), cuda.ErrNotLive},
		"no source":              {to, from, cuda.Range{}, cuda.Range{}, cuda.ErrNotLive},
		"a source of elsewhere":  {to, third, whole(y), whole(x), cuda.ErrForeign},
		"a destination of there": {third, from, whole(y), whole(x), cuda.ErrForeign},
	} {
		require.ErrorIs(t, test.on.CopyPeer(test.dst, test.from, test.src), test.want, name)
	}
	var length *cuda.LengthError
	require.ErrorAs(t, to.CopyPeer(cuda.Part(y, 0, 8), from, whole(x)), &length)
	assert.Equal(t, cuda.LengthError{DstBytes: 8, SrcBytes: x.Bytes()}, *length)
	require.ErrorAs(t, to.CopyPeer(whole(y), from, cuda.Part(x, 16, 8)), &length)
	assert.Equal(t, cuda.LengthError{DstBytes: y.Bytes(), SrcBytes: 8}, *length)
	for _, r := range [][2]int64{{-1, 8}, {4089, 8}, {0, -8}, {5000, 0}} {
		var outside *cuda.RangeError
		ok := [2]int64{0, r[1]}
		require.ErrorAs(t, to.CopyPeer(cuda.Part(y, r[0], r[1]), from, cuda.Part(x, max(0, ok[0]), r[1])), &outside)
		require.ErrorAs(t, to.CopyPeer(cuda.Part(y, max(0, ok[0]), r[1]), from, cuda.Part(x, r[0], r[1])), &outside)
	}
	_, err := to.TransferPeer(from, stale)
	require.ErrorIs(t, err, cuda.ErrNotLive)
	_, err = to.TransferPeer(third, x)
	require.ErrorIs(t, err, cuda.ErrForeign)
	_, err = to.TransferPeer(to, y)
	require.ErrorIs(t, err, cuda.ErrSameDevice)
	_, err = none.TransferPeer(to, y)
	require.ErrorIs(t, err, cuda.ErrNotOpen)

	e, err := from.Record()
	require.NoError(t, err)
	require.ErrorIs(t, to.WaitEvent(e), cuda.ErrForeign)
	require.NoError(t, e.Close())

	before := s.faults.Calls("cuEventRecord")
	require.NoError(t, to.CopyPeer(cuda.Part(y, 4096, 0), from, cuda.Part(x, 0, 0)), "no bytes are no work")
	assert.Equal(t, before, s.faults.Calls("cuEventRecord"))
	assert.Zero(t, s.faults.Calls("cuMemcpyPeerAsync"))
	s.holds(to, y, 2)
	s.free(x, y)
}

// Devices without PeerAccess refuse copies between them, and those that lack something else do not.
func TestDevicesWithoutCopiesBetweenThem(t *testing.T) {
	for lacks := cudadrv.VirtualMemory; lacks <= cudadrv.BulkTensors; lacks <<= 1 {
		s := newSeveral(t, sim.Config{Devices: 2, Without: lacks}, vram.Config{})
		from, to := s.context(0), s.context(1)
		x := s.filled(from, 64, 1)
		y, err := to.TransferPeer(from, x)
		if lacks == cudadrv.PeerAccess {
			require.ErrorIs(t, err, cudadrv.NotSupported)
			assert.True(t, x.Live())
			s.free(x)
			continue
		}
		require.NoError(t, err, "without %v", lacks)
		assert.False(t, x.Live())
		s.free(y)
	}
}

// Neither device may be in a capture: events between two of them would draw the other one in.
func TestCopiesBetweenDevicesAreNotCaptured(t *testing.T) {
	s := newSeveral(t, sim.Config{Devices: 2}, vram.Config{})
	from, to := s.context(0), s.context(1)
	x, y := s.filled(from, 64, 1), s.filled(to, 64, 2)
	for _, captured := range []*cuda.Context{from, to} {
		g, err := captured.Capture(func() error {
			require.ErrorIs(t, to.CopyPeer(cuda.Whole(y), from, cuda.Whole(x)), cuda.ErrCapturing)
			_, err := to.TransferPeer(from, x)
			require.ErrorIs(t, err, cuda.ErrCapturing)
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, g.Close())
		// A capture that this package does not know of.
		gpu, h := s.machine.Device(captured.Info().Ordinal), captured.Stream().Handle()
		require.NoError(t, gpu.BeginCapture(h))
		var forbidden *vram.CaptureError
		require.ErrorAs(t, to.CopyPeer(cuda.Whole(y), from, cuda.Whole(x)), &forbidden)
		_, err = gpu.EndCapture(h)
		require.NoError(t, err)
	}
	assert.Zero(t, s.faults.Calls("cuMemcpyPeerAsync"))
	s.free(x, y)
}

func TestTransferPeer(t *testing.T) {
	s := newSeveral(t, sim.Config{Devices: 2}, vram.Config{})
	from, to, home := s.context(0), s.context(1), s.context(0)
	for _, c := range []*cuda.Context{from, home} {
		x := s.filled(c, mib, 7)
		s.busy(to)
		y, err := to.TransferPeer(from, x)
		require.NoError(t, err)
		assert.False(t, x.Live())
		require.ErrorIs(t, x.Free(), vram.ErrBadFree)
		assert.Equal(t, mib, y.Bytes())
		z := s.filled(c, mib, 9)
		s.holds(to, y, 7)
		s.free(y, z)
	}
	// A stream may be closed right after a copy from its memory, and so may the device.
	x := s.filled(home, mib, 7)
	s.busy(to)
	y, err := to.TransferPeer(from, x)
	require.NoError(t, err)
	require.NoError(t, from.Stream().Close())
	require.NoError(t, home.Stream().Close())
	require.NoError(t, s.devices[0].Close())
	s.holds(to, y, 7)
	_, err = to.TransferPeer(from, x)
	require.Error(t, err)
	s.free(y)
}

// A transfer for which there is no memory leaves the buffer where it is.
func TestTransferPeerWithoutMemory(t *testing.T) {
	s := newSeveral(t, sim.Config{Devices: 2}, vram.Config{LimitBytes: 8 * mib})
	from, to := s.context(0), s.context(1)
	x, ballast := s.filled(from, 4*mib, 7), s.filled(to, 6*mib, 1)
	_, err := to.TransferPeer(from, x)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	s.holds(from, x, 7)
	s.free(ballast)
	y, err := to.TransferPeer(from, x)
	require.NoError(t, err)
	s.holds(to, y, 7)
	s.free(y)
}

// Whichever driver call fails, the buffer is on exactly one device afterwards, with its bytes, and the other device has its
// memory back.
func TestFailedTransfersLoseNothing(t *testing.T) {
	for _, function := range []string{"cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "cuMemcpyPeerAsync", "cuStreamSynchronize", "cuMemCreate"} {
		for call := range uint64(6) {
			t.Run(fmt.Sprintf("%s %d", function, call+1), func(t *testing.T) {
				s := newSeveral(t, sim.Config{Devices: 2}, vram.Config{Stats: vram.StatsExact})
				from, to, home := s.context(0), s.context(1), s.context(0)
				x := s.filled(home, mib, 7)
				s.busy(to)
				require.NoError(t, s.faults.Add(fault.Rule{Func: function, First: call + 1, Result: cudadrv.Unknown}))
				y, err := to.TransferPeer(from, x)
				s.faults.Clear()
				if err != nil {
					require.ErrorIs(t, err, cudadrv.Unknown)
					assert.Zero(t, y)
					assert.Zero(t, s.devices[1].Stats().LiveBytes)
					s.holds(home, x, 7)
					s.busy(to)
					y, err = to.TransferPeer(from, x)
				}
				require.NoError(t, err)
				assert.False(t, x.Live())
				z := s.filled(home, mib, 9)
				s.holds(to, y, 7)
				s.free(y, z)
				for _, dev := range s.devices {
					assert.Zero(t, dev.Stats().LiveBytes)
				}
			})
		}
	}
}

// Where the source's stream cannot be made to wait for a copy, the host waits; where that fails, too, the error says that
// nobody can.
func TestCopiesThatNoStreamWaitsFor(t *testing.T) {
	for _, function := range []string{"cuEventRecord", "cuStreamWaitEvent"} {
		s := newSeveral(t, sim.Config{Devices: 2}, vram.Config{})
		from, to := s.context(0), s.context(1)
		x, y := s.filled(from, mib, 7), s.filled(to, mib, 1)
		s.busy(to)
		require.NoError(t, s.faults.Add(fault.Rule{Func: function, First: 2, Result: cudadrv.Unknown}))
		err := to.CopyPeer(cuda.Whole(y), from, cuda.Whole(x))
		var late *cuda.OrderError
		require.ErrorAs(t, err, &late)
		assert.True(t, late.Waited)
		require.ErrorIs(t, err, cudadrv.Unknown)
		require.ErrorContains(t, err, "vram: the host waited for work between two devices")
		s.faults.Clear()
		s.free(x)
		z := s.filled(from, mib, 9)
		s.holds(to, y, 7)

		require.NoError(t, s.faults.Add(fault.Rule{Func: function, First: 2, Result: cudadrv.Unknown}))
		require.NoError(t, s.faults.Add(fault.Rule{Func: "cuStreamSynchronize", First: 1, Result: cudadrv.LaunchFailed}))
		err = to.CopyPeer(cuda.Whole(y), from, cuda.Whole(z))
		require.ErrorAs(t, err, &late)
		assert.False(t, late.Waited)
		require.ErrorIs(t, err, cudadrv.Unknown)
		require.ErrorIs(t, err, cudadrv.LaunchFailed)
		require.ErrorContains(t, err, "do not free")
		s.faults.Clear()
		s.holds(to, y, 9)
		s.free(y, z)
	}
}
