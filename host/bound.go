package host

import (
	"math/bits"
	"sync/atomic"
)

// bound divides the bytes that a Pool may keep among its shelves.
//
// Invariant: granted is the bytes of all allowances, those that a goroutine is about to add
// included, and at most keep.
type bound struct {
	keep    atomic.Int64 // 0 once the pool is closed
	granted atomic.Int64
	reach   func() // tests only: called between two steps, where others may run
}

// between lets a test run others between two steps.
func (b *bound) between() {
	if b.reach != nil {
		b.reach()
	}
}

// grant raises the allowance of a shelf by one slot, with the unused allowance of other
// shelves if need be. It reports whether that was possible.
func (b *bound) grant(sh *shelf, all func(func(*shelf) bool)) bool {
	for {
		granted, keep := b.granted.Load(), b.keep.Load()
		b.between()
		switch {
		case sh.bytes > keep:
			return false
		case granted+sh.bytes <= keep:
			if b.granted.CompareAndSwap(granted, granted+sh.bytes) {
				b.between()
				sh.allowance.Add(1)
				return true
			}
		case !b.reclaim(granted+sh.bytes-keep, all):
			return false
		}
	}
}

// reclaim lowers allowances that are not used, by so many bytes or a little more. It reports whether
// it found any.
func (b *bound) reclaim(wantBytes int64, all func(func(*shelf) bool)) (found bool) {
	all(func(sh *shelf) bool {
		reclaimed := sh.lower() * sh.bytes
		b.granted.Add(-reclaimed)
		wantBytes -= reclaimed
		found = found || reclaimed > 0
		return wantBytes > 0
	})
	return found
}

// lower takes the unused part of the allowance, and returns it in slots. Its second look at the bits finds a concurrent Free
// that set its bit and still saw the old allowance.
func (sh *shelf) lower() (slots int64) {
	allowance := sh.allowance.Load()
	used := int64(bits.OnesCount64(sh.free.Load()))
	sh.pool.bound.between()
	if used >= allowance || !sh.allowance.CompareAndSwap(allowance, used) {
		return 0
	}
	sh.pool.bound.between()
	back := min(int64(bits.OnesCount64(sh.free.Load())), allowance) - used
	if back <= 0 {
		return allowance - used
	}
	sh.pool.bound.between()
	sh.allowance.Add(back)
	return allowance - used - back
}

// clear takes the whole allowance. Free slots are to be taken after this, and not before.
func (b *bound) clear(sh *shelf) {
	b.between()
	b.granted.Add(-sh.allowance.Swap(0) * sh.bytes)
}
