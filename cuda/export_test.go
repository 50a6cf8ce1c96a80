package cuda

// MemGetInfo asks the driver of a context.
func MemGetInfo(c *Context) (freeBytes, totalBytes int64, err error) { return c.device.MemGetInfo() }

// QueuedBuffers returns the number of buffers that a queue lists.
func QueuedBuffers(q *Queue) int { return len(q.owned) }

// LaunchLate submits as a launch does that has found the profile before Stop.
func LaunchLate(p *Profile, submit func() error) error { return p.launch("late", Geometry{}, submit) }
