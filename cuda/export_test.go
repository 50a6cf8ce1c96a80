package cuda

import (
	"slices"

	"github.com/go-vram/vram/streams"
)

// MemGetInfo asks the driver of a context.
func MemGetInfo(c *Context) (freeBytes, totalBytes int64, err error) { return c.device.MemGetInfo() }

// LaunchesSlowly reports whether launches of a context take the way of those that are captured, profiled, checked or recorded.
func LaunchesSlowly(c *Context) bool { return c.special.Load() > 0 }

// QueuedBuffers returns the number of buffers that a queue lists.
func QueuedBuffers(q *Queue) int { return len(q.owned) }

// LaunchLate submits as a launch does that has found the profile before Stop.
func LaunchLate(p *Profile, submit func() error) error { return p.launch("late", Geometry{}, submit) }

// LaunchStreams returns the number of streams on which a graph has been launched, but for streams that have finished.
func LaunchStreams(g *Graph) int { return len(g.launches()) }

// NoteLaunch notes a launch without making it.
func NoteLaunch(g *Graph, c *Context) { g.note(c.Stream()) }

// EndedLeases returns the leases of replaced arguments that a graph has given up, and whose memory may still be used.
func EndedLeases(g *Graph) []*streams.Lease { return slices.Clone(g.pool.leases) }

// Late returns calls of the capture in progress: of goroutines that find it before it ends, and come after.
func Late(c *Context) (touch, alloc func(b Buffer) error) {
	p := c.capture.Load()
	touch = func(b Buffer) error { return p.touch(c.submission, b, true) }
	alloc = func(b Buffer) error { _, err := p.alloc(c.submission, b.Bytes()); return err }
	return touch, alloc
}
