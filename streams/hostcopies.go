package streams

import (
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/actors"
)

// hostCopies are works of a stream that are being submitted, in which the driver may wait for the device, on buffers of the stream
// that no other stream uses. A work is added before it looks whether that is so, and a first use by another stream looks here after
// it has announced itself: so one of the two sees the other. Only first uses of the same buffer wait.
type hostCopies struct {
	all atomic.Pointer[[]*hostCopy] // replaced, never changed
}

// hostCopy is the use of one buffer.
type hostCopy struct {
	buffer Buffer
	over   chan struct{}
}

// begin adds a use, which end removes.
func (h *hostCopies) begin(b Buffer) *hostCopy {
	one := &hostCopy{b, make(chan struct{})}
	for {
		old := h.all.Load()
		all := []*hostCopy{one}
		if old != nil {
			all = append(all, *old...)
		}
		if h.all.CompareAndSwap(old, &all) {
			return one
		}
	}
}

func (h *hostCopies) end(one *hostCopy) {
	for {
		old := h.all.Load()
		var now *[]*hostCopy
		if all := slices.DeleteFunc(slices.Clone(*old), func(c *hostCopy) bool { return c == one }); len(all) > 0 {
			now = &all
		}
		if h.all.CompareAndSwap(old, now) {
			close(one.over)
			return
		}
	}
}

// await waits until the uses of a buffer that have begun have ended.
func (h *hostCopies) await(b Buffer, host actors.Host) {
	all := h.all.Load()
	if all == nil {
		return
	}
	for _, one := range *all {
		if one.buffer == b {
			actors.Wait(host, one.over)
		}
	}
}
