package store

import (
	"fmt"
	"sync/atomic"
)

// Stats are counts of one Store since Open.
type Stats struct {
	Hits    int64
	Misses  int64 // damaged entries are among them
	Damaged int64 // entries whose check failed
	Written int64
	Lost    int64 // images that Put did not keep
	Evicted int64 // entries that were removed to keep the bound
	Failed  int64 // operations on files that failed, including lost images

	ReadBytes    int64 // of the images of hits
	WrittenBytes int64 // of entries
	EvictedBytes int64
	HeldBytes    int64 // of all entries of the folder, when this process last counted, and with those it wrote since; 0 before the first Put

	Disabled string // the reason for which Put keeps nothing; "" where it does
}

// String has the counts in one line.
func (s Stats) String() string {
	text := fmt.Sprintf("hits %d (%d bytes), misses %d, damaged %d, written %d (%d bytes), lost %d, evicted %d (%d bytes), failed %d, held %d bytes",
		s.Hits, s.ReadBytes, s.Misses, s.Damaged, s.Written, s.WrittenBytes, s.Lost, s.Evicted, s.EvictedBytes, s.Failed, s.HeldBytes)
	if s.Disabled != "" {
		text += ", disabled: " + s.Disabled
	}
	return text
}

// counts are the statistics as they are counted.
type counts struct {
	hits, misses, damaged, written, lost, evicted, failed atomic.Int64
	readBytes, writtenBytes, evictedBytes                 atomic.Int64
}

// Stats may be called at any time. The counts are not of one instant.
func (s *Store) Stats() Stats {
	if s == nil {
		return Stats{}
	}
	c := &s.counts
	stats := Stats{
		Hits: c.hits.Load(), Misses: c.misses.Load(), Damaged: c.damaged.Load(), Written: c.written.Load(), Lost: c.lost.Load(),
		Evicted: c.evicted.Load(), Failed: c.failed.Load(), ReadBytes: c.readBytes.Load(), WrittenBytes: c.writtenBytes.Load(),
		EvictedBytes: c.evictedBytes.Load(), HeldBytes: s.bound.heldBytes.Load(),
	}
	if reason := s.disabled.Load(); reason != nil {
		stats.Disabled = *reason
	}
	return stats
}
