package core

import (
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// large serves requests with a block of their own: lengths beyond the classes, and others that need one.
type large struct {
	exacts    *magazine.Exacts
	loose     *magazine.Loose
	ranges    *ranges
	retention *retention
	room      *room
	wanted    *wanted
}

// alloc serves a request beyond the classes with a block of exactly its units; nil if there is no room. cameBack
// says that a block of that length was freed since the last turn.
func (l *large) alloc(units uint32, hint int, cameBack bool) *magazine.Slot {
	bucket := magazine.BucketOf(uint64(units))
	m := l.exacts.At(bucket, hint)
	if m != nil && m.Units() == units {
		if s := m.Take(); s != nil {
			l.exacts.Shard(m, hint)
			return s
		}
	}
	block := l.ranges.heap.Take(units)
	if block == heap.None {
		if block = l.room.take(units); block == heap.None {
			return nil
		}
	}
	var s *magazine.Slot
	if t := l.retention.of(bucket); l.wanted.on {
		// Every free must wake the owner: no block stays in a magazine.
	} else if cameBack && t.units == units {
		s = l.retention.keep(t, units, hint)
	} else {
		t.pass(units)
	}
	if s == nil {
		s = l.loose.Take()
	}
	if !magazine.SameSize(s.Units, units) {
		l.loose.Refit(s, units)
	}
	s.Block, s.Units = block, units // place, inlined
	s.SetAddress(l.ranges.address(block))
	l.ranges.placed(block, occupant{slot: s})
	return s
}

// allocAligned serves a request of any length with a block at a multiple of that many units, which returns to
// the heap when freed. It returns nil if there is no room.
func (l *large) allocAligned(units, alignUnits uint32) *magazine.Slot {
	block := l.room.takeAligned(units, alignUnits)
	if block == heap.None {
		return nil
	}
	return l.place(block, units)
}

// allocMany takes blocks from the magazine of their length, and then carves as many as possible contiguously
// from the best fitting range.
func (l *large) allocMany(units uint32, most, hint int, take func(*magazine.Slot)) int {
	bucket := magazine.BucketOf(uint64(units))
	got := 0
	if m := l.exacts.At(bucket, hint); m != nil && m.Units() == units {
		if got = pass(&m.Magazine, m.TakeMany(most), take); got == most {
			l.exacts.Shard(m, hint)
			return got
		}
	}
	place := func(block int32) { take(l.place(block, units)) }
	for got < most {
		n := l.ranges.heap.Carve(units, most-got, place)
		got += n
		if n == 0 && !l.room.make(units) {
			break
		}
	}
	return got
}

// place puts a block into a loose slot.
func (l *large) place(block int32, units uint32) *magazine.Slot {
	s := l.loose.Take()
	if !magazine.SameSize(s.Units, units) {
		l.loose.Refit(s, units)
	}
	s.Block, s.Units = block, units
	s.SetAddress(l.ranges.address(block))
	l.ranges.placed(block, occupant{slot: s})
	return s
}
