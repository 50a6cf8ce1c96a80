package acceptance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/trace"
)

// Every recorded program plays through without two live buffers on the same memory, twice, in every
// footprint mode, and its final figures add up.
func TestRecordedProgramsPlayWithoutOverlap(t *testing.T) {
	names := trace.Embedded()
	require.NotEmpty(t, names)
	modes := []vram.Footprint{vram.Balanced, vram.Lean, vram.Fast}
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			tr, err := trace.Open(name)
			require.NoError(t, err)
			h := openHouse(t, vram.Config{Footprint: modes[i%len(modes)]}, sim.Config{})
			var streams []*vram.Stream
			for range tr.Info.StreamCount {
				streams = append(streams, h.stream())
			}
			buffers := make([]vram.Buffer, tr.Info.AllocCount)
			for range 2 {
				var o overlaps
				playTrace(t, tr, streams, buffers, &o)
				n := h.addsUp()
				assert.Equal(t, uint64(len(o.live)), n.AllocCount-n.FreeCount)
				for _, id := range tr.Leftovers() {
					require.NoError(t, o.free(buffers[id]))
				}
				assert.Empty(t, o.live)
			}
			n := h.addsUp()
			assert.Equal(t, uint64(2*tr.Info.AllocCount), n.AllocCount)
			assert.Equal(t, n.AllocCount, n.FreeCount)
			assert.GreaterOrEqual(t, n.PeakReservedBytes, tr.Info.PeakLiveBytes)
			assert.Zero(t, n.LiveBytes)
		})
	}
}

// The same with plain segments and exact statistics.
func TestRecordedProgramsPlayInOtherConfigurations(t *testing.T) {
	configs := []vram.Config{
		{Segments: vram.SegmentsPlain},
		{Segments: vram.SegmentsPlain, Footprint: vram.Lean},
		{Stats: vram.StatsExact},
		{Segments: vram.SegmentsPlain, Stats: vram.StatsExact, Debug: true},
	}
	for i, name := range trace.Embedded() {
		t.Run(name, func(t *testing.T) {
			tr, err := trace.Open(name)
			require.NoError(t, err)
			for _, cfg := range []vram.Config{configs[i%len(configs)], configs[(i+1)%len(configs)]} {
				h := openHouse(t, cfg, sim.Config{NoVirtualMemory: cfg.Segments == vram.SegmentsPlain && i%2 == 0})
				var streams []*vram.Stream
				for range tr.Info.StreamCount {
					streams = append(streams, h.stream())
				}
				buffers := make([]vram.Buffer, tr.Info.AllocCount)
				var o overlaps
				playTrace(t, tr, streams, buffers, &o)
				n := h.addsUp()
				assert.GreaterOrEqual(t, n.PeakReservedBytes, tr.Info.PeakLiveBytes)
				assert.GreaterOrEqual(t, n.PeakLiveBytes, tr.Info.PeakLiveBytes)
				for _, id := range tr.Leftovers() {
					require.NoError(t, o.free(buffers[id]))
				}
				require.NoError(t, h.Close())
			}
		})
	}
}

func playTrace(t *testing.T, tr *trace.Trace, streams []*vram.Stream, buffers []vram.Buffer, o *overlaps) {
	t.Helper()
	for i := range tr.Events {
		e := &tr.Events[i]
		if e.Op == trace.Free {
			if err := o.free(buffers[e.ID]); err != nil {
				require.NoError(t, err, "event %d", i)
			}
			continue
		}
		b, err := streams[e.Stream].Alloc(e.Bytes)
		if err == nil {
			err = o.enter(b)
		}
		if err != nil || b.Bytes() != e.Bytes {
			require.NoError(t, err, "event %d", i)
			require.Equal(t, e.Bytes, b.Bytes(), "event %d", i)
		}
		buffers[e.ID] = b
	}
}
