package core

import "github.com/go-vram/vram/cudadrv"

// owned is memory of a buffer, which lives or which a graph may keep.
type owned struct {
	start, end cudadrv.Ptr
	by         *buffer
}

// SleepBegan permits unmapping the memory of a stream's live buffers after their work, and permits the stream to touch all of
// it.
func (c *Core) SleepBegan(s cudadrv.Stream) { c.asleep[s] = nil }

// sleeps reports whether the memory of a stream's buffers sleeps.
func (c *Core) sleeps(s cudadrv.Stream) bool {
	_, asleep := c.asleep[s]
	return asleep
}

// slept notes that memory of a buffer was unmapped, if its stream's memory sleeps.
func (c *Core) slept(start, end cudadrv.Ptr, b *buffer) {
	if b != nil && c.sleeps(b.Stream) {
		c.asleep[b.Stream] = append(c.asleep[b.Stream], owned{start, end, b})
	}
}

// SleepEnded returns the memory that was mapped since to its buffers: live ones, and freed ones, which a graph may keep.
func (c *Core) SleepEnded(s cudadrv.Stream) {
	all := c.asleep[s]
	delete(c.asleep, s)
	for _, o := range all {
		for _, piece := range c.memory.cut(o.start, o.end) {
			if piece.cell != nil && piece.cell.buffer == nil {
				piece.cell.buffer, piece.cell.managed = o.by, true
			}
		}
		c.memory.merge(o.start, o.end)
	}
}
