package analysis

import (
	"cmp"
	"slices"

	"github.com/go-vram/vram/internal/trace"
)

// Peak is the first moment at which most bytes are live.
type Peak struct {
	Event   int     `json:"event"` // the peak is after it
	Micros  int64   `json:"at_us"`
	AtShare float64 `json:"at_share"` // of the trace's events that lead up to it
	Count   int     `json:"buffers"`
	// Sizes lists the sizes of the live buffers then, by bytes, the most first.
	Sizes []Size `json:"sizes"`
	Classes
	// StreamBytes are live on each stream.
	StreamBytes []int64 `json:"stream_bytes"`
}

func peakOf(tr *trace.Trace, all []life, l *Lifetimes) Peak {
	live := Live(tr)
	event := slices.Index(live, slices.Max(live)) // the first after which most bytes are live
	peak := Peak{
		Event: event, Micros: tr.Micros[event], AtShare: ratio(float64(event+1), float64(len(tr.Events))),
		StreamBytes: make([]int64, tr.Info.StreamCount),
	}
	for i := range all {
		if b := &all[i]; b.from <= event && event < b.to {
			peak.Count++
		}
	}
	empty := of(peak.Count, tr.Info.PeakLiveBytes)
	peak.Classes = Classes{empty, empty, empty, empty}
	sizes := map[int64]int{}
	for i := range all {
		b := &all[i]
		if b.from > event || event >= b.to {
			continue
		}
		sizes[b.bytes]++
		peak.StreamBytes[b.stream] += b.bytes
		peak.share(b, l.StepEvents).add(1, b.bytes)
	}
	for bytes, count := range sizes {
		s := Size{EachBytes: bytes, Share: empty}
		s.add(count, bytes*int64(count))
		peak.Sizes = append(peak.Sizes, s)
	}
	slices.SortFunc(peak.Sizes, func(a, b Size) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.EachBytes, a.EachBytes))
	})
	return peak
}

// Live returns the live bytes after each event.
func Live(tr *trace.Trace) []int64 {
	live := make([]int64, len(tr.Events))
	sum := int64(0)
	for i := range tr.Events {
		if tr.Events[i].Op == trace.Alloc {
			sum += tr.Events[i].Bytes
		} else {
			sum -= tr.Events[i].Bytes
		}
		live[i] = sum
	}
	return live
}
