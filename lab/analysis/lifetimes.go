package analysis

// shortEvents is the longest life of a short-lived buffer. Not fewer: an operation allocates its result and some workspace before it
// frees the workspace. Not more: a layer has some hundred events.
const shortEvents = 32

// Lifetimes are the buffers by how long they live. The four classes have every buffer once.
type Lifetimes struct {
	Short Share `json:"short"` // up to shortEvents
	Step  Share `json:"step"`  // up to StepEvents
	Long  Share `json:"long"`
	Held  Share `json:"held"` // never freed

	// StepEvents is the length of a step, or a tenth of the trace where it has none.
	StepEvents   int `json:"step_events"`
	MedianEvents int `json:"median_events"` // of the buffers that are freed
	// NextCount are the buffers that the very next event frees.
	NextCount int `json:"freed_by_next"`
}

// class is how long a buffer lives.
type class uint8

const (
	short class = iota
	step
	long
	held
)

func (l *Lifetimes) classOf(b *life) class {
	switch {
	case b.held:
		return held
	case b.events() <= shortEvents:
		return short
	case b.events() <= l.StepEvents:
		return step
	}
	return long
}

func (l *Lifetimes) share(c class) *Share {
	switch c {
	case short:
		return &l.Short
	case step:
		return &l.Step
	case long:
		return &l.Long
	case held:
	}
	return &l.Held
}

func lifetimesOf(all []life, allocatedBytes int64, eventCount int, s *Steps) Lifetimes {
	empty := of(len(all), allocatedBytes)
	l := Lifetimes{Short: empty, Step: empty, Long: empty, Held: empty, StepEvents: max(shortEvents, eventCount/partCount)}
	if s != nil {
		l.StepEvents = s.EventCount
	}
	freed := make([]int, 0, len(all))
	for i := range all {
		b := &all[i]
		l.share(l.classOf(b)).add(1, b.bytes)
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
