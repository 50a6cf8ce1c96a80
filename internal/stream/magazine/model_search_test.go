package magazine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recent is how many hand-outs of a slot back callers still try to free or to announce: the live handle, the
// one before it, and one that is older still. All older ones look alike.
const recent = 3

// search visits every state that can be reached from a world: at every moment any actor may take its next
// step, and one that rests may begin any operation with any handle.
type search struct {
	rules rules
	seen  *seen[world]
	quiet int // states without an operation in progress
	moves []move
	memo  world // of the state that is looked up
}

type move struct {
	actor  int
	op     op
	at     step
	slot   int8
	serial uint8
}

func (m move) String() string {
	return fmt.Sprintf("%d:%s/%d(%d#%d)", m.actor, opName(m.op), m.at, m.slot, m.serial)
}

// String is the way to the state that the search is in.
func (s *search) String() string {
	var b strings.Builder
	for _, m := range s.moves {
		b.WriteString(m.String() + " ")
	}
	return b.String()
}

func newSearch(r rules) *search { return &search{rules: r, seen: newSeen[world]()} }

// isNew notes a world with the callers in one order: they are alike. It reports whether no such world was noted.
func (s *search) isNew(w *world) bool {
	callers := w.actors[1:]
	for i := 1; i < len(callers); i++ {
		for j := i; j > 0 && callers[j].before(&callers[j-1]); j-- {
			if w != &s.memo {
				s.memo = *w
				w, callers = &s.memo, s.memo.actors[1:]
			}
			callers[j], callers[j-1] = callers[j-1], callers[j]
		}
	}
	return s.seen.add(w)
}

func (a *actor) before(b *actor) bool {
	return a.rank() < b.rank() || a.rank() == b.rank() && a.seen < b.seen
}

func (a *actor) rank() uint64 {
	return uint64(a.at)<<48 | uint64(a.op)<<40 | uint64(uint8(a.slot))<<32 | uint64(a.serial)<<24 |
		uint64(a.left)<<16 | uint64(a.flags)<<8 | uint64(uint8(a.head))
}

// from visits a world and all that follow.
func (s *search) from(w *world) violation {
	if !s.isNew(w) {
		return lawful
	}
	if v := w.judge(); v != lawful {
		return v
	}
	isQuiet := true
	for i := range w.actors {
		if w.actors[i].at != resting {
			isQuiet = false
			if v := s.step(w, i, w.actors[i]); v != lawful {
				return v
			}
		}
	}
	if isQuiet {
		s.quiet++
		if v := w.judgeQuiet(); v != lawful {
			return v
		}
	}
	for i := range w.actors {
		if w.actors[i].at == resting && w.actors[i].left > 0 {
			if v := s.begin(w, i); v != lawful {
				return v
			}
		}
	}
	return lawful
}

// step lets an actor take its next step and continues from there.
func (s *search) step(w *world, i int, a actor) violation {
	s.moves = append(s.moves, move{i, a.op, a.at, a.slot, a.serial})
	next := *w
	next.actors[i] = a
	v := machine{&s.rules, &next, &next.actors[i]}.advance()
	if v == lawful {
		v = s.from(&next)
	}
	if v == lawful {
		s.moves = s.moves[:len(s.moves)-1]
	}
	return v
}

// begin lets an actor begin each operation that it may.
func (s *search) begin(w *world, i int) violation {
	if i == 0 {
		for slot := range int8(modelSlots) {
			if w.place[slot] == kept {
				if v := s.start(w, i, opRelease, slot, 0); v != lawful {
					return v
				}
			}
		}
		for o := firstOwner; o <= opEnd; o++ {
			if w.ownerMay(o) {
				if v := s.start(w, i, o, 0, 0); v != lawful {
					return v
				}
			}
		}
		return lawful
	}
	if v := s.take(w, i); v != lawful {
		return v
	}
	for slot := range int8(modelSlots) {
		if w.sharing {
			if v := s.share(w, i, slot); v != lawful {
				return v
			}
			continue
		}
		for k := w.known[slot]; k > 0 && k+recent > w.known[slot]; k-- {
			if v := s.start(w, i, opFree, slot, k); v != lawful {
				return v
			}
			if k+2 <= w.known[slot] {
				continue // as stale for an announcement as the one before the live
			}
			if v := s.start(w, i, opAnnounce, slot, k); v != lawful {
				return v
			}
		}
	}
	return lawful
}

// take lets a caller take a slot from the magazine, or if that is loose from the list, for a block of either length.
func (s *search) take(w *world, i int) violation {
	if w.kind != loose {
		return s.start(w, i, opTake, 0, 0)
	}
	if v := s.start(w, i, opBack, 0, 1); v != lawful {
		return v
	}
	return s.start(w, i, opBack, 0, 2)
}

// share lets a caller use, move and free with the live handle of a slot, the one before it and the one that was moved.
func (s *search) share(w *world, i int, slot int8) violation {
	var handles []uint8
	for k := w.known[slot]; k > 0 && k+2 > w.known[slot]; k-- {
		handles = append(handles, k)
	}
	if w.past[slot] != 0 || w.handle[slot][0]&moveMask != 0 {
		handles = append(handles, moved)
	}
	for _, k := range handles {
		for _, o := range []op{opFree, opRecord, opMove} {
			if v := s.start(w, i, o, slot, k); v != lawful {
				return v
			}
		}
	}
	return lawful
}

func (s *search) start(w *world, i int, o op, slot int8, serial uint8) violation {
	return s.step(w, i, actor{at: firstStep(o), op: o, slot: slot, user: uint8(max(i, 1) - 1), serial: serial, left: w.actors[i].left - 1})
}

// ownerMay has the preconditions of the owner's methods, which internal/stream/core respects.
func (w *world) ownerMay(o op) bool {
	switch o {
	case opDrain:
		return true
	case opShelve:
		return w.kind == small && w.open && w.mask&parkedBit == 0
	case opPark, opIdle:
		return w.kind == small && w.open
	case opReady, opTakeReady:
		return w.kind == small && !w.over
	case opSpan:
		return w.kind == small && !w.over && !w.open && w.homes == modelWhole
	case opEvict:
		return w.kind == exact && w.open
	case opReopen:
		return w.kind == exact && !w.open && !w.over
	case opAssign:
		return w.homes != 0 && (w.kind == loose || w.kind == exact && w.open)
	case opEnd:
		return !w.over
	default:
		return false
	}
}

// start returns a world in which the first liveSlots slots are live and the others are free, or the owner has
// them if the magazine is loose. The owner may begin that many operations, and so may each caller.
func start(k modelKind, liveSlots, ownerOps int, callerOps ...int) world {
	w := world{kind: k, open: k != loose, mask: modelWhole}
	if k == loose {
		w.mask, w.homes = closedBit, modelWhole
	}
	for s := range w.place {
		w.place[s] = inWord
		w.units[s] = 1
		if k == loose {
			w.place[s] = atHome
		}
	}
	for s := range int8(liveSlots) {
		if k != loose {
			w.mask &^= 1 << s
		}
		w.homes &^= 1 << s
		w.handOut(s, w.place[s])
		w.readHandle(s)
	}
	w.actors[0].left = uint8(ownerOps)
	for i, n := range callerOps {
		w.actors[i+1].left = uint8(n)
	}
	return w
}

// sharing is start with callers who use and move.
func sharing(k modelKind, liveSlots, ownerOps int, callerOps ...int) world {
	w := start(k, liveSlots, ownerOps, callerOps...)
	w.sharing = true
	return w
}

// scenario is where a search begins.
type scenario struct {
	name  string
	world world
}

func scenarios() []scenario {
	return []scenario{
		{"a class, both free, two callers", start(small, 0, 3, 3, 3-fewer)},
		{"a class, both live, two callers", start(small, 2, 4-fewer, 2, 2)},
		{"a class, both live, three callers", start(small, 2, 2, 2-fewer, 1, 1)},
		{"large blocks, both free, two callers", start(exact, 0, 3, 3, 2-fewer)},
		{"large blocks, both live, two callers", start(exact, 2, 4-fewer, 2, 1)},
		{"large blocks, one live, three callers", start(exact, 1, 2, 2-fewer, 1, 1)},
		{"loose slots, one live, two callers", start(loose, 1, 3, 3, 2-fewer)},
		{"loose slots, both live, two callers", start(loose, 2, 1, 5-fewer, 1)},
		{"loose slots, both live, three callers", start(loose, 2, 2-fewer, 2, 1, 1)},
		{"a class, one live and used, two callers", sharing(small, 1, 2, 3-fewer, 2-fewer)},
		{"large blocks, one live and used, two callers", sharing(exact, 1, 3-fewer, 2, 2-fewer)},
		{"a loose slot, live and used, three callers", sharing(loose, 1, 2-fewer, 2, 1, 1)},
	}
}

// oneGoroutine skips a search in the short form under the race detector, which slows it ten times and finds
// no race in one goroutine.
func oneGoroutine(t *testing.T) {
	t.Helper()
	if underRace == 1 && testing.Short() {
		t.Skip("a search has one goroutine") //nolint:forbidigo // the test without the race detector, and nightly, run it
	}
}

// Every interleaving of the operations keeps each slot with one owner, loses none, hands a parked magazine
// over once, wakes the owner of a draining cache and lets one free of each handle succeed.
func TestEveryInterleavingIsLawful(t *testing.T) {
	oneGoroutine(t)
	states, quiet := 0, 0
	for _, c := range scenarios() {
		s := newSearch(packageRules())
		require.Equal(t, lawful, s.from(&c.world), "%s: after %v", c.name, s)
		t.Logf("%s: %d states, %d of them quiet", c.name, s.seen.count(), s.quiet)
		states += s.seen.count()
		quiet += s.quiet
	}
	t.Logf("together: %d states, %d of them quiet", states, quiet)
	assert.Greater(t, quiet, 5000, "the searches hardly began")
}

// The same holds where handles are watched. Callers who use and move announce nothing that could be, save when a magazine of
// large blocks is reopened.
func TestEveryInterleavingOfWatchedHandlesIsLawful(t *testing.T) {
	oneGoroutine(t)
	rules := packageRules()
	rules.announces = Watched
	for i, c := range scenarios() {
		if c.world.sharing && c.world.kind != exact || testing.Short() && i%3 != 0 {
			continue
		}
		s := newSearch(rules)
		require.Equal(t, lawful, s.from(&c.world), "%s: after %v", c.name, s)
	}
}

// mistake is one way in which the package could be wrong.
type mistake struct {
	name string
	make func(*rules)
}

func mistakes() []mistake {
	return []mistake{
		{"a free does not bump the generation", func(r *rules) {
			r.free = func(word, handle uint64) (uint64, bool) {
				return word, word>>generationShift == handle>>generationShift
			}
		}},
		{"a free of a flagged slot does not look at the generation", func(r *rules) {
			r.free = func(word, _ uint64) (uint64, bool) { return freed(word), true }
		}},
		{"an announcement does not look at the generation", func(r *rules) {
			r.flag = func(word, _ uint64, f Flag) (uint64, bool) { return word | uint64(f), true }
		}},
		{"an announcement sets no flag", func(r *rules) {
			r.flag = func(word, handle uint64, _ Flag) (uint64, bool) { return nextFlag(word, handle, 0) }
		}},
		{"a slot that is home keeps its flags", func(r *rules) {
			r.clear = func(word uint64) uint64 { return word }
		}},
		{"a take looks past the closed bit", func(r *rules) {
			r.take = func(mask uint64) (uint64, int, bool) {
				next, slot, ok := nextTake(mask &^ closedBit)
				return next | mask&closedBit, slot, ok
			}
		}},
		{"a take looks past the parked bit", func(r *rules) {
			r.take = func(mask uint64) (uint64, int, bool) {
				next, slot, ok := nextTake(mask &^ parkedBit)
				return next | mask&parkedBit, slot, ok
			}
		}},
		{"a take stores the mask", func(r *rules) { r.takeBlindly = true }},
		{"a put looks past the closed bit", func(r *rules) {
			r.put = func(old uint64) home { return put(old &^ closedBit) }
		}},
		{"a put looks past the parked bit", func(r *rules) {
			r.put = func(old uint64) home { return put(old &^ parkedBit) }
		}},
		{"every put into a parked magazine hands it over", func(r *rules) {
			r.put = func(old uint64) home {
				if old < closedBit && old >= parkedBit {
					return handMagazine
				}
				return put(old)
			}
		}},
		{"a magazine is opened with the bits that it has", func(r *rules) {
			r.reopen = func(old uint64) uint64 { return old &^ closedBit }
		}},
		{"a closed magazine is closed once more for its bits", func(r *rules) {
			r.broughtHome = func(old uint64) uint64 { return old & slotBits }
		}},
		{"a magazine is taken from while it is parked, and unparked by it", func(r *rules) {
			r.takeParked = func(mask uint64, most int) (uint64, uint64) {
				next, taken := nextTakeParked(mask, most)
				return next &^ parkedBit, taken
			}
		}},
		{"a magazine is closed as idle before it was handed over", func(r *rules) {
			r.idle = func(mask, whole uint64, _ bool) (uint64, bool) { return nextIdle(mask, whole, true) }
		}},
		{"a magazine is closed as idle by Store", func(r *rules) { r.idleBlindly = true }},
		{"a magazine is closed as idle with a slot in use", func(r *rules) {
			r.idle = func(mask, _ uint64, handed bool) (uint64, bool) {
				return nextIdle(mask, mask&slotBits, handed || mask&slotBits == 0)
			}
		}},
		{"a magazine is parked by Store", func(r *rules) { r.parkBlindly = true }},
		{"a double free is called stale", func(r *rules) {
			r.refusal = func(uint64, uint64) error { return ErrStale }
		}},
		{"a stale free is called double", func(r *rules) {
			r.refusal = func(uint64, uint64) error { return ErrDoubleFree }
		}},
	}
}

// backMistakes are those that only callers meet who take blocks back.
func backMistakes() []mistake {
	return []mistake{
		{"a take from the list does not count", func(r *rules) {
			r.pop = func(top, entry uint64) uint64 { return nextPush(top, uint32(entry)) }
		}},
		{"neither does the owner's", func(r *rules) {
			r.pop = func(top, entry uint64) uint64 { return nextPush(top, uint32(entry)) }
			r.empty = func(top uint64) uint64 { return nextPush(top, noSlot) }
		}},
		{"a block is taken back for any length", func(r *rules) {
			r.entry = func(_, below uint32) uint64 { return uint64(below) }
		}},
		{"a block that others use is taken back", func(r *rules) { r.backFlagged = true }},
	}
}

// sharingMistakes are those that only callers meet who use and move.
func sharingMistakes() []mistake {
	return []mistake{
		{"a use is noted after its flag was set", func(r *rules) { r.flagFirst = true }},
		{"a number is written over another", func(r *rules) {
			r.record = func(word, handle uint64, number int) (uint64, bool, bool) {
				next, _, ok := nextRecord(word&^userMask, handle, number)
				return next, false, ok
			}
		}},
		{"a stream that finds another's number is not noted", func(r *rules) {
			r.record = func(word, handle uint64, number int) (uint64, bool, bool) {
				next, noted, ok := nextRecord(word, handle, number)
				if noted {
					next = word
				}
				return next, false, ok
			}
		}},
		{"a number is written without its flag", func(r *rules) {
			r.record = func(word, handle uint64, number int) (uint64, bool, bool) {
				next, noted, ok := nextRecord(word, handle, number)
				return next &^ uint64(Announced), noted, ok
			}
		}},
		{"a number is written whosever handle is live", func(r *rules) {
			r.record = func(word, _ uint64, number int) (uint64, bool, bool) { return nextRecord(word, word, number) }
		}},
		{"a move does not look at the moves before", func(r *rules) {
			r.move = func(word, handle uint64) (uint64, bool) {
				return word + moveStep | uint64(Announced), word>>generationShift == handle>>generationShift
			}
		}},
		{"a free does not look at moves", func(r *rules) {
			r.free = func(word, handle uint64) (uint64, bool) {
				return freed(word &^ moveMask), word>>generationShift == handle>>generationShift
			}
		}},
		{"a move leaves the fast free open", func(r *rules) {
			r.move = func(word, handle uint64) (uint64, bool) {
				next, ok := nextMove(word, handle)
				return next&^uint64(Announced) | word&uint64(Announced), ok
			}
		}},
	}
}

// The searches find every one of these mistakes: they would find them in the package.
func TestSearchFindsMistakes(t *testing.T) {
	oneGoroutine(t)
	find := func(m mistake, worlds ...world) {
		t.Run(m.name, func(t *testing.T) {
			r := packageRules()
			m.make(&r)
			states := 0
			for _, w := range worlds {
				s := newSearch(r)
				v := s.from(&w)
				states += s.seen.count()
				if v != lawful {
					t.Logf("%s, after %d states, by %v", v, states, s)
					return
				}
			}
			t.Errorf("not found in %d states", states)
		})
	}
	for _, m := range mistakes() {
		find(m, // the smallest world first: one caller makes most mistakes bad
			start(small, 0, 3, 1), start(small, 2, 2, 3), start(exact, 2, 3, 2), start(small, 2, 4, 2),
			start(small, 2, 2, 1, 2), start(exact, 2, 2, 1, 2), start(small, 2, 4, 2, 2), start(exact, 2, 3, 2, 2))
	}
	for _, m := range backMistakes() {
		find(m, start(loose, 2, 0, 5, 1), start(loose, 1, 3, 3, 2))
	}
	for _, m := range sharingMistakes() {
		find(m, sharing(small, 1, 2, 3, 2), sharing(loose, 1, 2, 2, 2))
	}
}
