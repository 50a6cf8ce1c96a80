package core

import "github.com/go-vram/vram/cudadrv"

// SleepBegan lets the memory of a stream's live buffers be unmapped once work on it is over, and lets the stream touch all of it.
func (c *Core) SleepBegan(s cudadrv.Stream) { c.asleep[s] = true }

// SleepEnded gives the memory that was mapped since to the buffers that live.
func (c *Core) SleepEnded(s cudadrv.Stream) {
	delete(c.asleep, s)
	for p, b := range c.live {
		if b.Stream != s || b.Bytes <= 0 {
			continue
		}
		end := p + cudadrv.Ptr(b.Bytes)
		for _, piece := range c.memory.cut(p, end) {
			if piece.cell != nil {
				piece.cell.buffer, piece.cell.managed = b, true
			}
		}
		c.memory.merge(p, end)
	}
}
