package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/examples/internal/kernels"
)

// The stages run on the devices in turn; each device has the calls of its own stages, and nothing leaks.
func TestStagesOnSeveralDevices(t *testing.T) {
	t.Parallel()
	for _, count := range []int{2, 3, 4} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			t.Parallel()
			driver := sim.New(sim.Config{Devices: count})
			o := options{stepCount: 2, speed: 1, mostAhead: fullAhead, devices: count, config: vram.Config{Driver: driver}}
			tr, err := open(t.Context(), o)
			require.NoError(t, err)
			require.NoError(t, tr.run(t.Context()))
			var allocs uint64
			for ordinal, d := range tr.devices {
				assert.Equal(t, ordinal, d.Info().Ordinal)
				stats := d.Stats()
				allocs += stats.AllocCount
				assert.Len(t, stats.Streams, (stageCount+count-1-ordinal)/count)
				assert.Positive(t, driver.Device(ordinal).Counts()["cuMemcpyPeerAsync"])
			}
			all := tr.stats()
			assert.Equal(t, allocs, all.AllocCount)
			for n, st := range tr.stages {
				assert.Equal(t, tr.devices[n%count].Stats().Streams[n/count].Stream, all.Streams[n].Stream)
				assert.Same(t, tr.gpus[n%count], st.gpu)
			}
			assert.Contains(t, tr.report(), "2 steps in ")
			require.NoError(t, tr.close(), "no buffer is left")
			for ordinal := range count {
				assert.NoError(t, driver.Device(ordinal).Audit())
			}
		})
	}
}

// A parcel for a stage on another device is copied there with its bytes, after the sender's work, and is freed on the sender's
// device.
func TestBytesArriveOnAnotherDevice(t *testing.T) {
	t.Parallel()
	const bytes = 64 << 10
	driver := sim.New(sim.Config{Devices: 2, Bytes: true})
	var stages []*stage
	for ordinal := range 2 {
		device, err := vram.Open(vram.Config{Driver: driver, Ordinal: ordinal})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, device.Close()) })
		view, err := kernels.OpenView(driver, ordinal)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, view.Close()) })
		stream, err := device.NewStream()
		require.NoError(t, err)
		st := &stage{number: ordinal, stream: stream, gpu: &gpu{view, 1}}
		st.activations = inlet{stage: st}
		stages = append(stages, st)
	}
	sender, receiver := stages[0], stages[1]
	sender.toNext = newRoad(sender.stream, receiver.stream)
	receiver.activations.road = sender.toNext

	b, err := sender.stream.Alloc(bytes)
	require.NoError(t, err)
	require.NoError(t, sender.gpu.Launch(sender.stream.Handle(), time.Second))
	require.NoError(t, sender.gpu.MemsetD8Async(b.Ptr(), 7, bytes, sender.stream.Handle()))
	sender.held = []vram.Buffer{b}
	require.NoError(t, sender.handOver(turn{Kind: forward, MicroBatch: 0}, &operation{out: 0}))
	receiver.activations.order(t.Context(), bytes)
	p, err := receiver.activations.receive(t.Context(), turn{Kind: forward, MicroBatch: 0})
	require.NoError(t, err)
	got := make([]byte, bytes)
	host, ok := receiver.gpu.Device.(cudadrv.HostMemory)
	require.True(t, ok)
	require.NoError(t, host.MemcpyDtoHAsync(got, receiver.activations.arrived[0].Ptr(), receiver.stream.Handle()))
	require.NoError(t, receiver.gpu.StreamSynchronize(receiver.stream.Handle()))
	for i := range got {
		require.Equal(t, byte(7), got[i], "byte %d", i)
	}
	require.NoError(t, p.drop())
	require.NoError(t, receiver.activations.free(0))
}
