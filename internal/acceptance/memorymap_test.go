package acceptance_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

// sums adds up the ranges of a map, and holds their places against its segments: ranges that lie side by side cover each of
// them, and no two segments have a byte in common.
func sums(t require.TestingT, m vram.MemoryMap) (total vram.MemoryBytes) {
	count, bytes := 0, int64(0)
	for i, s := range m.Segments {
		require.Positive(t, s.Bytes)
		require.Positive(t, s.HandleCount)
		for _, o := range m.Segments[:i] {
			require.True(t, o.Address+vram.Ptr(o.Bytes) <= s.Address || s.Address+vram.Ptr(s.Bytes) <= o.Address, "segments overlap")
		}
		end := int64(0)
		for _, r := range s.Ranges {
			require.Equal(t, end, r.OffsetBytes, "ranges lie side by side")
			require.Positive(t, r.Bytes)
			end += r.Bytes
			count++
			b := r.Mixed
			require.Equal(t, r.State == vram.MemoryMixed, b != nil)
			if b == nil {
				b = &vram.MemoryBytes{}
				*[...]*int64{
					&b.LiveBytes, &b.PendingBytes, &b.CachedBlockBytes, &b.CachedRangeBytes, &b.FreeBytes, &b.SetAsideBytes, &b.BusyBytes, &b.LentBytes,
				}[r.State] = r.Bytes
				if r.Asleep {
					b.SleepingBytes = r.Bytes
				}
				if r.State == vram.MemoryFree && r.Stream != 0 {
					b.UnpassedBytes = r.Bytes
				}
			}
			require.Equal(t, r.Bytes, ofAllStates(*b), "a mixed range has the sums of its states")
			total = plus(total, *b)
		}
		require.Equal(t, s.Bytes, end, "ranges cover their segment")
		bytes += s.Bytes
	}
	require.Equal(t, m.Total, total)
	require.Equal(t, m.ReservedBytes, bytes-total.SleepingBytes+m.UnmappedBytes)
	require.GreaterOrEqual(t, m.UnmappedBytes, int64(0))
	require.LessOrEqual(t, int64(count), 2*(bytes/m.ResolutionBytes)+2*int64(len(m.Segments)), "the number of ranges is bounded")
	return total
}

func ofAllStates(b vram.MemoryBytes) int64 {
	return b.LiveBytes + b.PendingBytes + b.CachedBlockBytes + b.CachedRangeBytes + b.FreeBytes + b.SetAsideBytes + b.BusyBytes + b.LentBytes
}

func plus(a, b vram.MemoryBytes) vram.MemoryBytes {
	return vram.MemoryBytes{
		LiveBytes: a.LiveBytes + b.LiveBytes, PendingBytes: a.PendingBytes + b.PendingBytes, CachedBlockBytes: a.CachedBlockBytes + b.CachedBlockBytes,
		CachedRangeBytes: a.CachedRangeBytes + b.CachedRangeBytes, FreeBytes: a.FreeBytes + b.FreeBytes, SetAsideBytes: a.SetAsideBytes + b.SetAsideBytes,
		BusyBytes: a.BusyBytes + b.BusyBytes, LentBytes: a.LentBytes + b.LentBytes, UnpassedBytes: a.UnpassedBytes + b.UnpassedBytes,
		SleepingBytes: a.SleepingBytes + b.SleepingBytes,
	}
}

// ofStats are the bytes by state as Stats has them, while the device rests.
func ofStats(s vram.Stats) vram.MemoryBytes {
	b := vram.MemoryBytes{
		LiveBytes: s.LiveBytes, PendingBytes: s.PendingBytes, FreeBytes: s.FreeBytes, UnpassedBytes: s.UnpassedBytes,
		SetAsideBytes: s.SetAsideBytes, SleepingBytes: s.SleepingBytes,
	}
	for _, n := range s.Streams {
		b.CachedBlockBytes += n.SpanBytes + n.MagazineBytes
		b.CachedRangeBytes += n.RangeBytes
	}
	return b
}

// resting reads a map while the periodic work of the device changes nothing, and holds its sums against Stats.
func resting(t require.TestingT, d *vram.Device, resolutionBytes int64) vram.MemoryMap {
	for range 100 {
		before := d.Stats()
		m, err := d.MemoryMap(context.Background(), resolutionBytes)
		require.NoError(t, err)
		total := sums(t, m)
		if after := d.Stats(); ofStats(before) == ofStats(after) && before.ReservedBytes == after.ReservedBytes &&
			before.ReservedBytes == ofAllStates(ofStats(after))-after.SleepingBytes { // no driver job is running
			require.Equal(t, ofStats(after), total)
			require.Equal(t, after.ReservedBytes, m.ReservedBytes)
			require.Equal(t, after.LimitBytes, m.LimitBytes)
			return m
		}
	}
	require.Fail(t, "the device does not rest")
	return vram.MemoryMap{}
}

// Each state is where it is, under the stream that has it.
func TestMemoryMapHasEveryState(t *testing.T) {
	d := vramtest.Open(t, vramtest.Config(vram.Config{LimitBytes: 512 * mib}))
	a, b := d.Stream(), d.Stream()
	require.NoError(t, d.Warm(t.Context(), vram.Demand{Bytes: 64 * mib, Count: 1}))
	weights, err := a.AllocFor(t.Context(), vram.Request{Bytes: 10 * mib, Tag: "weights"})
	require.NoError(t, err)
	again, err := a.AllocFor(t.Context(), vram.Request{Bytes: 4 * mib, Tag: "weights"})
	require.NoError(t, err)
	small, used := must(t, a, kib), must(t, a, 6*mib)
	u, err := used.Use(b)
	require.NoError(t, err)
	d.Launch(b, time.Second, vramtest.Reads(used))
	require.NoError(t, u.Done())
	freeAll(t, used)
	r, err := d.Reserve(t.Context(), 20*mib)
	require.NoError(t, err)

	m := resting(t, d.Device, 512)
	find := func(state vram.MemoryState) (all []vram.MemoryRange) {
		for _, s := range m.Segments {
			for _, r := range s.Ranges {
				if r.State == state {
					all = append(all, r)
				}
			}
		}
		return all
	}
	tagged := slices.DeleteFunc(find(vram.MemoryLive), func(r vram.MemoryRange) bool { return r.Tag != "weights" })
	require.NotEmpty(t, tagged)
	assert.Equal(t, a.ID(), tagged[0].Stream)
	buffers, bytes := 0, int64(0)
	for _, r := range tagged {
		buffers += r.BufferCount
		bytes += r.Bytes
	}
	assert.Equal(t, [...]int64{2, 14 * mib}, [...]int64{int64(buffers), bytes})
	pending := find(vram.MemoryPending)
	require.Len(t, pending, 1)
	assert.Equal(t, [...]int64{6 * mib, int64(a.ID())}, [...]int64{pending[0].Bytes, int64(pending[0].Stream)})
	assert.NotEmpty(t, find(vram.MemoryCachedBlock), "the rest of the block from which the small buffer was carved")
	require.NotEmpty(t, find(vram.MemorySetAside))
	assert.Equal(t, 20*mib, m.Total.SetAsideBytes)
	assert.Positive(t, m.Total.FreeBytes)
	assert.Empty(t, find(vram.MemoryMixed), "no block is shorter than the resolution")

	at := weights.Ptr()
	i := slices.IndexFunc(m.Segments, func(s vram.MemorySegment) bool { return s.Address <= at && at < s.Address+vram.Ptr(s.Bytes) })
	require.GreaterOrEqual(t, i, 0)
	s := m.Segments[i]
	j := slices.IndexFunc(s.Ranges, func(r vram.MemoryRange) bool {
		return vram.Ptr(r.OffsetBytes) <= at-s.Address && at-s.Address < vram.Ptr(r.OffsetBytes+r.Bytes)
	})
	assert.Equal(t, vram.MemoryLive, s.Ranges[j].State, "an address lies where the map says")

	m = resting(t, d.Device, 64*mib)
	mixed := find(vram.MemoryMixed)
	require.NotEmpty(t, mixed)
	assert.Equal(t, 14*mib+kib, m.Total.LiveBytes)
	text, err := json.Marshal(mixed[0].State)
	require.NoError(t, err)
	assert.Equal(t, `"mixed"`, string(text))
	assert.Contains(t, m.String(), "set aside 20 MiB")
	r.Release()
	freeAll(t, weights, again, small)
	d.Advance(time.Minute)
}

// After any calls the sums by state equal those in Stats, and ranges cover the segments without overlaps, in every footprint
// and with both kinds of segments.
func TestMemoryMapAgreesWithStats(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		driver := sim.New(sim.Config{})
		d, err := vram.Open(vram.Config{
			Driver: driver, LimitBytes: 256 * mib, Footprint: rapid.SampledFrom([]vram.Footprint{vram.Fast, vram.Balanced, vram.Lean}).Draw(rt, "footprint"),
			Segments: rapid.SampledFrom([]vram.Segments{vram.SegmentsAuto, vram.SegmentsPlain}).Draw(rt, "segments"),
		})
		require.NoError(rt, err)
		defer func() { _ = d.Close() }()
		var streams []*vram.Stream
		for range rapid.IntRange(1, 3).Draw(rt, "streams") {
			s, err := d.NewStream()
			require.NoError(rt, err)
			streams = append(streams, s)
		}
		var live []vram.Buffer
		var reserved []*vram.Reservation
		lengths := rapid.SampledFrom([]int64{1, kib, 5 * kib, 70 * kib, 300 * kib, mib, 3 * mib, 9*mib + 512, 30 * mib})
		ofSome := rapid.IntRange(0, 1<<20)
		for range rapid.IntRange(0, 40).Draw(rt, "calls") {
			s := streams[ofSome.Draw(rt, "stream")%len(streams)]
			switch rapid.IntRange(0, 8).Draw(rt, "call") {
			case 0, 1, 2, 3:
				b, err := s.AllocFor(context.Background(), vram.Request{Bytes: lengths.Draw(rt, "bytes"), Tag: rapid.SampledFrom([]string{"", "a"}).Draw(rt, "tag")})
				if err == nil {
					live = append(live, b)
				}
			case 4, 5:
				if len(live) > 0 {
					i := ofSome.Draw(rt, "buffer") % len(live)
					require.NoError(rt, live[i].Free())
					live = slices.Delete(live, i, i+1)
				}
			case 6: // freed while another stream uses it, for ever as far as the device goes
				if len(live) > 0 {
					gpu := driver.Device(0)
					require.NoError(rt, gpu.Occupy(s.Handle(), time.Hour))
					i := ofSome.Draw(rt, "buffer") % len(live)
					require.NoError(rt, live[i].RecordStream(s))
					require.NoError(rt, live[i].Free())
					live = slices.Delete(live, i, i+1)
				}
			case 7:
				if r, err := d.Reserve(context.Background(), lengths.Draw(rt, "bytes")); err == nil {
					reserved = append(reserved, r)
				}
			case 8:
				if len(reserved) > 0 && rapid.Bool().Draw(rt, "release") {
					reserved[0].Release()
					reserved = reserved[1:]
				} else {
					require.NoError(rt, s.Trim(context.Background()))
				}
			}
		}
		resting(rt, d, rapid.SampledFrom([]int64{0, 1, 4 * kib, mib, 5*mib + 1, gib}).Draw(rt, "resolution"))
		driver.Device(0).Advance(100 * time.Hour)
	})
}

// While streams work the ranges still cover the segments without overlaps, and the sums add up.
func TestMemoryMapWhileStreamsWork(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 128 * mib}, sim.Config{})
	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for i := range 3 {
		s := h.stream()
		workers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1)) //nolint:gosec // a test
			var live []vram.Buffer
			for ctx.Err() == nil {
				if b, err := s.Alloc(1 + random.Int64N(1<<(9+random.IntN(15)))); err == nil {
					live = append(live, b)
				} else {
					assert.ErrorIs(t, err, vram.ErrOutOfMemory)
				}
				for len(live) > 20 || len(live) > 0 && random.IntN(50) == 0 {
					assert.NoError(t, live[0].Free())
					live = live[1:]
				}
				if random.IntN(100) == 0 {
					assert.NoError(t, s.Trim(context.Background()))
				}
			}
			for _, b := range live {
				assert.NoError(t, b.Free())
			}
		})
	}
	for i := range 200 {
		m, err := h.MemoryMap(t.Context(), []int64{0, 512, 64 * kib, 8 * mib}[i%4])
		if !assert.NoError(t, err) {
			break
		}
		sums(t, m)
		if i%20 == 0 {
			h.trim()
		}
	}
	stop()
	workers.Wait()
	resting(t, h.Device, 512)
}

// Memory that the driver unmapped, and did not take back, is reserved and lies in no segment; where it did not unmap it, it stays there.
func TestMemoryThatTheDriverKeepsIsReserved(t *testing.T) {
	t.Parallel()
	for call, unmappedBytes := range map[string]int64{"cuMemRelease": 8 * mib, "cuMemUnmap": 0} {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		s := h.stream()
		freeAll(t, must(t, s, 8*mib))
		require.NoError(t, s.Trim(t.Context()))
		h.fail(call, cudadrv.Unknown)
		_, err := h.Trim(t.Context(), 0)
		require.ErrorIs(t, err, cudadrv.Unknown)
		m, err := h.MemoryMap(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, unmappedBytes, m.UnmappedBytes, call)
		assert.Equal(t, 8*mib, m.ReservedBytes, call)
		h.faults.Clear()
	}
}

// A map that cannot be read is an error, and one of a device that was not used is empty.
func TestMemoryMapErrors(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	m, err := h.MemoryMap(t.Context(), 0)
	require.NoError(t, err)
	assert.Empty(t, m.Segments)
	assert.Equal(t, 64*mib, m.LimitBytes)
	_, err = h.MemoryMap(t.Context(), -1)
	wrong, ok := errors.AsType[*vram.ConfigError](err)
	require.True(t, ok)
	assert.Contains(t, wrong.Error(), "resolutionBytes")
	freeAll(t, must(t, h.stream(), mib))
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = h.MemoryMap(ended, 0)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, h.Close())
	_, err = h.MemoryMap(t.Context(), 0)
	require.ErrorIs(t, err, vram.ErrClosed)
	_, err = (*vram.Device)(nil).MemoryMap(t.Context(), 0)
	require.ErrorIs(t, err, vram.ErrNotOpen)
	assert.Equal(t, "MemoryState(99)", vram.MemoryState(99).String())
}

// The state of a device is told without a use of it.
func TestTheStateOfADevice(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "not open", (*vram.Device)(nil).State().String())
	d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	assert.Equal(t, "unused", d.State().String())
	_ = d.Stats()
	assert.Equal(t, vram.DeviceUnused, d.State())
	_, err = d.NewStream()
	require.NoError(t, err)
	assert.Equal(t, "in use", d.State().String())
	require.NoError(t, d.Close())
	assert.Equal(t, "closed", d.State().String())
	assert.Equal(t, "DeviceState(9)", vram.DeviceState(9).String())
}
