package acceptance_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// PyTorch #196258: memory is unmapped on one device while another has work queued, and the other is
// not disturbed; work of its own device is waited for.
func TestUnmappingBesideQueuedWorkElsewhere(t *testing.T) {
	machine := sim.New(sim.Config{Devices: 2})
	var devices []*vram.Device
	var streams []*vram.Stream
	for ordinal := range 2 {
		d, err := vram.Open(vram.Config{Driver: machine, Ordinal: ordinal})
		require.NoError(t, err)
		s, err := d.NewStream()
		require.NoError(t, err)
		devices, streams = append(devices, d), append(streams, s)
	}
	kept := must(t, streams[1], 64*mib)
	require.NoError(t, machine.Device(1).Launch(streams[1].Handle(), time.Hour))
	x := must(t, streams[0], 64*mib)
	require.NoError(t, machine.Device(0).Launch(streams[0].Handle(), time.Second))
	freeAll(t, x)

	given, err := devices[0].Trim(context.Background(), 0)
	require.NoError(t, err)
	assert.Zero(t, given, "its work still uses it")
	machine.Device(0).Advance(time.Second)
	given, err = devices[0].Trim(context.Background(), 0)
	require.NoError(t, err)
	assert.Equal(t, 64*mib, given)
	assert.Equal(t, time.Second, machine.Device(1).Now(), "nobody waited for the other device, which has work for an hour")
	assert.True(t, kept.Live())
	require.NoError(t, machine.Device(1).MemsetD8Async(kept.Ptr(), 1, kept.Bytes(), streams[1].Handle()))
	freeAll(t, kept)
	for _, d := range devices {
		require.NoError(t, d.Close())
	}
}

// PyTorch #188008: a growth that fails at one of several handles leaves nothing half mapped,
// whichever call fails, and the next request finds everything as it was.
func TestAGrowthThatFailsInTheMiddle(t *testing.T) {
	for function, count := range map[string]uint64{"cuMemCreate": 4, "cuMemMap": 4, "cuMemSetAccess": 1} {
		for first := uint64(1); first <= count; first++ {
			h := openHouse(t, vram.Config{Tuning: vram.Tuning{SegmentBytes: 4 * mib}}, sim.Config{})
			s := h.stream()
			before := must(t, s, 2*mib)
			require.NoError(t, h.faults.Add(fault.Rule{Func: function, First: first, Count: 1, Result: cudadrv.MapFailed}))
			_, err := s.Alloc(16 * mib) // four handles, and one access
			require.ErrorIs(t, err, cudadrv.MapFailed, "%s, call %d", function, first)
			n := h.addsUp()
			assert.EqualValues(t, n.LiveBytes+n.CachedBytes+n.FreeBytes, h.usedBytes())
			freeAll(t, must(t, s, 16*mib), before)
			h.addsUp()
		}
	}
}
