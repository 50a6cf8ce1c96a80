package analysis

import (
	"slices"

	"github.com/go-vram/vram/internal/trace"
)

// Stream is the part of one stream.
type Stream struct {
	Stream int `json:"stream"`
	Share
	PeakLiveBytes int64 `json:"peak_live_bytes"`
	// ForeignFrees are of its buffers, by the programs of other streams.
	ForeignFrees int   `json:"foreign_frees"`
	ForeignBytes int64 `json:"foreign_bytes"`
}

func streamsOf(tr *trace.Trace, all []life, allocatedBytes int64) (streams []Stream, ownPeaksOverPeak float64) {
	streams = make([]Stream, tr.Info.StreamCount)
	for i := range streams {
		streams[i] = Stream{Stream: i, Share: of(len(all), allocatedBytes)}
	}
	live := make([]int64, len(streams))
	for i := range tr.Events {
		e := &tr.Events[i]
		owner := all[e.ID].stream
		s := &streams[owner]
		if e.Op == trace.Alloc {
			s.add(1, e.Bytes)
			live[owner] += e.Bytes
			s.PeakLiveBytes = max(s.PeakLiveBytes, live[owner])
			continue
		}
		live[owner] -= e.Bytes
		if e.Stream != owner {
			s.ForeignFrees++
			s.ForeignBytes = addUpTo(s.ForeignBytes, e.Bytes)
		}
	}
	sum := 0.0
	for i := range streams {
		sum += float64(streams[i].PeakLiveBytes)
	}
	return streams, ratio(sum, float64(tr.Info.PeakLiveBytes))
}

// Runs counts successive allocations, and successive frees, on one stream.
type Runs struct {
	// AllocShare is how many of the allocations are in runs of at least LeastLength, FreeShare of the frees.
	AllocShare  float64 `json:"alloc_share"`
	FreeShare   float64 `json:"free_share"`
	LeastLength int     `json:"least_length"`
	// Median and longest runs of allocations.
	MedianLength  int `json:"median_length"`
	LongestLength int `json:"longest_length"`
}

// LeastRun is the shortest run that is worth a batch: a batch of fewer saves no call that matters.
const LeastRun = 4

func runsOf(tr *trace.Trace) Runs {
	r := Runs{LeastLength: LeastRun}
	var lengths []int
	inRuns := map[trace.Op]int{}
	for from := 0; from < len(tr.Events); {
		first := &tr.Events[from]
		to := from + 1
		for to < len(tr.Events) && tr.Events[to].Op == first.Op && tr.Events[to].Stream == first.Stream {
			to++
		}
		if to-from >= LeastRun {
			inRuns[first.Op] += to - from
		}
		if first.Op == trace.Alloc {
			lengths = append(lengths, to-from)
		}
		from = to
	}
	r.AllocShare = ratio(float64(inRuns[trace.Alloc]), float64(tr.Info.AllocCount))
	r.FreeShare = ratio(float64(inRuns[trace.Free]), float64(tr.Info.FreeCount))
	r.LongestLength = slices.Max(lengths)
	r.MedianLength = median(lengths)
	return r
}
