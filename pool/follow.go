package pool

import (
	"errors"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/pool/core"
)

var (
	// errNoMark says that nobody could record the fence that a client should wait for.
	errNoMark = errors.New("pool: no mark stands for that fence")
	// errNoWaiter says that the client that should wait has left.
	errNoWaiter = errors.New("pool: nobody is left to wait")
)

// isCaptured reports whether a mark went into a graph: its stream was being captured when it was recorded, though it was
// not when it was asked.
func isCaptured(err error) bool { return errors.Is(err, cudadrv.CapturedEvent) }

// follow makes the waiter of the job in hand go on behind a client's fence, by the least of its marks that covers it.
// Marks are recorded before they get here, so that a stream only ever waits for work that was submitted before the
// wait: waits make no cycle.
func (d *driver) follow(id core.Client, f core.Fence) error {
	for _, p := range d.passed { // just now: the core has heard of all that passed before
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
