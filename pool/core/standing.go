package core

// standing is what a pool knows of a peak that rises no more.
type standing struct {
	requests int // in a row that free memory did not serve, and that did not raise the peak
}

// standingRequests is how many requests in a row make a peak stand. Not fewer: with one, what recycling saves before the peak has
// come is spent. Not more: the second pass of a loop asks for a few windows only, and is to have them within StandingSlack.
const standingRequests = 2

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
