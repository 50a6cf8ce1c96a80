package vram

import (
	"context"
	"time"

	"github.com/go-vram/vram/pool"
	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/streams"
)

// StreamStats is one stream's part of the statistics.
type StreamStats = streams.Stats

// WaitStats counts the requests that wait for memory, and those that did.
type WaitStats = pool.WaitStats

// Stats says what a device's memory is doing. Counts and bytes of one stream belong to one moment;
// those of several streams and of the pool to moments close to each other.
type Stats struct {
	LiveBytes     int64 // in buffers, rounded to blocks
	CachedBytes   int64 // free, kept by streams
	PendingBytes  int64 // freed, and still used by streams that were announced
	FreeBytes     int64 // free, mapped and nobody's
	UnpassedBytes int64 // of FreeBytes: only for the stream that returned them, until its fence has passed
	SetAsideBytes int64 // of reservations, not drawn yet
	ReservedBytes int64 // held from the driver: live, cached, pending, free, set aside and in the middle of a driver job
	LimitBytes    int64

	// PeakLiveBytes is the most that buffers had at once: what was asked for and refused is no part of it, and it is no more than
	// PeakReservedBytes. It is sampled at turns, with several streams at ticks and requests that the pool served, and counts what
	// magazines cached then; see StatsExact.
	PeakLiveBytes     int64
	PeakReservedBytes int64 // exact
	LargestFreeBytes  int64 // the longest free range, in the pool or a stream

	AllocCount, FreeCount uint64
	// Which level served the allocations: without a turn, in the stream's turn, with pages that the pool
	// had, with pages that a driver job made ready. They add up to AllocCount: a driver job for a request that
	// was cancelled meanwhile served none.
	MagazineHits, StreamHits, PoolHits, DriverMisses uint64

	// LostFences are those that captures of streams into graphs swallowed; see StreamStats.
	LostFences uint64

	Waits   WaitStats // of requests with Wait
	Tenants []TenantStats

	// Predicted counts the steps that began when Config.Predict had foreseen them, Mispredicted those that did not.
	Predicted, Mispredicted uint64

	// Pressure is the level at the last tick, and PressureRises how often it has risen.
	Pressure      PressureLevel
	PressureRises uint64

	// Panics counts those that were recovered: see Events.Panic. Each is a defect.
	Panics uint64

	DriverCalls uint64
	DriverTime  time.Duration // modelled where the device is simulated

	Streams []StreamStats
}

// count adds the totals of a stream that is no more.
func (s *Stats) count(n StreamStats) {
	s.AllocCount += n.AllocCount
	s.FreeCount += n.FreeCount
	s.MagazineHits += n.MagazineHits
	s.StreamHits += n.RangeHits
	s.PoolHits += n.PoolHits
	s.LostFences += n.LostFences
}

// HitRate is the share of allocations that were served from the stream's own memory, 1 if there were none.
func (s Stats) HitRate() float64 {
	if s.AllocCount == 0 {
		return 1
	}
	return float64(s.MagazineHits+s.StreamHits) / float64(s.AllocCount)
}

// Fragmentation is the share of the free memory outside its longest range: 0 if all of it is one range.
func (s Stats) Fragmentation() float64 {
	free := s.FreeBytes + s.CachedBytes
	if free == 0 {
		return 0
	}
	return 1 - float64(s.LargestFreeBytes)/float64(free)
}

// Efficiency is the peak of live over the peak of reserved bytes: 1 if nothing beyond what lived was held.
func (s Stats) Efficiency() float64 {
	if s.PeakReservedBytes == 0 {
		return 1
	}
	return min(1, float64(s.PeakLiveBytes)/float64(s.PeakReservedBytes))
}

// Stats reads the books. It stops nobody: it takes its turn with each stream and the pool like any
// request, or, with StatsOff, none. After Close it says what was counted last.
func (d *Device) Stats() Stats {
	if !d.opened() {
		return Stats{}
	}
	r, level := d.streams.Load(), d.config.Load().Stats
	s := r.gone
	s.LimitBytes, s.Panics = d.limit.Load(), d.panics.Count()
	s.Pressure, s.PressureRises = d.pressed.level(), d.pressed.rises.Load()
	for _, t := range d.tenantList() {
		s.Tenants = append(s.Tenants, t.Stats())
	}
	e := d.engine.Load()
	if e == nil {
		return s
	}
	s.DriverCalls, s.DriverTime = e.meter.Calls(), e.meter.Time()
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
	if p, err := e.pool.Snapshot(ctx); err == nil {
		s.FreeBytes = p.FreeBytes
		s.SetAsideBytes = p.SetAsideBytes
		s.UnpassedBytes = p.PendingBytes
		s.Predicted, s.Mispredicted = p.Predicted, p.Mispredicted
		s.Waits = p.Waits
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
	return s
}

// ResetPeaks restarts the peaks at the present values: what was freed before the call is no part of them. It has no effect after Close.
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
