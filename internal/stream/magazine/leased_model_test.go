package magazine

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The model of a lane: a leased magazine of two slots, its lane and up to three other callers, who free and
// announce with any handle at any moment, also one that the lane is freeing. A store of the lane's to a
// slot's word may reach the others later than its next steps, but before its next turn. The words change by
// the functions of word.go.

// leaseRules are the decisions that a search runs on: those of the package, or with one mistake.
type leaseRules struct {
	isLive  func(word, handle uint64) bool // for the lane's free
	isBack  func(word, handed uint64) bool
	put     func(old uint64) home
	forgets bool // the lane does not look at what it knows to be free
	noMark  bool // a hand-out is not written down
}

func packageLeaseRules() leaseRules {
	return leaseRules{
		isLive: func(word, handle uint64) bool { return word == handle },
		isBack: isBack, put: put,
	}
}

const (
	laneAlloc uint8 = iota + 1
	laneFree
	laneSettle
	laneRelease // all slots are free: the span goes back, and the magazine gets another
	otherFree
	otherAnnounce
)

// laneActor is the lane or a caller, in the middle of an operation or at rest.
type laneActor struct {
	op, at       uint8
	slot, serial uint8
	left         uint8
	bits         uint8 // settle: those still to be looked at
	wasOver      bool  // free: the handle had been freed, and everybody could know, when this began
}

type laneWorld struct {
	large  bool
	mask   uint64
	word   [modelSlots]uint32
	late   [modelSlots]uint32 // the lane's store that others do not see yet; 0 if there is none
	handed [modelSlots]uint32
	local  uint8
	owed   bool // a caller is to hand the magazine over
	pushed bool // it was handed over

	serial [modelSlots]uint8 // hand-outs so far
	live   [modelSlots]bool  // and the last one was not freed
	handle [modelSlots][mostHandles]uint32

	actors [4]laneActor // the lane first
}

// seen is what the lane reads in a slot's word.
func (w *laneWorld) seen(slot uint8) uint64 {
	if w.late[slot] != 0 {
		return uint64(w.late[slot])
	}
	return uint64(w.word[slot])
}

func wide(handed uint32) uint64 {
	if handed == 1<<32-1 {
		return unhanded
	}
	return uint64(handed)
}

// fence makes the lane's stores seen.
func (w *laneWorld) fence() {
	for s := range w.late {
		if w.late[s] != 0 {
			w.word[s], w.late[s] = w.late[s], 0
		}
	}
}

// laneSearch visits every state that can be reached.
type laneSearch struct {
	rules leaseRules
	known *seen[laneWorld]
	quiet int
	moves []string
}

func (s *laneSearch) from(w laneWorld) violation {
	if !s.known.add(w) {
		return lawful
	}
	isQuiet := true
	for i := range w.actors {
		if w.actors[i].op == 0 {
			continue
		}
		isQuiet = false
		if v := s.step(w, i); v != lawful {
			return v
		}
	}
	for slot := range w.late {
		if w.late[slot] != 0 {
			next := w
			next.word[slot], next.late[slot] = w.late[slot], 0
			if v := s.from(next); v != lawful {
				return v
			}
			isQuiet = false
		}
	}
	if isQuiet {
		s.quiet++
		if v := w.judgeQuiet(); v != lawful {
			return v
		}
	}
	return s.begin(w)
}

// judgeQuiet says that every slot that does not live is the lane's, or will be with its next turn.
func (w *laneWorld) judgeQuiet() violation {
	for s, lives := range w.live {
		bit := uint8(1) << s
		switch {
		case lives && w.local&bit != 0:
			return twoOwners
		case !lives && w.local&bit == 0 && (w.mask>>s&1 == 0 || !w.pushed):
			return lostSlot
		}
	}
	return lawful
}

// begin lets each actor at rest begin what it may.
func (s *laneSearch) begin(w laneWorld) violation {
	for i := range w.actors {
		a := w.actors[i]
		if a.op != 0 || a.left == 0 {
			continue
		}
		for op := laneAlloc; op <= otherAnnounce; op++ {
			if (i == 0) != (op < otherFree) {
				continue
			}
			if op == laneAlloc && w.local == 0 || op == laneRelease && w.local != modelWhole {
				continue
			}
			if op != laneFree && op != otherFree && op != otherAnnounce {
				next := w
				next.actors[i] = laneActor{op: op, left: a.left - 1}
				if v := s.step(next, i); v != lawful {
					return v
				}
				continue
			}
			for slot := range uint8(modelSlots) {
				for k := w.serial[slot]; k > 0 && k+2 > w.serial[slot]; k-- {
					if i > 0 && w.late[slot] != 0 && w.late[slot] <= w.handle[slot][k-1] {
						continue // whoever has the handle from the lane has seen what it stored before
					}
					next := w
					isOver := k < w.serial[slot] || !w.live[slot]
					next.actors[i] = laneActor{
						op: op, slot: slot, serial: k, left: a.left - 1, wasOver: isOver && (i == 0 || w.late[slot] == 0),
					}
					if v := s.step(next, i); v != lawful {
						return v
					}
				}
			}
		}
	}
	return lawful
}

// step takes the next step of an actor.
func (s *laneSearch) step(w laneWorld, i int) violation {
	a := &w.actors[i]
	s.moves = append(s.moves, fmt.Sprintf("%d:%d/%d(%d#%d)", i, a.op, a.at, a.slot, a.serial))
	var v violation
	switch a.op {
	case laneAlloc:
		v = s.alloc(&w, a)
	case laneFree:
		v = s.free(&w, a)
	case laneSettle:
		v = s.settle(&w, a)
	case laneRelease:
		w.fence()
		w.local = modelWhole
		w.handed = [modelSlots]uint32{1<<32 - 1, 1<<32 - 1}
		a.op = 0
	default:
		v = s.other(&w, a)
	}
	if a.op == 0 {
		*a = laneActor{left: a.left}
	}
	if v == lawful {
		v = s.from(w)
	}
	if v == lawful {
		s.moves = s.moves[:len(s.moves)-1]
	}
	return v
}

func (s *laneSearch) alloc(w *laneWorld, a *laneActor) violation {
	slot := uint8(bits.TrailingZeros8(w.local))
	w.local &= w.local - 1
	a.op = 0
	if w.live[slot] {
		return twoOwners
	}
	word := w.seen(slot)
	if !s.rules.noMark {
		w.handed[slot] = uint32(word)
	}
	w.live[slot] = true
	w.handle[slot][w.serial[slot]] = uint32(word)
	w.serial[slot]++
	return lawful
}

func (s *laneSearch) free(w *laneWorld, a *laneActor) violation {
	slot := a.slot
	handle := uint64(w.handle[slot][a.serial-1])
	if a.at == 0 {
		if s.rules.isLive(w.seen(slot), handle) {
			a.at = 1
			return lawful
		}
		a.at, a.op = 0, otherFree // the ordinary way
		return lawful
	}
	a.op = 0
	if a.wasOver {
		return freedTwice
	}
	w.late[slot] = uint32(freed(handle))
	w.live[slot] = w.live[slot] && a.serial != w.serial[slot]
	return s.keep(w, slot)
}

// keep books a slot as the lane's.
func (s *laneSearch) keep(w *laneWorld, slot uint8) violation {
	if w.local>>slot&1 != 0 && (w.large || !s.rules.forgets) {
		return listedTwice
	}
	w.local |= 1 << slot
	if w.large {
		w.handed[slot] = 1<<32 - 1
	}
	return lawful
}

func (s *laneSearch) settle(w *laneWorld, a *laneActor) violation {
	if a.at == 0 {
		w.fence()
		if !w.pushed {
			a.op = 0
			return lawful
		}
		w.pushed = false
		a.bits = uint8(w.mask & modelWhole)
		if !w.large && !s.rules.forgets {
			a.bits &^= w.local
		}
		w.mask = leasedMask
		a.at = 1
	}
	if a.bits == 0 {
		a.op = 0
		return lawful
	}
	if a.at == 1 { // look at the first word in a step of its own
		a.at = 2
		return lawful
	}
	slot := uint8(bits.TrailingZeros8(a.bits))
	a.bits &= a.bits - 1
	if a.bits == 0 {
		a.op = 0
	}
	if !s.rules.isBack(w.seen(slot), wide(w.handed[slot])) {
		return lawful
	}
	if w.live[slot] {
		return twoOwners
	}
	w.word[slot] &^= flagMask
	return s.keep(w, slot)
}

// other is a free or an announcement by atomic operations.
func (s *laneSearch) other(w *laneWorld, a *laneActor) violation {
	slot := a.slot
	switch a.at {
	case 0:
		if a == &w.actors[0] {
			w.fence()
		}
		handle := uint64(w.handle[slot][a.serial-1])
		if a.op == otherAnnounce {
			if next, ok := nextFlag(uint64(w.word[slot]), handle, Announced); ok {
				w.word[slot] = uint32(next)
			}
			a.op = 0
			return lawful
		}
		next, ok := nextFreeLeased(uint64(w.word[slot]), handle)
		if !ok {
			a.op = 0
			if a.serial == w.serial[slot] && w.live[slot] {
				return refusedLive
			}
			return lawful
		}
		if a.wasOver {
			return freedTwice
		}
		w.word[slot] = uint32(next)
		w.live[slot] = w.live[slot] && a.serial != w.serial[slot]
		a.at = 1
	case 1:
		old := w.mask
		w.mask |= 1 << slot
		switch s.rules.put(old) {
		case handMagazine:
			if w.owed || w.pushed {
				return handedTwice
			}
			w.owed = true
			a.at = 2
		case inMask, handSlot:
			a.op = 0
		}
	default:
		w.owed, w.pushed = false, true
		a.op = 0
	}
	return lawful
}

func laneStart(large bool, laneOps int, callerOps ...int) laneWorld {
	w := laneWorld{large: large, mask: leasedMask, local: modelWhole}
	w.handed = [modelSlots]uint32{1<<32 - 1, 1<<32 - 1}
	for s := range w.word {
		w.word[s] = generationStep // 0 is nobody's
	}
	w.actors[0].left = uint8(laneOps)
	for i, n := range callerOps {
		w.actors[i+1].left = uint8(n)
	}
	return w
}

func laneStarts() []laneWorld {
	return []laneWorld{
		laneStart(false, 6-fewer, 2, 2), laneStart(true, 6-fewer, 2, 2),
		laneStart(false, 5-fewer, 1, 1, 1), laneStart(true, 5-fewer, 1, 1, 1),
		laneStart(false, 8-fewer, 2), laneStart(true, 8-fewer, 2),
	}
}

// Every interleaving of a lane's operations with frees and announcements by others, racing ones of the
// same handle included, keeps each slot with one owner and loses none; frees one after the other of one
// handle succeed once.
func TestEveryInterleavingOfALaneIsLawful(t *testing.T) {
	oneGoroutine(t)
	quiet := 0
	for _, w := range laneStarts() {
		s := &laneSearch{rules: packageLeaseRules(), known: newSeen[laneWorld]()}
		require.Equal(t, lawful, s.from(w), "after %v", s.moves)
		t.Logf("%d states, %d of them quiet", s.known.count(), s.quiet)
		quiet += s.quiet
	}
	assert.Greater(t, quiet, 5000, "the searches hardly began")
}

// The searches find every one of these mistakes.
func TestLaneSearchFindsMistakes(t *testing.T) {
	oneGoroutine(t)
	for name, spoil := range map[string]func(*leaseRules){
		"a bit is taken for a free": func(r *leaseRules) {
			r.isBack = func(_, handed uint64) bool { return handed != unhanded }
		},
		"a free slot is taken home again": func(r *leaseRules) {
			r.isBack = func(word, handed uint64) bool { return word>>generationShift != handed>>generationShift }
		},
		"a hand-out is not written down": func(r *leaseRules) { r.noMark = true },
		"the lane frees what is not live": func(r *leaseRules) {
			r.isLive = func(_, _ uint64) bool { return true }
		},
		"every put into a leased magazine hands it over": func(r *leaseRules) {
			r.put = func(uint64) home { return handMagazine }
		},
		"no put into a leased magazine hands it over": func(r *leaseRules) {
			r.put = func(uint64) home { return inMask }
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := packageLeaseRules()
			spoil(&r)
			for _, w := range []laneWorld{laneStart(true, 5, 2), laneStart(true, 6, 1, 1)} {
				s := &laneSearch{rules: r, known: newSeen[laneWorld]()}
				if v := s.from(w); v != lawful {
					t.Logf("%s: after %v", v, s.moves)
					return
				}
			}
			t.Fatal("no search found it")
		})
	}
}
