package acceptance_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/pool"
)

// A measurement has the counts inside, by stream, and its own peaks; the program's own peaks are as if
// there were none.
func TestMeasure(t *testing.T) {
	for name, level := range map[string]vram.StatsLevel{"sampled": vram.StatsOn, "exact": vram.StatsExact} {
		t.Run(name, func(t *testing.T) {
			h := openHouse(t, vram.Config{LimitBytes: 512 * mib, Stats: level}, sim.Config{})
			a, b := h.stream(), h.stream()
			guest := h.tenant("guest", vram.Quota{})
			freeAll(t, must(t, a, 200*mib))
			h.trim()
			kept := must(t, a, 10*mib)
			before := h.Stats()
			var inner vram.Measurement
			outer := h.Measure(func() {
				x := must(t, b, 40*mib)
				inner = h.Measure(func() {
					y, err := b.AllocFor(t.Context(), vram.Request{Bytes: 20 * mib, Tenant: guest})
					require.NoError(t, err)
					freeAll(t, y)
				})
				h.ResetPeaks() // is no part of a measurement
				freeAll(t, x, must(t, b, 5*mib))
				freeAll(t, must(t, a, 30*mib))
			})
			after := h.Stats()
			assert.Equal(t, uint64(4), outer.Stats.AllocCount)
			assert.Equal(t, uint64(4), outer.Stats.FreeCount)
			assert.Zero(t, outer.Stats.LiveBytes)
			assert.Equal(t, after.DriverCalls-before.DriverCalls, outer.Stats.DriverCalls)
			assert.Positive(t, outer.Stats.DriverTime)
			require.Len(t, outer.Stats.Streams, 2)
			assert.Equal(t, uint64(1), outer.Stats.Streams[0].AllocCount)
			assert.Equal(t, uint64(3), outer.Stats.Streams[1].AllocCount)
			assert.Equal(t, 40*mib, outer.Stats.Streams[0].PeakLiveBytes, "what lived before is part of it")
			assert.Equal(t, 60*mib, outer.Stats.Streams[1].PeakLiveBytes)
			assert.GreaterOrEqual(t, outer.Stats.PeakLiveBytes, 70*mib)
			assert.Less(t, outer.Stats.PeakLiveBytes, 200*mib)
			assert.GreaterOrEqual(t, outer.Stats.PeakReservedBytes, 70*mib)
			assert.Less(t, outer.Stats.PeakReservedBytes, 200*mib)
			assert.Equal(t, 20*mib, outer.Stats.Tenants[0].PeakHeldBytes)

			assert.Equal(t, uint64(1), inner.Stats.AllocCount)
			assert.Equal(t, uint64(1), inner.Stats.Tenants[0].AllocCount)
			assert.Equal(t, 60*mib, inner.Stats.Streams[1].PeakLiveBytes)
			assert.Equal(t, 10*mib, inner.Stats.Streams[0].PeakLiveBytes)
			assert.Zero(t, inner.Stats.Streams[0].AllocCount)

			h.ResetPeaks()
			freeAll(t, must(t, a, 100*mib))
			h.trim()
			peaks := h.Stats()
			idle := h.Measure(nil)
			assert.Equal(t, 10*mib, idle.Stats.PeakLiveBytes)
			assert.Equal(t, idle.Stats.PeakReservedBytes, h.Stats().ReservedBytes)
			now := h.addsUp()
			assert.Equal(t, peaks.PeakLiveBytes, now.PeakLiveBytes)
			assert.GreaterOrEqual(t, now.PeakLiveBytes, 110*mib)
			assert.Equal(t, peaks.PeakReservedBytes, now.PeakReservedBytes)
			freeAll(t, kept)
		})
	}
}

// The peaks of a measurement are of its own time, where the program's are higher, and where they are reset inside.
func TestPeaksOfAMeasurementAreOfItsTime(t *testing.T) {
	for name, level := range map[string]vram.StatsLevel{"sampled": vram.StatsOn, "exact": vram.StatsExact} {
		t.Run(name, func(t *testing.T) {
			h := openHouse(t, vram.Config{LimitBytes: 512 * mib, Stats: level}, sim.Config{})
			s, other := h.stream(), h.stream()
			use := func(liveBytes, pendingBytes int64) {
				freeAll(t, must(t, s, liveBytes))
				b := must(t, s, pendingBytes)
				require.NoError(t, h.gpu.Launch(other.Handle(), time.Hour))
				require.NoError(t, b.RecordStream(other))
				freeAll(t, b)
				require.Equal(t, pendingBytes, h.Stats().PendingBytes)
				h.gpu.Advance(2 * time.Hour)
				h.trim()
				require.Zero(t, h.Stats().PendingBytes)
			}
			use(128*mib, 64*mib)
			for _, reset := range []bool{false, true} {
				n := h.Measure(func() {
					use(32*mib, 16*mib)
					if reset {
						h.ResetPeaks()
					}
				}).Stats
				assert.Equal(t, 32*mib, n.PeakLiveBytes)
				assert.Equal(t, 16*mib, n.PeakPendingBytes)
				assert.Equal(t, 32*mib, n.Streams[0].PeakLiveBytes)
				assert.Equal(t, 16*mib, n.Streams[0].PeakPendingBytes)
				assert.GreaterOrEqual(t, n.PeakReservedBytes, 32*mib)
			}
		})
	}
}

// Streams that come and go inside, a device that is first used inside, and a panic.
func TestMeasureOfWhatComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 512 * mib}, sim.Config{})
		first := h.Measure(func() {
			s := h.stream()
			freeAll(t, must(t, s, 30*mib))
			time.Sleep(time.Minute) //nolint:forbidigo // virtual
			require.NoError(t, s.Close())
		})
		assert.Equal(t, time.Minute, first.Elapsed)
		assert.Equal(t, uint64(1), first.Stats.AllocCount)
		assert.Equal(t, 30*mib, first.Stats.PeakLiveBytes)

		gone := h.stream()
		freeAll(t, must(t, gone, 200*mib))
		h.trim()
		m := h.Measure(func() {
			freeAll(t, must(t, gone, 40*mib))
			require.NoError(t, gone.Close())
			time.Sleep(time.Second) //nolint:forbidigo // virtual: it is forgotten
			synctest.Wait()
		})
		assert.Empty(t, m.Stats.Streams)
		assert.Equal(t, uint64(1), m.Stats.AllocCount)
		assert.GreaterOrEqual(t, m.Stats.PeakLiveBytes, 40*mib)
		assert.Less(t, m.Stats.PeakLiveBytes, 200*mib)

		assert.PanicsWithValue(t, "theirs", func() { h.Measure(func() { panic("theirs") }) })
		require.NoError(t, h.Close())
		assert.Zero(t, h.Measure(func() {}).Stats.AllocCount)
	})
}

// Measurements of many goroutines at once each see the counts of their own streams, to within the one allocation that
// Stats.AllocCount allows: another goroutine may read while this one is interrupted inside Free.
func TestMeasureOfManyGoroutines(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 512 * mib}, sim.Config{})
	var all sync.WaitGroup
	for n := range 4 {
		s := h.stream()
		all.Go(func() {
			made, sum := 0, uint64(0)
			for round := range 20 {
				count := n + round
				m := h.Measure(func() {
					for range count {
						b, err := s.Alloc(mib)
						if assert.NoError(t, err) {
							assert.NoError(t, b.Free())
						}
					}
				})
				for _, x := range m.Stats.Streams {
					if x.Stream == s.ID() {
						assert.InDelta(t, count, x.AllocCount, 1)
						sum += x.AllocCount
					}
				}
				assert.GreaterOrEqual(t, m.Stats.AllocCount+4, uint64(count))
				made += count
			}
			assert.InDelta(t, made, sum, 1, "an allocation that was counted early is not counted again")
		})
	}
	all.Wait()
	h.addsUp()
}

// number sets every number of a value to a further one, and every slice to two entries.
func number(v reflect.Value, next *int64) {
	switch {
	case v.CanInt():
		*next++
		v.SetInt(*next)
	case v.Kind() == reflect.Uint8: // levels
	case v.CanUint():
		*next++
		v.SetUint(uint64(*next))
	case v.Kind() == reflect.Struct:
		for _, field := range v.Fields() {
			number(field, next)
		}
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			number(v.Index(i), next)
		}
	}
}

// stays reports whether a difference has the later reading's value of a field.
func stays(name string) bool {
	switch name {
	case "LimitBytes", "ShareBytes", "Longest", "Waiting", "DemandBytes", "ID", "Stream", "BlockBytes", "Queued", "LiveCount":
		return true
	}
	return strings.HasPrefix(name, "Peak")
}

func checkDelta(t *testing.T, path string, d, before, after reflect.Value) {
	t.Helper()
	switch {
	case d.Kind() == reflect.Struct:
		for i := range d.NumField() {
			name := d.Type().Field(i).Name
			if stays(name) {
				assert.Equal(t, after.Field(i).Interface(), d.Field(i).Interface(), path+"."+name)
				continue
			}
			checkDelta(t, path+"."+name, d.Field(i), before.Field(i), after.Field(i))
		}
	case d.Kind() == reflect.Slice:
		for i := range d.Len() {
			checkDelta(t, path, d.Index(i), before.Index(i), after.Index(i))
		}
	case d.CanInt():
		assert.Equal(t, after.Int()-before.Int(), d.Int(), path)
	case d.CanUint():
		assert.Equal(t, after.Uint()-before.Uint(), d.Uint(), path)
	}
}

// A difference has every field of the statistics: counts and bytes as differences, the rest as they
// are.
func TestSubCoversEveryField(t *testing.T) {
	numbered := func(from int64) (s vram.Stats) {
		number(reflect.ValueOf(&s).Elem(), &from)
		for i := range 2 { // the same objects
			s.Streams[i].Stream, s.Tenants[i].ID, s.Driver[i].Func = uint32(i), uint32(i), string(rune('a'+i))
			s.Sizes[i].BlockBytes, s.Streams[i].Sizes[0].BlockBytes, s.Streams[i].Sizes[1].BlockBytes = 512<<i, 512, 1024
		}
		return s
	}
	before, after := numbered(0), numbered(1000)
	d := after.Sub(before)
	assert.Equal(t, numbered(0), before, "it changes neither")
	assert.Equal(t, numbered(1000), after, "it changes neither")
	checkDelta(t, "Stats", reflect.ValueOf(d), reflect.ValueOf(before), reflect.ValueOf(after))
	before.Streams, before.Tenants, before.Sizes, before.Driver = before.Streams[:1], nil, nil, nil
	d = after.Sub(before)
	assert.Equal(t, after.Streams[1], d.Streams[1], "it came in between")
	assert.Equal(t, after.Tenants, d.Tenants)
	assert.Equal(t, after.Sizes, d.Sizes)
	assert.Equal(t, after.Driver, d.Driver)
}

// A difference has the changes of states, and no share of two changes.
func TestADifferenceOfStates(t *testing.T) {
	t.Parallel()
	h := openHouse(t, vram.Config{LimitBytes: 256 * mib}, sim.Config{})
	s := h.stream()
	freeAll(t, must(t, s, 100*mib))
	b := must(t, s, 30*mib)
	before := h.Stats()
	var c vram.Buffer
	m := h.Measure(func() {
		freeAll(t, b)
		c = must(t, s, 29*mib)
	})
	after, d := h.Stats(), m.Stats
	assert.True(t, d.Delta)
	assert.Equal(t, -mib, d.LiveBytes)
	assert.Equal(t, after.LargestFreeBytes-before.LargestFreeBytes, d.LargestFreeBytes)
	assert.Equal(t, after.LargestFreeBytes-before.LargestFreeBytes, d.Streams[0].LargestFreeBytes)
	assert.Zero(t, d.Fragmentation())
	assert.NotContains(t, d.String(), "fragmentation")
	assert.Contains(t, d.String(), "live -1 MiB (peak ")
	assert.Contains(t, m.String(), "live -1 MiB (peak ")
	text, err := json.Marshal(d)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"delta":true`)
	assert.NotContains(t, string(text), "fragmentation")
	text, err = json.Marshal(after)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"fragmentation":`)
	more := h.Measure(func() { freeAll(t, must(t, s, 200*mib)) })
	assert.Contains(t, more.String(), "reserved +")
	freeAll(t, c)
}

// The longest wait of a difference covers the waits in between, as far as it is known, of the device and of a tenant.
func TestTheLongestWaitOfADifference(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		s, gold := h.stream(), h.tenant("gold", vram.Quota{})
		wait := func(d time.Duration) {
			x := must(t, s, 60*mib)
			answer := s.AllocAsync(t.Context(), vram.Request{Bytes: 60 * mib, Wait: true, Tenant: gold})
			<-time.After(d) // virtual
			freeAll(t, x)
			y, err := answer.Await(t.Context())
			require.NoError(t, err)
			freeAll(t, y)
		}
		longest := func(f func()) time.Duration {
			n := h.Measure(f).Stats
			assert.Equal(t, n.Waits.Longest, n.Tenants[0].Longest)
			return n.Waits.Longest
		}
		assert.Equal(t, 50*time.Millisecond, longest(func() { wait(50 * time.Millisecond) }), "the longest of all")
		assert.Zero(t, longest(nil), "there was none")
		assert.Equal(t, 4096*time.Microsecond, longest(func() { wait(3 * time.Millisecond) }), "the bound of its bucket")
		assert.Equal(t, 50*time.Millisecond, longest(func() { wait(49 * time.Millisecond) }), "the longest of all bounds it, too")
		assert.Equal(t, 50*time.Millisecond, h.Stats().Waits.Longest)
		h.ResetPeaks()
		assert.Zero(t, h.Stats().Waits.Longest)
		require.NoError(t, h.Close())
	})
}

// keysOf are the keys of an object of JSON, at any depth.
func keysOf(v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			into[key] = true
			keysOf(x, into)
		}
	case []any:
		for _, x := range v {
			keysOf(x, into)
		}
	}
}

// The statistics as JSON have every field, in snake_case, as encoding/json reads and writes them.
func TestStatsAsJSON(t *testing.T) {
	var full vram.Stats
	next := int64(0)
	number(reflect.ValueOf(&full).Elem(), &next)
	full.Waits.Durations.Counts = make([]uint64, 33)
	full.Waits.Durations.Counts[2], full.Waits.Durations.Counts[32] = 5, 1
	full.Tenants[0].Durations, full.Tenants[1].Durations = pool.DurationHistogram{}, pool.DurationHistogram{}
	full.Pressure = vram.PressureHigh
	text, err := json.Marshal(vram.Measurement{Elapsed: 2500 * time.Millisecond, Stats: full})
	require.NoError(t, err)
	var back map[string]any
	require.NoError(t, json.Unmarshal(text, &back))
	assert.InDelta(t, 2.5, back["elapsed_seconds"], 0)
	keys := map[string]bool{}
	keysOf(back, keys)
	for want := range strings.FieldsSeq(`live_bytes peak_live_bytes alloc_count magazine_hits hit_rate fragmentation efficiency driver_time_seconds
		out_of_memory_count refused_count block_bytes quota longest_seconds func failures time_seconds pressure below_seconds sum_seconds
		peak_held_bytes deadlocks streams tenants sizes driver name page_bytes lost_fences`) {
		assert.True(t, keys[want], want)
	}
	stats, _ := back["stats"].(map[string]any)
	assert.Equal(t, "high", stats["pressure"])
	assert.Len(t, stats, reflect.TypeFor[vram.Stats]().NumField()-1+reflect.TypeFor[pool.RequestCounts]().NumField()+3, "every field, and three shares")
	waits, _ := stats["waits"].(map[string]any)
	assert.Equal(t, map[string]any{"count": 6.0, "sum_seconds": full.Waits.Durations.Sum.Seconds(), "buckets": []any{
		map[string]any{"below_seconds": 4e-6, "count": 5.0}, map[string]any{"count": 1.0},
	}}, waits["durations"])
	for _, v := range []any{full.Streams[0], full.Sizes[0], full.Driver[0], full.Tenants[0], full.Waits, full.Waits.Durations, vram.Quota{}, vram.GPUMemory{}} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		assert.NotContains(t, string(text), "Bytes", "%T", v)
	}
}

// The summary has a line for each stream, size, tenant and costly function.
func TestTheSummary(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	guest := h.tenant("guest", vram.Quota{})
	s := h.stream()
	b, err := s.AllocFor(t.Context(), vram.Request{Bytes: 5 * mib, Tenant: guest})
	require.NoError(t, err)
	text := h.Stats().String()
	for _, want := range []string{
		"live 5 MiB (peak 5 MiB)", "\n  fragmentation ", "\n  blocks up to 8 MiB: 1 allocation, 0 frees, 1 live with 5 MiB, cached 0 B", "\n  stream 1: live 5 MiB",
		"\n  tenant \"guest\": holds 5 MiB", "\n  cuMemSetAccess: 1 in ",
	} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "waits:")
	before := h.Stats()
	freeAll(t, b, must(t, s, mib))
	d := h.Since(before)
	assert.Equal(t, uint64(1), d.AllocCount)
	assert.Equal(t, -5*mib, d.LiveBytes)
	assert.Contains(t, h.Measure(nil).String(), "in ")
}
