package replay

import (
	"slices"
)

// Result has the figures of one replay. The command prints its JSON form.
type Result struct {
	Trace             string  `json:"trace"`
	Driver            string  `json:"driver"`
	DriverModelled    bool    `json:"-"` // times in driver calls are a model of an H200, and not measured
	EventCount        int     `json:"events"`
	StreamCount       int     `json:"streams"`
	PeakLiveBytes     int64   `json:"peak_live_bytes"`
	PeakReservedBytes int64   `json:"peak_reserved_bytes"` // physical, over all rounds
	ReservedOverLive  float64 `json:"reserved_over_live"`
	// SettledOverLive is the same over the rounds three on; nil where there are fewer.
	SettledOverLive *float64 `json:"settled_over_live,omitempty"`
	Rounds          []Round  `json:"rounds"`

	// WarmNsPerOp is the median over the rounds two on, AllocsPerOp their heap allocations for each
	// event; nil where there was one round only.
	WarmNsPerOp *float64 `json:"warm_ns_per_op,omitempty"`
	AllocsPerOp *float64 `json:"allocs_per_op,omitempty"`

	*WaitFigures // with Options.Wait; nil without

	*Paced // with Options.Gap; nil without

	Hazards *Hazards `json:"hazards,omitempty"` // with Options.Hazards

	// With Options.MinCapacity: the least limit found, its ratio to the peak live bytes, and each limit that was tried, in
	// order.
	MinCapacityBytes    int64   `json:"min_capacity_bytes,omitempty"`
	MinCapacityOverLive float64 `json:"min_capacity_over_live,omitempty"`
	Probes              []Probe `json:"-"`
}

// settledRound is the first round of those by which Result.SettledOverLive is measured: the first one shows the sizes, the
// second that they come again.
const settledRound = 3

// Round is one pass over the trace.
type Round struct {
	NsPerOp           float64 `json:"ns_per_op"`        // real time over events
	DriverNsPerOp     float64 `json:"driver_ns_per_op"` // time in driver calls, modelled where the driver is
	DriverCalls       uint64  `json:"driver_calls"`
	HitRate           float64 `json:"hit_rate"`             // allocations served without the pool
	CachedBytes       int64   `json:"cached_bytes"`         // in stream caches at the end
	PeakReservedBytes int64   `json:"peak_reserved_bytes"`  // physical
	FailedCount       int     `json:"failed"`               // allocations that found no memory, or were refused as deadlocks
	DeadlockedCount   int     `json:"deadlocked,omitempty"` // of them: refused as deadlocks

	Hits Hits `json:"hits"`
	// Fragmentation is the share of free memory outside the longest free range, at the end.
	Fragmentation float64 `json:"fragmentation"`
}

// Hits counts the successful allocations of a round by the place that served them.
type Hits struct {
	Magazine uint64 `json:"magazine"`
	Stream   uint64 `json:"stream"` // the stream's free ranges
	Pool     uint64 `json:"pool"`   // free pages of the pool
	Driver   uint64 `json:"driver"` // pages that were mapped for it
}

// Probe is a limit that was tried.
type Probe struct {
	LimitBytes int64
	Survived   bool // all rounds completed
}

// FailedCount returns how many allocations found no memory, or were refused as deadlocks, over all rounds.
func (r Result) FailedCount() int {
	sum := 0
	for _, round := range r.Rounds {
		sum += round.FailedCount
	}
	return sum
}

// DeadlockedCount returns how many of them were refused as deadlocks: others may have had memory to free.
func (r Result) DeadlockedCount() int {
	sum := 0
	for _, round := range r.Rounds {
		sum += round.DeadlockedCount
	}
	return sum
}

// summarise computes the figures over all rounds.
func (r *Result) summarise(warmMallocs uint64) {
	for _, round := range r.Rounds {
		r.PeakReservedBytes = max(r.PeakReservedBytes, round.PeakReservedBytes)
	}
	r.ReservedOverLive = float64(r.PeakReservedBytes) / float64(r.PeakLiveBytes)
	if len(r.Rounds) < 2 {
		return
	}
	if len(r.Rounds) >= settledRound {
		var peakBytes int64
		for _, round := range r.Rounds[settledRound-1:] {
			peakBytes = max(peakBytes, round.PeakReservedBytes)
		}
		settled := float64(peakBytes) / float64(r.PeakLiveBytes)
		r.SettledOverLive = &settled
	}
	warm := make([]float64, 0, len(r.Rounds)-1)
	for _, round := range r.Rounds[1:] {
		warm = append(warm, round.NsPerOp)
	}
	slices.Sort(warm)
	median := (warm[(len(warm)-1)/2] + warm[len(warm)/2]) / 2
	allocs := float64(warmMallocs) / float64(len(warm)) / float64(r.EventCount)
	r.WarmNsPerOp, r.AllocsPerOp = &median, &allocs
}
