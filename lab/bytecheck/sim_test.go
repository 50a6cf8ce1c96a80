//go:build linux && (amd64 || arm64)

package bytecheck

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// onSim is a simulated driver with real bytes of the test's own, which wants everything back at the end.
func onSim(t *testing.T, clock sim.Clock) cudadrv.Driver {
	t.Helper()
	before := mapped(t)
	drv := sim.New(sim.Config{Bytes: true, Clock: clock, TotalBytes: 512 * mib})
	t.Cleanup(func() {
		require.NoError(t, drv.Device(0).Audit())
		require.Equal(t, before, mapped(t), "mappings of handles that were not given back")
	})
	return drv
}

// mapped is how many mappings of simulated handles the process has.
func mapped(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return strings.Count(string(maps), "memfd:vram-sim")
}

func TestSimulated(t *testing.T) {
	t.Run("steady", func(t *testing.T) { steadily(t, onSim(t, sim.Stepped), smallScale()) })
	t.Run("recycled", func(t *testing.T) { recycled(t, onSim(t, sim.Stepped), smallScale()) })
	t.Run("holes", func(t *testing.T) { holes(t, onSim(t, sim.Stepped), smallScale()) })
	for _, fill := range []bool{false, true} {
		of := smallScale()
		of.fill = fill
		t.Run(fmt.Sprintf("memory returns, fill=%t", fill), func(t *testing.T) { returned(t, onSim(t, sim.Stepped), of) })
	}
}

// On the running clock the device is ahead of the host most of the time.
func TestSimulatedOnTheRunningClock(t *testing.T) {
	t.Run("recycled", func(t *testing.T) { recycled(t, onSim(t, sim.Running), smallScale()) })
	t.Run("memory returns", func(t *testing.T) { returned(t, onSim(t, sim.Running), smallScale()) })
}

// The simulated device finds the fake's planted defects, too: on the stepped clock work waits until somebody waits for it.
func TestSimulatedPlantedDefectsAreFound(t *testing.T) {
	finds(t, func(t *testing.T) cudadrv.Driver { t.Helper(); return onSim(t, sim.Stepped) })
}

// With virtual memory an early fence shows in bytes, or in memory that was unmapped under running work, whichever happens
// first.
func TestSimulatedEarlyFenceIsFoundWithVirtualMemory(t *testing.T) {
	of := smallScale()
	of.load.Steps = 1000
	var err error
	for of.load.Seed = 1; err == nil && of.load.Seed <= 20; of.load.Seed++ {
		driver := onSim(t, sim.Stepped)
		h, openErr := Open(driver, vram.Config{
			Driver: spoiled{driver, defects()["hasty"]}, Footprint: vram.Lean, LimitBytes: of.load.LiveBytes / 2,
		})
		require.NoError(t, openErr)
		_, err = h.Run(of.lasting(t), of.load)
		_ = h.Close() // it fails where the context has ended
	}
	require.Error(t, err)
	var fault *ByteError
	assert.True(t, errors.As(err, &fault) || errors.Is(err, cudadrv.IllegalAddress), err)
	first, _, _ := strings.Cut(err.Error(), "\n")
	t.Log(first)
}
