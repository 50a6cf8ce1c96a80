package vram_test

import (
	"fmt"
	"log/slog"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// The values that callers hold print readable, with units, under every verb; none shows its
// insides.
func TestWhatCallersHoldPrintsForPeople(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	unused := h.String()
	s := h.stream()
	b := must(t, s, 2*mib)
	freed := must(t, s, 1536)
	freeAll(t, freed)
	other := h.stream()
	use, err := b.Use(other)
	require.NoError(t, err)
	own, err := b.Use(s)
	require.NoError(t, err)
	batch, err := s.AllocBatchFor(t.Context(), vram.BatchRequest{Bytes: []int64{mib, mib}})
	require.NoError(t, err)
	lane, err := s.Lane(0)
	require.NoError(t, err)
	tenant, err := h.Tenant("gold", vram.Quota{LimitBytes: 4 * mib, ShareBytes: 2 * mib})
	require.NoError(t, err)
	reserved, err := h.Reserve(t.Context(), 3*mib)
	require.NoError(t, err)
	handle, err := h.gpu.StreamCreate()
	require.NoError(t, err)
	adopted, err := h.AdoptStream(handle)
	require.NoError(t, err)

	texts := []struct {
		value any
		want  string
	}{
		{h.Device, "device 0, simulated GPU, driver sim, limit 64 MiB, 3 streams"},
		{h.Info(), "device 0, simulated GPU, 139.8 GiB in pages of 2 MiB, driver sim 13.0"},
		{s, "stream 1"},
		{adopted, fmt.Sprintf("stream %d, adopted (handle %#x)", adopted.ID(), uint64(handle))},
		{b.Ptr(), fmt.Sprintf("%#x", uint64(b.Ptr()))},
		{b, fmt.Sprintf("buffer of 2 MiB at %#x", uint64(b.Ptr()))},
		{freed, "buffer of 1.5 KiB, freed"},
		{batch, "batch of 2 buffers of 2 MiB"},
		{use, "use on another stream"},
		{own, "use on the buffer's own stream"},
		{lane, "lane of stream 1"},
		{tenant, `tenant "gold": holds 0 B, limit 4 MiB, share 2 MiB`},
		{tenant.Stats(), `tenant "gold": holds 0 B, limit 4 MiB, share 2 MiB`},
		{reserved, "reservation of 4 MiB"},
		{vram.Demand{Bytes: 4096, Count: 50}, "50 × 4 KiB"},
		{vram.Quota{}, "no limit"},
		{vram.Quota{Exclusive: true, LimitBytes: 1}, "limit 1 B, exclusive"},
		{vram.Settings{}, "no change"},
		{vram.Settings{LimitBytes: new(8 * gib), Footprint: new(vram.Lean)}, "LimitBytes: 8589934592, Footprint: lean"},
		{vram.Settings{Tuning: &vram.Tuning{}}, "Tuning: nothing tuned"},
		{vram.Config{Tuning: vram.Tuning{PressureMark: 0.5, SegmentBytes: 7}}, "Tuning: {SegmentBytes: 7, PressureMark: 0.5}"},
		{vram.Config{}, "the zero Config"},
		{
			vram.Config{
				Driver: sim.New(sim.Config{}), LimitBytes: 5, Logger: slog.New(slog.DiscardHandler), Warm: []vram.Demand{{Bytes: 1, Count: 1}},
				Events: vram.Events{Growth: func(vram.GrowthEvent) {}}, OnOutOfMemory: func(*vram.OutOfMemoryError) bool { return false },
			}, "Driver: sim, LimitBytes: 5, Warm: [1 × 1 B], OnOutOfMemory: set, Logger: set, Events: set",
		},
		{s.AllocAsync(t.Context(), vram.Request{Bytes: -1}), "failed: vram: negative size: -1 bytes"},
		{vram.Buffer{}, "no buffer"},
		{vram.Batch{}, "batch of 0 buffers of 0 B"},
		{vram.Use{}, "no use"},
		{vram.WaitStats{Waiting: 1, DemandBytes: mib, Count: 2}, "1 waiting for 1 MiB; 2 waits in all, the longest 0s, 0 deadlocks"},
		{new(vram.Device), "no device"},
		{new(vram.Stream), "no stream"},
		{new(vram.Lane), "no lane"},
		{new(vram.Tenant), "no tenant"},
		{new(vram.Reservation), "no reservation"},
		{(*vram.Device)(nil), "no device"},
		{(*vram.Stream)(nil), "no stream"},
		{(*vram.Lane)(nil), "no lane"},
		{(*vram.Tenant)(nil), "no tenant"},
		{(*vram.Reservation)(nil), "no reservation"},
		{(*vram.Stats)(nil), "<nil>"},
	}
	for _, c := range texts {
		for _, format := range []string{"%v", "%+v", "%s"} {
			assert.Equal(t, c.want, fmt.Sprintf(format, c.value), "%s of a %T", format, c.value)
		}
	}
	assert.Equal(t, "device 0 of the driver sim, not used yet", unused)
	stats := h.Stats()
	line := regexp.MustCompile(`^live 4 MiB \(peak \S+ MiB\), cached .*, pending 0 B, free .*; reserved \S+ MiB \(peak \S+ MiB\) of a limit of 64 MiB; ` +
		`4 allocations, 1 free, hit rate \d+\.\d%; \d+ driver calls in \S+; 3 streams; set aside 4 MiB$`)
	for _, format := range []string{"%v", "%+v", "%s"} {
		assert.Regexp(t, line, fmt.Sprintf(format, stats))
		assert.Regexp(t, `^stream 1: live 4 MiB \(peak .*\), cached .*, pending 0 B; 4 allocations, 1 free, 3 live; 1 lane with 0 B$`,
			fmt.Sprintf(format, stats.Streams[0]))
	}
	reserved.Release()
	assert.Equal(t, "reservation of 4 MiB, released", reserved.String())
	require.NoError(t, use.Done())
	freeAll(t, b)
	require.NoError(t, batch.Free())
	require.NoError(t, lane.Close())
	require.NoError(t, adopted.Close())
	assert.Equal(t, fmt.Sprintf("stream %d, adopted (handle %#x), closed", adopted.ID(), uint64(handle)), adopted.String())
	require.NoError(t, h.gpu.StreamDestroy(handle))
	require.NoError(t, h.Close())
	assert.Equal(t, "device 0 of the driver sim, closed", h.String())
	assert.Equal(t, "buffer of 2 MiB, freed", b.String())
}
