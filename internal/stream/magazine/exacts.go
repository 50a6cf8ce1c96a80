package magazine

import (
	"math/bits"
	"unsafe"
)

// Exact is the magazine of a length beyond the classes: each of its slots has a block of its own. It is
// open, and then in a bucket, or closed.
type Exact struct {
	Magazine
	exactBooks
	slots [SlotCount]Slot
}

// exactBooks are the owner's.
type exactBooks struct {
	homes        uint64 // slots that are home
	attach       uint64 // slots in use that stay when freed
	Older, Newer *Exact // in the order in which they were last given a slot; the list is the caller's
	installation
	Open bool
	_    [booksBytes - 4*8 - 16]byte
}

// Exact is the magazine as one of a length; nil if it is of another kind.
func (m *Magazine) Exact() *Exact {
	if m.kind != exactKind {
		return nil
	}
	return (*Exact)(unsafe.Pointer(m))
}

// Exacts is the part of the owner that has the magazines of large blocks.
type Exacts struct {
	owner   *Owner
	buckets *buckets
	byUnits map[uint32]*Exact
}

// Of is the magazine of that length: closed, unless it is in use.
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

// exactLimit bounds the lengths that have a magazine, in use or not: 4 KiB each.
const exactLimit = 4096

// bound forgets closed magazines that are home whole once there are too many.
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

// Reopen puts a closed magazine to use. Slots that are not home stay out until freed.
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

// At is the magazine that serves a bucket beyond those of the classes, for callers with that hint.
func (o *Exacts) At(bucket int32, hint int) *Exact {
	return (*Exact)(unsafe.Pointer(o.buckets[bucket].at(hint))) // only they are installed there
}

// Install makes a magazine serve its bucket, for callers with that hint.
func (o *Exacts) Install(m *Exact, hint int) { o.buckets.install(&m.Magazine, &m.installation, hint) }

// Shard gives every hint a magazine of its own where m, which serves its bucket, is contended. It
// reports whether it did.
func (o *Exacts) Shard(m *Exact, hint int) bool {
	return o.buckets.shard(&m.Magazine, &m.installation, hint)
}

// Close ends a magazine: no caller takes from it again, and visit gets each slot that was free. Those
// in use come home through the list.
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

// Bucket is where the magazine is, or was, to be found, counted from FirstLarge.
func (m *Exact) Bucket() int32 { return m.bucket }

// Kept reports whether a slot in use stays in the magazine when freed.
func (m *Exact) Kept(s *Slot) bool { return m.attach>>s.index&1 != 0 }

// Attached is the number of slots in use that stay in the magazine when freed.
func (m *Exact) Attached() int { return bits.OnesCount64(m.attach) }

// WholeHome reports whether all slots of a magazine are home.
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
