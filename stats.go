package vram

import (
	"context"
	"time"

	"github.com/go-vram/vram/cudadrv/meter"
	"github.com/go-vram/vram/internal/watermark/shared"
	"github.com/go-vram/vram/pool"
	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/streams"
	streamcore "github.com/go-vram/vram/streams/core"
)

// StreamStats is one stream's part of Stats.
type StreamStats = streams.Stats

// SizeStats counts the buffers of one size: see Stats.Sizes.
type SizeStats = streams.SizeStats

// RequestCounts counts requests and frees that came to nothing, or not at once.
type RequestCounts = pool.RequestCounts

// DurationHistogram counts durations by powers of two of a microsecond.
type DurationHistogram = pool.DurationHistogram

// CallStats counts the calls of one function of the driver.
type CallStats = meter.CallStats

// WaitStats counts the requests that wait for memory at the moment, and those that have waited.
type WaitStats = pool.WaitStats

// Stats are a device's memory by state, and the costs of its requests. The figures of one stream
// are of one moment; those of several streams and of the pool are of moments close to each other.
type Stats struct {
	Level StatsLevel // Config.Stats as it was when they were read; see StatsOff for the fields that are missing then
	Delta bool       // they are the difference of two readings: see Sub

	LiveBytes     int64 // in buffers, each rounded up to its block
	CachedBytes   int64 // free, kept by streams for their own next requests
	PendingBytes  int64 // freed, while announced uses on other streams have not finished
	FreeBytes     int64 // free in the pool, for any stream
	UnpassedBytes int64 // of FreeBytes: for the stream alone that returned them, until its work has finished
	SetAsideBytes int64 // in reservations, not drawn yet
	SleepingBytes int64 // of live, cached and pending bytes: asleep, and not held from the driver; see package cuda/sleep
	SharedBytes   int64 // of package cuda/share: each process that has such memory counts it
	ReservedBytes int64 // held from the driver: all of the above but SleepingBytes, and memory in the middle of a driver job
	LimitBytes    int64 // of ReservedBytes

	// PeakLiveBytes is the maximum of LiveBytes since Open or ResetPeaks. With StatsOn it is
	// sampled, and includes the magazines' cached blocks, so that it is rather too high, but never
	// above PeakReservedBytes. With StatsExact it is counted.
	PeakLiveBytes     int64
	PeakReservedBytes int64 // likewise of ReservedBytes; always exact
	PeakFreeBytes     int64 // likewise of FreeBytes, between driver jobs and requests; always exact
	// PeakPendingBytes is likewise of PendingBytes: exact for one stream, and for several at least the
	// maximum of each.
	PeakPendingBytes int64
	LargestFreeBytes int64 // the longest free range in the pool or in a stream

	AllocCount, FreeCount uint64
	// The source of the allocations: a magazine; the stream's free ranges; free pages of the pool;
	// pages that the driver mapped for the request. They add up to AllocCount.
	MagazineHits, StreamHits, PoolHits, DriverMisses uint64

	// LostFences counts fences that became part of a graph, because their stream was being
	// captured; see StreamStats.
	LostFences uint64

	RequestCounts
	// ReclaimCount counts the requests of the pool to streams to release memory that others need.
	ReclaimCount uint64
	// Sizes are the buffers by the size of their blocks, the smallest size first; sizes that never
	// occurred are absent.
	Sizes []SizeStats

	Waits   WaitStats     // of requests with Wait
	Tenants []TenantStats // in the order in which they were made

	// Predicted counts the bursts that came when Config.Predict expected them, Mispredicted those
	// that were expected and did not come.
	Predicted, Mispredicted uint64

	// NeighbourBytes are those that other devices of the process on the same GPU have released,
	// since the driver had no memory for a request of this one.
	NeighbourBytes int64

	// Pressure is the level when it was looked at last, and PressureRises how often it has risen.
	Pressure      PressureLevel
	PressureRises uint64

	// Panics counts panics that were recovered: see Events.Panic. Each is a defect.
	Panics uint64

	// DriverCalls counts the driver calls that the allocator makes. Those of package cuda for the program,
	// such as launches and copies, and the program's own are not among them.
	DriverCalls uint64
	DriverTime  time.Duration // spent in them; on the simulated device the time that they take on an H200
	Driver      []CallStats   // the same by function; those never called are absent

	Streams []StreamStats // of the streams that are open
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
func addSizes(a, b []SizeStats) []SizeStats {
	sum := append([]SizeStats(nil), a...)
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

// HitRate is the share of allocations that their stream's cache served, from 0 to 1; 1 if there
// were none.
func (s Stats) HitRate() float64 {
	if s.AllocCount == 0 {
		return 1
	}
	return float64(s.MagazineHits+s.StreamHits) / float64(s.AllocCount)
}

// Fragmentation is the share of free and cached memory that lies outside the longest free range,
// from 0 to 1; 0 if all of it is one range, and of a Delta.
func (s Stats) Fragmentation() float64 {
	free := s.FreeBytes + s.CachedBytes
	if free == 0 || s.Delta {
		return 0
	}
	return 1 - float64(s.LargestFreeBytes)/float64(free)
}

// Efficiency is PeakLiveBytes over PeakReservedBytes, from 0 to 1; 1 if no more was held than
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

// readings are peaks inside a scope that take the place of those since the last reset.
type readings struct {
	streams       map[uint32]streamcore.Peaks // by stream
	tenants       map[string]int64            // bytes held, by name
	pool          *poolcore.Peaks             // nil: those since the last reset
	live, sampled *int64                      // likewise
	pendingBytes  *int64                      // likewise
	gone          *int64                      // likewise
}

// read is Stats.
func (d *Device) read(peaks *readings) Stats {
	r, level := d.streams.Load(), d.config.Load().Stats
	s := r.gone
	s.Level = level
	s.Sizes = addSizes(nil, r.gone.Sizes)
	s.LimitBytes, s.Panics = d.limit.Load(), d.panics.Count()
	s.Pressure, s.PressureRises = d.pressure.level(), d.pressure.rises.Load()
	for _, t := range d.tenants.list() {
		n := t.Stats()
		if peak, ok := peaks.tenants[n.Name]; ok {
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
	s.PeakPendingBytes = max(s.PeakPendingBytes, either(peaks.pendingBytes, &d.pending))
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
	s.Predicted, s.Mispredicted = p.Predicted, p.Mispredicted
	s.Waits, s.ReclaimCount = WaitStats(p.Waits), p.ReclaimCount
}

// recall adds the counts of streams and pool as they were read last. It takes no turn.
func (s *Stats) recall(e *engine, open []*streams.Control) {
	for _, stream := range open {
		s.count(stream.LastStats())
	}
	for i := range s.Sizes {
		z := &s.Sizes[i]
		*z = SizeStats{BlockBytes: z.BlockBytes, AllocCount: z.AllocCount, FreeCount: z.FreeCount}
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

// either is a maximum inside a scope, or where there is none that since the last reset.
func either(inScope *int64, all *shared.Mark) int64 {
	if inScope != nil {
		return *inScope
	}
	return all.Peak()
}

// readDriver reads the figures of the driver's calls: the sums are those of the functions.
func (s *Stats) readDriver(e *engine) {
	s.Driver = e.meter.ByCall()
	for i := range s.Driver {
		s.DriverCalls += s.Driver[i].Calls
		s.DriverTime += s.Driver[i].Time
	}
}

// GPUMemory is the memory of a whole GPU, with that of other programs.
type GPUMemory struct {
	TotalBytes int64
	FreeBytes  int64 // that the driver could give at that moment
}

// GPUMemory asks the driver, by one call, for the memory of the whole GPU. With an error, the
// driver's, ErrClosed or that of the first use of the device, which this may be, the figures are 0.
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

// books are the pool's figures, or after Close, which reads them before it releases memory, and after a
// failure the newest that were read. False: none were.
func (e *engine) books(ctx context.Context) (pool.Snapshot, bool) {
	p, err := e.pool.Snapshot(ctx)
	if err == nil {
		return p, true
	}
	return e.pool.LastSnapshot()
}

// ResetPeaks sets all peaks, of the device, of its streams and of its tenants, to the present
// values, and the longest waits to 0. It waits as Stats does. After Close it has no effect. A Measure that goes on keeps its own.
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
	d.live.ResetPeak()
	if e := d.engine.Load(); e != nil {
		_ = e.pool.ResetPeaks(ctx, liveBytes)
	}
}

// liveOf are the live bytes now, by stream, and the pending bytes of all.
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
