package analysis

import (
	"cmp"
	"slices"

	"github.com/go-vram/vram/internal/trace"
)

// Peak is the first moment at which most bytes are live.
type Peak struct {
	Event   int     `json:"event"` // behind which
	Micros  int64   `json:"at_us"`
	AtShare float64 `json:"at_share"` // of the trace's events that lead up to it
	Count   int     `json:"buffers"`
	// Sizes are those of the live buffers then, by bytes, the most first.
	Sizes []Size `json:"sizes"`
	// By how long they live.
	Short Share `json:"short"`
	Step  Share `json:"step"`
	Long  Share `json:"long"`
	Held  Share `json:"held"`
	// StreamBytes are live on each stream.
	StreamBytes []int64 `json:"stream_bytes"`
}

func peakOf(tr *trace.Trace, all []life, l *Lifetimes) Peak {
	event := summit(tr)
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
	peak.Short, peak.Step, peak.Long, peak.Held = empty, empty, empty, empty
	sizes := map[int64]int{}
	for i := range all {
		b := &all[i]
		if b.from > event || event >= b.to {
			continue
		}
		sizes[b.bytes]++
		peak.StreamBytes[b.stream] += b.bytes
		switch l.classOf(b) {
		case short:
			peak.Short.add(1, b.bytes)
		case step:
			peak.Step.add(1, b.bytes)
		case long:
			peak.Long.add(1, b.bytes)
		case held:
			peak.Held.add(1, b.bytes)
		}
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

// summit is the first event behind which most bytes are live.
func summit(tr *trace.Trace) (event int) {
	liveBytes, peakBytes := int64(0), int64(-1)
	for i := range tr.Events {
		if tr.Events[i].Op == trace.Free {
			liveBytes -= tr.Events[i].Bytes
			continue
		}
		if liveBytes += tr.Events[i].Bytes; liveBytes > peakBytes {
			peakBytes, event = liveBytes, i
		}
	}
	return event
}

// Live is how many bytes are live behind each event.
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
