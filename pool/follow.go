package pool

import (
	"errors"

	"github.com/go-vram/vram/internal/pool/core"
)

var (
	// errNoMark reports that the fence to wait for could not be recorded.
	errNoMark = errors.New("pool: no mark stands for that fence")
	// errNoWaiter reports that the client that should wait has left.
	errNoWaiter = errors.New("pool: no waiter is left")
)

// follow makes the waiter of the current job wait for a client's fence, by the earliest mark that
// covers it. A mark is recorded before it gets here, so that a stream waits only for work submitted
// before the wait: waits make no cycle.
func (d *driver) follow(id core.Client, f core.Fence) error {
	for _, p := range d.passed { // in this job: the core knows those that passed before
		if p.Client == id && f <= p.Fence {
			return nil
		}
	}
	var covering markedFence
	for _, s := range d.marks[id] {
		if s.fence >= f && (covering.fence == 0 || s.fence < covering.fence) {
			covering = s
		}
	}
	switch {
	case covering.fence == 0:
		return errNoMark
	case d.waiter == nil:
		return errNoWaiter
	}
	return d.waiter.Follow(covering.mark)
}
