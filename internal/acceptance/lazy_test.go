package acceptance_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// Opening a device, changing its settings, trimming and closing it touches no GPU; a stream does,
// and so does Info.
func TestTheFirstUseOpensTheDevice(t *testing.T) {
	driver := sim.New(sim.Config{TotalBytes: 64 * mib})
	open := func() *vram.Device {
		d, err := vram.Open(vram.Config{Driver: driver, LimitBytes: 32 * mib})
		require.NoError(t, err)
		return d
	}
	untouched := open()
	require.NoError(t, untouched.Reconfigure(vram.Settings{Footprint: new(vram.Lean)}))
	n, err := untouched.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.Zero(t, n)
	assert.Equal(t, vram.Stats{LimitBytes: 32 * mib}, untouched.Stats())
	untouched.ResetPeaks()
	require.NoError(t, untouched.Close())
	assert.Empty(t, driver.Device(0).Counts(), "no call was made")
	_, err = untouched.NewStream()
	require.ErrorIs(t, err, vram.ErrClosed)
	_, err = untouched.Trim(t.Context(), 0)
	require.ErrorIs(t, err, vram.ErrClosed)
	require.ErrorIs(t, untouched.Reconfigure(vram.Settings{}), vram.ErrClosed)
	assert.Equal(t, cudadrv.Info{Driver: "sim"}, untouched.Info())

	looked := open()
	assert.Equal(t, 64*mib, looked.Info().TotalBytes)
	assert.Equal(t, uint64(1), driver.Device(0).Counts()["cuDevicePrimaryCtxRetain"])
	require.NoError(t, looked.Close())
}

// Changes before the first use hold from it on.
func TestSettingsBeforeTheFirstUse(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{TotalBytes: 64 * mib})
	require.NoError(t, h.Reconfigure(vram.Settings{LimitBytes: new(16 * mib)}))
	s := h.stream()
	_, err := s.Alloc(17 * mib)
	require.ErrorIs(t, err, vram.ErrTooLarge)
	freeAll(t, must(t, s, 16*mib))
}

// A first use that fails says why, and the next tries again.
func TestAFirstUseThatFails(t *testing.T) {
	for _, function := range []string{"cuDevicePrimaryCtxRetain", "cuMemAddressReserve"} {
		driver := sim.New(sim.Config{TotalBytes: 64 * mib})
		faults := fault.Wrap(driver)
		d, err := vram.Open(vram.Config{Driver: faults})
		require.NoError(t, err)
		require.NoError(t, faults.Add(fault.Rule{Func: function, First: 1, Result: cudadrv.Unknown}))
		_, err = d.NewStream()
		require.ErrorIs(t, err, cudadrv.Unknown, function)
		s, err := d.NewStream()
		require.NoError(t, err, function)
		freeAll(t, must(t, s, mib))
		require.NoError(t, d.Close())
	}
}

// counting counts the views of a driver's devices that are open.
type counting struct {
	cudadrv.Driver
	open int
}

func (c *counting) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := c.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	c.open++
	return counted{dev, c}, nil
}

type counted struct {
	cudadrv.Device
	driver *counting
}

func (c counted) Close() error {
	c.driver.open--
	return c.Device.Close()
}

// A first use that fails after the opening of the device closes it, at any point of failure.
func TestAFirstUseThatFailsLeavesNothingOpen(t *testing.T) {
	faults := fault.Wrap(sim.New(sim.Config{TotalBytes: 64 * mib}))
	require.NoError(t, faults.Add(fault.Rule{Func: "cuMemAddressReserve", Result: cudadrv.Unknown}))
	for name, cfg := range map[string]vram.Config{
		"no pages":      {Driver: sim.New(sim.Config{NoVirtualMemory: true}), Segments: vram.SegmentsVMM},
		"no address":    {Driver: faults},
		"no difference": {Driver: sim.New(sim.Config{TotalBytes: 64 * mib})},
	} {
		driver := &counting{Driver: cfg.Driver}
		cfg.Driver = driver
		d, err := vram.Open(cfg)
		require.NoError(t, err)
		for range 3 {
			_, err = d.NewStream()
			if name == "no difference" {
				require.NoError(t, err)
				assert.Equal(t, 1, driver.open, name)
				continue
			}
			require.Error(t, err, name)
			assert.Zero(t, driver.open, name)
		}
		require.NoError(t, d.Close())
		assert.Zero(t, driver.open, name)
	}
}

// Many first uses at once open the device once; a Close among them leaks nothing.
func TestManyFirstUses(t *testing.T) {
	for round := range 20 {
		driver := sim.New(sim.Config{TotalBytes: 64 * mib})
		d, err := vram.Open(vram.Config{Driver: driver})
		require.NoError(t, err)
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				if round%2 == 1 && i == 5 {
					_ = d.Close() // with buffers that live, perhaps
					return
				}
				s, err := d.NewStream()
				if err != nil {
					assert.Equal(t, 1, round%2, "%v", err)
					return
				}
				if b, err := s.Alloc(mib); err == nil {
					_ = b.Free() // closed during the open
				}
			})
		}
		all.Wait()
		assert.LessOrEqual(t, driver.Device(0).Counts()["cuDevicePrimaryCtxRetain"], uint64(1))
		_ = d.Close()
		assert.NoError(t, driver.Device(0).Audit())
	}
}

// Virtual memory that is asked for and absent is refused by the first use, with the field that
// asks.
func TestVirtualMemoryThatIsNotThere(t *testing.T) {
	d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{NoVirtualMemory: true}), Segments: vram.SegmentsVMM})
	require.NoError(t, err)
	_, err = d.NewStream()
	var wrong *vram.ConfigError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "Segments", wrong.Field)
	require.ErrorContains(t, err, "vmm")
	require.NoError(t, d.Close())
}

// Devices of one process share nothing: each has its streams, its memory and its counts, also where
// their kinds of segments differ.
func TestDevicesOfOneProcessShareNothing(t *testing.T) {
	const devices = 4
	driver := sim.New(sim.Config{Devices: devices, TotalBytes: 256 * mib})
	var all sync.WaitGroup
	for ordinal := range devices {
		kind := []vram.Segments{vram.SegmentsVMM, vram.SegmentsPlain}[ordinal%2]
		d, err := vram.Open(vram.Config{Driver: driver, Ordinal: ordinal, Segments: kind})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, d.Close()) })
		for range 3 {
			all.Go(func() {
				s, err := d.NewStream()
				if !assert.NoError(t, err) {
					return
				}
				for i := range int64(200) {
					b, err := s.Alloc(i * 64 * kib)
					if assert.NoError(t, err) {
						assert.NoError(t, driver.Device(ordinal).MemsetD8Async(b.Ptr(), 1, b.Bytes(), s.Handle()))
						assert.NoError(t, b.Free())
					}
				}
				assert.NoError(t, s.Close())
			})
		}
		t.Cleanup(func() {
			n := d.Stats()
			assert.Equal(t, uint64(600), n.AllocCount)
			assert.Positive(t, n.ReservedBytes)
		})
	}
	all.Wait()
}
