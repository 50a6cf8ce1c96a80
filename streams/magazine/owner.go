package magazine

import (
	"math/bits"
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
)

// none marks a magazine whose slots have a block each.
const none int32 = -1

// Owner is the owner's side of a Cache. All its methods are for the goroutine that runs the turn.
//
// A magazine of the owner is in one of these places: installed (a bucket or shard names it), ready
// (has free slots and waits to be installed), parked (all slots in use; callers hand it back), closed
// (it serves no more until it is opened).
type Owner struct {
	cache      *Cache
	all        []*Magazine
	loose      []*Slot                      // unused loose slots, with room for all
	looseCount int                          // in use or not
	ready      [sizeclass.Count]*Magazine   // newest of those with free slots and the parked bit set
	spare      [sizeclass.Count][]*Magazine // closed, all slots home, without a span
	exact      map[uint32]*Magazine         // by length
	lease      lease
	idle       []*Magazine // scratch of Idle

	// Keep is asked for each announced slot of a lane's that was freed: true keeps it from the lane until
	// ReturnLeased. The owner of the Owner sets it before there are lanes.
	Keep func(*Slot) bool

	forgotten uint64 // frees of magazines that are no more
}

// NewOwner makes a cache ready and returns its owner's side. waker is told of blocks that come home
// once the cache is draining.
func NewOwner(c *Cache, waker Waker) *Owner {
	c.waker = waker
	return &Owner{cache: c, exact: map[uint32]*Magazine{}}
}

func (o *Owner) newMagazine(units uint32, class int32, loose bool) *Magazine {
	m := &Magazine{units: units, loose: loose, cache: o.cache, Class: class, Span: none, Bucket: -1, homes: slotBits}
	m.mask.Store(closedBit)
	for i := range m.slots {
		s := &m.slots[i]
		s.magazine, s.index, s.Block = m, uint8(i), none
	}
	o.all = append(o.all, m)
	o.cache.names.add(m)
	return m
}

// HasFreed reports whether there are any for Freed.
func (o *Owner) HasFreed() bool { return o.cache.HasFreed() }

// Freed takes the list of slots that callers handed over. Follow it with Next before a slot is used.
func (o *Owner) Freed() *Slot {
	for c := o.cache; ; {
		top := c.freed.Load()
		if uint32(top) == noSlot {
			return nil
		}
		if c.freed.CompareAndSwap(top, nextEmpty(top)) {
			return c.names.slot(uint32(top))
		}
	}
}

// Next is the slot behind s in the list that Freed returned.
func (o *Owner) Next(s *Slot) *Slot { return o.cache.names.slot(uint32(s.aside.Load())) }

// Pass is Next, and says how many units the block of s has if it is loose and was freed without flags, so that HomePlain
// books it; else 0.
func (o *Owner) Pass(s *Slot) (next *Slot, plainUnits uint32) {
	e := s.aside.Load()
	return o.cache.names.slot(uint32(e)), uint32(e >> 32)
}

// HomePlain is Home for a loose slot that was freed without flags.
func (o *Owner) HomePlain(s *Slot) { o.loose = append(o.loose, s) }

// LetTakeBack says how many units a block may have that TakeBack serves; 0: every block that is freed comes home.
func (o *Owner) LetTakeBack(units uint32) { o.cache.backUnits.Store(units) }

// Flags are those that the slot carried when it was freed.
func (s *Slot) Flags() Flag { return Flag(s.flags) }

// Home books a slot that came through the list: it is home, without flags. A slot of a class whose
// magazine is open goes back into the mask. It reports whether that was the last slot of a closed span,
// whose block the caller now gives back to the heap with Retire.
func (o *Owner) Home(s *Slot) (lastOfSpan bool) {
	s.flags = 0
	s.clearFlags()
	m := s.magazine
	if m.loose {
		o.loose = append(o.loose, s)
		return false
	}
	if m.Class >= 0 && m.Open {
		if put(m.mask.Or(1<<s.index)) == handMagazine {
			o.makeReady(m)
		}
		return false
	}
	m.homes |= 1 << s.index
	m.attach &^= 1 << s.index
	return m.Class >= 0 && m.homes == slotBits
}

// clearFlags is for a slot that is home: no caller's operation on its word succeeds any more.
func (s *Slot) clearFlags() {
	if s.word.Load()&flagMask != 0 {
		s.word.And(^uint64(flagMask))
	}
}

// Loose returns a slot that is home for a block of any length.
func (o *Owner) Loose() *Slot {
	last := len(o.loose) - 1
	if last < 0 {
		o.moreLoose()
		last = len(o.loose) - 1
	}
	s := o.loose[last]
	o.loose = o.loose[:last]
	return s
}

// moreLoose makes a magazine of loose slots, and room for when all are unused.
func (o *Owner) moreLoose() {
	m := o.newMagazine(0, -1, true)
	m.homes = 0
	o.looseCount += SlotCount
	o.loose = slices.Grow(o.loose, o.looseCount)
	for i := range m.slots {
		o.loose = append(o.loose, &m.slots[i])
	}
}

// At is the magazine that serves a bucket, for callers with that hint.
func (o *Owner) At(bucket int32, hint int) *Magazine {
	b := &o.cache.buckets[bucket]
	if sh := b.shards.Load(); sh != nil {
		return sh[hint&(Shards-1)].magazine.Load()
	}
	return b.magazine.Load()
}

// Install makes a magazine serve its bucket, for callers with that hint.
func (o *Owner) Install(bucket int32, hint int, m *Magazine) {
	b := &o.cache.buckets[bucket]
	m.Bucket, m.Shard = bucket, 0
	if sh := b.shards.Load(); sh != nil {
		m.Shard = int8(hint & (Shards - 1))
		sh[m.Shard].magazine.Store(m)
		return
	}
	b.magazine.Store(m)
}

// Uninstall takes a magazine out of its bucket if it is there.
func (o *Owner) Uninstall(m *Magazine) {
	if m.Bucket < 0 {
		return
	}
	b := &o.cache.buckets[m.Bucket]
	if sh := b.shards.Load(); sh != nil {
		sh[m.Shard].magazine.CompareAndSwap(m, nil)
	}
	b.magazine.CompareAndSwap(m, nil)
	m.Bucket = -1
}

// Shard gives every hint of a contended bucket a place of its own. The magazine that served it goes on
// at the place of this hint. It reports whether the bucket was sharded by this call.
func (o *Owner) Shard(bucket int32, hint int) bool {
	b := &o.cache.buckets[bucket]
	m := b.magazine.Load()
	if m == nil || b.shards.Load() != nil || m.contended.Load() < contendedLimit {
		return false
	}
	sh := new(shards)
	m.Shard = int8(hint & (Shards - 1))
	sh[m.Shard].magazine.Store(m)
	b.shards.Store(sh)
	b.magazine.Store(nil)
	return true
}

// Take takes a free slot of a magazine, as a caller does.
func (o *Owner) Take(m *Magazine) *Slot { return m.take() }

// Park puts an exhausted magazine out of use until a slot is freed. It fails if one just was.
func (o *Owner) Park(m *Magazine) bool {
	if !m.mask.CompareAndSwap(exhaustedMask, parkedBit) {
		return false
	}
	o.Uninstall(m)
	return true
}

// Ready returns a magazine of the class that was parked and has free slots, in use again but not
// installed; nil if there is none. A caller that looked the magazine up before it was parked may take
// them at once: the owner's Take can find none.
func (o *Owner) Ready(class int) *Magazine {
	o.collectParked()
	m := o.ready[class]
	if m != nil {
		o.unready(m)
		m.mask.And(unparkMask)
	}
	return m
}

// unready takes a magazine out of the list of its class.
func (o *Owner) unready(m *Magazine) {
	if m.Newer != nil {
		m.Newer.Older = m.Older
	} else {
		o.ready[m.Class] = m.Older
	}
	if m.Older != nil {
		m.Older.Newer = m.Newer
	}
	m.Older, m.Newer, m.inReady = nil, nil, false
}

func (o *Owner) collectParked() {
	if o.cache.parked.Load() == nil {
		return
	}
	for m := o.cache.parked.Swap(nil); m != nil; {
		next := m.next
		m.next = nil
		switch {
		case m.leased:
			o.arrive(m)
		case m.Open:
			o.makeReady(m)
		}
		m = next
	}
}

// makeReady puts a magazine at the top of the list of its class.
func (o *Owner) makeReady(m *Magazine) {
	top := o.ready[m.Class]
	m.Older, m.Newer, m.inReady = top, nil, true
	if top != nil {
		top.Newer = m
	}
	o.ready[m.Class] = m
}

// Span makes a magazine of a class over a span of the heap that starts at base. Its slots are free; it
// is not installed. It may have served another span before: as with Ready, a caller that looked it up
// then may take from it at once.
func (o *Owner) Span(class int, span int32, base cudadrv.Ptr) *Magazine {
	var m *Magazine
	if n := len(o.spare[class]); n > 0 {
		m = o.spare[class][n-1]
		o.spare[class] = o.spare[class][:n-1]
	} else {
		m = o.newMagazine(sizeclass.BlockUnits(class), int32(class), false)
	}
	m.Span, m.Open = span, true
	blocks := sizeclass.SpanBlocks(class)
	step := cudadrv.Ptr(m.units) << sizeclass.UnitShift
	for i := range blocks {
		m.slots[i].address = base + cudadrv.Ptr(i)*step
	}
	m.homes = slotBits &^ spanSlots(class)
	m.mask.Store(spanSlots(class))
	return m
}

// spanSlots are the bits of the slots that a span of the class has.
func spanSlots(class int) uint64 {
	return 1<<sizeclass.SpanBlocks(class) - 1
}

// Retire takes the span out of a closed magazine that is home whole, and keeps the magazine for the
// next span of its class. It returns the heap's block.
func (o *Owner) Retire(m *Magazine) int32 {
	span := m.Span
	m.Span = none
	o.spare[m.Class] = append(o.spare[m.Class], m)
	return span
}

// Exact is the magazine for large blocks of that length: closed, unless it is in use.
func (o *Owner) Exact(units uint32) *Magazine {
	m := o.exact[units]
	if m == nil {
		o.boundExact()
		m = o.newMagazine(units, -1, false)
		o.exact[units] = m
	}
	return m
}

// exactLimit bounds the lengths that have a magazine, in use or not: 4 KiB each.
const exactLimit = 4096

// boundExact forgets closed magazines that are home whole once there are too many.
func (o *Owner) boundExact() {
	if len(o.exact) < exactLimit {
		return
	}
	for units, m := range o.exact {
		if !m.Open && m.homes == slotBits {
			delete(o.exact, units)
		}
	}
	kept := o.all[:0]
	for _, m := range o.all {
		if m.Class >= 0 || m.loose || m.leased || o.exact[m.units] == m {
			kept = append(kept, m)
		} else {
			o.forgotten += m.Frees()
			o.cache.names.drop(m)
		}
	}
	clear(o.all[len(kept):])
	o.all = kept
}

// Reopen puts a closed exact magazine to use. Slots that are not home stay out until freed.
func (o *Owner) Reopen(m *Magazine) {
	m.mask.Swap(openMask)
	m.Open = true
}

// Assign returns a slot of an exact magazine for a new block, nil if all are in use.
func (o *Owner) Assign(m *Magazine) *Slot {
	if m.homes == 0 {
		return nil
	}
	i := bits.TrailingZeros64(m.homes)
	m.homes &^= 1 << i
	m.attach |= 1 << i
	return &m.slots[i]
}

// Attached is the number of slots in use that stay in the magazine when freed.
func (m *Magazine) Attached() int { return bits.OnesCount64(m.attach) }

// Close ends a magazine: no caller takes from it again, and visit gets each slot that was free. Those
// in use come home through the list.
func (o *Owner) Close(m *Magazine, visit func(*Slot)) {
	old := m.mask.Swap(closedBit)
	o.Uninstall(m)
	if m.inReady {
		o.unready(m)
	}
	m.Open = false
	m.attach = 0
	for f := broughtHome(old); f != 0; f &= f - 1 {
		s := &m.slots[bits.TrailingZeros64(f)]
		m.homes |= 1 << s.index
		s.clearFlags()
		visit(s)
	}
}

// WholeHome reports whether all slots of a magazine are home.
func (m *Magazine) WholeHome() bool { return m.homes == slotBits }

// ForgottenFrees is how often slots of magazines that are no more were freed.
func (o *Owner) ForgottenFrees() uint64 { return o.forgotten }

// liveMask are the slots that callers have. The lists must have been taken before.
func (m *Magazine) liveMask() uint64 {
	switch w := m.mask.Load(); {
	case m.leased:
		return m.outMask()
	case m.loose:
		var live uint64
		for i := range m.slots {
			if m.slots[i].Block != none {
				live |= 1 << i
			}
		}
		return live
	case w >= closedBit:
		return slotBits &^ m.homes
	default:
		return slotBits &^ (m.homes | w)
	}
}

// IsLive reports whether a caller has a slot. The lists must have been taken before; a slot whose free is under way
// counts.
func (m *Magazine) IsLive(s *Slot) bool { return m.liveMask()>>s.index&1 != 0 }

// Carved is the slot of the block that lies so many units into the span of a class; nil if the rest of the span is
// there.
func (m *Magazine) Carved(units uint32) *Slot {
	i := units / sizeclass.BlockUnits(int(m.Class))
	if i >= sizeclass.SpanBlocks(int(m.Class)) {
		return nil
	}
	return &m.slots[i]
}

// LiveSlots is the number of slots that callers have.
func (m *Magazine) LiveSlots() int { return bits.OnesCount64(m.liveMask()) }

// EachLive visits the slots that callers have.
func (m *Magazine) EachLive(visit func(*Slot)) {
	for live := m.liveMask(); live != 0; live &= live - 1 {
		visit(&m.slots[bits.TrailingZeros64(live)])
	}
}

// Each visits the slots of a magazine.
func (m *Magazine) Each(visit func(*Slot)) {
	for i := range m.slots {
		visit(&m.slots[i])
	}
}

// All visits every magazine of the owner.
func (o *Owner) All(visit func(*Magazine)) {
	for _, m := range o.all {
		visit(m)
	}
}

// Drain makes every block that comes home wake the owner. Call it before the magazines are closed.
func (o *Owner) Drain() {
	o.LetTakeBack(0)
	if !o.cache.life.CompareAndSwap(uint32(serving), uint32(draining)) {
		o.cache.life.CompareAndSwap(uint32(wanted), uint32(draining))
	}
}

// Want makes blocks that come home wake the owner, or ends that: all that come through the list, and those of classes to
// magazines that are parked. Call it before those are parked and those of large blocks are closed.
func (o *Owner) Want(on bool) {
	if on {
		o.cache.life.CompareAndSwap(uint32(serving), uint32(wanted))
	} else {
		o.cache.life.CompareAndSwap(uint32(wanted), uint32(serving))
	}
}

// ShelveAll shelves the magazines of classes that are installed.
func (o *Owner) ShelveAll() {
	for _, m := range o.all {
		if m.Class >= 0 && m.Open && m.Bucket >= 0 && !m.leased {
			o.Uninstall(m)
			o.Shelve(m)
		}
	}
}

// Retract ends a handle that no caller has seen, and leaves the slot to the owner, who books it with Home. It reports whether it
// could: not if the handle has flags.
func (o *Owner) Retract(s *Slot) bool {
	w := s.Word()
	return s.word.CompareAndSwap(w, freed(w))
}

// Arrived reports whether callers handed over magazines of classes that had no free slot.
func (o *Owner) Arrived() bool { return o.cache.parked.Load() != nil }

// End makes every later free say ErrClosed.
func (o *Owner) End() {
	o.LetTakeBack(0)
	o.cache.life.Store(uint32(ended))
}

// BucketOf is where blocks of that many units are looked up.
func BucketOf(units uint64) int32 { return int32(bucketOf(units)) }

// Hint is the shard hint of the goroutine that calls.
func Hint() int { return int(shardHint()) }
