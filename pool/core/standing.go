package core

// standing is what a pool knows of a peak that rises no more, and of what was recycled while it rose.
type standing struct {
	requests      int   // in a row that free memory did not serve, and that did not raise the peak
	recycledBytes int64 // while the peak did not stand
}

const (
	// standingRequests is how many requests in a row make a peak stand. Not fewer: one that does not raise it comes now and then
	// in the first pass of a loop. Not more: the second pass asks for a few windows only.
	standingRequests = 2
	// recycledShare is the part of what is reserved from which on as much has been recycled that handles are long: a sixth.
	recycledShare = 6
)

// note takes a request that free memory does not serve.
func (s *standing) note(raised bool) {
	if raised {
		s.requests = 0
		return
	}
	s.requests = min(s.requests+1, standingRequests)
}

// stands reports whether the live peak does.
func (c *Core) stands() bool { return c.standing.requests >= standingRequests }

// handlePages bounds the length of a new handle.
func (c *Core) handlePages() uint32 {
	p := &c.settings.Policy
	if c.standing.recycledBytes > c.reservedBytes/recycledShare {
		return max(1, p.HandlePages, p.LongPages)
	}
	return max(1, p.HandlePages)
}
