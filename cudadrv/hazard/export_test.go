package hazard

// SharedCount is how many names of events are known.
func (c *Checker) SharedCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.shared)
}
