package cuda

import (
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/streams"
)

// Freeze says that a buffer is not written until Thaw: weights, or a table. The first launch, copy or graph of each stream that
// reads it waits for the last write, as always; later ones of that stream make no driver call for it, take no lock, and cost
// what they cost on the stream's own buffers. So any number of streams share it for nothing.
//
// While it is frozen, work that would write it is refused with a *FrozenError, and nothing of it is submitted: Out and InOut of
// Launch, LaunchWith and Graph.SetArgs, copies to it, fills, Submit, also in a capture; and launches of graphs that were
// captured with such work before. A read is allowed everywhere, also by CopyPeer and in captures. Buffer.Free, which ends it,
// waits for all readers as always. Buffer.Transfer leaves it frozen; the buffer that TransferPeer returns is not. An arena with
// frozen buffers may sleep: it restores their contents, and work on them enters the arena each time. Work past this package is
// not refused.
//
// Freeze makes no driver call. It waits until calls of other goroutines that submit work on the buffer have returned. So a
// write was submitted before Freeze, or is refused. Idempotent. Errors: ErrNotOpen, ErrNotLive, ErrForeign for a buffer of
// another device, ErrGraphMemory.
func (c *Context) Freeze(b Buffer) error {
	if !c.opened() {
		return ErrNotOpen
	}
	return c.work.Freeze(b, site.Here(1).String())
}

// Thaw allows writes to a frozen buffer again: they wait for all reads so far, and later reads for them. It makes no driver
// call, and waits as Freeze does. Idempotent. It returns the errors of Freeze.
func (c *Context) Thaw(b Buffer) error {
	if !c.opened() {
		return ErrNotOpen
	}
	return c.work.Thaw(b)
}

// Frozen reports whether writes to a live buffer are refused.
func Frozen(b Buffer) bool { return streams.Frozen(b) }
