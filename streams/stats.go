package streams

import (
	"strconv"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/pool"
)

// Stats is one stream's part of the statistics, exact at the turn that read it except for sampled
// fields.
type Stats struct {
	Stream        uint32 `json:"stream"`
	LiveBytes     int64  `json:"live_bytes"`      // in buffers, rounded to blocks
	PeakLiveBytes int64  `json:"peak_live_bytes"` // sampled at turns that served a request, with the magazines' cached bytes
	PendingBytes  int64  `json:"pending_bytes"`   // freed, while announced uses on other streams have not passed
	CachedBytes   int64  `json:"cached_bytes"`    // free: the sum of the next three
	SpanBytes     int64  `json:"span_bytes"`      // in free slots of small sizes
	MagazineBytes int64  `json:"magazine_bytes"`  // in free slots of large ones, and in blocks of batches that still miss others
	RangeBytes    int64  `json:"range_bytes"`     // in free ranges
	PageBytes     int64  `json:"page_bytes"`      // whole pages in free ranges: only they can be returned
	HeldBytes     int64  `json:"held_bytes"`      // pages lent by the pool: the sum of live, pending and cached

	FreeRanges       int    `json:"free_ranges"`
	LargestFreeBytes int64  `json:"largest_free_bytes"`
	NodeVisits       uint64 `json:"node_visits"` // free ranges visited by searches

	AllocCount   uint64 `json:"alloc_count"`
	FreeCount    uint64 `json:"free_count"`
	LiveCount    uint64 `json:"live_count"`
	MagazineHits uint64 `json:"magazine_hits"` // served without a turn
	RangeHits    uint64 `json:"range_hits"`    // served in the stream's turn
	PoolHits     uint64 `json:"pool_hits"`     // served with pages from the pool
	DriverMisses uint64 `json:"driver_misses"` // of PoolHits: the driver mapped pages for the request; a batch counts once
	Waiting      int    `json:"waiting"`       // requests that wait for the pool, or for other callers' frees

	// LostFences counts recorded fences that were dropped because a capture of the stream had
	// begun: they are, or may be, part of its graph. Another fence replaces each.
	LostFences uint64 `json:"lost_fences"`

	PeakPendingBytes int64 `json:"peak_pending_bytes"` // the maximum of PendingBytes; exact
	PeakHeldBytes    int64 `json:"peak_held_bytes"`    // the maximum of HeldBytes; exact

	pool.RequestCounts

	Sizes []SizeStats `json:"sizes"` // of buffers by size, the smallest first; sizes that never occurred are absent
}

// SizeStats counts the buffers whose blocks have at most BlockBytes, a power of two, and more than
// half of that.
type SizeStats struct {
	BlockBytes  int64  `json:"block_bytes"`
	AllocCount  uint64 `json:"alloc_count"` // one too many for each free that ran during a reading, until the next allocation of the size
	FreeCount   uint64 `json:"free_count"`
	LiveCount   uint64 `json:"live_count"`
	LiveBytes   int64  `json:"live_bytes"`
	CachedBytes int64  `json:"cached_bytes"` // in free slots of magazines
}

// sizeStats returns the sizes that have occurred.
func sizeStats(all *[magazine.SizeCount]core.SizeCounts) (some []SizeStats) {
	for i := range all {
		if z := &all[i]; *z != (core.SizeCounts{}) {
			some = append(some, SizeStats{
				BlockBytes: sizeclass.UnitBytes << i, AllocCount: z.AllocCount, FreeCount: z.FreeCount,
				LiveCount: z.LiveCount, LiveBytes: z.LiveBytes, CachedBytes: z.CachedBytes,
			})
		}
	}
	return some
}

// Fragmentation returns the share of the cached memory outside its longest free range: 0 if there is
// none, or all of it is one range. Memory in magazines counts as outside. Of a difference, as vram.Stats.Sub
// makes, it means nothing, but stays from 0 to 1.
func (s Stats) Fragmentation() float64 {
	if s.CachedBytes <= 0 {
		return 0
	}
	return min(1, max(0, 1-float64(s.LargestFreeBytes)/float64(s.CachedBytes)))
}

// String returns the main figures, on one line.
func (s Stats) String() string {
	text := "stream " + strconv.Itoa(int(s.Stream)) + ": live " + units.Bytes(s.LiveBytes) + " (peak " + units.Bytes(s.PeakLiveBytes) +
		"), cached " + units.Bytes(s.CachedBytes) + ", pending " + units.Bytes(s.PendingBytes) + "; " + units.Count(s.AllocCount, "allocation") +
		", " + units.Count(s.FreeCount, "free") + ", " + strconv.FormatUint(s.LiveCount, 10) + " live"
	if s.Waiting > 0 {
		text += "; " + strconv.Itoa(s.Waiting) + " waiting"
	}
	return text
}
