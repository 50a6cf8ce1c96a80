package core

import (
	"sync/atomic"

	"github.com/go-vram/vram/internal/stream/magazine"
)

// Parts counts the blocks of batches that miss others: a batch may be refused, and then no caller ever had
// them. They are in use, and neither live nor allocations. A batch books them from the moment it holds them,
// on the goroutine of its caller or in a turn; in a turn it takes them from the books again, when it is
// answered or puts them back. The zero value is empty.
type Parts struct {
	readings atomic.Uint64 // begun and ended by Snapshot: odd while one reads
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

// Reading is the number of readings so far, for Seen.
func (p *Parts) Reading() uint64 { return p.readings.Load() }

// Seen reports whether a Snapshot may have counted blocks as allocations that were taken outside of the turn
// after that Reading, and have been booked since. It costs a batch that needs no books one atomic load.
func (p *Parts) Seen(reading uint64) bool { return reading&1 != 0 || p.readings.Load() != reading }

// Book adds blocks that a batch holds.
func (p *Parts) Book(s *PartSum) { p.add(s, 1) }

// Unbook takes them from the books. Precondition: a turn, or no turn comes any more.
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

// Drop takes a free of a part back that no caller made, as PutBack does, for code that must not use the core.
// Precondition: as for Unbook.
func (p *Parts) Drop(units uint32) { p.sizes[magazine.SizeOf(units)].unmade.Add(1) }

// Units are those of all parts.
func (p *Parts) Units() uint64 { return uint64(p.units.Load()) } //nolint:gosec // not negative

func (p *Parts) beginReading() { p.readings.Add(1) }
func (p *Parts) endReading()   { p.readings.Add(1) }
