package cuda

// MemGetInfo asks the driver of a context.
func MemGetInfo(c *Context) (freeBytes, totalBytes int64, err error) { return c.device.MemGetInfo() }
