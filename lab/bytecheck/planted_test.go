//go:build linux && (amd64 || arm64)

package bytecheck

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
)

// spoiled is a driver whose devices have a defect.
type spoiled struct {
	cudadrv.Driver
	defect func(cudadrv.Device) cudadrv.Device
}

func (s spoiled) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := s.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	return s.defect(dev), nil
}

// hasty takes every event for one that has passed, on the host and in streams, so that memory changes hands too early.
type hasty struct{ cudadrv.Device }

func (hasty) EventQuery(cudadrv.Event) (bool, error) { return true, nil }

func (hasty) EventSynchronize(cudadrv.Event) error { return nil }

func (hasty) StreamWaitEvent(cudadrv.Stream, cudadrv.Event) error { return nil }

// forgetful records nothing: its events have passed as those have that were never recorded.
type forgetful struct{ cudadrv.Device }

func (forgetful) EventRecord(cudadrv.Event, cudadrv.Stream) error { return nil }

// idle leaves memory as it is.
type idle struct{ cudadrv.Device }

func (idle) MemsetD8Async(cudadrv.Ptr, byte, int64, cudadrv.Stream) error { return nil }

// plant has vram, not the checker's own device, use a device with the defect, under a limit that makes streams reuse each
// other's memory. The memory is plain: the defects may also unmap memory under running work, which would end the context
// before a byte could be compared. It returns the error of the load.
func plant(t *testing.T, driver cudadrv.Driver, of scale, defect func(cudadrv.Device) cudadrv.Device) error {
	t.Helper()
	h, err := Open(driver, vram.Config{
		Driver: spoiled{driver, defect}, Segments: vram.SegmentsPlain, Tuning: vram.Tuning{SegmentBytes: 16 * mib},
		LimitBytes: of.load.LiveBytes / 2,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Close()) }()
	report, err := h.Run(of.lasting(t), of.load)
	t.Logf("%+v", report)
	return err
}

// defects are devices that a load finds something in, by name.
func defects() map[string]func(cudadrv.Device) cudadrv.Device {
	return map[string]func(cudadrv.Device) cudadrv.Device{
		"hasty":     func(dev cudadrv.Device) cudadrv.Device { return hasty{dev} },
		"forgetful": func(dev cudadrv.Device) cudadrv.Device { return forgetful{dev} },
		"idle":      func(dev cudadrv.Device) cudadrv.Device { return idle{dev} },
	}
}

func TestPlantedDefectsAreFound(t *testing.T) {
	finds(t, func(t *testing.T) cudadrv.Driver { t.Helper(); return onFake(t, queued) })
}

// finds wants every defect found within few loads, each on a driver of its own, and nothing where there is none. Whether one
// load finds it depends on how goroutines take turns.
func finds(t *testing.T, open func(t *testing.T) cudadrv.Driver) {
	t.Helper()
	of := smallScale()
	require.NoError(t, plant(t, open(t), of, func(dev cudadrv.Device) cudadrv.Device { return dev }))
	of.load.Steps = 1000
	for name, defect := range defects() {
		t.Run(name, func(t *testing.T) {
			var err error
			for of.load.Seed = 1; err == nil && of.load.Seed <= 20; of.load.Seed++ {
				err = plant(t, open(t), of, defect)
			}
			var fault *ByteError
			require.ErrorAs(t, err, &fault)
			assert.NotEqual(t, fault.Got, fault.Want)
			t.Log(fault)
		})
	}
}
