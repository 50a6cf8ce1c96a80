package core

import (
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
)

const (
	// magazineShare is the part of the live peak that may lie in magazines of large blocks: 1/64. Not
	// larger: a cached block hides a hole from the best fit, and ten percent cost up to five percent of
	// footprint on real traces.
	magazineShare = 64
	// magazineFloor is what may lie there however little lives: enough for one block each of sixteen
	// goroutines that allocate a megabyte at a time.
	magazineFloor = 16 << 20 >> sizeclass.UnitShift
	// heatKept is how often in a row a length must have come back to qualify. Not smaller: real programs
	// repeat a length a few times and go on, and to close and open a magazine costs more than a search.
	heatKept = 6
	// heatCold is the heat of a length whose magazine was closed before it had served worthHits requests.
	heatCold  = -60
	worthHits = 16
)

// track remembers the length that last missed in a bucket, and how hot it is. There are many, and each miss looks at
// another one: eight bytes each leave room in the nearest cache.
type track struct {
	units  uint32
	closed uint16 // the low bits of Frees of its magazine when that was opened
	heat   int8
}

// pass remembers a length that missed and that keep is not asked about: another one than the last, or one of which no block was
// freed since the last turn.
func (t *track) pass(units uint32) {
	switch {
	case t.units == units:
		t.heat = max(t.heat-1, min(t.heat, 0))
	case t.heat > 0:
		t.heat--
	default:
		t.units, t.heat, t.closed = units, 0, 0
	}
}

// keep decides whether a new block of that length stays in a magazine when freed, and returns its slot there; nil if it does
// not. Precondition: the length missed in its bucket before, and a block of it was freed since the last turn: only lengths that
// come back at once are worth a magazine, the search serves the others as fast.
func (c *Core) keep(t *track, units uint32, hint int) *magazine.Slot {
	if c.wanted.on {
		return nil
	}
	if t.heat < heatKept {
		t.heat++
		return nil
	}
	m := c.owner.Exacts.Of(units)
	limit := c.keptLimit()
	if uint64(m.Attached()+1)*uint64(units) > limit && (m.Attached() > 0 || c.budget.CacheBytes > 0) {
		return nil // without a budget one block may be of any length
	}
	if !m.Open {
		if m.LiveSlots() == magazine.SlotCount {
			return nil // nobody would ever close it: it would not be in the list of those with a block
		}
		c.replace(hint, m)
		t.closed = uint16(m.Frees()) //nolint:gosec // the low bits
	}
	s := c.owner.Exacts.Assign(m)
	if s == nil {
		return nil
	}
	c.keptUnits += uint64(units)
	c.recent.touch(m)
	for c.keptUnits > limit && c.recent.oldest != m {
		c.evict(c.recent.oldest)
	}
	return s
}

// replace puts the magazine of a length into use in its bucket; another length that is there ends. Slots
// in use since the magazine was open before are no part of its budget, so their blocks shall not stay in
// it: they are detached. One whose free is under way meanwhile may stay once, until it is freed again.
func (c *Core) replace(hint int, m *magazine.Exact) {
	if old := c.owner.Exacts.At(m.Bucket(), hint); old != nil && old != m {
		c.evict(old)
	}
	if !m.WholeHome() {
		m.EachLive(func(s *magazine.Slot) {
			_ = s.Announce(s.Word(), magazine.Detached) // a stale word: freed this moment
		})
	}
	c.owner.Exacts.Reopen(m)
	c.owner.Exacts.Install(m, hint)
}

// evictOldest closes, of the magazines of large blocks with a free slot, the one that was given a block
// longest ago. It reports whether there was one.
func (c *Core) evictOldest() bool {
	for m := c.recent.oldest; m != nil; m = m.Newer {
		if m.FreeSlots() > 0 {
			c.evict(m)
			return true
		}
	}
	return false
}

// evict closes a magazine of large blocks and gives those that are free to the heap.
func (c *Core) evict(m *magazine.Exact) {
	t := &c.track[int(m.Bucket())-magazine.FirstLarge]
	if t.units == m.Units() && uint16(m.Frees())-t.closed < worthHits {
		t.heat = heatCold
	}
	c.keptUnits -= uint64(m.Attached()) * uint64(m.Units())
	c.recent.remove(m)
	c.owner.Exacts.Close(m, func(s *magazine.Slot) {
		c.giveLarge(s)
	})
}

// evictAll closes the magazines of large blocks.
func (c *Core) evictAll() {
	for c.recent.oldest != nil {
		c.evict(c.recent.oldest)
	}
}

// lru orders the open magazines of large blocks by when they were last given a slot.
type lru struct {
	oldest, newest *magazine.Exact
}

// has reports whether a magazine is in the list.
func (l *lru) has(m *magazine.Exact) bool { return m.Older != nil || l.oldest == m }

func (l *lru) touch(m *magazine.Exact) {
	if l.newest == m {
		return
	}
	l.remove(m)
	m.Older, m.Newer = l.newest, nil
	if l.newest != nil {
		l.newest.Newer = m
	} else {
		l.oldest = m
	}
	l.newest = m
}

func (l *lru) remove(m *magazine.Exact) {
	if m.Older != nil {
		m.Older.Newer = m.Newer
	} else if l.oldest == m {
		l.oldest = m.Newer
	} else {
		return // not in the list
	}
	if m.Newer != nil {
		m.Newer.Older = m.Older
	} else {
		l.newest = m.Older
	}
	m.Older, m.Newer = nil, nil
}
