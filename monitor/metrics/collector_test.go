package metrics_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/monitor/metrics"
)

const mib = int64(1) << 20

func open(t *testing.T, cfg vram.Config) *vram.Device {
	t.Helper()
	if cfg.Driver == nil {
		cfg.Driver = sim.New(sim.Config{Devices: 2})
	}
	d, err := vram.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func stream(t *testing.T, d *vram.Device) *vram.Stream {
	t.Helper()
	s, err := d.NewStream()
	require.NoError(t, err)
	return s
}

func TestMetricsOfTwoDevices(t *testing.T) {
	registry := prometheus.NewRegistry()
	a, b := open(t, vram.Config{LimitBytes: 64 * mib}), open(t, vram.Config{Ordinal: 1, LimitBytes: 32 * mib})
	registry.MustRegister(metrics.New(a), metrics.New(b))
	s := stream(t, a)
	x, err := s.Alloc(5 * mib)
	require.NoError(t, err)
	_, err = s.Alloc(-1)
	require.Error(t, err)
	_, err = s.Alloc(63 * mib)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	require.NoError(t, stream(t, b).Close())
	y, err := s.Alloc(1)
	require.NoError(t, err)
	require.NoError(t, y.Free())
	require.ErrorIs(t, y.Free(), vram.ErrDoubleFree)
	const want = `
# HELP vram_allocations_total Allocations by the level that served them.
# TYPE vram_allocations_total counter
vram_allocations_total{device="0",level="driver"} 1
vram_allocations_total{device="0",level="magazine"} 0
vram_allocations_total{device="0",level="pool"} 0
vram_allocations_total{device="0",level="stream"} 1
vram_allocations_total{device="1",level="driver"} 0
vram_allocations_total{device="1",level="magazine"} 0
vram_allocations_total{device="1",level="pool"} 0
vram_allocations_total{device="1",level="stream"} 0
# HELP vram_bad_frees_total Frees of buffers that were not live.
# TYPE vram_bad_frees_total counter
vram_bad_frees_total{device="0"} 1
vram_bad_frees_total{device="1"} 0
# HELP vram_failed_requests_total Requests that came to nothing.
# TYPE vram_failed_requests_total counter
vram_failed_requests_total{cause="out_of_memory",device="0"} 1
vram_failed_requests_total{cause="refused",device="0"} 1
vram_failed_requests_total{cause="wait_ended",device="0"} 0
vram_failed_requests_total{cause="out_of_memory",device="1"} 0
vram_failed_requests_total{cause="refused",device="1"} 0
vram_failed_requests_total{cause="wait_ended",device="1"} 0
# HELP vram_limit_bytes The bound of vram_reserved_bytes.
# TYPE vram_limit_bytes gauge
vram_limit_bytes{device="0"} 6.7108864e+07
vram_limit_bytes{device="1"} 3.3554432e+07
# HELP vram_size_allocations_total Allocations by the size of their blocks.
# TYPE vram_size_allocations_total counter
vram_size_allocations_total{block_bytes="512",device="0"} 1
vram_size_allocations_total{block_bytes="8388608",device="0"} 1
`
	assert.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(want),
		"vram_allocations_total", "vram_bad_frees_total", "vram_failed_requests_total", "vram_limit_bytes", "vram_size_allocations_total"))
	assert.NoError(t, x.Free())
}

// The names, units and texts are as Prometheus asks for, and states add up.
func TestMetricsAreConventional(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, vram.Config{LimitBytes: 64 * mib})
		s, other := stream(t, d), stream(t, d)
		guest, err := d.Tenant("guest\xff", vram.Quota{LimitBytes: 60 * mib, ShareBytes: 30 * mib})
		require.NoError(t, err)
		x, err := s.Alloc(60 * mib)
		require.NoError(t, err)
		answer := other.AllocAsync(t.Context(), vram.Request{Bytes: 20 * mib, Tenant: guest, Wait: true})
		time.Sleep(3 * time.Millisecond) //nolint:forbidigo // virtual
		require.NoError(t, x.Free())
		y, err := answer.Await(t.Context())
		require.NoError(t, err)
		c := metrics.NewWith(d, metrics.Options{GPUMemory: true, Labels: prometheus.Labels{"host": "here"}})
		problems, err := testutil.CollectAndLint(c)
		require.NoError(t, err)
		assert.Empty(t, problems)
		registry := prometheus.NewPedanticRegistry()
		require.NoError(t, registry.Register(c))
		require.ErrorAs(t, registry.Register(c), new(prometheus.AlreadyRegisteredError), "it describes what it collects")
		families, err := registry.Gather()
		require.NoError(t, err)
		names := map[string]bool{}
		var statesBytes, reservedBytes float64
		for _, f := range families {
			names[f.GetName()] = true
			for _, m := range f.GetMetric() {
				var labels []string
				for _, l := range m.GetLabel() {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
				assert.Subset(t, labels, []string{"device=0", "host=here"}, f.GetName())
				switch f.GetName() {
				case "vram_memory_bytes":
					statesBytes += m.GetGauge().GetValue()
				case "vram_reserved_bytes":
					reservedBytes = m.GetGauge().GetValue()
				case "vram_wait_seconds", "vram_tenant_wait_seconds":
					h := m.GetHistogram()
					assert.Equal(t, uint64(1), h.GetSampleCount())
					assert.InDelta(t, 0.003, h.GetSampleSum(), 1e-9)
					assert.Equal(t, uint64(0), h.GetBucket()[11].GetCumulativeCount(), "2.048 ms")
					for _, b := range h.GetBucket()[12:] { // from 4.096 ms on
						assert.Equal(t, uint64(1), b.GetCumulativeCount())
					}
				}
			}
		}
		assert.InDelta(t, reservedBytes, statesBytes, 0)
		assert.True(t, names["vram_gpu_memory_bytes"])
		assert.Len(t, names, 46, "every metric")
		require.NoError(t, y.Free())
		require.NoError(t, d.Close())
	})
}

// A tenant whose name is the label of the others is one of them, also where it comes first.
func TestATenantNamedAsTheOthers(t *testing.T) {
	d := open(t, vram.Config{})
	for _, name := range []string{"other", "guest"} {
		_, err := d.Tenant(name, vram.Quota{LimitBytes: 64 * mib})
		require.NoError(t, err)
	}
	for _, most := range []int{0, 1, -1} {
		registry := prometheus.NewPedanticRegistry()
		require.NoError(t, registry.Register(metrics.NewWith(d, metrics.Options{MaxTenants: most})))
		families, err := registry.Gather()
		require.NoError(t, err, "no series comes twice")
		for _, f := range families {
			if f.GetName() != "vram_tenant_limit_bytes" {
				continue
			}
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					assert.NotEqual(t, "other", l.GetValue(), "the others have no limit")
				}
			}
		}
	}
	require.NoError(t, d.Close())
}

// The number of series is bounded for any number of streams and tenants, and the others are summed.
func TestSeriesAreBounded(t *testing.T) {
	d := open(t, vram.Config{LimitBytes: 256 * mib})
	for n := range 10 {
		s := stream(t, d)
		guest, err := d.Tenant(fmt.Sprintf("guest %d", n), vram.Quota{})
		require.NoError(t, err)
		if n == 1 {
			_, err = d.Tenant("other", vram.Quota{})
			require.NoError(t, err)
		}
		_, err = s.AllocFor(t.Context(), vram.Request{Bytes: mib, Tenant: guest})
		require.NoError(t, err)
	}
	c := metrics.NewWith(d, metrics.Options{MaxStreams: 3, MaxTenants: 2})
	assert.Equal(t, 4, testutil.CollectAndCount(c, "vram_stream_allocations"))
	assert.Equal(t, 3, testutil.CollectAndCount(c, "vram_tenant_allocations_total"))
	assert.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP vram_tenant_memory_bytes Memory in a tenant's buffers.
# TYPE vram_tenant_memory_bytes gauge
vram_tenant_memory_bytes{device="0",tenant="guest 0"} 1.048576e+06
vram_tenant_memory_bytes{device="0",tenant="guest 1"} 1.048576e+06
vram_tenant_memory_bytes{device="0",tenant="other"} 8.388608e+06
`), "vram_tenant_memory_bytes"))
}

// A negative bound means that none has series of its own.
func TestANegativeBoundMeansNone(t *testing.T) {
	d := open(t, vram.Config{LimitBytes: 64 * mib})
	_, err := d.Tenant("guest", vram.Quota{})
	require.NoError(t, err)
	stream(t, d)
	c := metrics.NewWith(d, metrics.Options{MaxStreams: -1, MaxTenants: -7})
	assert.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP vram_stream_allocations Allocations of an open stream.
# TYPE vram_stream_allocations gauge
vram_stream_allocations{device="0",stream="other"} 0
# HELP vram_tenant_allocations_total Allocations of a tenant.
# TYPE vram_tenant_allocations_total counter
vram_tenant_allocations_total{device="0",tenant="other"} 0
`), "vram_stream_allocations", "vram_tenant_allocations_total"))
}

// No two tenants have one label, and every histogram has all its buckets before the first wait.
func TestTenantsHaveLabelsOfTheirOwn(t *testing.T) {
	d := open(t, vram.Config{LimitBytes: 64 * mib})
	for _, name := range []string{"\xff", `"\xff"`, `"`, "\"\\\"\"", "plain"} {
		_, err := d.Tenant(name, vram.Quota{LimitBytes: 5 * mib, ShareBytes: mib})
		require.NoError(t, err)
	}
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(metrics.New(d)))
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		switch f.GetName() {
		case "vram_tenant_limit_bytes", "vram_tenant_share_bytes", "vram_tenant_peak_bytes", "vram_tenant_waiting_requests":
			assert.Len(t, f.GetMetric(), 5, f.GetName())
		case "vram_wait_seconds", "vram_tenant_wait_seconds":
			for _, m := range f.GetMetric() {
				assert.Len(t, m.GetHistogram().GetBucket(), 32, f.GetName())
			}
		}
	}
}

// With statistics off unknown figures are left out, and counters keep their last value.
func TestMetricsWithStatisticsOff(t *testing.T) {
	d := open(t, vram.Config{LimitBytes: 64 * mib})
	s := stream(t, d)
	x, err := s.Alloc(mib)
	require.NoError(t, err)
	c := metrics.New(d)
	require.NoError(t, d.Reconfigure(vram.Settings{Stats: new(vram.StatsOff)}))
	for name, series := range map[string]int{
		"vram_memory_bytes": 0, "vram_reserved_bytes": 0, "vram_peak_bytes": 0, "vram_size_memory_bytes": 0, "vram_stream_held_bytes": 0,
		"vram_waiting_requests": 0, "vram_efficiency_ratio": 0, "vram_limit_bytes": 1, "vram_frees_total": 1, "vram_wait_seconds": 1,
		"vram_size_allocations_total": 1,
	} {
		assert.Equal(t, series, testutil.CollectAndCount(c, name), name)
	}
	assert.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP vram_allocations_total Allocations by the level that served them.
# TYPE vram_allocations_total counter
vram_allocations_total{device="0",level="driver"} 1
vram_allocations_total{device="0",level="magazine"} 0
vram_allocations_total{device="0",level="pool"} 0
vram_allocations_total{device="0",level="stream"} 0
`), "vram_allocations_total"))
	assert.NoError(t, x.Free())
}

// The memory of the GPU is all of it, and the part that no program has.
func TestTheMemoryOfTheGPU(t *testing.T) {
	d := open(t, vram.Config{})
	x, err := stream(t, d).Alloc(64 * mib)
	require.NoError(t, err)
	gpu, err := d.GPUMemory()
	require.NoError(t, err)
	require.Less(t, gpu.FreeBytes, gpu.TotalBytes)
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(metrics.NewWith(d, metrics.Options{GPUMemory: true})))
	families, err := registry.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "vram_gpu_") {
			got[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	assert.Equal(t, map[string]float64{"vram_gpu_memory_bytes": float64(gpu.TotalBytes), "vram_gpu_free_memory_bytes": float64(gpu.FreeBytes)}, got)
	assert.NoError(t, x.Free())
}

// A GPU whose memory cannot be read leaves those two metrics out, and the failure is counted.
func TestAFailedReadOfTheGPUIsCounted(t *testing.T) {
	faults := fault.Wrap(sim.New(sim.Config{}))
	d := open(t, vram.Config{Driver: faults})
	require.NoError(t, stream(t, d).Close())
	require.NoError(t, faults.Add(fault.Rule{Func: "cuMemGetInfo", Result: cudadrv.Unknown}))
	c := metrics.NewWith(d, metrics.Options{GPUMemory: true})
	assert.Zero(t, testutil.CollectAndCount(c, "vram_gpu_memory_bytes"))
	families := testutil.CollectAndCount(c, "vram_driver_failures_total")
	assert.Positive(t, families)
	var failures uint64
	for _, n := range d.Stats().Driver {
		failures += n.Failures
	}
	assert.Equal(t, uint64(2), failures)
}

func Example() {
	device, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	if err != nil {
		panic(err)
	}
	defer device.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.New(device))
	families, err := registry.Gather()
	fmt.Println(len(families) > 10, err)
	// Output: true <nil>
}

// The counters of the summed tenants never fall: neither where one of them is closed, nor where one gets series of its own, nor where
// one is made again. Tenants that were closed before a collection saw them are not counted.
func TestCountersOfTheOtherTenantsNeverFall(t *testing.T) {
	d := open(t, vram.Config{LimitBytes: 64 * mib})
	s := stream(t, d)
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(metrics.NewWith(d, metrics.Options{MaxTenants: 1})))
	allocations := func() map[string]float64 {
		families, err := registry.Gather()
		require.NoError(t, err)
		all := map[string]float64{}
		for _, f := range families {
			if f.GetName() != "vram_tenant_allocations_total" {
				continue
			}
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if l.GetName() == "tenant" {
						all[l.GetValue()] = m.GetCounter().GetValue()
					}
				}
			}
		}
		return all
	}
	tenant := func(name string, uses int) *vram.Tenant {
		of, err := d.Tenant(name, vram.Quota{})
		require.NoError(t, err)
		for range uses {
			b, err := s.AllocFor(t.Context(), vram.Request{Bytes: mib, Tenant: of})
			require.NoError(t, err)
			require.NoError(t, b.Free())
		}
		return of
	}
	own, second, third := tenant("own", 1), tenant("second", 20), tenant("third", 300)
	assert.Equal(t, map[string]float64{"own": 1, "other": 320}, allocations())
	require.NoError(t, third.Close())
	assert.Equal(t, map[string]float64{"own": 1, "other": 320}, allocations())
	third = tenant("third", 4000)
	assert.Equal(t, map[string]float64{"own": 1, "other": 4320}, allocations())
	require.NoError(t, own.Close())
	assert.Equal(t, map[string]float64{"second": 20, "other": 4320}, allocations())
	tenant("second", 2)
	assert.Equal(t, map[string]float64{"second": 22, "other": 4320}, allocations())
	require.NoError(t, third.Close())
	assert.Equal(t, map[string]float64{"second": 22, "other": 4320}, allocations())
	require.NoError(t, tenant("unseen", 7).Close())
	require.NoError(t, second.Close())
	assert.Equal(t, map[string]float64{"other": 4320}, allocations())
}
