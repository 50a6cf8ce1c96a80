package magazine

import (
	"math/bits"
	"unsafe"
)

// Exact is the magazine of a length beyond the classes: each of its slots has its own block. It is open, and
// then in a bucket, or closed.
type Exact struct {
	Magazine
	exactBooks
	slots [SlotCount]Slot
}

// exactBooks belong to the owner.
type exactBooks struct {
	homes        uint64 // slots that the owner has
	attach       uint64 // slots in use that stay when freed
	Older, Newer *Exact // in the order of their last new slot; the list is the caller's
	installation
	Open bool

	SeenFrees uint64 // Frees when the caller last looked; the caller's
	_         [booksBytes - 5*8 - 16]byte
}

// Exact returns the magazine as one of a length; nil if it is of another kind.
func (m *Magazine) Exact() *Exact {
	if m.kind != exactKind {
		return nil
	}
	return (*Exact)(unsafe.Pointer(m))
}

// Exacts is the part of the owner with the magazines of large blocks.
type Exacts struct {
	owner   *register
	buckets *buckets
	byUnits map[uint32]*Exact
}

// Of returns the magazine of that length. A new one is closed.
func (o *Exacts) Of(units uint32) *Exact {
	m := o.byUnits[units]
	if m == nil {
		o.bound()
		m = new(Exact)
		o.owner.add(&m.Magazine, exactKind, units, o)
		m.bucket, m.homes = BucketOf(uint64(units)), slotBits
		o.byUnits[units] = m
	}
	return m
}

// exactLimit bounds the number of lengths that have a magazine, open or not: 4 KiB each.
const exactLimit = 4096

// bound drops closed magazines with all slots returned once there are too many.
func (o *Exacts) bound() {
	if len(o.byUnits) < exactLimit {
		return
	}
	for units, m := range o.byUnits {
		if !m.Open && m.homes == slotBits {
			delete(o.byUnits, units)
		}
	}
	o.owner.keep(func(m *Magazine) bool { return m.kind != exactKind || o.byUnits[m.units] == m.Exact() })
}

// Reopen opens a closed magazine. Slots in use stay out of the mask until freed.
func (o *Exacts) Reopen(m *Exact) {
	m.mask.Swap(openMask)
	m.Open = true
}

// Assign returns a slot for a new block, nil if all are in use.
func (o *Exacts) Assign(m *Exact) *Slot {
	if m.homes == 0 {
		return nil
	}
	i := bits.TrailingZeros64(m.homes)
	m.homes &^= 1 << i
	m.attach |= 1 << i
	return &m.slots[i]
}

// At returns the magazine that serves a bucket beyond the classes, for callers with that hint.
func (o *Exacts) At(bucket int32, hint int) *Exact {
	return (*Exact)(unsafe.Pointer(o.buckets[bucket].at(hint))) // only they are installed there
}

// Install makes a magazine serve its bucket, for callers with that hint.
func (o *Exacts) Install(m *Exact, hint int) { o.buckets.install(&m.Magazine, &m.installation, hint) }

// Shard gives every hint its own magazine if m, which serves its bucket, is contended. It reports whether it
// did.
func (o *Exacts) Shard(m *Exact, hint int) bool {
	return o.buckets.shard(&m.Magazine, &m.installation, hint)
}

// Close closes a magazine: no caller takes from it again. It passes each free slot to visit. Slots in use
// return through the list.
func (o *Exacts) Close(m *Exact, visit func(*Slot)) {
	home := m.close()
	o.buckets.uninstall(&m.Magazine, &m.installation)
	m.Open, m.attach = false, 0
	m.homes |= home
	for f := home; f != 0; f &= f - 1 {
		visit(&m.slots[bits.TrailingZeros64(f)])
	}
}

// Each visits the magazines of lengths.
func (o *Exacts) Each(visit func(*Exact)) {
	for _, m := range o.owner.all {
		if exact := m.Exact(); exact != nil {
			visit(exact)
		}
	}
}

// Bucket returns the current or last bucket of the magazine, counted from FirstLarge.
func (m *Exact) Bucket() int32 { return m.bucket }

// Kept reports whether a slot in use stays in the magazine when freed.
func (m *Exact) Kept(s *Slot) bool { return m.attach>>s.index&1 != 0 }

// Attached returns the number of slots in use that stay in the magazine when freed.
func (m *Exact) Attached() int { return bits.OnesCount64(m.attach) }

// WholeHome reports whether all slots of a magazine are returned.
func (m *Exact) WholeHome() bool { return m.homes == slotBits }

// SlotHome implements Part.
func (o *Exacts) SlotHome(s *Slot) bool {
	m := s.magazine.Exact()
	m.homes |= 1 << s.index
	m.attach &^= 1 << s.index
	return false
}

// MagazineHome implements Part: a magazine of large blocks is never parked.
func (o *Exacts) MagazineHome(*Magazine) {}

// LiveMask implements Part.
func (o *Exacts) LiveMask(m *Magazine) uint64 { return m.liveBeside(m.Exact().homes) }
