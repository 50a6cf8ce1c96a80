package hazard

// SharedCount is how many names of events are known.
func (c *Checker) SharedCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.shared)
}

// MemoryCount is how many plain allocations and modules with variables are known, and devices with access to memory of this one.
func (c *Checker) MemoryCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.segment) + len(c.globals) + len(c.peers)
}
