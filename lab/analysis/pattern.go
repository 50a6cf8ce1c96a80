package analysis

import (
	"github.com/go-vram/vram/internal/trace"
)

// Pattern is the behaviour of a trace.
type Pattern struct {
	Trace          string `json:"trace"`
	EventCount     int    `json:"events"`
	AllocCount     int    `json:"allocations"`
	DurationMicros int64  `json:"duration_us"`
	AllocatedBytes int64  `json:"allocated_bytes"` // over all allocations
	PeakLiveBytes  int64  `json:"peak_live_bytes"`
	LeftoverCount  int    `json:"leftovers"` // never freed
	LeftoverBytes  int64  `json:"leftover_bytes"`
	// Churn is AllocatedBytes over PeakLiveBytes.
	Churn float64 `json:"churn"`

	Sizes     Sizes     `json:"sizes"`
	Lifetimes Lifetimes `json:"lifetimes"`
	Steps     *Steps    `json:"steps,omitempty"`  // nil where the trace does not repeat
	Growth    *Growth   `json:"growth,omitempty"` // nil where the floor does not rise
	Runs      Runs      `json:"runs"`
	Streams   []Stream  `json:"streams"`
	// OwnPeaksOverPeak is the sum of the streams' own peaks over the peak of all: above 1 memory could change hands.
	OwnPeaksOverPeak float64 `json:"own_peaks_over_peak"`
	Peak             Peak    `json:"peak"`
}

// Of returns the pattern of a trace that trace.Read made.
func Of(tr *trace.Trace) *Pattern {
	all := lives(tr)
	p := &Pattern{
		Trace: tr.Name, EventCount: len(tr.Events), AllocCount: len(all), DurationMicros: tr.Micros[len(tr.Micros)-1],
		PeakLiveBytes: tr.Info.PeakLiveBytes, LeftoverBytes: tr.Info.LeftoverBytes, LeftoverCount: tr.Info.AllocCount - tr.Info.FreeCount,
	}
	total := 0.0 // a sum of int64 may not be one
	for i := range all {
		p.AllocatedBytes = addUpTo(p.AllocatedBytes, all[i].bytes)
		total += float64(all[i].bytes)
	}
	p.Churn = ratio(total, float64(p.PeakLiveBytes))
	p.Sizes = sizesOf(all, p.AllocatedBytes)
	p.Steps = stepsOf(tr, all)
	p.Lifetimes = lifetimesOf(all, p.AllocatedBytes, p.EventCount, p.Steps)
	p.Growth = growthOf(tr, p.Steps)
	p.Runs = runsOf(tr)
	p.Streams, p.OwnPeaksOverPeak = streamsOf(tr, all, p.AllocatedBytes)
	p.Peak = peakOf(tr, all, &p.Lifetimes)
	return p
}
