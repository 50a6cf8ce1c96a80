package interp

import (
	"sync/atomic"
	"weak"
)

// spares are the blocks of launches that have ended, for further ones, until the garbage collector takes their memory.
type spares struct{ last atomic.Pointer[spare] }

// spare is a block that nobody uses, and those that came before it.
type spare struct {
	block weak.Pointer[block]
	next  *spare
}

func (s *spares) put(b *block) {
	one := &spare{block: weak.Make(b), next: s.last.Load()}
	for !s.last.CompareAndSwap(one.next, one) {
		one.next = s.last.Load()
	}
}

// take returns a block that is the caller's alone, or nil.
func (s *spares) take() *block {
	for one := s.last.Load(); one != nil; one = s.last.Load() {
		if s.last.CompareAndSwap(one, one.next) {
			if b := one.block.Value(); b != nil {
				return b
			}
		}
	}
	return nil
}
