package bench

import "time"

const (
	// pacedWork is the length of the work between two requests: about the launch of a kernel. Not less: requests would follow
	// each other as in a loop. Not more: the figures stay, the run gets longer.
	pacedWork = 5 * time.Microsecond
	// mostPaced bounds a run, which takes ten microseconds a pair, most of it other work.
	mostPaced = 1000
)

// pacedGroups has single requests with other work between them: the cost of one request for a caller that does not allocate in
// a loop. ns_per_op is an allocation and its free without the work; the percentiles are of one request, an allocation or a
// free.
func pacedGroups(o Options) []group {
	return []group{o.versus(Row{SizeBytes: smallBytes, Count: 1, Goroutines: 1}, func(open opener) (*load, error) {
		h, err := open(1, false)
		if err != nil {
			return nil, err
		}
		w, timer := h.workers[0], timerCost()
		return &load{
			close: h.close,
			run: func(count int) (repetition, error) {
				nanos := make([]float64, 2*min(count, mostPaced))
				r, err := o.alone(len(nanos)/2, func() error { return w.paced(smallBytes, pacedWork, nanos) })
				sum := 0.0
				for _, n := range nanos {
					sum += max(0, n-timer)
				}
				r.elapsed = max(1, time.Duration(sum))
				return r, err
			},
			sample: func(nanos []float64) error { return w.paced(smallBytes, pacedWork, nanos) },
		}, nil
	})}
}

// work stands for a caller's work between two requests: it keeps the processor busy for so long.
func work(wanted time.Duration) {
	for start := time.Now(); time.Since(start) < wanted; {
	}
}
