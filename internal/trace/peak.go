package trace

import (
	"cmp"
	"maps"
	"slices"
)

// Held is a number of buffers of a size.
type Held struct {
	Bytes int64
	Count int
}

// AtPeak lists the buffers that are live when most bytes are, Info.PeakLiveBytes in all, at the first such moment: longest first.
func (t *Trace) AtPeak() []Held {
	counts := map[int64]int{}
	for i := range t.Events[:t.summit()] {
		if e := &t.Events[i]; e.Op == Alloc {
			counts[e.Bytes]++
		} else {
			counts[e.Bytes]--
		}
	}
	maps.DeleteFunc(counts, func(_ int64, count int) bool { return count == 0 })
	held := make([]Held, 0, len(counts))
	for bytes, count := range counts {
		held = append(held, Held{bytes, count})
	}
	slices.SortFunc(held, func(a, b Held) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return held
}

// summit is how many events lead up to that moment.
func (t *Trace) summit() int {
	liveBytes, peakBytes, count := int64(0), int64(0), 0
	for i := range t.Events {
		if t.Events[i].Op == Free {
			liveBytes -= t.Events[i].Bytes
			continue
		}
		if liveBytes += t.Events[i].Bytes; liveBytes > peakBytes {
			peakBytes, count = liveBytes, i+1
		}
	}
	return count
}
