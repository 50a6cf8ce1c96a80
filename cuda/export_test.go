package cuda

// MemGetInfo asks the driver of a context.
func MemGetInfo(c *Context) (freeBytes, totalBytes int64, err error) { return c.device.MemGetInfo() }

// QueuedBuffers returns the number of buffers that a queue lists.
func QueuedBuffers(q *Queue) int { return len(q.owned) }
