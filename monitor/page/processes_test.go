package page_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/monitor/page"
)

// A sample has the first processes on the GPU of a device in use, if they are known.
func TestProcessesOnTheGPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, failure := make([]vram.GPUProcess, 25), error(nil)
		all[0] = vram.GPUProcess{PID: 7, Command: "python3", Place: "pod 6f1c", Bytes: 5, BytesKnown: true, Own: true}
		asked := 0
		dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{}), Processes: func(context.Context, cudadrv.Info) ([]vram.GPUProcess, error) {
			asked++
			return all, failure
		}})
		require.NoError(t, err)
		assert.False(t, page.Read(dev, 0).ProcessesKnown)
		assert.Zero(t, asked, "the device is not in use")
		_, err = dev.NewStream()
		require.NoError(t, err)
		d := page.Read(dev, 0)
		assert.True(t, d.ProcessesKnown)
		assert.Equal(t, 25, d.ProcessCount)
		require.Len(t, d.Processes, 20)
		assert.Equal(t, page.Process{PID: 7, Command: "python3", Place: "pod 6f1c", Bytes: 5, BytesKnown: true, Own: true}, d.Processes[0])
		failure = errors.New("no library")
		d = page.Read(dev, 0)
		assert.False(t, d.ProcessesKnown)
		assert.NotNil(t, d.Processes)
		require.NoError(t, dev.Close())
	})
}
