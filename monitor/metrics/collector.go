package metrics

import (
	"maps"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/pool"
)

// Options bound the labels of a Collector.
type Options struct {
	// MaxStreams bounds the streams that have series of their own: those that come first in Stats. 0: 32;
	// negative: none has, and all are summed up.
	MaxStreams int
	// MaxTenants likewise bounds the tenants. The counters of their sum never fall: counts of a tenant stay in it, as they were
	// collected last, where the tenant is closed or gets series of its own.
	MaxTenants int
	// GPUMemory reads the memory of the whole GPU, too: one driver call for each collection. A call
	// that fails leaves the two metrics out, and is counted by vram_driver_failures_total.
	GPUMemory bool
	// Labels are added to every metric: a program that opens one GPU twice tells its devices apart by
	// them.
	Labels prometheus.Labels
}

// Collector is a device's statistics as metrics. Make one with New.
type Collector struct {
	device  *vram.Device
	options Options
	descs
	turn   chan struct{} // has room for the goroutine that reads the statistics
	summed summed        // owned by that
}

// summed is the tenants without series of their own.
type summed struct {
	now  map[uint32]vram.TenantStats // by ID, as they were read last
	left vram.TenantStats            // the counts of those that are none of them any more
	any  bool                        // there were such
}

var _ prometheus.Collector = (*Collector)(nil)

// New makes the Collector of a device, with the zero Options. It makes no driver call. The device may
// be closed before: its last figures are collected then.
func New(device *vram.Device) *Collector { return NewWith(device, Options{}) }

// NewWith is New with options.
func NewWith(device *vram.Device, o Options) *Collector {
	o.MaxStreams, o.MaxTenants = bound(o.MaxStreams), bound(o.MaxTenants)
	labels := prometheus.Labels{"device": strconv.Itoa(device.Ordinal())}
	maps.Copy(labels, o.Labels)
	return &Collector{device: device, options: o, descs: newDescs(labels), turn: make(chan struct{}, 1)}
}

// bound returns a bound of Options: 0 stands for a default, a negative one for none.
func bound(most int) int {
	if most == 0 {
		return 32
	}
	return max(most, 0)
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	if c == nil {
		return
	}
	for _, d := range c.all {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	if c == nil || c.device == nil { // of a Collector that New did not make
		return
	}
	m := emitter{to}
	if c.options.GPUMemory { // before the statistics, which count its failure
		if gpu, err := c.device.GPUMemory(); err == nil {
			m.bytes(c.gpuTotal, gpu.TotalBytes)
			m.bytes(c.gpuFree, gpu.FreeBytes)
		}
	}
	s, sum := c.read()
	m.bytes(c.limit, s.LimitBytes)
	m.add(c.pressure, prometheus.GaugeValue, float64(s.Pressure))
	if s.Level != vram.StatsOff { // else they are not known, and 0 would be wrong
		c.collectBytes(m, &s)
	}
	c.collectCounts(m, &s)
	c.collectWaits(m, &s)
	c.collectSizes(m, &s)
	c.collectStreams(m, s.Streams)
	c.collectTenants(m, s.Tenants, sum)
	for _, n := range s.Driver {
		m.count(c.driverCalls, n.Calls, n.Func)
		m.count(c.driverFailures, n.Failures, n.Func)
		m.add(c.driverSeconds, prometheus.CounterValue, n.Time.Seconds(), n.Func)
	}
}

// read returns the statistics, and the sum of the tenants without series of their own. One goroutine reads at a time: the sums are in
// the order of the readings.
func (c *Collector) read() (vram.Stats, *vram.TenantStats) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	s := c.device.Stats()
	return s, c.sumOthers(s.Tenants)
}

// emitter sends metrics.
type emitter struct{ to chan<- prometheus.Metric }

func (m emitter) add(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
	m.to <- prometheus.MustNewConstMetric(d, kind, value, labels...)
}

func (m emitter) bytes(d *prometheus.Desc, bytes int64, labels ...string) {
	m.add(d, prometheus.GaugeValue, float64(bytes), labels...)
}

func (m emitter) count(d *prometheus.Desc, n uint64, labels ...string) {
	m.add(d, prometheus.CounterValue, float64(n), labels...)
}

func (m emitter) durations(d *prometheus.Desc, h pool.DurationHistogram, labels ...string) {
	bounds, sum := map[float64]uint64{}, uint64(0)
	for i := 0; h.Bound(i) > 0; i++ { // all of them, also before the first wait: a bucket that appears later has no rate
		if i < len(h.Counts) {
			sum += h.Counts[i]
		}
		bounds[h.Bound(i).Seconds()] = sum
	}
	m.to <- prometheus.MustNewConstHistogram(d, h.Count(), h.Sum.Seconds(), bounds, labels...)
}

func (c *Collector) collectBytes(m emitter, s *vram.Stats) {
	for _, x := range []struct {
		state string
		bytes int64
	}{
		{"live", s.LiveBytes},
		{"cached", s.CachedBytes},
		{"pending", s.PendingBytes},
		{"free", s.FreeBytes},
		{"set_aside", s.SetAsideBytes},
		{"sleeping", s.SleepingBytes},
		{"shared", s.SharedBytes},
	} {
		m.bytes(c.memory, x.bytes, x.state)
	}
	m.bytes(c.reserved, s.ReservedBytes)
	m.bytes(c.largestFree, s.LargestFreeBytes)
	m.bytes(c.peak, s.PeakLiveBytes, "live")
	m.bytes(c.peak, s.PeakReservedBytes, "reserved")
	m.bytes(c.peak, s.PeakFreeBytes, "free")
	m.bytes(c.peak, s.PeakPendingBytes, "pending")
	m.add(c.fragmentation, prometheus.GaugeValue, s.Fragmentation())
	m.add(c.efficiency, prometheus.GaugeValue, s.Efficiency())
	m.add(c.waiting, prometheus.GaugeValue, float64(s.Waits.Waiting))
	m.bytes(c.demand, s.Waits.DemandBytes)
	for _, z := range s.Sizes {
		block := strconv.FormatInt(z.BlockBytes, 10)
		m.bytes(c.sizeMemory, z.LiveBytes, block, "live")
		m.bytes(c.sizeMemory, z.CachedBytes, block, "cached")
	}
}

func (c *Collector) collectCounts(m emitter, s *vram.Stats) {
	m.count(c.allocs, s.MagazineHits, "magazine")
	m.count(c.allocs, s.StreamHits, "stream")
	m.count(c.allocs, s.PoolHits, "pool")
	m.count(c.allocs, s.DriverMisses, "driver")
	m.count(c.frees, s.FreeCount)
	m.count(c.failed, s.OutOfMemoryCount, "out_of_memory")
	m.count(c.failed, s.RefusedCount, "refused")
	m.count(c.failed, s.EndedWaitCount, "wait_ended")
	m.count(c.badFrees, s.BadFreeCount)
	m.count(c.retries, s.RetryCount)
	m.count(c.reclaims, s.ReclaimCount)
	m.count(c.panics, s.Panics)
	m.count(c.pressureRises, s.PressureRises)
	m.count(c.lostFences, s.LostFences)
	m.add(c.neighbour, prometheus.CounterValue, float64(s.NeighbourBytes))
}

func (c *Collector) collectWaits(m emitter, s *vram.Stats) {
	m.count(c.deadlocks, s.Waits.Deadlocks)
	m.durations(c.waits, s.Waits.Durations)
}

func (c *Collector) collectSizes(m emitter, s *vram.Stats) {
	for _, z := range s.Sizes {
		block := strconv.FormatInt(z.BlockBytes, 10)
		m.count(c.sizeAllocs, z.AllocCount, block)
		m.count(c.sizeFrees, z.FreeCount, block)
	}
}

// collectStreams sends the first streams each on its own, and the sum of the others.
func (c *Collector) collectStreams(m emitter, all []vram.StreamStats) {
	some := min(len(all), c.options.MaxStreams)
	for _, n := range all[:some] {
		name := strconv.FormatUint(uint64(n.Stream), 10)
		c.sendStream(m, name, n)
		m.bytes(c.streamPeak, n.PeakLiveBytes, name, "live")
		m.bytes(c.streamPeak, n.PeakPendingBytes, name, "pending")
		m.bytes(c.streamPeak, n.PeakHeldBytes, name, "held")
	}
	if some == len(all) {
		return
	}
	var sum vram.StreamStats
	for _, n := range all[some:] {
		sum.LiveBytes += n.LiveBytes
		sum.CachedBytes += n.CachedBytes
		sum.PendingBytes += n.PendingBytes
		sum.HeldBytes += n.HeldBytes
		sum.AllocCount += n.AllocCount
		sum.FreeCount += n.FreeCount
		sum.MagazineHits += n.MagazineHits
		sum.RangeHits += n.RangeHits
		sum.PoolHits += n.PoolHits
		sum.DriverMisses += n.DriverMisses
	}
	c.sendStream(m, others, sum)
}

// others is the label of those that have no series of their own.
const others = "other"

// sendStream sends the figures that can be summed. Counts are gauges: the sum of the others falls when a stream ends.
func (c *Collector) sendStream(m emitter, name string, n vram.StreamStats) {
	m.bytes(c.streamMemory, n.LiveBytes, name, "live")
	m.bytes(c.streamMemory, n.CachedBytes, name, "cached")
	m.bytes(c.streamMemory, n.PendingBytes, name, "pending")
	m.bytes(c.streamHeld, n.HeldBytes, name)
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		m.add(d, prometheus.GaugeValue, float64(n), labels...)
	}
	count(c.streamAllocs, n.AllocCount, name)
	count(c.streamFrees, n.FreeCount, name)
	count(c.streamHits, n.MagazineHits, name, "magazine")
	count(c.streamHits, n.RangeHits, name, "stream")
	count(c.streamHits, n.PoolHits-n.DriverMisses, name, "pool")
	count(c.streamHits, n.DriverMisses, name, "driver")
}

// hasSeries reports whether a tenant has series of its own, by its place in the statistics.
func (c *Collector) hasSeries(place int, n *vram.TenantStats) bool {
	return place < c.options.MaxTenants && n.Name != others // the sum has that label
}

// sumOthers sums up the tenants without series of their own. Counts of those that were among them before are part of the sum: a
// counter does not fall where a tenant is closed, or gets series of its own. It is nil if there were none yet.
func (c *Collector) sumOthers(all []vram.TenantStats) *vram.TenantStats {
	sum, now := new(vram.TenantStats), map[uint32]vram.TenantStats{}
	for i := range all {
		n := &all[i]
		if c.hasSeries(i, n) {
			continue
		}
		now[n.ID] = *n
		sum.HeldBytes += n.HeldBytes
		sum.ChargedBytes += n.ChargedBytes
		sum.Queued += n.Queued
		addCounts(sum, n)
	}
	for id, n := range c.summed.now {
		if _, still := now[id]; !still {
			addCounts(&c.summed.left, &n)
			c.summed.any = true
		}
	}
	c.summed.now = now
	if len(now) == 0 && !c.summed.any {
		return nil
	}
	addCounts(sum, &c.summed.left)
	return sum
}

// addCounts adds the figures of a tenant that never fall.
func addCounts(sum, n *vram.TenantStats) {
	sum.AllocCount += n.AllocCount
	sum.FreeCount += n.FreeCount
	sum.OutOfMemoryCount += n.OutOfMemoryCount
	sum.QuotaRefusedCount += n.QuotaRefusedCount
	sum.Durations = sum.Durations.Add(n.Durations)
}

// collectTenants sends the first tenants each on its own, and the sum of the others, if it is not nil.
func (c *Collector) collectTenants(m emitter, all []vram.TenantStats, sum *vram.TenantStats) {
	for i := range all {
		n := &all[i]
		if c.hasSeries(i, n) {
			name := labelOf(n.Name)
			c.sendTenant(m, name, *n)
			c.sendBounds(m, name, *n)
		}
	}
	if sum != nil {
		c.sendTenant(m, others, *sum)
	}
}

// sendTenant sends the figures that can be summed.
func (c *Collector) sendTenant(m emitter, name string, n vram.TenantStats) {
	m.bytes(c.tenantMemory, n.HeldBytes, name)
	m.bytes(c.tenantCharged, n.ChargedBytes, name)
	m.count(c.tenantAllocs, n.AllocCount, name)
	m.count(c.tenantFrees, n.FreeCount, name)
	m.count(c.tenantFailed, n.OutOfMemoryCount, name, "out_of_memory")
	m.count(c.tenantFailed, n.QuotaRefusedCount, name, "quota")
	m.add(c.tenantWaiting, prometheus.GaugeValue, float64(n.Queued), name)
	m.durations(c.tenantWaits, n.Durations, name)
}

// sendBounds sends the figures of one tenant alone.
func (c *Collector) sendBounds(m emitter, name string, n vram.TenantStats) {
	m.bytes(c.tenantPeak, n.PeakHeldBytes, name)
	if n.Quota.LimitBytes > 0 {
		m.bytes(c.tenantLimit, n.Quota.LimitBytes, name)
	}
	if n.Quota.ShareBytes > 0 {
		m.bytes(c.tenantShare, n.Quota.ShareBytes, name)
	}
}

// labelOf returns a name as a label's value, which has to be UTF-8. One that could be taken for a quoted one is
// quoted, too: no two names have one label.
func labelOf(name string) string {
	if utf8.ValidString(name) && !strings.HasPrefix(name, `"`) {
		return name
	}
	return strconv.Quote(name)
}
