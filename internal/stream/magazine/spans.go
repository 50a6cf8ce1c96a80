package magazine

import (
	"cmp"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
)

// Span is a magazine of a size class: all its slots were carved from one block of the heap. It is in one of
// these states: installed (a bucket or shard names it), ready (it has free slots and waits to be installed),
// parked (all slots are in use; callers hand it over), closed (it does not serve until it is opened).
type Span struct {
	Magazine
	spanBooks
	slots [SlotCount]Slot
}

// spanBooks belong to the owner.
type spanBooks struct {
	Block        int32 // of the heap; None while the magazine has no span
	Class        int32
	homes        uint64 // slots that the owner has
	older, newer *Span  // in the ready list
	installation
	Open  bool
	ready bool // was parked, has free slots, waits to be installed

	SeenFrees uint64 // Frees when the owner's user last looked; the user's
	_         [booksBytes - 56]byte
}

// Span returns the magazine as one of a class; nil if it is of another kind.
func (m *Magazine) Span() *Span {
	if m.kind != spanKind {
		return nil
	}
	return (*Span)(unsafe.Pointer(m))
}

// Spans is the part of the owner with the magazines of the size classes.
type Spans struct {
	owner   *register
	buckets *buckets
	ready   [sizeclass.Count]*Span   // newest with free slots and the parked bit set
	spare   [sizeclass.Count][]*Span // closed, all slots returned, without a span
	classes uint64                   // bits of the classes that ever had a magazine
	idle    []*Span                  // scratch of Idle
}

// New returns a magazine over a span of the heap that starts at base. Its slots are free; it is not
// installed. It may have served another span before: as with Ready, a caller that looked it up then may
// immediately take from it.
func (o *Spans) New(class int, span int32, base cudadrv.Ptr) *Span {
	var m *Span
	if n := len(o.spare[class]); n > 0 {
		m = o.spare[class][n-1]
		o.spare[class] = o.spare[class][:n-1]
	} else {
		m = new(Span)
		o.classes |= 1 << class
		o.owner.add(&m.Magazine, spanKind, sizeclass.BlockUnits(class), o)
		m.Class, m.bucket, m.way = int32(class), int32(class), uint8(class%waysOut)
	}
	m.Block, m.Open = span, true
	blocks := sizeclass.SpanBlocks(class)
	step := cudadrv.Ptr(m.units) << sizeclass.UnitShift
	for i := range blocks {
		m.slots[i].address = base + cudadrv.Ptr(i)*step
	}
	m.homes = slotBits &^ SpanSlots(class)
	m.mask.Store(SpanSlots(class))
	return m
}

// One bit for each class.
const _ = uint(64 - sizeclass.Count)

// SpanSlots returns the bits of the slots in a span of the class.
func SpanSlots(class int) uint64 { return 1<<sizeclass.SpanBlocks(class) - 1 }

// Retire removes the span from a closed magazine with all slots returned, and keeps the magazine for the next
// span of its class. It returns the heap's block.
func (o *Spans) Retire(m *Span) (block int32) {
	block, m.Block = m.Block, none
	o.spare[m.Class] = append(o.spare[m.Class], m)
	return block
}

// At returns the magazine that serves a class, for callers with that hint.
func (o *Spans) At(class, hint int) *Span {
	return (*Span)(unsafe.Pointer(o.buckets[class].at(hint))) // only they are installed there
}

// Install makes a magazine serve its class, for callers with that hint.
func (o *Spans) Install(m *Span, hint int) { o.buckets.install(&m.Magazine, &m.installation, hint) }

// Reinstall makes a magazine serve its class again in its previous shard.
func (o *Spans) Reinstall(m *Span) { o.Install(m, int(m.shard)) }

// Uninstall removes a magazine from its bucket if it is there.
func (o *Spans) Uninstall(m *Span) { o.buckets.uninstall(&m.Magazine, &m.installation) }

// Shard gives every hint its own magazine if m, which serves its class, is contended. It reports whether it
// did.
func (o *Spans) Shard(m *Span, hint int) bool {
	return o.buckets.shard(&m.Magazine, &m.installation, hint)
}

// Park puts an exhausted magazine out of use until a slot is freed. It fails if one just was.
func (o *Spans) Park(m *Span) bool {
	if !m.mask.CompareAndSwap(exhaustedMask, parkedBit) {
		return false
	}
	o.Uninstall(m)
	return true
}

// Shelve makes an open magazine that is in no bucket ready, or parks it if it is exhausted.
func (o *Spans) Shelve(m *Span) {
	if m.mask.Or(parkedBit) != exhaustedMask {
		o.push(m)
	}
}

// ShelveAll shelves the installed magazines.
func (o *Spans) ShelveAll() {
	o.Each(func(m *Span) {
		if m.Open && m.installed {
			o.Uninstall(m)
			o.Shelve(m)
		}
	})
}

// Ready returns a magazine of the class that was parked and has free slots, in use again but not installed;
// nil if there is none. A caller that looked the magazine up before it was parked may immediately take the
// slots: the owner's Take can find none.
func (o *Spans) Ready(class int) *Span {
	o.owner.CollectParked()
	m := o.ready[class]
	if m != nil {
		o.remove(m)
		m.mask.And(unparkMask)
	}
	return m
}

// TakeReady takes up to most free slots of a magazine that Ready would return, and leaves it parked; if those
// were its last, the next free hands it over again. It returns nil if there is none.
func (o *Spans) TakeReady(class, most int) (m *Span, taken uint64) {
	o.owner.CollectParked()
	m = o.ready[class]
	if m == nil {
		return nil, 0
	}
	for {
		w := m.mask.Load()
		next, taken := nextTakeParked(w, most)
		if !m.mask.CompareAndSwap(w, next) {
			continue
		}
		if next == parkedBit {
			o.remove(m)
		}
		return m, taken
	}
}

// push pushes a magazine to the ready list of its class.
func (o *Spans) push(m *Span) {
	top := o.ready[m.Class]
	m.older, m.newer, m.ready = top, nil, true
	if top != nil {
		top.newer = m
	}
	o.ready[m.Class] = m
}

// remove removes a magazine from the ready list.
func (o *Spans) remove(m *Span) {
	if m.newer != nil {
		m.newer.older = m.older
	} else {
		o.ready[m.Class] = m.older
	}
	if m.older != nil {
		m.older.newer = m.newer
	}
	m.older, m.newer, m.ready = nil, nil, false
}

// Close closes a magazine: no caller takes from it again. Slots in use return through the list.
func (o *Spans) Close(m *Span) {
	home := m.close()
	o.closed(m, m.homes|home)
}

// closed books a closed magazine and the slots that the owner has.
func (o *Spans) closed(m *Span, homes uint64) {
	o.Uninstall(m)
	if m.ready {
		o.remove(m)
	}
	m.Open, m.homes = false, homes
}

// CloseIdle closes a magazine without slots in use, so that its span can be retired. It fails if one is in
// use, or if a caller is about to hand the magazine over: if it were closed and reused before that, it would
// be handed over twice.
func (o *Spans) CloseIdle(m *Span) bool {
	o.owner.CollectParked()
	w := m.mask.Load()
	next, ok := nextIdle(w, SpanSlots(int(m.Class)), m.ready)
	if !ok || !m.mask.CompareAndSwap(w, next) {
		return false
	}
	o.closed(m, slotBits)
	return true
}

// Idle returns the open magazines without slots in use, in order of their numbers. It visits only installed
// and ready ones: no other can be idle, so that those with all slots in use cost nothing. The result is valid
// until the next call.
func (o *Spans) Idle() []*Span {
	o.owner.CollectParked()
	o.idle = o.idle[:0]
	note := func(m *Span) {
		if m.Open && m.mask.Load()&^parkedBit == SpanSlots(int(m.Class)) {
			o.idle = append(o.idle, m)
		}
	}
	for f := o.classes; f != 0; f &= f - 1 { // most have none, and each search for room calls Idle
		class := bits.TrailingZeros64(f)
		o.buckets.each(int32(class), func(m *Magazine) { note(m.Span()) })
		for m := o.ready[class]; m != nil; m = m.older {
			note(m)
		}
	}
	slices.SortFunc(o.idle, func(a, b *Span) int { return cmp.Compare(a.number, b.number) })
	return o.idle
}

// Each visits the magazines of classes.
func (o *Spans) Each(visit func(*Span)) {
	for _, m := range o.owner.all {
		if span := m.Span(); span != nil {
			visit(span)
		}
	}
}

// WholeHome reports whether all slots of a magazine are returned.
func (m *Span) WholeHome() bool { return m.homes == slotBits }

// SlotHome implements Part. It puts the slot of an open magazine into the mask.
func (o *Spans) SlotHome(s *Slot) (lastOfSpan bool) {
	m := s.magazine.Span()
	if m.Open {
		if put(m.mask.Or(1<<s.index)) == handMagazine {
			o.push(m)
		}
		return false
	}
	m.homes |= 1 << s.index
	return m.homes == slotBits
}

// MagazineHome implements Part.
func (o *Spans) MagazineHome(m *Magazine) {
	if span := m.Span(); span.Open {
		o.push(span)
	}
}

// LiveMask implements Part.
func (o *Spans) LiveMask(m *Magazine) uint64 { return m.liveBeside(m.Span().homes) }

// Carved returns the slot of the block at that offset in a span, or nil in the remainder of the span.
// Precondition: the magazine has a span.
func (m *Magazine) Carved(units uint32) *Slot {
	i := units / m.units
	if i >= sizeclass.SpanBlocks(sizeclass.Of(uint64(m.units))) {
		return nil
	}
	return m.At(int(i))
}
