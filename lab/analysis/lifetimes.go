package analysis

// shortEvents is the longest life of a short-lived buffer. Not fewer: an operation allocates its result and some workspace
// before it frees the workspace. Not more: a layer has some hundred events.
const shortEvents = 32

// Classes are buffers by how long they live, each in one class.
type Classes struct {
	Short Share `json:"short"` // up to shortEvents
	Step  Share `json:"step"`  // up to Lifetimes.StepEvents
	Long  Share `json:"long"`
	Held  Share `json:"held"` // never freed
}

// Lifetimes are all buffers of a trace by how long they live.
type Lifetimes struct {
	Classes

	// StepEvents is the length of a step, or a tenth of the trace where it has none.
	StepEvents   int `json:"step_events"`
	MedianEvents int `json:"median_events"` // of the buffers that are freed
	// NextCount are the buffers that the very next event frees.
	NextCount int `json:"freed_by_next"`
}

// share returns the class of a buffer in c, where a step has stepEvents events.
func (c *Classes) share(b *life, stepEvents int) *Share {
	switch {
	case b.held:
		return &c.Held
	case b.events() <= shortEvents:
		return &c.Short
	case b.events() <= stepEvents:
		return &c.Step
	}
	return &c.Long
}

func lifetimesOf(all []life, allocatedBytes int64, eventCount int, s *Steps) Lifetimes {
	empty := of(len(all), allocatedBytes)
	l := Lifetimes{Classes: Classes{empty, empty, empty, empty}, StepEvents: max(shortEvents, eventCount/partCount)}
	if s != nil {
		l.StepEvents = s.EventCount
	}
	freed := make([]int, 0, len(all))
	for i := range all {
		b := &all[i]
		l.share(b, l.StepEvents).add(1, b.bytes)
		if b.held {
			continue
		}
		freed = append(freed, b.events())
		if b.events() == 1 {
			l.NextCount++
		}
	}
	l.MedianEvents = median(freed)
	return l
}
