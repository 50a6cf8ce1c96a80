package fault_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A rule without an end fails all calls from its first one on, whichever that is.
func TestARuleWithoutAnEndBeginsLate(t *testing.T) {
	for first := uint64(1); first < 5; first++ {
		d := fault.Wrap(sim.New(sim.Config{}))
		require.NoError(t, d.Add(fault.Rule{Func: "cuDeviceGetCount", First: first, Count: fault.Forever, Result: cudadrv.LaunchFailed}))
		for call := uint64(1); call < 10; call++ {
			_, err := d.DeviceCount()
			assert.Equal(t, call >= first, err != nil, "call %d of a rule from %d on", call, first)
		}
	}
}
