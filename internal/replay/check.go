package replay

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-vram/vram/cudadrv"
)

// alignBytes is the alignment of an address that a Buffer promises. CUDA itself promises 256 bytes,
// and kernels with vector loads rely on it.
const alignBytes = 512

// CheckError is a broken promise that Options.Check found.
type CheckError struct {
	Trace string
	Round int // from 0
	Index int // of the event in the trace; one behind the last where leftovers are freed, or what a copy holds that gives up
	What  string
}

// Error is one line: where, and what is wrong.
func (e *CheckError) Error() string {
	return fmt.Sprintf("%s: round %d, event %d: %s", e.Trace, e.Round+1, e.Index, e.What)
}

// checker is a dumb list of the live address ranges, in order of address, that knows nothing of how
// the allocator works. A range is entered after its allocation returned and taken out before its free
// is called, so that goroutines side by side never make it cry wolf. Each method says what is wrong,
// or nothing.
//
// Invariant: live is sorted by address and its ranges do not overlap.
type checker struct {
	mu    sync.Mutex
	live  []liveRange
	order *order // nil without a lag; written before the device is opened
	fault string // what a driver call broke, reported with the next step
}

type liveRange struct {
	begin, end cudadrv.Ptr
	id         uint32
}

// entered notes gotBytes at begin that were allocated for the step on the stream.
func (c *checker) entered(s *step, begin cudadrv.Ptr, gotBytes int64, stream cudadrv.Stream) (what string) {
	switch {
	case gotBytes != s.bytes:
		return fmt.Sprintf("buffer %d has %d bytes, asked for %d", s.id, gotBytes, s.bytes)
	case begin == 0:
		return fmt.Sprintf("buffer %d is at address 0", s.id)
	case begin%alignBytes != 0:
		return fmt.Sprintf("buffer %d is at %#x, not aligned to %d bytes", s.id, begin, alignBytes)
	}
	r := liveRange{begin: begin, end: begin + cudadrv.Ptr(s.bytes), id: s.id}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault != "" {
		return c.fault
	}
	at := c.find(begin)
	if other, found := c.overlap(at, r.begin, r.end); found {
		return fmt.Sprintf("buffer %d at [%#x,%#x) overlaps buffer %d at [%#x,%#x)",
			r.id, r.begin, r.end, other.id, other.begin, other.end)
	}
	if c.order != nil {
		if what := c.order.early(r.begin, r.end, stream); what != "" {
			return fmt.Sprintf("buffer %d: %s", s.id, what)
		}
	}
	c.live = slices.Insert(c.live, at, r)
	return ""
}

// leaving takes out a buffer that is about to be freed, whose last use keeps its stream busy for lag.
func (c *checker) leaving(id uint32, begin cudadrv.Ptr, stream cudadrv.Stream, lag time.Duration) (what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault != "" {
		return c.fault
	}
	at := c.find(begin)
	if at == len(c.live) || c.live[at].begin != begin || c.live[at].id != id {
		return fmt.Sprintf("buffer %d, about to be freed, is not live at %#x", id, begin)
	}
	if c.order != nil {
		c.order.freed(c.live[at].begin, c.live[at].end, stream, lag)
	}
	c.live = slices.Delete(c.live, at, at+1)
	return ""
}

// unmapping notes a fault where a range that is about to be unmapped is in use.
func (c *checker) unmapping(begin cudadrv.Ptr, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := begin + cudadrv.Ptr(bytes)
	if r, found := c.overlap(c.find(begin), begin, end); found {
		c.fault = fmt.Sprintf("[%#x,%#x) is unmapped under buffer %d at [%#x,%#x)", begin, end, r.id, r.begin, r.end)
		return
	}
	if c.order != nil {
		if what := c.order.touched(begin, end); what != "" {
			c.fault = what
		}
	}
}

// find is the place of the first range at p or after it.
func (c *checker) find(p cudadrv.Ptr) int {
	at, _ := slices.BinarySearchFunc(c.live, p, func(r liveRange, p cudadrv.Ptr) int {
		switch {
		case r.begin < p:
			return -1
		case r.begin > p:
			return 1
		}
		return 0
	})
	return at
}

// overlap is a live range that [begin,end) overlaps; at is the place of begin.
func (c *checker) overlap(at int, begin, end cudadrv.Ptr) (liveRange, bool) {
	for _, near := range []int{at - 1, at} {
		if near >= 0 && near < len(c.live) && c.live[near].begin < end && begin < c.live[near].end {
			return c.live[near], true
		}
	}
	return liveRange{}, false
}
