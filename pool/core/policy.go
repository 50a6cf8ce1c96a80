package core

import "github.com/go-vram/vram/internal/heap"

// Policy is what a footprint mode means to the pool. The constants come from the frontier that was
// measured on eight real traces: large handles are cheap to make and hard to reuse, small ones the
// other way round, and a budget above the live peak saves recycling in later rounds.
type Policy struct {
	// HandlePages bounds the length of a new handle. A window is cut into handles as equal as possible. A plain
	// segment is longer only where what is asked for at once is.
	HandlePages uint32
	// Step is the least length to grow by, in 1/1024 of the live peak: what it adds to the footprint at
	// most, once, for fewer and longer windows.
	Step int64
	// SteadyStep is what growth adds where the live peak did not rise, likewise: then holes are the
	// reason, and the next round would have others.
	SteadyStep int64
	// Slack is the soft budget above the peak of live bytes, in 1/1024 of it.
	Slack int64
	// SteadySlack is how far the soft budget may grow, in 1/1024 of the live peak, while the peak
	// stands and recycling goes on: each recycle adds the bytes that it had to move.
	SteadySlack int64
}

// Settings are the limits of a pool. They may change while it is in use.
type Settings struct {
	Policy     Policy
	LimitBytes int64         // reserved never exceeds it
	CacheBytes int64         // free bytes beyond it go back to the driver at ticks; 0: no such bound
	CacheRuns  int           // likewise the number of free runs
	Strategy   heap.Strategy // which free run a Refill gets
	Waits      Waits
}
