//go:build gpu && linux && (amd64 || arm64)

package bytecheck

import (
	"context"
	"flag"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

//nolint:gochecknoglobals // flags
var (
	duration = flag.Duration("duration", 10*time.Second, "how long each load is")
	most     = flag.Int64("bytes", 4<<30, "what lives at most, in all buffers together, in `bytes`")
	fill     = flag.Bool("fill", false, "plain allocations fill the card before memory runs out")
)

// largeScale returns the scale of the flags.
func largeScale() scale {
	return scale{
		load: Load{
			Streams: 16, Workers: 16, Steps: math.MaxInt, Seed: 1,
			LiveBytes: *most, LargestBytes: *most / 64, HostBytes: 32 * mib, Residents: 8,
		},
		lasting: func(t *testing.T) context.Context {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), *duration)
			t.Cleanup(cancel)
			return ctx
		},
		fill: *fill,
	}
}

// onGPU is the driver of the system.
func onGPU() cudadrv.Driver { return dynamic.New(dynamic.Config{}) }

func TestHardwareSteady(t *testing.T) { steadily(t, onGPU(), largeScale()) }

func TestHardwareRecycled(t *testing.T) { recycled(t, onGPU(), largeScale()) }

func TestHardwareHoles(t *testing.T) { holes(t, onGPU(), largeScale()) }

func TestHardwareMemoryReturns(t *testing.T) { returned(t, onGPU(), largeScale()) }

// On hardware, too, the checker sees memory that changes hands too early.
func TestHardwarePlantedDefectIsFound(t *testing.T) {
	err := plant(t, onGPU(), largeScale(), func(dev cudadrv.Device) cudadrv.Device { return hasty{dev} })
	var fault *ByteError
	require.ErrorAs(t, err, &fault)
	t.Log(fault)
}
