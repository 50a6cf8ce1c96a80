package core

// Policy has the constants of a footprint mode. They come from the frontier that was measured on eight real traces: large
// handles are cheap to make and hard to reuse, small ones the reverse, and a budget above the live peak saves recycling in
// later rounds.
type Policy struct {
	// HandlePages bounds the length of a new handle. A window is cut into handles as equal as possible. A plain segment is
	// longer only for a longer request.
	HandlePages uint32
	// LongPages bounds it instead, if greater, where much has been recycled while the peak rose: requests there are long
	// compared to live memory, and moving a handle costs the same at any length.
	LongPages uint32
	// MergePages is the length from which on a handle that is recycled moves as it is. Shorter ones are given back, and
	// long ones made in their place: that costs about as much, and the next time there are fewer to move.
	MergePages uint32
	// SpareBytes may be held beyond the live peak however little lives: while a heap is small, parts of it are less than
	// moving a handle is worth.
	SpareBytes int64
	// Step is the least length to grow by, in 1/1024 of the live peak: it adds that much to the footprint at most, once, for
	// fewer and longer windows.
	Step int64
	// SteadyStep is the growth where the live peak did not rise, likewise: then holes are the reason, and the next round would
	// have others.
	SteadyStep int64
	// Slack is the soft budget above the live peak, in 1/1024 of it, and SharedSlack the same where several clients hold
	// memory: each move between them costs a return and a fence, again and again.
	Slack, SharedSlack int64
	// MostSharedSlack is how far SharedSlack widens, likewise, where moves have cost as much as the wider slack, or cannot
	// serve. 0: it does not.
	MostSharedSlack int64
	// OverStep is the least growth beyond the soft budget while the live peak rises and nothing is left to recycle,
	// likewise: where every request breaks the budget, growing by each alone costs a driver call each and saves nothing.
	OverStep int64
	// SteadySlack is how far the soft budget may grow, in 1/1024 of the live peak, while the peak is stable and recycling
	// continues: each recycle adds the bytes that it had to move.
	SteadySlack int64
	// PageWorth is the price of a page beyond the soft budget, in eighths of the driver's time to make a handle: once moves
	// have cost so much the pool grows instead. 0: it moves memory as long as any is free.
	PageWorth int64
}

// Settings are the limits of a pool. They may change while it is in use.
type Settings struct {
	Policy     Policy
	LimitBytes int64 // reserved never exceeds it
	// LimitSource says for reports where the limit is written; "": it is the device's, or the program's
	LimitSource string
	CacheBytes  int64 // free bytes beyond it go back to the driver once no request needs it; 0: no such bound
	CacheRuns   int   // likewise the number of clean runs, the shortest first; runs with a part of a handle stay
	// AgeTicks is for how many ticks memory has to be free until it goes back to the driver, and
	// the length of the windows of time by which peaks are forgotten; 0: neither ends.
	AgeTicks uint32
	Waits    Waits
}

// Waits reports when a client gets memory that another has returned and whose fence has not passed: its stream is made
// to wait for that fence, on the device.
type Waits uint8

// The policies.
const (
	// WaitsNever grows up to the limit instead: nobody can know how long a fence takes to pass.
	WaitsNever Waits = iota
	// WaitsAvoidGrowth waits where the soft budget would be broken otherwise.
	WaitsAvoidGrowth
	// WaitsAlways waits wherever that spares growth, within the soft budget, too.
	WaitsAlways
)
