package magazine

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/sizeclass"
)

// twin is a real magazine that follows the model. Only two of its slots take part; the ones that its
// class has beyond them are kept aside.
type twin struct {
	model   world
	cache   *Cache
	owner   *Owner
	m       *Magazine
	span    *Span  // nil for large blocks
	exact   *Exact // nil for a class
	handles [modelSlots][]uint64
}

// twinClass is one whose spans have as few slots as any.
const twinClass = sizeclass.Count - 1

func aside() uint64 { return SpanSlots(twinClass) &^ modelWhole }

func newTwin(k modelKind) *twin {
	tw := &twin{model: start(k, 0, 0), cache: new(Cache)}
	tw.owner = NewOwner(tw.cache, wakes(func() {}))
	if k == small {
		tw.span = tw.owner.Spans.New(twinClass, 0, 0)
		tw.m = &tw.span.Magazine
		tw.m.mask.And(^aside())
		tw.owner.Spans.Install(tw.span, 0)
		return tw
	}
	tw.model.open, tw.model.mask, tw.model.homes = false, closedBit, modelWhole
	tw.model.place = [modelSlots]place{}
	tw.exact = tw.owner.Exacts.Of(1000)
	tw.exact.homes = modelWhole
	tw.m = &tw.exact.Magazine
	return tw
}

// wakes is a Waker.
type wakes func()

func (w wakes) Wake() { w() }

// Piled implements Waker.
func (wakes) Piled() {}

func (wakes) Refused() {}

// Freed implements Waker.
func (wakes) Freed() {}

// do performs a whole operation on both, the model's step by step.
func (tw *twin) do(t require.TestingT, o op, slot int8, serial uint8) {
	var want error
	if o == opFree || o == opAnnounce {
		handle := tw.handles[slot][serial-1]
		if !tw.model.isLive(slot, serial) {
			want = ErrStale
			if o == opFree {
				want = refusal(uint64(tw.model.word[slot]), handle)
			}
		}
	}
	i := 0
	if o < firstOwner {
		i = 1
	}
	r := packageRules()
	a := &tw.model.actors[i]
	*a = actor{at: firstStep(o), op: o, slot: slot, serial: serial}
	for a.at != resting {
		require.Equal(t, lawful, machine{&r, &tw.model, a}.advance())
	}
	switch o {
	case opTake, opFree, opAnnounce:
		tw.call(t, o, slot, serial, want)
	default:
		tw.own(t, o)
	}
}

func (tw *twin) call(t require.TestingT, o op, slot int8, serial uint8, want error) {
	switch o {
	case opFree:
		require.Equal(t, want, tw.m.At(int(slot)).Free(tw.handles[slot][serial-1]))
	case opAnnounce:
		require.Equal(t, want, tw.m.At(int(slot)).Announce(tw.handles[slot][serial-1], Announced))
	default:
		tw.hold(tw.m.Take())
	}
}

func (tw *twin) hold(s *Slot) {
	if s != nil {
		tw.handles[s.index] = append(tw.handles[s.index], s.Word())
	}
}

func (tw *twin) own(t require.TestingT, o op) {
	switch o {
	case opDrain:
		tw.drain()
	case opPark:
		tw.owner.Spans.Park(tw.span)
	case opReady:
		if m := tw.owner.Spans.Ready(twinClass); m != nil {
			require.Same(t, tw.span, m)
		}
	case opShelve:
		tw.owner.Spans.Shelve(tw.span)
	case opTakeReady:
		if m, taken := tw.owner.Spans.TakeReady(twinClass, 1); m != nil {
			require.Same(t, tw.span, m)
			tw.hold(m.At(bits.TrailingZeros64(taken)))
		}
	case opIdle:
		if tw.m.mask.Load() < closedBit {
			tw.m.mask.Or(aside())
		}
		if tw.owner.Spans.CloseIdle(tw.span) {
			tw.owner.Spans.Retire(tw.span)
		} else {
			tw.m.mask.And(^aside())
		}
	case opSpan:
		require.Same(t, tw.span, tw.owner.Spans.New(twinClass, 0, 0))
		tw.m.mask.And(^aside())
	case opEvict:
		tw.close()
	case opReopen:
		for i := range modelSlots {
			if s := tw.m.At(i); tw.exact.homes>>i&1 == 0 {
				_ = s.Announce(s.Word(), Detached)
			}
		}
		tw.owner.Exacts.Reopen(tw.exact)
	case opAssign:
		tw.hold(tw.owner.Exacts.Assign(tw.exact))
	default:
		tw.owner.Drain()
		tw.drain()
		tw.close()
	}
}

func (tw *twin) close() {
	if tw.span != nil {
		tw.owner.Spans.Close(tw.span)
		return
	}
	tw.owner.Exacts.Close(tw.exact, func(*Slot) {})
}

// books are the owner's books of the magazine.
func (tw *twin) books() (open, ready bool, homes uint64) {
	if tw.span != nil {
		return tw.span.Open, tw.span.ready, tw.span.homes
	}
	return tw.exact.Open, false, tw.exact.homes
}

func (tw *twin) drain() {
	eachFreed(tw.owner, func(s *Slot) { tw.owner.Collect(s) })
}

// compare holds every word and every book of the one against the other.
func (tw *twin) compare(t require.TestingT) {
	w, m := &tw.model, tw.m
	require.Equal(t, w.mask, m.mask.Load(), "mask")
	require.Equal(t, w.life, life(tw.cache.life.Load()))
	open, ready, homes := tw.books()
	require.Equal(t, w.open, open)
	require.Equal(t, w.inReady, ready)
	require.Equal(t, w.homes, uint8(homes&modelWhole), "homes")
	require.Equal(t, w.parked != 0, tw.cache.parked.Load() != nil)
	require.Equal(t, w.freed, tw.cache.freed.Load(), "the list of freed slots")
	const said = 1<<lengthShift - 1
	require.Equal(t, w.used&said, tw.cache.used.Load()&said, "the list of used slots")
	for _, top := range []uint64{w.freed, w.used} {
		s := tw.cache.slot(uint32(top & nameMask))
		for i := uint32(top); i != noSlot; i = uint32(w.aside[i-1]) {
			require.Same(t, m.At(int(i-1)), s)
			require.Equal(t, w.flagsHome[i-1], s.flags)
			s = tw.owner.Next(s)
		}
		require.Nil(t, s)
	}
	for i := range w.word {
		require.EqualValues(t, w.word[i], m.At(i).word.Load(), "word")
		require.Len(t, tw.handles[i], int(w.known[i]))
		lives := w.place[i] == live
		require.Equal(t, lives || w.place[i] == listed, m.IsLive(m.At(i)))
		if n := len(tw.handles[i]); n > 0 {
			require.Equal(t, lives, m.At(i).Live(tw.handles[i][n-1]))
		}
	}
}

// The model is the package: after each operation of any sequence the words and books of both are the same.
func TestModelDoesWhatThePackageDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tw := newTwin(rapid.SampledFrom([]modelKind{small, exact}).Draw(t, "kind"))
		tw.compare(t)
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			o := op(rapid.IntRange(0, int(opEnd)).Draw(t, "op"))
			slot := int8(rapid.IntRange(0, modelSlots-1).Draw(t, "slot"))
			known := int(tw.model.known[slot])
			switch {
			case tw.model.handed[0] == mostHandles || tw.model.handed[1] == mostHandles:
				return
			case o >= firstOwner && !tw.model.ownerMay(o), (o == opFree || o == opAnnounce) && known == 0:
				continue
			case o == opFree || o == opAnnounce:
				tw.do(t, o, slot, uint8(rapid.IntRange(max(1, known-2), known).Draw(t, "handle")))
			default:
				tw.do(t, o, 0, 0)
			}
			tw.compare(t)
		}
	})
}
