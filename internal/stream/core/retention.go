package core

import (
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

const (
	// magazineShare is the divisor of the live peak for cached memory in magazines of large blocks: 1/64. Not
	// a larger part: a cached block hides a hole from the best fit, and ten percent cost up to five percent
	// of footprint on real traces.
	magazineShare = 64
	// magazineFloor is the minimum of that limit, however little lives: enough for one block each of sixteen
	// goroutines that allocate a megabyte at a time.
	magazineFloor = 16 << 20 >> sizeclass.UnitShift
	// heatKept is how many consecutive times a length must recur to qualify. Not smaller: real programs
	// repeat a length a few times and move on, and closing and opening a magazine costs more than a search.
	heatKept = 6
	// heatCold is the heat of a length whose magazine was closed before it had served worthHits requests.
	heatCold  = -60
	worthHits = 16
)

// track records the length that last missed in a bucket, and its heat. There are many, and each miss reads
// another one: at eight bytes each they leave room in the L1 cache.
type track struct {
	units  uint32
	closed uint16 // low bits of its magazine's Frees when that was opened
	heat   int8
}

// pass records a length that missed and does not qualify for keep: it differs from the last, or no block of
// it was freed since the last turn.
func (t *track) pass(units uint32) {
	switch {
	case t.units == units:
		t.heat = max(t.heat-1, min(t.heat, 0))
	case t.heat > 0:
		t.heat--
	default:
		t.units, t.heat = units, 0
	}
}

// retention decides which lengths of large blocks have a magazine, where their blocks stay when freed, and
// keeps these magazines within a part of the live peak.
type retention struct {
	exacts *magazine.Exacts
	ranges *ranges
	usage  *usage
	track  [magazine.LargeBuckets]track
	recent lru
	units  uint64 // of the slots of the open magazines, in use and free

	shift       uint   // right shift of the part of the peak
	bounded     bool   // by a budget, too
	budgetUnits uint64 // the budget's bound
}

// limit returns how many units may lie in magazines of large blocks.
func (r *retention) limit() uint64 {
	limit := max(r.usage.peakUnits/magazineShare, magazineFloor) >> r.shift
	if r.bounded {
		limit = min(limit, r.budgetUnits)
	}
	return limit
}

// bound sets the limits of the budget and of the level of pressure.
func (r *retention) bound(cacheBytes int64, shift uint) {
	r.shift = shift
	r.bounded = cacheBytes > 0
	r.budgetUnits = uint64(max(cacheBytes, 0)) >> sizeclass.UnitShift / 2
}

// of returns the track of a bucket.
func (r *retention) of(bucket int32) *track { return &r.track[int(bucket)-magazine.FirstLarge] }

// keep decides whether a new block of that length stays in a magazine when freed, and returns its slot there,
// or nil. Precondition: the length missed in its bucket before, and a block of it was freed since the last
// turn: only lengths that recur immediately are worth a magazine, and the search serves the others as fast.
func (r *retention) keep(t *track, units uint32, hint int) *magazine.Slot {
	if t.heat < heatKept {
		t.heat++
		return nil
	}
	m := r.exacts.Of(units)
	limit := r.limit()
	if uint64(m.Attached()+1)*uint64(units) > limit && (m.Attached() > 0 || r.bounded) {
		return nil // without a budget one block may be of any length
	}
	if !m.Open {
		if m.LiveSlots() == magazine.SlotCount {
			return nil // it would not be in the LRU list, and would stay open forever
		}
		r.replace(hint, m)
		t.closed = uint16(m.Frees()) //nolint:gosec // the low bits
	}
	s := r.exacts.Assign(m)
	if s == nil {
		return nil
	}
	r.units += uint64(units)
	r.recent.touch(m)
	for r.units > limit && r.recent.oldest != m {
		r.evict(r.recent.oldest)
	}
	return s
}

// replace installs the magazine of a length in its bucket and evicts the length that is there. Slots in use
// since the magazine was last open are no part of its budget, so their blocks must not stay in it: replace
// detaches them. A slot that is being freed concurrently may stay once, until it is freed again.
func (r *retention) replace(hint int, m *magazine.Exact) {
	if old := r.exacts.At(m.Bucket(), hint); old != nil && old != m {
		r.evict(old)
	}
	if !m.WholeHome() {
		m.EachLive(func(s *magazine.Slot) {
			_ = s.Announce(s.Word(), magazine.Detached) // a stale word: freed concurrently
		})
	}
	r.exacts.Reopen(m)
	r.exacts.Install(m, hint)
}

// left subtracts a collected large block from its magazine's units if that is open.
func (r *retention) left(s *magazine.Slot) {
	if m := s.Magazine().Exact(); m != nil && m.Open && m.Kept(s) {
		r.units -= uint64(m.Units())
	}
}

// shrink closes magazines, least recently used first, until the rest is within the limit. The limit falls
// only with pressure or a lower budget.
func (r *retention) shrink() {
	for r.units > r.limit() && r.evictOldest() {
	}
}

// evictOldest closes the least recently used magazine of large blocks that has a free slot. It reports
// whether there was one.
func (r *retention) evictOldest() bool {
	for m := r.recent.oldest; m != nil; m = m.Newer {
		if m.FreeSlots() > 0 {
			r.evict(m)
			return true
		}
	}
	return false
}

// evictUnused closes the magazines of large blocks in which no slot was freed since the last call.
func (r *retention) evictUnused() {
	for m := r.recent.oldest; m != nil; {
		next, before := m.Newer, m.SeenFrees
		if m.SeenFrees = m.Frees(); m.SeenFrees == before && m.FreeSlots() > 0 {
			r.evict(m)
		}
		m = next
	}
}

// evict closes a magazine of large blocks and returns its free blocks to the heap.
func (r *retention) evict(m *magazine.Exact) {
	t := r.of(m.Bucket())
	if t.units == m.Units() && uint16(m.Frees())-t.closed < worthHits {
		t.heat = heatCold
	}
	r.units -= uint64(m.Attached()) * uint64(m.Units())
	r.recent.remove(m)
	r.exacts.Close(m, r.ranges.vacate)
}

// evictAll closes the magazines of large blocks.
func (r *retention) evictAll() {
	for r.recent.oldest != nil {
		r.evict(r.recent.oldest)
	}
}
