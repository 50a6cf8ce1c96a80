package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// span is a range of device addresses.
type span struct{ begin, end cudadrv.Ptr }

func (s span) overlaps(o span) bool { return s.begin < o.end && o.begin < s.end }

// ranges is a dumb list of the live buffers, in order of address.
type ranges struct{ live []*buffer }

// enter adds a buffer, or says which one it overlaps.
func (r *ranges) enter(b *buffer) error {
	at := r.find(b.span.begin)
	for _, near := range []int{at - 1, at} {
		if near >= 0 && near < len(r.live) && r.live[near].span.overlaps(b.span) {
			return fmt.Errorf("buffer %v of stream %d overlaps buffer %v of stream %d",
				b.span, b.stream.id(), r.live[near].span, r.live[near].stream.id())
		}
	}
	r.live = slices.Insert(r.live, at, b)
	return nil
}

// leave takes a buffer out.
func (r *ranges) leave(b *buffer) {
	at := r.find(b.span.begin)
	r.live = slices.Delete(r.live, at, at+1)
}

// find returns the place of the first range at p or after it.
func (r *ranges) find(p cudadrv.Ptr) int {
	at, _ := slices.BinarySearchFunc(r.live, p, func(b *buffer, p cudadrv.Ptr) int {
		switch {
		case b.span.begin < p:
			return -1
		case b.span.begin > p:
			return 1
		}
		return 0
	})
	return at
}

// touched returns a live buffer that the range overlaps.
func (r *ranges) touched(s span) *buffer {
	at := r.find(s.begin)
	for _, near := range []int{at - 1, at} {
		if near >= 0 && near < len(r.live) && r.live[near].span.overlaps(s) {
			return r.live[near]
		}
	}
	return nil
}

// use is work of a stream on memory that its caller has freed, or is about to.
type use struct {
	span
	stream *stream // not its handle, which may have belonged to a stream that was destroyed
	of     *buffer // nil: the allocator's own
	until  time.Duration
}

// uses has the memory that the device may still touch.
type uses struct{ pending []use }

func (u *uses) add(x use) { u.pending = append(u.pending, x) }

// hit returns a use of the range by another stream than that one, nil being none, that has not ended and that this stream does
// not wait for on the device either.
func (u *uses) hit(s span, but *stream, device *sim.Device) (use, bool) {
	now := device.Now()
	u.pending = slices.DeleteFunc(u.pending, func(x use) bool { return x.until <= now })
	for _, x := range u.pending {
		if x.stream != but && x.overlaps(s) && (but == nil || x.until > but.waitsUntil) {
			return x, true
		}
	}
	return use{}, false
}
