package vram

import (
	"context"
	"time"

	"github.com/go-vram/vram/pool"
	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/streams"
)

// StreamStats is one stream's part of Stats.
type StreamStats = streams.Stats

// WaitStats counts the requests that wait for memory at the moment, and those that have waited.
type WaitStats = pool.WaitStats

// Stats are a device's memory by state, and the costs of its requests. The figures of one stream
// are of one moment; those of several streams and of the pool are of moments close to each other.
type Stats struct {
	LiveBytes     int64 // in buffers, each rounded up to its block
	CachedBytes   int64 // free, kept by streams for their own next requests
	PendingBytes  int64 // freed, while announced uses on other streams have not finished
	FreeBytes     int64 // free in the pool, for any stream
	UnpassedBytes int64 // of FreeBytes: for the stream alone that returned them, until its work has finished
	SetAsideBytes int64 // in reservations, not drawn yet
	SleepingBytes int64 // of live, cached and pending bytes: asleep, and not held from the driver; see package cuda/sleep
	ReservedBytes int64 // held from the driver: all of the above but SleepingBytes, and memory in the middle of a driver job
	LimitBytes    int64 // of ReservedBytes

	// PeakLiveBytes is the maximum of LiveBytes since Open or ResetPeaks. With StatsOn it is
	// sampled, and includes the magazines' cached blocks, so that it is rather too high, but never
	// above PeakReservedBytes. With StatsExact it is counted.
	PeakLiveBytes     int64
	PeakReservedBytes int64 // likewise of ReservedBytes; always exact
	LargestFreeBytes  int64 // the longest free range in the pool or in a stream

	AllocCount, FreeCount uint64
	// The source of the allocations: a magazine; the stream's free ranges; free pages of the pool;
	// pages that the driver mapped for the request. They add up to AllocCount.
	MagazineHits, StreamHits, PoolHits, DriverMisses uint64

	// LostFences counts fences that became part of a graph, because their stream was being
	// captured; see StreamStats.
	LostFences uint64

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

	DriverCalls uint64
	DriverTime  time.Duration // spent in them; on the simulated device the time that they take on an H200

	Streams []StreamStats // of the streams that are open
}

// count adds the totals of a stream that has ended.
func (s *Stats) count(n StreamStats) {
	s.AllocCount += n.AllocCount
	s.FreeCount += n.FreeCount
	s.MagazineHits += n.MagazineHits
	s.StreamHits += n.RangeHits
	s.PoolHits += n.PoolHits
	s.LostFences += n.LostFences
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
// from 0 to 1; 0 if all of it is one range.
func (s Stats) Fragmentation() float64 {
	free := s.FreeBytes + s.CachedBytes
	if free == 0 {
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
	r, level := d.streams.Load(), d.config.Load().Stats
	s := r.gone
	s.LimitBytes, s.Panics = d.limit.Load(), d.panics.Count()
	s.Pressure, s.PressureRises = d.pressure.level(), d.pressure.rises.Load()
	for _, t := range d.tenantList() {
		s.Tenants = append(s.Tenants, t.Stats())
	}
	e := d.engine.Load()
	if e == nil {
		return s
	}
	s.DriverCalls, s.DriverTime = e.meter.Calls(), e.meter.Time()
	s.NeighbourBytes = d.neighbourBytes.Load()
	if level == StatsOff {
		return s
	}
	ctx := context.Background()
	for _, stream := range r.open {
		n, err := stream.Stats(ctx)
		if err != nil {
			n = stream.LastStats()
		}
		s.count(n)
		s.LiveBytes += n.LiveBytes
		s.CachedBytes += n.CachedBytes
		s.PendingBytes += n.PendingBytes
		s.LargestFreeBytes = max(s.LargestFreeBytes, n.LargestFreeBytes)
		s.Streams = append(s.Streams, n)
	}
	s.PeakLiveBytes = d.sampled.Load()
	if p, ok := e.books(ctx); ok {
		s.FreeBytes = p.FreeBytes
		s.SetAsideBytes = p.SetAsideBytes
		s.SleepingBytes = p.SleepingBytes
		s.UnpassedBytes = p.PendingBytes
		s.Predicted, s.Mispredicted = p.Predicted, p.Mispredicted
		s.Waits = WaitStats(p.Waits)
		s.ReservedBytes, s.PeakReservedBytes, s.LimitBytes = p.ReservedBytes, p.PeakReservedBytes, p.LimitBytes
		s.LargestFreeBytes = max(s.LargestFreeBytes, p.LargestFreeBytes)
		s.PeakLiveBytes = max(s.PeakLiveBytes, p.PeakLiveBytes)
		s.DriverMisses = min(p.DriverGrants, s.PoolHits)
	}
	switch {
	case level == StatsExact:
		s.PeakLiveBytes = d.live.PeakBytes()
	case len(s.Streams) == 1:
		s.PeakLiveBytes = s.Streams[0].PeakLiveBytes
	}
	s.PeakLiveBytes = max(s.PeakLiveBytes, s.LiveBytes)
	if s.PeakReservedBytes > 0 { // samples of several streams are of different moments
		s.PeakLiveBytes = min(s.PeakLiveBytes, s.PeakReservedBytes)
	}
	s.PoolHits -= s.DriverMisses
	s.DriverCalls, s.DriverTime = e.meter.Calls(), e.meter.Time()
	s.NeighbourBytes = d.neighbourBytes.Load()
	return s
}

// books are the pool's figures, or after Close those from before all memory was released. False:
// the pool has failed.
func (e *engine) books(ctx context.Context) (pool.Snapshot, bool) {
	p, err := e.pool.Snapshot(ctx)
	if err == nil {
		return p, true
	}
	if last := e.last.Load(); last != nil {
		return *last, true
	}
	return pool.Snapshot{}, false
}

// ResetPeaks sets PeakLiveBytes and PeakReservedBytes, of the device and of its streams, to the
// present values. It waits as Stats does. After Close it has no effect.
func (d *Device) ResetPeaks() {
	if !d.opened() {
		return
	}
	ctx := context.Background()
	liveBytes := map[poolcore.Client]int64{}
	for _, s := range d.streams.Load().open {
		_ = s.ResetPeak(ctx) // a stream that has ended has no peak to come
		if n, err := s.Stats(ctx); err == nil {
			liveBytes[poolcore.Client(n.Stream)] = n.LiveBytes
		}
	}
	d.sampled.Store(0)
	d.live.ResetPeak()
	if e := d.engine.Load(); e != nil {
		_ = e.pool.ResetPeaks(ctx, liveBytes)
	}
}
