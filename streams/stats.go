package streams

import (
	"context"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
)

// LiveBuffer is a buffer as the books know it.
type LiveBuffer struct {
	Stream uint32
	Ptr    cudadrv.Ptr
	Bytes  int64 // of its block
	Tag    string
	// Allocated is where the buffer was allocated; unknown unless the stream is watched.
	Allocated site.Stack
}

// Stats is a stream's part of the statistics, exact at the turn that read it except where it says
// sampled, and except for the buffers of lanes at work, which may be allocated and freed meanwhile.
type Stats struct {
	Stream        uint32
	LiveBytes     int64 // in buffers, rounded to blocks
	PeakLiveBytes int64 // sampled at turns that gave something, with what magazines cached then: never what was asked for and refused
	PendingBytes  int64 // freed, and still used by streams that were announced
	CachedBytes   int64 // free: the sum of the next three
	SpanBytes     int64 // in free slots of small sizes
	MagazineBytes int64 // in free slots of large ones
	RangeBytes    int64 // in free ranges
	PageBytes     int64 // whole pages in free ranges: only they can be given back
	HeldBytes     int64 // pages lent by the pool: the sum of live, pending and cached

	FreeRanges       int
	LargestFreeBytes int64
	NodeVisits       uint64 // free ranges that searches looked at

	AllocCount   uint64
	FreeCount    uint64
	LiveCount    uint64
	MagazineHits uint64 // served without a turn
	RangeHits    uint64 // served in the stream's turn
	PoolHits     uint64 // served with pages from the pool
	Waiting      int    // requests that wait for the pool, or for other people's frees

	// LostFences are those that were recorded and given up since a capture of the stream had begun meanwhile: they are, or may be,
	// part of its graph. What they covered has another one taken.
	LostFences uint64

	LaneCount int   // lanes that are open
	LaneBytes int64 // what they have of the stream's blocks, live or cached
}

// Check holds the stream's books against their invariants, block by block. It waits for the turn at hand and for
// nothing else. Once the stream has ended it says why.
func (s *Stream) Check(ctx context.Context) error {
	_, err := s.order(ctx, &order{verb: orderCheck})
	return err
}

// remember keeps the statistics for the time when no turn can be had any more: from the moment when the
// actor is told to stop.
func (s *Stream) remember() {
	last := s.stats()
	s.last.Store(&last)
}

// Waits reports whether anything was pending at the end of the last turn. It waits for nothing.
func (s *Stream) Waits() bool { return s != nil && s.waits.Load() }

func (s *Stream) stats() Stats {
	n := s.core.Snapshot()
	return Stats{
		Stream: uint32(s.id), LiveBytes: n.LiveBytes, PeakLiveBytes: n.PeakLiveBytes, PendingBytes: n.PendingBytes, CachedBytes: n.CachedBytes,
		SpanBytes: n.SpanBytes, MagazineBytes: n.MagazineBytes, RangeBytes: n.RangeBytes, PageBytes: n.PageBytes,
		HeldBytes: n.HeldBytes, FreeRanges: n.FreeRanges, LargestFreeBytes: n.LargestFreeBytes, NodeVisits: n.NodeVisits,
		AllocCount: n.AllocCount, FreeCount: n.FreeCount, LiveCount: n.LiveCount,
		MagazineHits: n.AllocCount - n.RangeCount - n.RefillCount, RangeHits: n.RangeCount, PoolHits: n.RefillCount,
		Waiting: len(s.waiting) + len(s.parked), LaneCount: n.LaneCount, LaneBytes: n.LaneBytes, LostFences: s.line.Lost() + s.lost.Load(),
	}
}

// Fragmentation is the share of the cached memory outside its longest free range: 0 if there is none, or
// all of it is one range. What lies in magazines is outside.
func (s Stats) Fragmentation() float64 {
	if s.CachedBytes == 0 {
		return 0
	}
	return 1 - float64(s.LargestFreeBytes)/float64(s.CachedBytes)
}
