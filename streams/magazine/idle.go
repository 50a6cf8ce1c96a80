package magazine

import (
	"cmp"
	"slices"
)

// CloseIdle closes a small magazine none of whose slots is in use, so that its span can be retired. It
// fails if one is, or if a caller is about to hand the magazine over: closed and used anew before that
// caller has arrived, it would be handed over twice.
func (o *Owner) CloseIdle(m *Magazine) bool {
	o.collectParked()
	w := m.mask.Load()
	next, ok := nextIdle(w, spanSlots(int(m.Class)), m.inReady)
	if !ok || !m.mask.CompareAndSwap(w, next) {
		return false
	}
	o.Uninstall(m)
	if m.inReady {
		o.unready(m)
	}
	m.Open = false
	m.homes = slotBits
	return true
}

// Idle are the open magazines of classes none of whose slots is in use, in order of their numbers, among those that are installed or
// ready: no other one that is installed, ready or parked can be idle, so that those with all slots in use cost nothing. The
// result is valid until the next call.
func (o *Owner) Idle() []*Magazine {
	o.collectParked()
	o.idle = o.idle[:0]
	note := func(m *Magazine) {
		if m != nil && m.Open && m.mask.Load()&^parkedBit == spanSlots(int(m.Class)) {
			o.idle = append(o.idle, m)
		}
	}
	for class := range o.ready {
		b := &o.cache.buckets[class]
		note(b.magazine.Load())
		if sh := b.shards.Load(); sh != nil {
			for i := range sh {
				note(sh[i].magazine.Load())
			}
		}
		for m := o.ready[class]; m != nil; m = m.Older {
			note(m)
		}
	}
	slices.SortFunc(o.idle, func(a, b *Magazine) int { return cmp.Compare(a.number, b.number) })
	return o.idle
}
