package analysis

import (
	"cmp"
	"maps"
	"slices"

	"github.com/go-vram/vram/internal/trace"
)

// Growth is memory that becomes more from part to part.
type Growth struct {
	// PartBytes is by how much the floor rises in a step, or in a tenth of the trace, in the median.
	PartBytes int64 `json:"part_bytes"`
	PartCount int   `json:"parts"`
	Steps     bool  `json:"steps"` // the parts are steps
	// FirstBytes and LastBytes are the floors of the first and of the last part.
	FirstBytes int64 `json:"first_bytes"`
	LastBytes  int64 `json:"last_bytes"`
	// Sizes lists the sizes that grew most between the first part's floor and the last one's, by bytes.
	Sizes []Gained `json:"sizes"`
}

// Gained is a size of which more is live.
type Gained struct {
	EachBytes int64 `json:"each_bytes"`
	Count     int   `json:"count"` // more at the last floor than at the first
}

// leastParts is how many parts a trace must have to grow. Not fewer: between three floors there are two rises.
const leastParts = 4

// mostlyRises is how many of all rises must be ones.
const mostlyRises = 0.8

func growthOf(tr *trace.Trace, s *Steps) *Growth {
	begins := tenths(len(tr.Events))
	if s != nil && s.Count >= leastParts {
		begins = s.begins
	}
	floors := floorsOf(tr, begins)
	if len(floors) < leastParts || !rising(floors) {
		return nil
	}
	rises := make([]int, 0, len(floors)-1)
	for i := range len(floors) - 1 {
		rises = append(rises, int(floors[i+1].bytes-floors[i].bytes))
	}
	first, last := floors[0], floors[len(floors)-1]
	return &Growth{
		PartBytes: int64(median(rises)), PartCount: len(floors), Steps: s != nil && s.Count >= leastParts,
		FirstBytes: first.bytes, LastBytes: last.bytes, Sizes: gained(tr, first.event, last.event),
	}
}

// tenths returns the events at which the parts of a trace without steps begin, and its end.
func tenths(count int) (begins []int) {
	for i := range partCount + 1 {
		if at := i * count / partCount; i == 0 || at > begins[len(begins)-1] {
			begins = append(begins, at)
		}
	}
	return begins
}

// floor is the least live bytes of a part, and the event after which they occur.
type floor struct {
	bytes int64
	event int
}

func floorsOf(tr *trace.Trace, begins []int) (floors []floor) {
	part := 0
	for i, liveBytes := range Live(tr) {
		for part+1 < len(begins) && i >= begins[part+1] {
			part++
		}
		switch {
		case part+1 >= len(begins): // after the last part
			return floors
		case i < begins[part]: // before the first
		case len(floors) <= part:
			floors = append(floors, floor{liveBytes, i})
		case liveBytes < floors[part].bytes:
			floors[part] = floor{liveBytes, i}
		}
	}
	return floors
}

// rising reports whether the floor rises from each part of the second half to the next, and in most of the first.
func rising(floors []floor) bool {
	count := 0
	for i := range len(floors) - 1 {
		rises := floors[i+1].bytes > floors[i].bytes
		if !rises && i >= (len(floors)-1)/2 {
			return false
		}
		if rises {
			count++
		}
	}
	return float64(count) >= mostlyRises*float64(len(floors)-1)
}

// gained returns the sizes with more live bytes after the second event than after the first.
func gained(tr *trace.Trace, first, last int) []Gained {
	counts := map[int64]int{}
	for i := first + 1; i <= last; i++ {
		if e := &tr.Events[i]; e.Op == trace.Alloc {
			counts[e.Bytes]++
		} else {
			counts[e.Bytes]--
		}
	}
	maps.DeleteFunc(counts, func(_ int64, count int) bool { return count <= 0 })
	all := make([]Gained, 0, len(counts))
	for bytes, count := range counts {
		all = append(all, Gained{bytes, count})
	}
	slices.SortFunc(all, func(a, b Gained) int {
		byBytes := cmp.Compare(float64(b.EachBytes)*float64(b.Count), float64(a.EachBytes)*float64(a.Count))
		return cmp.Or(byBytes, cmp.Compare(b.EachBytes, a.EachBytes))
	})
	return all[:min(dominantCount, len(all))]
}
