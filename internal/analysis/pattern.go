package analysis

import (
	"github.com/go-vram/vram/internal/trace"
)

// Pattern is what a trace does.
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

// Share is some of the allocations, and what that is of all of them.
type Share struct {
	Count      int     `json:"count"`
	Bytes      int64   `json:"bytes"`
	OfCount    float64 `json:"of_count"` // from 0 to 1
	OfBytes    float64 `json:"of_bytes"`
	totalCount int
	totalBytes int64
}

// of is a share of so much.
func of(totalCount int, totalBytes int64) Share {
	return Share{totalCount: totalCount, totalBytes: totalBytes}
}

func (s *Share) add(count int, bytes int64) {
	s.Count += count
	s.Bytes = addUpTo(s.Bytes, bytes)
	s.OfCount = ratio(float64(s.Count), float64(s.totalCount))
	s.OfBytes = ratio(float64(s.Bytes), float64(s.totalBytes))
}

// ratio is 0 where there is nothing to divide by.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// life is one buffer of a trace.
type life struct {
	bytes  int64
	stream uint16
	from   int // event of the allocation
	to     int // event of the free; the number of events where there is none
	held   bool
}

// events is how long it lived.
func (l *life) events() int { return l.to - l.from }

// lives are the buffers of a trace, by id.
func lives(tr *trace.Trace) []life {
	all := make([]life, 0, tr.Info.AllocCount)
	for i := range tr.Events {
		e := &tr.Events[i]
		if e.Op == trace.Alloc {
			all = append(all, life{bytes: e.Bytes, stream: e.Stream, from: i, to: len(tr.Events), held: true})
			continue
		}
		all[e.ID].to, all[e.ID].held = i, false
	}
	return all
}

// Of is the pattern of a trace that trace.Read made.
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
	p.Lifetimes = lifetimesOf(all, p)
	p.Growth = growthOf(tr, p.Steps)
	p.Runs = runsOf(tr)
	p.Streams, p.OwnPeaksOverPeak = streamsOf(tr, all, p.AllocatedBytes)
	p.Peak = peakOf(tr, all, p)
	return p
}

// addUpTo is the sum, or the largest number.
func addUpTo(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return maxBytes
}

const maxBytes = 1<<63 - 1
