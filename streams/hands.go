package streams

import (
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/pool"
)

// hands are the streams that have buffers of one stream since Transfer. The zero value is empty. Any number
// of goroutines may use it.
type hands struct {
	all atomic.Pointer[[]*magazine.Hand]
} // replaced, never changed

func (h *hands) list() []*magazine.Hand {
	if all := h.all.Load(); all != nil {
		return *all
	}
	return nil
}

// of returns the hand of a stream.
func (h *hands) of(to uint32) *magazine.Hand {
	for _, x := range h.list() {
		if x.To == to {
			return x
		}
	}
	return &magazine.Hand{To: to}
}

// keep lists a hand that has a buffer now, and drops those that have none.
func (h *hands) keep(x *magazine.Hand) {
	for {
		old := h.all.Load()
		all := h.list()
		if slices.Contains(all, x) {
			return
		}
		next := slices.DeleteFunc(slices.Clone(all), func(other *magazine.Hand) bool { return other.Bytes() <= 0 })
		next = append(next, x)
		if h.all.CompareAndSwap(old, &next) {
			return
		}
	}
}

// Handed lists the bytes that open streams have of others. Close of a stream ends its uses: the buffers of
// a closed one are charged to the stream of the memory again.
func (p *Peers) Handed() (all []pool.Handed) {
	var here map[uint32]bool
	list := p.list()
	for _, s := range list {
		for _, x := range s.hands.list() {
			bytes := x.Bytes()
			if bytes <= 0 {
				continue
			}
			if here == nil {
				here = make(map[uint32]bool, len(list))
				for _, other := range list {
					here[other.id] = !other.line.Finished()
				}
			}
			if here[x.To] {
				all = append(all, pool.Handed{From: s.id, To: x.To, Bytes: bytes})
			}
		}
	}
	return all
}
