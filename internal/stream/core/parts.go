package core

import (
	"sync/atomic"

	"github.com/go-vram/vram/internal/stream/magazine"
)

// Parts counts the blocks of incomplete batches. A batch may be refused, and then no caller ever had its
// blocks. They are in use, but neither live nor allocations. A batch books them from the moment it holds
// them, on its caller's goroutine or in a turn. A turn unbooks them when the batch is answered or puts them
// back. The zero value is empty.
type Parts struct {
	readings atomic.Uint64 // incremented at begin and end of Snapshot: odd while one reads
	units    atomic.Int64  // of all sizes
	sizes    [magazine.SizeCount]partsOfSize
}

type partsOfSize struct {
	count, units atomic.Int64
	unmade       atomic.Uint64 // frees of parts that no caller made: see Drop
}

// PartSum sums blocks by size.
type PartSum [magazine.SizeCount]struct{ count, units int64 }

// Add adds a block.
func (s *PartSum) Add(units uint32) {
	z := &s[magazine.SizeOf(units)]
	z.count++
	z.units += int64(units)
}

// Reading returns the number of readings so far, for Seen.
func (p *Parts) Reading() uint64 { return p.readings.Load() }

// Seen reports whether a Snapshot may have counted as allocations the blocks that were taken outside the turn
// after that Reading and are booked by now. It costs a batch that needs no books one atomic load.
func (p *Parts) Seen(reading uint64) bool { return reading&1 != 0 || p.readings.Load() != reading }

// Book adds blocks that a batch holds.
func (p *Parts) Book(s *PartSum) { p.add(s, 1) }

// Unbook removes blocks from the books. Precondition: inside a turn, or after the last turn.
func (p *Parts) Unbook(s *PartSum) { p.add(s, -1) }

func (p *Parts) add(s *PartSum, by int64) {
	for i := range s {
		if s[i].count != 0 {
			p.sizes[i].count.Add(by * s[i].count)
			p.sizes[i].units.Add(by * s[i].units)
			p.units.Add(by * s[i].units)
		}
	}
}

// Drop cancels the free of a part that no caller made, as PutBack does, for code that must not use the core.
// Precondition: as for Unbook.
func (p *Parts) Drop(units uint32) { p.sizes[magazine.SizeOf(units)].unmade.Add(1) }

// Units returns the units of all parts.
func (p *Parts) Units() uint64 { return uint64(p.units.Load()) } //nolint:gosec // not negative
