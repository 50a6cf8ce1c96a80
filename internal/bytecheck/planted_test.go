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

// hasty says of every event that it has passed, so that memory changes hands too early.
type hasty struct{ cudadrv.Device }

func (hasty) EventQuery(cudadrv.Event) (bool, error) { return true, nil }

func (hasty) EventSynchronize(cudadrv.Event) error { return nil }

// deaf never orders streams.
type deaf struct{ cudadrv.Device }

func (deaf) StreamWaitEvent(cudadrv.Stream, cudadrv.Event) error { return nil }

// idle leaves memory as it is.
type idle struct{ cudadrv.Device }

func (idle) MemsetD8Async(cudadrv.Ptr, byte, int64, cudadrv.Stream) error { return nil }

// Under a limit streams live on each other's memory. The checker's own device has no defect.
func TestPlantedDefectsAreFound(t *testing.T) {
	for name, defect := range map[string]func(cudadrv.Device) cudadrv.Device{
		"none":  func(dev cudadrv.Device) cudadrv.Device { return dev },
		"hasty": func(dev cudadrv.Device) cudadrv.Device { return hasty{dev} },
		"deaf":  func(dev cudadrv.Device) cudadrv.Device { return deaf{dev} },
		"idle":  func(dev cudadrv.Device) cudadrv.Device { return idle{dev} },
	} {
		t.Run(name, func(t *testing.T) {
			driver := onFake(t, queued)
			h, err := Open(driver, vram.Config{
				Driver: spoiled{driver, defect}, Footprint: vram.Lean, LimitBytes: 40 * mib,
			})
			require.NoError(t, err)
			load := smallScale().load
			load.LiveBytes = 48 * mib
			_, err = h.Run(t.Context(), load)
			t.Log(err)
			if name == "none" {
				require.NoError(t, err)
			} else {
				var fault *Fault
				assert.ErrorAs(t, err, &fault)
			}
			require.NoError(t, h.Close())
		})
	}
}
