package vram

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv/meter"
	"github.com/go-vram/vram/internal/jsonform"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	streamcore "github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/internal/watermark/shared"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// StreamStats is one stream's part of Stats.
type StreamStats = streams.Stats

// Stats are a device's memory by state, and the costs of its requests. The figures of one stream
// are of one moment; the moments of several streams and of the pool are close to each other.
type Stats struct {
	// Config.Stats as it was when they were read; see StatsOff for the fields that are missing then
	Level StatsLevel `json:"level"`
	Delta bool       `json:"delta"` // they are the difference of two readings: see Sub

	LiveBytes    int64 `json:"live_bytes"`    // in buffers, each rounded up to its block
	CachedBytes  int64 `json:"cached_bytes"`  // free, kept by streams for their own next requests
	PendingBytes int64 `json:"pending_bytes"` // freed, while announced uses on other streams have not finished
	FreeBytes    int64 `json:"free_bytes"`    // free in the pool, for any stream
	// of FreeBytes: for the stream alone that returned them, until its work has finished
	UnpassedBytes int64 `json:"unpassed_bytes"`
	SetAsideBytes int64 `json:"set_aside_bytes"` // in reservations, not drawn yet
	// of live, cached and pending bytes: asleep, and not held from the driver; see package cuda/sleep
	SleepingBytes int64 `json:"sleeping_bytes"`
	SharedBytes   int64 `json:"shared_bytes"` // of package cuda/share: each process that has such memory counts it
	// held from the driver: all of the above but SleepingBytes, and memory in the middle of a driver job
	ReservedBytes int64 `json:"reserved_bytes"`
	LimitBytes    int64 `json:"limit_bytes"` // of ReservedBytes
	// the variable or the file that sets the limit: see Config.LimitBytes; "": the device's memory, or the program
	LimitSource string `json:"limit_source"`

	// PeakLiveBytes is the maximum of LiveBytes since Open or ResetPeaks. With StatsOn it is
	// sampled, and includes the magazines' cached blocks, so that it is rather too high, but never
	// above PeakReservedBytes. With StatsExact it is counted.
	PeakLiveBytes     int64 `json:"peak_live_bytes"`
	PeakReservedBytes int64 `json:"peak_reserved_bytes"` // likewise of ReservedBytes; always exact
	PeakFreeBytes     int64 `json:"peak_free_bytes"`     // likewise of FreeBytes, between driver jobs and requests; always exact
	// PeakPendingBytes is likewise of PendingBytes: exact for one stream, and for several at least the
	// maximum of each.
	PeakPendingBytes int64 `json:"peak_pending_bytes"`
	LargestFreeBytes int64 `json:"largest_free_bytes"` // the longest free range in the pool or in a stream

	// AllocCount never falls from one reading to the next. While a goroutine is interrupted inside Free, a reading may
	// count one allocation of its stream too many, which is then left out of the next allocation's count.
	AllocCount uint64 `json:"alloc_count"`
	FreeCount  uint64 `json:"free_count"`
	// The source of the allocations: a magazine; the stream's free ranges; free pages of the pool;
	// pages that the driver mapped for the request. They add up to AllocCount.
	MagazineHits uint64 `json:"magazine_hits"`
	StreamHits   uint64 `json:"stream_hits"`
	PoolHits     uint64 `json:"pool_hits"`
	DriverMisses uint64 `json:"driver_misses"`

	// LostFences counts fences that became part of a graph, because their stream was being
	// captured; see StreamStats.
	LostFences uint64 `json:"lost_fences"`

	pool.RequestCounts
	// ReclaimCount counts the requests of the pool to streams to release memory that others need.
	ReclaimCount uint64 `json:"reclaim_count"`
	// Sizes are the buffers by the size of their blocks, the smallest size first; sizes that never
	// occurred are absent.
	Sizes []streams.SizeStats `json:"sizes"`

	Waits   pool.WaitStats `json:"waits"`   // of requests with Wait
	Tenants []TenantStats  `json:"tenants"` // in the order in which they were made

	// NeighbourBytes are those that other devices of the process on the same GPU have released,
	// since the driver had no memory for a request of this one.
	NeighbourBytes int64 `json:"neighbour_bytes"`

	// Pressure is the level when it was looked at last, and PressureRises how often it has risen.
	Pressure      PressureLevel `json:"pressure"`
	PressureRises uint64        `json:"pressure_rises"`

	// Panics counts panics that were recovered: see Events.Panic. Each is a defect.
	Panics uint64 `json:"panics"`

	// DriverCalls counts the driver calls that the allocator makes, without calls of package cuda for the program,
	// such as launches and copies, and without the program's own.
	DriverCalls uint64 `json:"driver_calls"`
	// spent in them; on the simulated device the time that they take on an H200
	DriverTime time.Duration     `json:"-"`
	Driver     []meter.CallStats `json:"driver"` // the same by function; those never called are absent

	Streams []StreamStats `json:"streams"` // of the streams that are open
}

// count adds the totals of a stream that has ended.
func (s *Stats) count(n StreamStats) {
	s.AllocCount += n.AllocCount
	s.FreeCount += n.FreeCount
	s.MagazineHits += n.MagazineHits
	s.StreamHits += n.RangeHits
	s.PoolHits += n.PoolHits - n.DriverMisses
	s.DriverMisses += n.DriverMisses
	s.LostFences += n.LostFences
	s.Sizes = addSizes(s.Sizes, n.Sizes)
}

// addSizes adds counts by size, and changes neither slice.
func addSizes(a, b []streams.SizeStats) []streams.SizeStats {
	sum := append([]streams.SizeStats(nil), a...)
next:
	for _, z := range b {
		for i := range sum {
			if n := &sum[i]; n.BlockBytes == z.BlockBytes {
				n.AllocCount += z.AllocCount
				n.FreeCount += z.FreeCount
				n.LiveCount += z.LiveCount
				n.LiveBytes += z.LiveBytes
				n.CachedBytes += z.CachedBytes
				continue next
			}
		}
		sum = append(sum, z)
		for i := len(sum) - 1; i > 0 && sum[i-1].BlockBytes > sum[i].BlockBytes; i-- {
			sum[i-1], sum[i] = sum[i], sum[i-1]
		}
	}
	return sum
}

// HitRate returns the share of allocations that their stream's cache served, from 0 to 1; 1 if there
// were none.
func (s Stats) HitRate() float64 {
	if s.AllocCount == 0 {
		return 1
	}
	return float64(s.MagazineHits+s.StreamHits) / float64(s.AllocCount)
}

// Fragmentation returns the share of free and cached memory that lies outside the longest free range,
// from 0 to 1; 0 if all of it is one range, and of a Delta.
func (s Stats) Fragmentation() float64 {
	free := s.FreeBytes + s.CachedBytes
	if free == 0 || s.Delta {
		return 0
	}
	return 1 - float64(s.LargestFreeBytes)/float64(free)
}

// Efficiency returns PeakLiveBytes divided by PeakReservedBytes, from 0 to 1; 1 if no more was held than
// lived.
func (s Stats) Efficiency() float64 {
	if s.PeakReservedBytes == 0 {
		return 1
	}
	return min(1, float64(s.PeakLiveBytes)/float64(s.PeakReservedBytes))
}

// Stats reads all figures. It waits for the request that each stream and the pool are serving, as
// any request does, and stops nothing else. With StatsOff it waits for nothing. After Close it
// returns the last figures: bytes by state are those from before Close released all memory.
func (d *Device) Stats() Stats {
	if !d.opened() {
		return Stats{}
	}
	return d.read(&readings{})
}

// readings are peaks inside a scope that replace the peaks since the last reset.
type readings struct {
	streams       map[uint32]streamcore.Peaks // by stream
	tenants       map[uint32]int64            // bytes held, by ID
	pool          *poolcore.Peaks             // nil: those since the last reset
	live, sampled *int64                      // likewise
	pendingBytes  *int64                      // likewise
	gone          *int64                      // likewise
	gonePending   *int64                      // likewise
}

// read implements Stats.
func (d *Device) read(peaks *readings) Stats {
	r, level := d.streams.Load(), d.config.Load().Stats
	s := r.gone
	s.Level = level
	s.Sizes = addSizes(nil, r.gone.Sizes)
	s.LimitBytes, s.LimitSource, s.Panics = d.limit.Load(), d.limitSource(), d.panics.Count()
	s.Pressure, s.PressureRises = d.pressure.level(), d.pressure.rises.Load()
	for _, t := range d.tenants.list() {
		n := t.Stats()
		if peak, ok := peaks.tenants[n.ID]; ok {
			n.PeakHeldBytes = peak
		}
		s.Tenants = append(s.Tenants, n)
	}
	e := d.engine.Load()
	if e == nil {
		return s
	}
	s.RequestCounts = e.pool.Tally().Counts()
	s.NeighbourBytes = d.neighbourBytes.Load()
	if level == StatsOff {
		s.recall(e, r.open)
		s.readDriver(e)
		return s
	}
	ctx := context.Background()
	s.readStreams(ctx, r.open, peaks)
	s.chargeHanded(e.peers.Handed())
	d.pending.Raise(s.PendingBytes)
	d.sampled.Raise(s.LiveBytes) // no later reading has a lower peak
	s.PeakPendingBytes = max(s.PeakPendingBytes, either(peaks.pendingBytes, &d.pending), either(peaks.gonePending, &d.gonePending))
	s.PeakLiveBytes = either(peaks.sampled, &d.sampled)
	if p, ok := e.books(ctx); ok {
		if peaks.pool != nil {
			p.Peaks = *peaks.pool
		}
		s.FreeBytes = p.FreeBytes
		s.SetAsideBytes = p.SetAsideBytes
		s.SleepingBytes = p.SleepingBytes
		s.UnpassedBytes = p.PendingBytes
		s.countPool(&p)
		s.SharedBytes = p.OutsideBytes
		s.ReservedBytes, s.PeakReservedBytes = p.ReservedBytes+p.OutsideBytes, p.PeakReservedBytes
		s.LimitBytes = min(s.LimitBytes, p.LimitBytes+p.OutsideBytes)
		s.PeakFreeBytes = max(p.FreeBytes, p.PeakFreeBytes)
		s.LargestFreeBytes = max(s.LargestFreeBytes, p.LargestFreeBytes)
		s.PeakLiveBytes = max(s.PeakLiveBytes, p.PeakLiveBytes)
	}
	switch {
	case level == StatsExact:
		if s.PeakLiveBytes = d.live.PeakBytes(); peaks.live != nil {
			s.PeakLiveBytes = *peaks.live
		}
	case len(s.Streams) == 1:
		s.PeakLiveBytes = max(s.Streams[0].PeakLiveBytes, either(peaks.gone, &d.gonePeak))
	default:
		s.PeakLiveBytes = max(s.PeakLiveBytes, either(peaks.gone, &d.gonePeak))
		for i := range s.Streams { // neither the pool nor a tick may have seen a buffer of a cache
			s.PeakLiveBytes = max(s.PeakLiveBytes, s.Streams[i].PeakLiveBytes)
		}
	}
	s.PeakLiveBytes = max(s.PeakLiveBytes, s.LiveBytes)
	if s.PeakReservedBytes > 0 { // samples of several streams are of different moments
		s.PeakLiveBytes = min(s.PeakLiveBytes, s.PeakReservedBytes)
	}
	s.readDriver(e)
	s.NeighbourBytes = d.neighbourBytes.Load()
	return s
}

// countPool adds the pool's counts.
func (s *Stats) countPool(p *pool.Snapshot) {
	s.Waits, s.ReclaimCount = p.Waits, p.ReclaimCount
}

// recall adds the counts of streams and pool as they were read last. It takes no turn.
func (s *Stats) recall(e *engine, open []*streams.Control) {
	for _, stream := range open {
		s.count(stream.LastStats())
	}
	for i := range s.Sizes {
		z := &s.Sizes[i]
		*z = streams.SizeStats{BlockBytes: z.BlockBytes, AllocCount: z.AllocCount, FreeCount: z.FreeCount}
	}
	if p, ok := e.pool.LastSnapshot(); ok {
		s.countPool(&p)
		s.Waits.Waiting, s.Waits.DemandBytes = 0, 0
	}
}

// readStreams adds the streams that are open.
func (s *Stats) readStreams(ctx context.Context, open []*streams.Control, peaks *readings) {
	for _, stream := range open {
		n, err := stream.Stats(ctx)
		if err != nil {
			n = stream.LastStats()
		}
		if p, ok := peaks.streams[n.Stream]; ok {
			n.PeakLiveBytes, n.PeakPendingBytes, n.PeakHeldBytes = p.LiveBytes, p.PendingBytes, p.HeldBytes
		}
		s.count(n)
		s.LiveBytes += n.LiveBytes
		s.CachedBytes += n.CachedBytes
		s.PendingBytes += n.PendingBytes
		s.PeakPendingBytes = max(s.PeakPendingBytes, n.PeakPendingBytes)
		s.LargestFreeBytes = max(s.LargestFreeBytes, n.LargestFreeBytes)
		s.Streams = append(s.Streams, n)
	}
}

// chargeHanded charges streams with the buffers that they have of others since Transfer. Counts and peaks of
// the others stay with the streams of the memory.
func (s *Stats) chargeHanded(handed []pool.Handed) {
	if len(handed) == 0 {
		return
	}
	at := make(map[uint32]*StreamStats, len(s.Streams))
	for i := range s.Streams {
		at[s.Streams[i].Stream] = &s.Streams[i]
	}
	for _, h := range handed {
		from, to := at[h.From], at[h.To]
		if from == nil || to == nil {
			continue
		}
		bytes := min(h.Bytes, from.LiveBytes)
		from.LiveBytes -= bytes
		from.HeldBytes -= bytes
		to.LiveBytes += bytes
		to.HeldBytes += bytes
		to.PeakLiveBytes, to.PeakHeldBytes = max(to.PeakLiveBytes, to.LiveBytes), max(to.PeakHeldBytes, to.HeldBytes)
	}
}

// either returns a maximum inside a scope, or without a scope the maximum since the last reset.
func either(inScope *int64, all *shared.Mark) int64 {
	if inScope != nil {
		return *inScope
	}
	return all.Peak()
}

// readDriver reads the figures of the driver's calls, and sums them up.
func (s *Stats) readDriver(e *engine) {
	s.Driver = e.meter.ByCall()
	for i := range s.Driver {
		s.DriverCalls += s.Driver[i].Calls
		s.DriverTime += s.Driver[i].Time
	}
}

// GPUMemory is the memory of a whole GPU, including other programs.
type GPUMemory struct {
	TotalBytes int64 `json:"total_bytes"`
	FreeBytes  int64 `json:"free_bytes"` // that the driver could give at that moment
}

// GPUMemory asks the driver, by one call, for the memory of the whole GPU. With an error the figures are 0. Errors: the
// driver's, ErrClosed, and the errors of the device's first use, which this may be.
func (d *Device) GPUMemory() (GPUMemory, error) {
	e, err := d.use()
	if err != nil {
		return GPUMemory{}, err
	}
	if !d.creations.enter() { // Close waits for the call
		return GPUMemory{}, deviceClosed()
	}
	defer d.creations.leave()
	freeBytes, totalBytes, err := e.meter.MemGetInfo()
	if err != nil {
		return GPUMemory{}, failed("memory of the GPU", err)
	}
	return GPUMemory{TotalBytes: totalBytes, FreeBytes: freeBytes}, nil
}

// books returns the pool's figures, or after Close, which reads them before it releases memory, and after a
// failure the newest that were read. False: none were.
func (e *engine) books(ctx context.Context) (pool.Snapshot, bool) {
	p, err := e.pool.Snapshot(ctx)
	if err == nil {
		return p, true
	}
	return e.pool.LastSnapshot()
}

// ResetPeaks sets all peaks, of the device, of its streams and of its tenants, to the present values, and the longest waits to
// 0. It waits as Stats does. After Close it has no effect. A running Measure keeps its own peaks.
func (d *Device) ResetPeaks() {
	if !d.opened() {
		return
	}
	ctx := context.Background()
	open := d.streams.Load().open
	for _, s := range open {
		_ = s.ResetPeak(ctx) // a stream that has ended has no peak to come
	}
	for _, t := range d.tenants.list() {
		(*pool.TenantControl)(t).ResetPeak()
	}
	liveBytes, pendingBytes := liveOf(ctx, open)
	d.pending.Reset(pendingBytes)
	d.sampled.Reset(0)
	d.gonePeak.Reset(0)
	d.gonePending.Reset(0)
	d.live.ResetPeak()
	if e := d.engine.Load(); e != nil {
		_ = e.pool.ResetPeaks(ctx, liveBytes)
	}
}

// liveOf returns the present live bytes by stream, and the pending bytes of all.
func liveOf(ctx context.Context, open []*streams.Control) (liveBytes map[poolcore.Client]int64, pendingBytes int64) {
	liveBytes = map[poolcore.Client]int64{}
	for _, s := range open {
		if n, err := s.Stats(ctx); err == nil {
			liveBytes[poolcore.Client(n.Stream)] = n.LiveBytes
			pendingBytes += n.PendingBytes
		}
	}
	return liveBytes, pendingBytes
}

// Sub returns the difference between an earlier reading of the same device and this one; Delta says of a Stats
// that it is one. Its fields:
//
//   - Counts and times are differences.
//   - Bytes by state, the longest free range and the number of free ranges are their change: negative where
//     there is less.
//   - The longest wait covers the waits in between: exact if it is the longest of all, else the bound of its
//     bucket in Durations; 0 without a wait.
//   - Peaks, limits, quotas, levels and the numbers of live buffers and waiting requests are taken from
//     this reading.
//   - HitRate covers the allocations in between, Efficiency the peaks. Fragmentation cannot be computed from
//     changes: it is 0, and neither String nor the JSON has it.
//
// A stream, a tenant, a size or a function of the driver that only this reading lists counts from its
// beginning: so does a tenant that was made again under the name of one that was closed. Streams that have ended in between are part of the sums alone.
func (s Stats) Sub(before Stats) Stats {
	s.Delta = true
	subtract(before.bytes(), s.bytes())
	subtract(before.counts(), s.counts())
	s.RequestCounts = subRequests(s.RequestCounts, before.RequestCounts)
	s.Waits.Count -= before.Waits.Count
	s.Waits.Deadlocks -= before.Waits.Deadlocks
	s.Waits.Durations = s.Waits.Durations.Sub(before.Waits.Durations)
	s.Waits.Longest = longestSince(s.Waits.Durations, s.Waits.Longest, before.Waits.Longest)
	s.DriverTime -= before.DriverTime
	s.Sizes = subEach(s.Sizes, before.Sizes, func(n *streams.SizeStats) int64 { return n.BlockBytes }, subSize)
	s.Driver = subEach(s.Driver, before.Driver, func(n *meter.CallStats) string { return n.Func }, subCalls)
	s.Tenants = subEach(s.Tenants, before.Tenants, func(n *TenantStats) uint32 { return n.ID }, subTenant)
	s.Streams = subEach(s.Streams, before.Streams, func(n *StreamStats) uint32 { return n.Stream }, subStream)
	return s
}

// longestSince returns the longest duration after an earlier reading, or a bound of it: see Sub.
// longest and before are the longest of all durations until each reading.
func longestSince(since pool.DurationHistogram, longest, before time.Duration) time.Duration {
	if longest > before {
		return longest
	}
	for i, n := range slices.Backward(since.Counts) {
		if n == 0 {
			continue
		}
		if bound := since.Bound(i); bound > 0 {
			return min(bound, longest)
		}
		return longest
	}
	return 0
}

// bytes returns pointers to the bytes by state.
func (s *Stats) bytes() []*int64 {
	return []*int64{
		&s.LiveBytes, &s.CachedBytes, &s.PendingBytes, &s.FreeBytes, &s.UnpassedBytes, &s.SetAsideBytes, &s.SleepingBytes, &s.SharedBytes, &s.ReservedBytes,
		&s.NeighbourBytes, &s.LargestFreeBytes,
	}
}

// counts returns pointers to the counts of the device.
func (s *Stats) counts() []*uint64 {
	return []*uint64{
		&s.AllocCount, &s.FreeCount, &s.MagazineHits, &s.StreamHits, &s.PoolHits, &s.DriverMisses, &s.LostFences, &s.ReclaimCount,
		&s.PressureRises, &s.Panics, &s.DriverCalls,
	}
}

// subtract takes figures from those at the same places.
func subtract[T int64 | uint64](figures, from []*T) {
	for i := range from {
		*from[i] -= *figures[i]
	}
}

// subEach takes from each entry the one of the same key, as far as there is one. It changes neither
// slice.
func subEach[T any, K comparable](all, before []T, key func(*T) K, sub func(n, before *T)) []T {
	earlier := make(map[K]*T, len(before))
	for i := range before {
		earlier[key(&before[i])] = &before[i]
	}
	rest := append([]T(nil), all...)
	for i := range rest {
		if b := earlier[key(&rest[i])]; b != nil {
			sub(&rest[i], b)
		}
	}
	return rest
}

func subRequests(n, before pool.RequestCounts) pool.RequestCounts {
	n.OutOfMemoryCount -= before.OutOfMemoryCount
	n.RefusedCount -= before.RefusedCount
	n.RetryCount -= before.RetryCount
	n.BadFreeCount -= before.BadFreeCount
	n.EndedWaitCount -= before.EndedWaitCount
	return n
}

func subSize(n, before *streams.SizeStats) {
	n.AllocCount -= before.AllocCount
	n.FreeCount -= before.FreeCount
	n.LiveBytes -= before.LiveBytes
	n.CachedBytes -= before.CachedBytes
}

func subCalls(n, before *meter.CallStats) {
	n.Calls -= before.Calls
	n.Failures -= before.Failures
	n.Time -= before.Time
}

func subTenant(n, before *TenantStats) {
	n.HeldBytes -= before.HeldBytes
	n.ChargedBytes -= before.ChargedBytes
	n.AllocCount -= before.AllocCount
	n.FreeCount -= before.FreeCount
	n.OutOfMemoryCount -= before.OutOfMemoryCount
	n.QuotaRefusedCount -= before.QuotaRefusedCount
	n.Durations = n.Durations.Sub(before.Durations)
	n.Longest = longestSince(n.Durations, n.Longest, before.Longest)
}

func subStream(n, before *StreamStats) {
	subtract(streamBytes(before), streamBytes(n))
	subtract(streamCounts(before), streamCounts(n))
	n.FreeRanges -= before.FreeRanges
	n.RequestCounts = subRequests(n.RequestCounts, before.RequestCounts)
	n.Sizes = subEach(n.Sizes, before.Sizes, func(z *streams.SizeStats) int64 { return z.BlockBytes }, subSize)
}

func streamBytes(n *StreamStats) []*int64 {
	return []*int64{
		&n.LiveBytes, &n.PendingBytes, &n.CachedBytes, &n.SpanBytes, &n.MagazineBytes, &n.RangeBytes, &n.PageBytes, &n.HeldBytes,
		&n.LargestFreeBytes,
	}
}

func streamCounts(n *StreamStats) []*uint64 {
	return []*uint64{
		&n.NodeVisits, &n.AllocCount, &n.FreeCount, &n.MagazineHits, &n.RangeHits, &n.PoolHits, &n.DriverMisses, &n.LostFences,
	}
}

// String is a summary: the main figures on the first line, then, each on lines of their own and as
// far as there is any, the failures, the waits, the sizes, the streams, the tenants and the driver's
// functions that took the most time.
func (s Stats) String() string {
	text := []string{s.line()}
	add := func(format string, args ...any) { text = append(text, fmt.Sprintf("  "+format, args...)) }
	if s.RequestCounts != (pool.RequestCounts{}) {
		add("out of memory %d, refused %d, tried again %d, bad frees %d, waits that their context ended %d", s.OutOfMemoryCount, s.RefusedCount, s.RetryCount,
			s.BadFreeCount, s.EndedWaitCount)
	}
	if s.Waits.Count > 0 {
		h := s.Waits.Durations
		add("waits: half of %d below %v, 99%% below %v", h.Count(), h.Quantile(0.5), h.Quantile(0.99))
	}
	if s.FreeBytes+s.CachedBytes > 0 && !s.Delta {
		add("fragmentation %.1f%%, longest free range %s; efficiency %.1f%%", 100*s.Fragmentation(), units.Bytes(s.LargestFreeBytes), 100*s.Efficiency())
	}
	for _, z := range s.Sizes {
		add("%v", z)
	}
	for _, n := range s.Streams {
		add("%v", n)
	}
	for _, n := range s.Tenants {
		add("%v", n)
	}
	for _, c := range s.costliest() {
		add("%v", c)
	}
	return strings.Join(text, "\n")
}

// costliestCount bounds the functions of the driver in a summary.
const costliestCount = 5

// costliest returns the functions of the driver, the most time first.
func (s *Stats) costliest() []meter.CallStats {
	all := append([]meter.CallStats(nil), s.Driver...)
	slices.SortStableFunc(all, func(a, b meter.CallStats) int { return cmp.Compare(b.Time, a.Time) })
	return all[:min(costliestCount, len(all))]
}

// line prints the main figures; the bytes by state of a Delta with their signs.
func (s *Stats) line() string {
	state := units.Bytes
	if s.Delta {
		state = units.Change
	}
	text := fmt.Sprintf("live %s (peak %s), cached %s, pending %s, free %s; reserved %s (peak %s) of a limit of %s; %s, %s, hit rate %.1f%%; %s in %v; %s",
		state(s.LiveBytes), units.Bytes(s.PeakLiveBytes), state(s.CachedBytes), state(s.PendingBytes), state(s.FreeBytes),
		state(s.ReservedBytes), units.Bytes(s.PeakReservedBytes), units.Bytes(s.LimitBytes),
		units.Count(s.AllocCount, "allocation"), units.Count(s.FreeCount, "free"), 100*s.HitRate(),
		units.Count(s.DriverCalls, "driver call"), s.DriverTime, units.Count(len(s.Streams), "stream"))
	if s.SetAsideBytes != 0 {
		text += "; set aside " + state(s.SetAsideBytes)
	}
	if s.SharedBytes != 0 {
		text += "; shared " + state(s.SharedBytes)
	}
	if s.SleepingBytes != 0 {
		text += "; asleep " + state(s.SleepingBytes)
	}
	if s.Waits.Count > 0 {
		text += "; " + s.Waits.String()
	}
	if s.Pressure != PressureNormal {
		text += fmt.Sprintf("; pressure %v", s.Pressure)
	}
	return text
}

// MarshalJSON implements json.Marshaler: keys are the fields' names in snake_case, durations are in
// seconds. HitRate, Fragmentation and Efficiency are part of it; of a Delta, Fragmentation is not.
func (s Stats) MarshalJSON() ([]byte, error) {
	type plain Stats
	var fragmentation *float64
	if !s.Delta {
		fragmentation = new(s.Fragmentation())
	}
	p := plain(s)
	p.Sizes, p.Tenants = jsonform.List(s.Sizes), jsonform.List(s.Tenants)
	return json.Marshal(struct {
		plain
		DriverTime    float64           `json:"driver_time_seconds"`
		Driver        []meter.CallStats `json:"driver"`
		Streams       []StreamStats     `json:"streams"`
		HitRate       float64           `json:"hit_rate"`
		Fragmentation *float64          `json:"fragmentation,omitempty"`
		Efficiency    float64           `json:"efficiency"`
	}{p, s.DriverTime.Seconds(), jsonform.List(s.Driver), jsonform.List(s.Streams), s.HitRate(), fragmentation, s.Efficiency()})
}

// MarshalJSON implements json.Marshaler: the duration is in seconds.
func (m Measurement) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Elapsed float64 `json:"elapsed_seconds"`
		Stats   Stats   `json:"stats"`
	}{m.Elapsed.Seconds(), m.Stats})
}

// String prints both figures.
func (m GPUMemory) String() string {
	return fmt.Sprintf("%s of %s free", units.Bytes(m.FreeBytes), units.Bytes(m.TotalBytes))
}

// Measurement has a device's figures of the time in which a function ran: see Device.Measure.
type Measurement struct {
	Elapsed time.Duration
	// Stats are the differences as Stats.Sub has them: counts, driver calls and their time are those
	// inside, bytes by state are their growth, the longest wait is of the waits inside. Peaks are the
	// maxima inside, and buffers that lived before are part of them. Streams has the part of each stream.
	Stats Stats
}

// Measure calls f, which may be nil, and returns the device's figures of that time, in all and by stream, so that the parts of
// streams are distinct. Any number of measurements may run at once, one inside another or side by side; they do not change the
// peaks of Stats, and ResetPeaks inside f changes no peak of the measurement. It waits as Stats does, before and after f.
// Streams that end inside are part of the sums alone. Measure does not recover a panic of f.
func (d *Device) Measure(f func()) (m Measurement) {
	if !d.opened() {
		begun := time.Now()
		call(f)
		return Measurement{Elapsed: time.Since(begun)}
	}
	scope := d.beginScope()
	before := d.Stats()
	begun := time.Now()
	defer func() {
		elapsed := time.Since(begun)
		m = Measurement{Elapsed: elapsed, Stats: scope.end().Sub(before)}
	}()
	call(f)
	return m
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// scope is a running measurement. Its number stands for it in streams and in the pool.
type scope struct {
	device *Device
	number uint64
	engine *engine // nil: the device was not in use then
	shared []sharedScope
	begun  map[uint32]bool // streams that were open then, by ID
	lastID uint32          // streams with higher IDs were opened inside
	ended  atomic.Bool

	tenants atomic.Pointer[tenantScope] // the last one that joined; nil: none

	// The maxima of streams that have ended inside, each alone.
	gone, gonePending atomic.Int64
}

// scopes are the running measurements of a device. The list is replaced, never changed.
type scopes struct{ all atomic.Pointer[[]*scope] }

func (r *scopes) list() []*scope {
	if all := r.all.Load(); all != nil {
		return *all
	}
	return nil
}

// change replaces the list by a changed copy.
func (r *scopes) change(edit func([]*scope) []*scope) {
	for {
		old := r.all.Load()
		var next []*scope
		if old != nil {
			next = slices.Clone(*old)
		}
		if next = edit(next); r.all.CompareAndSwap(old, &next) {
			return
		}
	}
}

// sharedScope is the scope of a maximum that many goroutines update, and the destination of its peak.
type sharedScope struct {
	mark *shared.Scope
	set  func(*readings, int64)
}

// tenantScope is the scope of a tenant's peak, in a list.
type tenantScope struct {
	id     uint32
	mark   *shared.Scope
	before *tenantScope
}

func (d *Device) beginScope() *scope {
	ctx := context.Background()
	s := &scope{device: d, number: d.scopes.Add(1), engine: d.engine.Load(), begun: map[uint32]bool{}, lastID: d.lastID.Load()}
	open := d.streams.Load().open
	liveBytes, pendingBytes := liveOf(ctx, open)
	for _, one := range open {
		s.begun[one.ID()] = one.BeginScope(ctx, s.number) == nil // else it has ended before
	}
	d.running.change(func(all []*scope) []*scope { return append(all, s) })
	for _, one := range d.streams.Load().open { // those that were opened in between, and did not see it
		if _, known := s.begun[one.ID()]; !known {
			_ = one.BeginScope(ctx, s.number)
		}
	}
	s.shared = []sharedScope{
		{d.live.BeginScope(), func(r *readings, peak int64) { r.live = &peak }},
		{d.sampled.Begin(0), func(r *readings, peak int64) { r.sampled = &peak }},
		{d.pending.Begin(pendingBytes), func(r *readings, peak int64) { r.pendingBytes = &peak }},
	}
	for _, t := range d.tenants.list() {
		s.join((*pool.TenantControl)(t))
	}
	if s.engine != nil {
		_ = s.engine.pool.BeginScope(ctx, s.number, liveBytes) // a pool that has ended has no peak to come
	}
	return s
}

// join begins the running scopes in a stream that was opened inside them.
func (d *Device) join(one *streams.Control) {
	for _, s := range d.running.list() {
		_ = one.BeginScope(context.Background(), s.number) // likewise
		if s.ended.Load() {
			one.EndScope(s.number)
		}
	}
}

// joinTenant begins the running scopes in a tenant that was made inside them.
func (d *Device) joinTenant(t *pool.TenantControl) {
	for _, s := range d.running.list() {
		s.join(t)
	}
}

// join begins the scope in a tenant. A tenant that is made as the scope begins may join twice: the first one counts.
func (s *scope) join(t *pool.TenantControl) {
	one := &tenantScope{id: t.ID(), mark: t.BeginScope()}
	for {
		one.before = s.tenants.Load()
		if s.tenants.CompareAndSwap(one.before, one) {
			break
		}
	}
	if s.ended.Load() {
		one.mark.End()
	}
}

// leave adds the peaks of a stream that has ended to the running scopes.
func (d *Device) leave(one *streams.Control) {
	for _, s := range d.running.list() {
		s.leave(one, one.EndScope(s.number))
	}
}

// leave adds the peaks of a stream that has ended, unless it had ended before.
func (s *scope) leave(one *streams.Control, inside streamcore.Peaks) {
	if s.begun[one.ID()] || one.ID() > s.lastID {
		shared.Raise(&s.gone, inside.LiveBytes)
		shared.Raise(&s.gonePending, inside.PendingBytes)
	}
}

// end ends the scope and reads the statistics, with the peaks inside it.
func (s *scope) end() Stats {
	r := &readings{streams: map[uint32]streamcore.Peaks{}, tenants: map[uint32]int64{}}
	s.ended.Store(true)
	for _, one := range s.device.streams.Load().open { // those that are not there any more have left before
		p := one.EndScope(s.number)
		r.streams[one.ID()] = p
		if one.Gone() {
			s.leave(one, p)
		}
	}
	s.device.running.change(func(all []*scope) []*scope {
		return slices.DeleteFunc(all, func(x *scope) bool { return x == s })
	})
	r.gone, r.gonePending = new(s.gone.Load()), new(s.gonePending.Load())
	for _, x := range s.shared {
		x.set(r, x.mark.End())
	}
	for x := s.tenants.Load(); x != nil; x = x.before {
		r.tenants[x.id] = x.mark.End()
	}
	if s.engine != nil {
		if p, err := s.engine.pool.EndScope(context.Background(), s.number); err == nil {
			r.pool = &p
		}
	}
	return s.device.read(r)
}

// Since returns the difference between an earlier reading and Stats: see Stats.Sub.
func (d *Device) Since(before Stats) Stats { return d.Stats().Sub(before) }

// String prints the main figures, on one line.
func (m Measurement) String() string { return fmt.Sprintf("in %v: %s", m.Elapsed, m.Stats.line()) }
