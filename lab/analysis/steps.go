package analysis

import (
	"cmp"
	"math"
	"slices"

	"github.com/go-vram/vram/internal/trace"
)

// Steps are the parts that a trace repeats.
type Steps struct {
	Count      int   `json:"count"`       // whole ones that were found
	AllocCount int   `json:"allocations"` // of a step, in the median; likewise the two below
	EventCount int   `json:"events"`
	Micros     int64 `json:"duration_us"`
	FirstEvent int   `json:"first_event"` // where the first of them begins
	// SameShare is how many of a step's allocations have a counterpart of the same size and stream in the next, from 0 to 1.
	SameShare float64 `json:"same_share"`
	// Exact is set where every step asks for the same sizes in the same order.
	Exact bool `json:"exact"`

	begins []int // events at which steps begin, and the end of the last step
}

const (
	// anchorAllocs is the length of an anchor. Not shorter: the same few sizes come in many places. Not longer: in traces whose
	// sizes change from step to step the common sequences are short.
	anchorAllocs = 8
	// anchorTimes is how often one must occur: two equal distances.
	anchorTimes = 3
	// irregular is how much longer than the median a distance may be, and how much shorter: over it.
	irregular = 1.25
	// spanShare is how much of the trace an anchor must span.
	spanShare = 0.5
	// lengthTolerance is how far distances may be apart that count as one length.
	lengthTolerance = 0.01
)

// anchor is a sequence of sizes at nearly equal distances.
type anchor struct {
	at       []int // allocations
	distance int
}

// token is a size on a stream.
type token struct {
	bytes  int64
	stream uint16
}

func stepsOf(tr *trace.Trace, all []life) *Steps {
	tokens := make([]token, len(all))
	for i := range all {
		tokens[i] = token{all[i].bytes, all[i].stream}
	}
	marks := strongest(anchors(tokens))
	if marks == nil {
		return nil
	}
	s := &Steps{Count: len(marks) - 1, FirstEvent: all[marks[0]].from}
	var allocs, events, micros []int
	same, total := 0, 0
	s.Exact = true
	for i := range s.Count {
		from, to := marks[i], marks[i+1]
		s.begins = append(s.begins, all[from].from)
		allocs = append(allocs, to-from)
		events = append(events, all[to].from-all[from].from)
		micros = append(micros, int(tr.Micros[all[to].from]-tr.Micros[all[from].from]))
		if i > 0 {
			last := tokens[marks[i-1]:from]
			same += inCommon(last, tokens[from:to])
			total += max(len(last), to-from)
			s.Exact = s.Exact && slices.Equal(last, tokens[from:to])
		}
	}
	s.begins = append(s.begins, all[marks[s.Count]].from)
	s.AllocCount, s.EventCount, s.Micros = median(allocs), median(events), int64(median(micros))
	s.SameShare = ratio(float64(same), float64(total))
	return s
}

// anchors returns the sequences that occur at nearly equal distances.
func anchors(tokens []token) (found []anchor) {
	places := map[[anchorAllocs]token][]int{}
	for i := range len(tokens) - anchorAllocs + 1 {
		key := [anchorAllocs]token(tokens[i : i+anchorAllocs])
		places[key] = append(places[key], i)
	}
	distances := []int{}
	for _, at := range places {
		if len(at) < anchorTimes || float64(at[len(at)-1]-at[0]) < spanShare*float64(len(tokens)) {
			continue
		}
		distances = distances[:0]
		for i := range len(at) - 1 {
			distances = append(distances, at[i+1]-at[i])
		}
		middle := median(distances)
		shortest, longest := float64(distances[0]), float64(distances[len(distances)-1])
		if longest <= irregular*float64(middle) && shortest >= float64(middle)/irregular {
			found = append(found, anchor{at, middle})
		}
	}
	return found
}

// strongest returns where the anchor occurs that marks the steps: of the length for which most places speak, and among
// those the one that occurs most often, from the earliest place on.
func strongest(all []anchor) []int {
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b anchor) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(len(b.at), len(a.at)), cmp.Compare(a.at[0], b.at[0]))
	})
	bestFrom, bestTo, bestWeight := 0, 0, 0
	weight, to := 0, 0
	for from := range all {
		for ; to < len(all) && float64(all[to].distance) <= math.Ceil(float64(all[from].distance)*(1+lengthTolerance)); to++ {
			weight += len(all[to].at)
		}
		if weight > bestWeight {
			bestFrom, bestTo, bestWeight = from, to, weight
		}
		weight -= len(all[from].at)
	}
	best := slices.MinFunc(all[bestFrom:bestTo], func(a, b anchor) int {
		return cmp.Or(cmp.Compare(len(b.at), len(a.at)), cmp.Compare(a.at[0], b.at[0]))
	})
	return best.at
}

// inCommon returns how many tokens two steps have in common, each as often as both have it.
func inCommon(a, b []token) (count int) {
	times := map[token]int{}
	for _, t := range a {
		times[t]++
	}
	for _, t := range b {
		if times[t] > 0 {
			times[t]--
			count++
		}
	}
	return count
}
