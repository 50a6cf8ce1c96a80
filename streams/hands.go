package streams

import (
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/internal/stream/magazine"
)

// hands has the streams that have got buffers of one stream by Transfer. The zero value is empty. Any number
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

// keep lists a hand that has a buffer now, and drops the hands that have none.
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
