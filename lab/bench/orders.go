package bench

import "errors"

// lifoDepth is as many buffers as a step of a small model holds at once.
const lifoDepth = 1000

func lifoGroups(o Options) []group {
	row := Row{SizeBytes: smallBytes, Count: lifoDepth, Goroutines: 1}
	return []group{o.versus(row, func(open opener) (*load, error) {
		h, err := open(1, false)
		if err != nil {
			return nil, err
		}
		w := h.workers[0]
		return &load{
			close: h.close,
			run: func(count int) (repetition, error) {
				times := (count + lifoDepth - 1) / lifoDepth
				return o.alone(times*lifoDepth, func() error {
					for range times {
						if err := w.lifo(smallBytes, lifoDepth, nil); err != nil {
							return err
						}
					}
					return nil
				})
			},
			sample: func(nanos []float64) error {
				for len(nanos) > 0 {
					depth := min(lifoDepth, len(nanos))
					if err := w.lifo(smallBytes, depth, nanos[:depth]); err != nil {
						return err
					}
					nanos = nanos[depth:]
				}
				return nil
			},
		}, nil
	})}
}

const (
	// variedLive is the live set of the scenario varied: about 4.6 GB.
	variedLive = 500
	// The sizes of the scenario varied.
	variedLeastBytes = 64 << 10
	variedMostBytes  = 64 << 20
)

func variedGroups(o Options) []group {
	row := Row{Count: variedLive, Goroutines: 1}
	return []group{o.versus(row, func(open opener) (*load, error) {
		h, err := open(1, false)
		if err != nil {
			return nil, err
		}
		w := h.workers[0]
		seq := newSequence(variedLive, logUniform(variedLeastBytes, variedMostBytes))
		if err := w.fill(seq, variedLive); err != nil {
			return nil, err
		}
		return &load{
			run: func(count int) (repetition, error) {
				return o.alone(count, func() error { return w.churn(seq, count) })
			},
			sample: func(nanos []float64) error {
				return timed(nanos, func() error { return w.churn(seq, 1) })
			},
			close: func() error { return drainAndClose(w, h) },
		}, nil
	})}
}

func drainAndClose(w worker, h *heap) error { return errors.Join(w.drain(), h.close()) }
