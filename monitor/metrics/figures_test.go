package metrics

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// sent returns the series that a function sends, with their values.
func sent(t *testing.T, send func(m emitter)) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(sending(send)))
	families, err := registry.Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			words := []string{strings.TrimPrefix(f.GetName(), "vram_")}
			for _, l := range m.GetLabel() {
				words = append(words, l.GetName()+"="+l.GetValue())
			}
			name := strings.Join(words, " ")
			all[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			if h := m.GetHistogram(); h != nil {
				all[name], all[name+" sum"] = float64(h.GetSampleCount()), h.GetSampleSum()
			}
		}
	}
	return all
}

// sending is a collector with the series of a function.
type sending func(m emitter)

func (sending) Describe(chan<- *prometheus.Desc) {}

func (s sending) Collect(to chan<- prometheus.Metric) { s(emitter{to}) }

// tenantSeries and streamSeries list the series of each figure of a tenant and of a stream, by the field: for one with series of its
// own, and for the sum of the others. "" says that there is none.
func tenantSeries() map[string][2]string {
	return map[string][2]string{
		"HeldBytes": {"tenant_memory_bytes", "tenant_memory_bytes"}, "ChargedBytes": {"tenant_charged_bytes", "tenant_charged_bytes"},
		"Queued": {"tenant_waiting_requests", "tenant_waiting_requests"}, "PeakHeldBytes": {"tenant_peak_bytes", ""},
		"AllocCount": {"tenant_allocations_total", "tenant_allocations_total"}, "FreeCount": {"tenant_frees_total", "tenant_frees_total"},
		"OutOfMemoryCount":  {"tenant_failed_requests_total cause=out_of_memory", "tenant_failed_requests_total cause=out_of_memory"},
		"QuotaRefusedCount": {"tenant_failed_requests_total cause=quota", "tenant_failed_requests_total cause=quota"},
		"Longest":           {"", ""}, "ID": {"-", ""},
	}
}

func streamSeries() map[string][2]string {
	both := func(name string) [2]string { return [2]string{name, name} }
	return map[string][2]string{
		"LiveBytes": both("stream_memory_bytes state=live"), "CachedBytes": both("stream_memory_bytes state=cached"),
		"PendingBytes": both("stream_memory_bytes state=pending"), "HeldBytes": both("stream_held_bytes"),
		"PeakLiveBytes": {"stream_peak_bytes state=live", ""}, "PeakPendingBytes": {"stream_peak_bytes state=pending", ""},
		"PeakHeldBytes": {"stream_peak_bytes state=held", ""},
		"AllocCount":    both("stream_allocations"), "FreeCount": both("stream_frees"),
		"MagazineHits": both("stream_hits level=magazine"), "RangeHits": both("stream_hits level=stream"),
		"PoolHits": both("stream_hits level=pool"), "DriverMisses": both("stream_hits level=driver"), // see PoolHits
		"Stream": {"-", ""}, "SpanBytes": {}, "MagazineBytes": {}, "RangeBytes": {}, "PageBytes": {}, "FreeRanges": {}, "LargestFreeBytes": {},
		"NodeVisits": {}, "LiveCount": {}, "Waiting": {}, "LostFences": {},
	}
}

// changed returns the names of the series that differ, without the label of the owner, with the difference.
func changed(before, after map[string]float64, label string) map[string]float64 {
	diff := map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if d := after[name] - before[name]; d != 0 {
			var rest []string
			for part := range strings.FieldsSeq(name) {
				if !strings.HasPrefix(part, label+"=") {
					rest = append(rest, part)
				}
			}
			diff[strings.Join(rest, " ")] += d
		}
	}
	return diff
}

// figures changes each number of each of four entries, of which two have series of their own, and compares the series that change
// with the table.
func figures[T any](t *testing.T, label string, table map[string][2]string, entry func(n int) T, send func(m emitter, all []T)) {
	t.Helper()
	all := []T{entry(1), entry(2), entry(3), entry(4)}
	before := sent(t, func(m emitter) { send(m, all) })
	seen := map[string]bool{}
	for i := range all {
		v := reflect.ValueOf(&all[i]).Elem()
		for k := range v.NumField() {
			f, name := v.Field(k), v.Type().Field(k).Name
			if !f.CanInt() && !f.CanUint() {
				continue
			}
			want, listed := table[name]
			require.True(t, listed, "%s is in no series and not listed", name)
			if seen[name] = true; want[0] == "-" {
				continue
			}
			const more = 1000
			old := reflect.ValueOf(f.Interface())
			if f.CanInt() {
				f.SetInt(f.Int() + more)
			} else {
				f.SetUint(f.Uint() + more)
			}
			got := changed(before, sent(t, func(m emitter) { send(m, all) }), label)
			f.Set(old)
			series := want[min(i/2, 1)]
			if name == "DriverMisses" { // part of the pool's hits, which the series of the pool are without
				assert.InDelta(t, -more, got["stream_hits level=pool"], 0, fmt.Sprint(i))
				delete(got, "stream_hits level=pool")
			}
			if series == "" {
				assert.Empty(t, got, "%s of entry %d", name, i)
			} else {
				assert.Equal(t, map[string]float64{series: more}, got, "%s of entry %d", name, i)
			}
		}
	}
	assert.Len(t, seen, len(table), "the table has fields that are no more")
}

// Each figure of a tenant and of a stream is in its series; the series of the others has the sum.
func TestEachFigureIsInItsSeries(t *testing.T) {
	c := &Collector{options: Options{MaxStreams: 2, MaxTenants: 2}, descs: newDescs(nil)}
	figures(t, "tenant", tenantSeries(), func(n int) vram.TenantStats {
		return vram.TenantStats{Name: fmt.Sprint("guest", n), HeldBytes: int64(n), Queued: n, AllocCount: uint64(10 * n)} //nolint:gosec // a few
	}, func(m emitter, all []vram.TenantStats) { c.collectTenants(m, all, c.sumOthers(all)) })
	figures(t, "stream", streamSeries(), func(n int) vram.StreamStats {
		return vram.StreamStats{Stream: uint32(n), LiveBytes: int64(n), PoolHits: uint64(n) + 5000, DriverMisses: uint64(n)} //nolint:gosec // a few
	}, c.collectStreams)
}

// deviceSeries list the series of each figure of a device, with a function that changes it.
func deviceSeries() map[string]func(s *vram.Stats) {
	const more = 1000
	return map[string]func(s *vram.Stats){
		"memory_bytes state=live":      func(s *vram.Stats) { s.LiveBytes += more },
		"memory_bytes state=cached":    func(s *vram.Stats) { s.CachedBytes += more },
		"memory_bytes state=pending":   func(s *vram.Stats) { s.PendingBytes += more },
		"memory_bytes state=free":      func(s *vram.Stats) { s.FreeBytes += more },
		"memory_bytes state=set_aside": func(s *vram.Stats) { s.SetAsideBytes += more },
		"memory_bytes state=sleeping":  func(s *vram.Stats) { s.SleepingBytes += more },
		"memory_bytes state=shared":    func(s *vram.Stats) { s.SharedBytes += more },
		"reserved_bytes":               func(s *vram.Stats) { s.ReservedBytes += more },
		"largest_free_bytes":           func(s *vram.Stats) { s.LargestFreeBytes += more },
		"peak_bytes state=live":        func(s *vram.Stats) { s.PeakLiveBytes += more },
		"peak_bytes state=reserved":    func(s *vram.Stats) { s.PeakReservedBytes += more },
		"peak_bytes state=free":        func(s *vram.Stats) { s.PeakFreeBytes += more },
		"peak_bytes state=pending":     func(s *vram.Stats) { s.PeakPendingBytes += more },
		"waiting_requests":             func(s *vram.Stats) { s.Waits.Waiting += more },
		"waiting_bytes":                func(s *vram.Stats) { s.Waits.DemandBytes += more },

		"size_memory_bytes block_bytes=1024 state=live":   func(s *vram.Stats) { s.Sizes[1].LiveBytes += more },
		"size_memory_bytes block_bytes=1024 state=cached": func(s *vram.Stats) { s.Sizes[1].CachedBytes += more },
		"size_allocations_total block_bytes=1024":         func(s *vram.Stats) { s.Sizes[1].AllocCount += more },
		"size_frees_total block_bytes=1024":               func(s *vram.Stats) { s.Sizes[1].FreeCount += more },

		"allocations_total level=magazine":          func(s *vram.Stats) { s.MagazineHits += more },
		"allocations_total level=stream":            func(s *vram.Stats) { s.StreamHits += more },
		"allocations_total level=pool":              func(s *vram.Stats) { s.PoolHits += more },
		"allocations_total level=driver":            func(s *vram.Stats) { s.DriverMisses += more },
		"frees_total":                               func(s *vram.Stats) { s.FreeCount += more },
		"failed_requests_total cause=out_of_memory": func(s *vram.Stats) { s.OutOfMemoryCount += more },
		"failed_requests_total cause=refused":       func(s *vram.Stats) { s.RefusedCount += more },
		"failed_requests_total cause=wait_ended":    func(s *vram.Stats) { s.EndedWaitCount += more },
		"bad_frees_total":                           func(s *vram.Stats) { s.BadFreeCount += more },
		"retries_total":                             func(s *vram.Stats) { s.RetryCount += more },
		"reclaims_total":                            func(s *vram.Stats) { s.ReclaimCount += more },
		"panics_total":                              func(s *vram.Stats) { s.Panics += more },
		"pressure_rises_total":                      func(s *vram.Stats) { s.PressureRises += more },
		"lost_fences_total":                         func(s *vram.Stats) { s.LostFences += more },
		"neighbour_released_bytes_total":            func(s *vram.Stats) { s.NeighbourBytes += more },
		"deadlocks_total":                           func(s *vram.Stats) { s.Waits.Deadlocks += more },
	}
}

// Each figure of a device is in one series, as it is.
func TestEachFigureOfADeviceIsInItsSeries(t *testing.T) {
	c := &Collector{descs: newDescs(nil)}
	ratios := []string{"fragmentation_ratio", "efficiency_ratio"} // of several figures
	read := func(s *vram.Stats) map[string]float64 {
		all := sent(t, func(m emitter) {
			c.collectBytes(m, s)
			c.collectCounts(m, s)
			c.collectSizes(m, s)
			c.collectWaits(m, s)
		})
		assert.InDelta(t, s.Fragmentation(), all[ratios[0]], 0)
		assert.InDelta(t, s.Efficiency(), all[ratios[1]], 0)
		for _, name := range ratios {
			delete(all, name)
		}
		return all
	}
	stats := func() *vram.Stats {
		return &vram.Stats{
			FreeBytes: 50, LargestFreeBytes: 30, PeakLiveBytes: 40, PeakReservedBytes: 90,
			Sizes: []streams.SizeStats{{BlockBytes: 512, LiveBytes: 512}, {BlockBytes: 1024, LiveBytes: 2048}},
		}
	}
	before := read(stats())
	for series, change := range deviceSeries() {
		s := stats()
		change(s)
		assert.Equal(t, map[string]float64{series: 1000}, changed(before, read(s), ""), series)
	}
	delete(before, "wait_seconds") // a histogram
	delete(before, "wait_seconds sum")
	assert.Len(t, before, len(deviceSeries())+4, "the table has all series, of one of the two sizes")
}

// A stream is named by its number in decimal, and a quota of one byte is one.
func TestLabelsAndBounds(t *testing.T) {
	c := &Collector{options: Options{MaxStreams: 2, MaxTenants: 2}, descs: newDescs(nil)}
	names := sent(t, func(m emitter) { c.collectStreams(m, []vram.StreamStats{{Stream: 1234, LiveBytes: 5}}) })
	assert.InDelta(t, 5, names["stream_memory_bytes state=live stream=1234"], 0)
	tenants := sent(t, func(m emitter) {
		c.collectTenants(m, []vram.TenantStats{
			{Name: "a", Quota: vram.Quota{LimitBytes: 1}}, {Name: "b", Quota: vram.Quota{ShareBytes: 1}},
		}, nil)
	})
	for name, want := range map[string]bool{
		"tenant_limit_bytes tenant=a": true, "tenant_share_bytes tenant=a": false,
		"tenant_limit_bytes tenant=b": false, "tenant_share_bytes tenant=b": true,
	} {
		value, found := tenants[name]
		assert.Equal(t, want, found, name)
		assert.True(t, !found || value == 1, name)
	}
	assert.Equal(t, []int{32, 1, 7, 0}, []int{bound(0), bound(1), bound(7), bound(-1)})
}

// Waits of tenants without series of their own are added up.
func TestWaitsOfOtherTenantsAreSummed(t *testing.T) {
	c := &Collector{options: Options{MaxTenants: 1}, descs: newDescs(nil)}
	waited := func(seconds time.Duration, counts ...uint64) vram.TenantStats {
		return vram.TenantStats{Name: fmt.Sprint("guest", int(seconds)), Durations: pool.DurationHistogram{Sum: seconds * time.Second, Counts: counts}}
	}
	waits := []vram.TenantStats{waited(1, 1), waited(2, 0, 2), waited(4, 3)}
	all := sent(t, func(m emitter) { c.collectTenants(m, waits, c.sumOthers(waits)) })
	assert.InDelta(t, 1, all["tenant_wait_seconds tenant=guest1"], 0)
	assert.InDelta(t, 1, all["tenant_wait_seconds tenant=guest1 sum"], 0)
	assert.InDelta(t, 5, all["tenant_wait_seconds tenant=other"], 0)
	assert.InDelta(t, 6, all["tenant_wait_seconds tenant=other sum"], 0)
}
