package bench

import "time"

// pairSizes returns the sizes of the scenario pair: a small class, a page, and up to a large layer.
func pairSizes() []int64 {
	return []int64{512, 4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 128 << 20}
}

// smallBytes is the size where only the way to a cached block counts.
const smallBytes = 4 << 10

func pairGroups(o Options) []group {
	var groups []group
	for _, sizeBytes := range pairSizes() {
		groups = append(groups, o.versus(Row{SizeBytes: sizeBytes, Count: 1, Goroutines: 1}, func(open opener) (*load, error) {
			return o.pairLoad(open, sizeBytes, 1, false)
		}))
	}
	return groups
}

func ownStreamsGroups(o Options) []group { return o.goroutineGroups(false) }

func oneStreamGroups(o Options) []group { return o.goroutineGroups(true) }

func (o *Options) goroutineGroups(shared bool) []group {
	var groups []group
	for _, goroutines := range []int{1, 2, 4, 8, 16} {
		groups = append(groups, o.versus(Row{SizeBytes: smallBytes, Count: 1, Goroutines: goroutines}, func(open opener) (*load, error) {
			return o.pairLoad(open, smallBytes, goroutines, shared)
		}))
	}
	return groups
}

// versus returns a group of the implementations that are asked for.
func (o *Options) versus(row Row, prepare func(opener) (*load, error)) group {
	var g group
	add := func(impl string, open opener) {
		if o.wants(impl) {
			row.Impl = impl
			g = append(g, contender{row: row, prepare: func() (*load, error) { return prepare(open) }})
		}
	}
	add(ImplVRAM, openVRAM(o.NewDriver, o.Config))
	add(ImplMutex, openMutex)
	return g
}

// pairLoad is pairs of one size on some goroutines.
func (o *Options) pairLoad(open opener, sizeBytes int64, goroutines int, shared bool) (*load, error) {
	h, err := open(goroutines, shared)
	if err != nil {
		return nil, err
	}
	return &load{
		close: h.close,
		run: func(count int) (repetition, error) {
			each := max(1, count/goroutines)
			r, err := o.together(goroutines, func(member int) error { return h.workers[member].pairs(sizeBytes, each) })
			r.pairs = each * goroutines
			return r, err
		},
		sample: func(nanos []float64) error {
			each := len(nanos) / goroutines
			_, err := o.together(goroutines, func(member int) error {
				last := (member + 1) * each
				if member == goroutines-1 {
					last = len(nanos)
				}
				return timed(nanos[member*each:last], func() error { return h.workers[member].pairs(sizeBytes, 1) })
			})
			return err
		},
	}, nil
}

// timed takes the time of each call.
func timed(nanos []float64, pair func() error) error {
	for i := range nanos {
		start := time.Now()
		err := pair()
		nanos[i] = float64(time.Since(start))
		if err != nil {
			return err
		}
	}
	return nil
}
