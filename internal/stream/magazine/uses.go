package magazine

import (
	"math/bits"

	"github.com/go-vram/vram/internal/fence/line"
	"github.com/go-vram/vram/internal/watermark/shared"
)

// Announce sets a flag on a live handle, so that its free takes the slow path.
func (s *Slot) Announce(handle uint64, f Flag) error { return s.announceFrom(s.word.Load(), handle, f) }

// announceFrom is Announce for a slot that had the word w a moment ago.
func (s *Slot) announceFrom(w, handle uint64, f Flag) error {
	for ; ; w = s.word.Load() {
		next, ok := nextFlag(w, handle, f)
		if !ok {
			return ErrStale
		}
		if next == w || s.word.CompareAndSwap(w, next) {
			return nil
		}
	}
}

// Record records that the stream of that number uses the block of a live handle until its free. It is one
// atomic operation, which writes the number into the word. It is two if the word has another stream's number
// or the number is too high for it; the first of these for a slot allocates 48 bytes. It is none if the word
// has that number. Errors: ErrStale.
//
// In the note the bit is set before the flag: a free that finds the flag finds the bit. A bit without a flag,
// of a handle that was freed concurrently, means nothing; it may make a later announced free of the slot wait
// for one more stream.
func (s *Slot) Record(handle uint64, number int) error {
	return s.recordFrom(s.word.Load(), handle, number)
}

// recordFrom is Record for a slot that had the word w a moment ago.
func (s *Slot) recordFrom(w, handle uint64, number int) error {
	for ; ; w = s.word.Load() {
		next, noted, ok := nextRecord(w, handle, number)
		switch {
		case !ok:
			return ErrStale
		case noted:
			return s.announceUse(handle, 1<<number)
		case next == w || s.word.CompareAndSwap(w, next):
			return nil
		}
	}
}

// Shared reports whether a use by another stream was announced for the block of a live handle. It may have
// ended.
func (s *Slot) Shared() bool { return s.word.Load()&(userMask|uint64(Announced)) != 0 }

// Use is the handle of a begun use.
type Use struct {
	slot   *Slot
	handle uint64
	use    *use
	state  uint64 // of the use: open
}

// RecordLine is Record for a stream without a number.
func (s *Slot) RecordLine(handle uint64, line *line.Line) error {
	if !s.Live(handle) {
		return ErrStale
	}
	n := s.noted()
	u := n.find(line)
	if u == nil {
		u = n.add(line)
	}
	u.recorded.Store(true)
	return s.announceUse(handle, moreUses)
}

// Begin begins a use of a live handle's block by a stream. It lists the use before it sets the flag, as
// Record does. Errors: ErrStale.
func (s *Slot) Begin(handle uint64, line *line.Line) (Use, error) {
	if !s.Live(handle) {
		return Use{}, ErrStale
	}
	u, state := s.noted().begin(line)
	if err := s.announceUse(handle, moreUses); err != nil {
		u.state.CompareAndSwap(state, state|endedBit)
		return Use{}, err
	}
	return Use{s, handle, u, state}, nil
}

// announceUse sets a bit of the note, and then the flag: see Record.
func (s *Slot) announceUse(handle, bit uint64) error {
	s.noted().bits.Or(bit)
	s.atPlace(useNoted)
	return s.Announce(handle, Announced)
}

// Open returns why a use cannot be ended any more: ErrStale after the block's free, ErrUseOver.
func (u Use) Open() error {
	switch {
	case u.use == nil, u.use.state.Load() != u.state:
		return ErrUseOver
	case u.slot.word.Load()>>generationShift != u.handle>>generationShift:
		return ErrStale
	default:
		return nil
	}
}

// End ends a use. number is a fence of its line that follows the use's last submission, recorded already or
// later. Of several ends one succeeds; the others return ErrUseOver. If the block was freed before, End has
// no effect.
func (u Use) End(number uint64) error {
	if u.use == nil {
		return ErrUseOver
	}
	shared.RaiseUint64(&u.use.number, number)
	u.slot.atPlace(useEnds)
	if !u.use.state.CompareAndSwap(u.state, u.state|endedBit) {
		return ErrUseOver
	}
	return nil
}

// Move replaces the handle of a live block; the old one is not live any more. line belongs to the stream that
// owns the block from now on, nil for its original one. fence covers the submissions of the previous stream.
// hand sums the blocks that the new stream has of this one, nil for the original. Of a move and a free of one
// handle one succeeds. Errors: ErrStale, ErrMoves.
func (s *Slot) Move(handle uint64, line *line.Line, fence uint64, hand *Hand) (moved uint64, err error) {
	n := s.noted()
	var next *use
	var state uint64
	if line != nil {
		if !s.Live(handle) {
			return 0, ErrStale
		}
		next, state = n.begin(line)
		s.noted().bits.Or(moreUses)
	}
	s.atPlace(useNoted)
	for {
		w := s.word.Load()
		to, ok := nextMove(w, handle)
		if !ok {
			if next != nil {
				next.state.CompareAndSwap(state, state|endedBit)
			}
			if matches(w, handle) {
				return 0, ErrMoves
			}
			return 0, ErrStale
		}
		if s.word.CompareAndSwap(w, to) {
			moved = to &^ flagMask
			break
		}
	}
	s.atPlace(useMoved)
	units := int64(s.magazine.UnitsOf(s))
	if next != nil {
		next.hand.Store(hand)
		hand.add(units)
	}
	if held := n.holder.Swap(next); held != nil {
		held.hand.Load().add(-units)
		at := held.state.Load()
		_ = Use{s, handle, held, at &^ endedBit}.End(fence)
	}
	n.moved.Store(moved)
	return moved, nil
}

// Settled reports whether the move that made the handle, if any, has completed. Code that finds a handle by
// itself, and not from Move, must check this first: a second move would find the holder before the first, and
// the first would end the second's use by a fence of another stream.
func (s *Slot) Settled(handle uint64) bool {
	if handle&moveMask == 0 {
		return true
	}
	n := s.note.Load()
	return n != nil && n.moved.Load() == handle
}

// Holder returns the timeline of the stream to which the block of a handle was moved; nil if that is the
// slot's own.
func (s *Slot) Holder(handle uint64) *line.Line {
	if handle&moveMask == 0 {
		return nil
	}
	if n := s.note.Load(); n != nil {
		if held := n.holder.Load(); held != nil {
			return held.line
		}
	}
	return nil
}

// user returns the number of the stream in the word with which a slot was freed, negative if there is none.
func (s *Slot) user() int {
	return int(uint64(s.flags)&userMask>>userShift) - 1
}

// User returns the number of the only stream that uses the block of a freed slot; ok is false if there may be
// more uses, or none: see TakeUses.
func (s *Slot) User() (number int, ok bool) {
	number = s.user()
	n := s.note.Load()
	return number, number >= 0 && (n == nil || n.bits.Load() == 0)
}

// TakeUses empties the noted uses of a freed slot. It passes the numbers of the streams, and each listed use
// with its fence; open says that the use was not ended, and the next fence covers it.
func (s *Slot) TakeUses(number func(number int), listed func(line *line.Line, fence uint64, open bool)) {
	user := s.user()
	if user >= 0 {
		number(user)
	}
	n := s.note.Load()
	if n == nil || n.bits.Load() == 0 {
		return
	}
	uses := n.bits.Swap(0)
	s.atPlace(usesBroken)
	for f := uses &^ moreUses; f != 0; f &= f - 1 {
		number(bits.TrailingZeros64(f))
	}
	if uses&moreUses == 0 {
		return
	}
	n.holder.Store(nil)
	for u := n.uses.Swap(nil); u != nil; u = u.next.Load() {
		listed(u.line, u.number.Load(), u.recorded.Load() || u.state.Load()&endedBit == 0)
	}
}

// HandedTo returns the number of the stream that has the slot's block since a move; 0: the stream of its
// memory, also if the other one has ended. It is safe for concurrent use.
func (s *Slot) HandedTo() uint32 {
	if s.word.Load()&moveMask == 0 {
		return 0
	}
	if held := s.note.Load().holder.Load(); held != nil && !held.line.Finished() {
		if h := held.hand.Load(); h != nil {
			return h.To
		}
	}
	return 0
}

// Attached returns the value that Attach has put to the allocation of a handle, which a move does not change; nil: none.
func (s *Slot) Attached(handle uint64) any {
	n := s.note.Load()
	if n == nil {
		return nil
	}
	if a := n.attached.Load(); a != nil && a.generation == handle>>generationShift {
		return a.value
	}
	return nil
}

// Attach announces a live handle (Announced), and returns the value of its allocation: the first call makes it. Errors:
// ErrStale.
func (s *Slot) Attach(handle uint64, first func() any) (any, error) {
	if err := s.Announce(handle, Announced); err != nil {
		return nil, err
	}
	n, generation := s.noted(), handle>>generationShift
	for {
		old := n.attached.Load()
		switch {
		case old == nil || old.generation < generation:
		case old.generation == generation:
			return old.value, nil
		default:
			return nil, ErrStale
		}
		if n.attached.CompareAndSwap(old, &attachment{generation, first()}) {
			return s.Attached(handle), nil
		}
	}
}
