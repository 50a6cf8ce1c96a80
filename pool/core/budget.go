package core

// budget is how much may be reserved while there is something to recycle, by the live peak: the most that clients used at a time, or
// wanted.
type budget struct {
	livePeakBytes int64
	steadyBytes   int64 // added to the soft budget by recycling since the peak rose last
	recycledBytes int64 // while the peak was not stable
	flatRequests  int   // in a row that free memory did not serve, and that did not raise the peak
}

const (
	// stableRequests is how many requests in a row that do not raise the peak make it stable. Not fewer: one that does not raise it
	// comes now and then in the first pass of a loop. Not more: the second pass asks for a few windows only.
	stableRequests = 2
	// recycledShare is the part of what is reserved from which on as much has been recycled that handles are long: a sixth.
	recycledShare = 6
)

// raise raises the live peak to what is used and wanted, and reports whether that is more than before.
func (b *budget) raise(liveBytes int64) bool {
	if liveBytes <= b.livePeakBytes {
		return false
	}
	b.livePeakBytes = liveBytes
	b.steadyBytes = 0
	return true
}

// note takes a request that free memory does not serve.
func (b *budget) note(raised bool) {
	if raised {
		b.flatRequests = 0
		return
	}
	b.flatRequests = min(b.flatRequests+1, stableRequests)
}

// recycled counts handles that are recycled: in later rounds the budget is higher by as much, up to the steady slack.
func (b *budget) recycled(bytes int64, p *Policy) {
	if b.flatRequests < stableRequests {
		b.recycledBytes += bytes
	}
	b.steadyBytes = max(b.steadyBytes, min(b.part(p.SteadySlack), b.steadyBytes+bytes))
}

// part is a part of the live peak, given in 1/1024 of it.
func (b *budget) part(share int64) int64 { return b.livePeakBytes / 1024 * share }

// softBytes is what may be reserved while there is something to recycle, and to begin with. shared: several clients hold
// memory.
func (b *budget) softBytes(s *Settings, shared bool) int64 {
	slack := s.Policy.Slack
	if shared {
		slack = max(slack, s.Policy.SharedSlack)
	}
	return min(s.LimitBytes, b.livePeakBytes+b.part(slack)+s.Policy.SpareBytes+b.steadyBytes)
}

// maxHandlePages bounds the length of a new handle.
func (b *budget) maxHandlePages(p *Policy, reservedBytes int64) uint32 {
	if b.recycledBytes > reservedBytes/recycledShare {
		return max(1, p.HandlePages, p.LongPages)
	}
	return max(1, p.HandlePages)
}
