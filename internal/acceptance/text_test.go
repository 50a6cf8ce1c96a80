package acceptance_test

import (
	"fmt"
	"log/slog"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/meter"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
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
		{tenant, `tenant "gold": holds 0 B, limit 4 MiB, share 2 MiB`},
		{tenant.Stats(), `tenant "gold": holds 0 B, limit 4 MiB, share 2 MiB`},
		{reserved, "reservation of 4 MiB"},
		{vram.Demand{Bytes: 4096, Count: 50}, "50 × 4 KiB"},
		{vram.Quota{}, "no limit"},
		{vram.Quota{Exclusive: true, LimitBytes: 1}, "limit 1 B, exclusive"},
		{vram.Settings{}, "no change"},
		{vram.Settings{LimitBytes: new(8 * gib), Footprint: new(vram.Lean)}, "LimitBytes: 8589934592, Footprint: lean"},
		{vram.Settings{Tuning: &vram.Tuning{}}, "Tuning: nothing tuned"},
		{vram.Settings{ReleaseAfter: new(30 * time.Second)}, "ReleaseAfter: 30s"},
		{vram.Config{ReleaseAfter: 90 * time.Minute}, "ReleaseAfter: 1h30m0s"},
		{vram.Config{Tuning: vram.Tuning{PressureMark: 0.5, SegmentBytes: 7}}, "Tuning: {SegmentBytes: 7, PressureMark: 0.5}"},
		{vram.Config{}, "the zero Config"},
		{
			vram.Config{
				Driver: sim.New(sim.Config{}), LimitBytes: 5, Logger: slog.New(slog.DiscardHandler), Warm: []vram.Demand{{Bytes: 1, Count: 1}},
				Events: vram.Events{Growth: func(vram.GrowthEvent) {}}, OnOutOfMemory: func(*vram.OutOfMemoryError) bool { return false },
			}, "Driver: sim, LimitBytes: 5, Warm: [1 × 1 B], OnOutOfMemory: set, Logger: set, Events: set",
		},
		{s.AllocAsync(t.Context(), vram.Request{Bytes: -1}), "failed: vram: negative size: -1 bytes"},
		{vram.Request{}, "0 B"},
		{&vram.Request{Bytes: -1}, "-1 B"},
		{
			vram.Request{Bytes: 2 * mib, Align: 4096, Zero: true, Tag: "w", Wait: true, Priority: 3, Tenant: tenant, Reservation: reserved},
			`2 MiB, aligned to 4 KiB, zeroed, tag "w", waits, priority 3, tenant "gold", reservation of 4 MiB`,
		},
		{vram.Request{Tenant: new(vram.Tenant), Reservation: new(vram.Reservation)}, `0 B, tenant "", no reservation`},
		{vram.BatchRequest{}, "0 buffers of 0 B"},
		{vram.BatchRequest{Bytes: []int64{mib, mib}, Wait: true}, "2 buffers of 2 MiB, waits"},
		{pool.RemedyKind(0), "no remedy"},
		{pool.TrimStream, "trim-stream"},
		{pool.RemedyKind(99), "RemedyKind(99)"},
		{pool.Remedy{}, "no remedy"},
		{pool.Holder{Stream: 2, HeldBytes: mib}, "stream 2 holds 1 MiB"},
		{pool.Holding{Stream: 2, HeldBytes: mib}, "stream 2 holds 1 MiB, 0 B live"},
		{pool.Waiter{}, "stream 0 waits for 0 B"},
		{pool.Waiter{Stream: 2, Bytes: mib, Tenant: "gold", Priority: 1, Blocked: true}, `stream 2 waits for 1 MiB for tenant "gold", priority 1, blocked`},
		{pool.LiveBuffer{}, "buffer of 0 B at 0x0 on stream 0"},
		{pool.LiveBuffer{Stream: 1, Ptr: 0x300000000, Bytes: mib, Tag: "w"}, `buffer of 1 MiB at 0x300000000 on stream 1, tag "w"`},
		{vram.PressureLevel(9), "PressureLevel(9)"},
		{vram.TenantStats{}, `tenant "": holds 0 B, no limit`},
		{vram.Buffer{}, "no buffer"},
		{vram.Batch{}, "batch of 0 buffers of 0 B"},
		{vram.Use{}, "no use"},
		{pool.WaitStats{Waiting: 1, DemandBytes: mib, Count: 1}, "1 waiting for 1 MiB; 1 wait in all, 0 deadlocks"},
		{pool.WaitStats{Count: 2, Longest: time.Second, Deadlocks: 1}, "0 waiting for 0 B; 2 waits in all, the longest that has ended took 1s, 1 deadlock"},
		{new(vram.Device), "no device"},
		{new(vram.Stream), "no stream"},
		{new(vram.Tenant), "no tenant"},
		{new(vram.Reservation), "no reservation"},
		{(*vram.Device)(nil), "no device"},
		{(*vram.Stream)(nil), "no stream"},
		{(*vram.Tenant)(nil), "no tenant"},
		{(*vram.Reservation)(nil), "no reservation"},
		{(*vram.Stats)(nil), "<nil>"},
		{pool.DurationHistogram{}, "no durations"},
		{pool.DurationHistogram{Counts: []uint64{0, 2}, Sum: 3 * time.Microsecond}, "2 durations, half below 2µs, 99% below 2µs, 3µs in all"},
		{streams.SizeStats{BlockBytes: kib, AllocCount: 2, FreeCount: 1, LiveCount: 1, LiveBytes: 700}, "blocks up to 1 KiB: 2 allocations, 1 free, 1 live with 700 B, cached 0 B"},
		{vram.GrowthEvent{Bytes: mib, ReservedBytes: 2 * mib}, "grew by 1 MiB to 2 MiB"},
		{vram.TrimEvent{Bytes: mib, ReservedBytes: 2 * mib}, "trimmed by 1 MiB to 2 MiB"},
		{vram.WarmEvent{MappedBytes: mib, WantedBytes: 2 * mib}, "warmed 1 MiB of 2 MiB"},
		{vram.PressureEvent{Level: 1, UsedBytes: mib, LimitBytes: gib}, "pressure high after normal, 1 MiB of 1 GiB in use"},
		{vram.PanicEvent{Place: "OnOutOfMemory", Value: 5}, "panic in OnOutOfMemory: 5"},
		{vram.QuarantineEvent{Stream: 2, Err: vram.ErrClosed}, "stream 2 is quarantined: " + vram.ErrClosed.Error()},
		{vram.QuarantineEvent{Err: vram.ErrClosed}, "the pool is quarantined: " + vram.ErrClosed.Error()},
		{vram.LongWaitEvent{Stream: 2, Bytes: mib, Waited: time.Second, Tag: "w", Priority: 1, ForQuota: true}, `stream 2 has waited 1s for 1 MiB, for its quota, priority 1, tag "w"`},
		{vram.BufferEvent{Stream: 2, Bytes: mib, Ptr: 31, Tenant: "gold"}, `buffer of 1 MiB at 0x1f of stream 2, tenant "gold"`},
		{streams.SampledBuffer{Stream: 2, Bytes: mib, Ptr: 31, Weight: 2.5}, "buffer of 1 MiB at 0x1f of stream 2, stands for 2.5"},
		{vram.Profile{SampleBytes: mib, Records: []vram.ProfileRecord{{InUse: vram.ProfileTotals{Count: 2, Bytes: mib}}}}, "1 place, a sample each 1 MiB; in use 2 buffers with 1 MiB"},
		{vram.GPUMemory{TotalBytes: 2 * gib, FreeBytes: mib}, "1 MiB of 2 GiB free"},
		{meter.CallStats{Func: "cuMemMap", Calls: 2, Failures: 1, Time: time.Second}, "cuMemMap: 2 in 1s, 1 failed"},
	}
	for _, c := range texts {
		for _, format := range []string{"%v", "%+v", "%s"} {
			assert.Equal(t, c.want, fmt.Sprintf(format, c.value), "%s of a %T", format, c.value)
		}
	}
	assert.Equal(t, "device 0 of the driver sim, not used yet", unused)
	stats := h.Stats()
	line := regexp.MustCompile(`^live 4 MiB \(peak \S+ MiB\), cached .*, pending 0 B, free .*; reserved \S+ MiB \(peak \S+ MiB\) of a limit of 64 MiB; ` +
		`4 allocations, 1 free, hit rate \d+\.\d%; \d+ driver calls in \S+; 3 streams; set aside 4 MiB\n`)
	for _, format := range []string{"%v", "%+v", "%s"} {
		assert.Regexp(t, line, fmt.Sprintf(format, stats))
		assert.Regexp(t, `^stream 1: live 4 MiB \(peak .*\), cached .*, pending 0 B; 4 allocations, 1 free, 3 live$`,
			fmt.Sprintf(format, stats.Streams[0]))
	}
	reserved.Release()
	assert.Equal(t, "reservation of 4 MiB, released", reserved.String())
	require.NoError(t, use.Done())
	freeAll(t, b)
	require.NoError(t, batch.Free())
	require.NoError(t, adopted.Close())
	assert.Equal(t, fmt.Sprintf("stream %d, adopted (handle %#x), closed", adopted.ID(), uint64(handle)), adopted.String())
	require.NoError(t, h.gpu.StreamDestroy(handle))
	require.NoError(t, h.Close())
	assert.Equal(t, "device 0 of the driver sim, closed", h.String())
	assert.Equal(t, "buffer of 2 MiB, freed", b.String())
}
