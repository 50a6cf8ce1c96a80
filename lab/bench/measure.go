package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// load is a prepared piece of work that can be repeated.
type load struct {
	// run does about count pairs. It returns their number and their times.
	run func(count int) (repetition, error)
	// sample times pairs one by one, as many as there is room, and leaves the timer's cost in.
	sample func(nanos []float64) error
	// samplePairs is how many pairs a time of sample stands for; 0 is one.
	samplePairs int
	// counters reads the allocator's own; nil where nothing of it is shown.
	counters func() counters
	close    func() error
}

// repetition has the times of one run of a load.
type repetition struct {
	pairs   int
	elapsed time.Duration
	mallocs uint64
}

// counters are sums since the load was prepared.
type counters struct {
	nodeVisits  uint64
	driverTime  time.Duration
	driverCalls uint64
}

// contender is one implementation in one scenario.
type contender struct {
	row     Row // names the entrant
	prepare func() (*load, error)
}

// group lists the contenders that take turns.
type group []contender

// meter measures groups and collects the calibration on the way.
type meter struct {
	options     Options
	timerNanos  float64
	calibration []float64 // ns of each look
}

func newMeter(o Options) *meter { return &meter{options: o, timerNanos: timerCost()} }

// entrant is a contender while it is measured.
type entrant struct {
	row    Row
	load   *load
	count  int // pairs of a repetition
	nanos  []float64
	total  repetition
	before counters
}

// measure prepares all contenders of a group, lets them take turns and closes them.
func (m *meter) measure(ctx context.Context, g group) (rows []Row, err error) {
	var entrants []*entrant
	defer func() {
		for _, e := range entrants {
			err = errors.Join(err, e.load.close())
		}
	}()
	for _, c := range g {
		l, err := c.prepare()
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", c.row.Scenario, c.row.Impl, err)
		}
		e := &entrant{row: c.row, load: l}
		entrants = append(entrants, e)
		if err := m.settle(e); err != nil {
			return nil, fmt.Errorf("%s, %s: %w", c.row.Scenario, c.row.Impl, err)
		}
	}
	for range m.options.Repetitions {
		for _, e := range entrants {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			m.calibration = append(m.calibration, calibrate(calibrationPairs))
			*m.options.measuring = true
			err := e.repeat(m.options.RepetitionTime)
			*m.options.measuring = false
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", e.row.Scenario, e.row.Impl, err)
			}
		}
	}
	for _, e := range entrants {
		row, err := m.finish(e)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", e.row.Scenario, e.row.Impl, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// settleRuns is how often a run must have taken long before that is believed.
const settleRuns = 4

// settle runs the load until a run takes a noticeable part of a repetition: that warms it up and gives the number of pairs of
// a repetition. The fastest of several runs counts: the first may include deferred work, such as the frees of a million holes,
// and the machine may have been busy in any.
func (m *meter) settle(e *entrant) error {
	// Not fewer in the usual time: a run that a busy machine interrupts would pass for slow pairs. Not more: pairs of ten
	// microseconds should settle in a second.
	const usualPairs = 4096
	first := max(1, int(usualPairs*m.options.RepetitionTime/DefaultRepetitionTime))
	for count := min(usualPairs, first); ; count *= 4 {
		fastest, err := fastestRun(e.load, count, m.options.RepetitionTime/8)
		if err != nil {
			return err
		}
		if fastest.elapsed >= m.options.RepetitionTime/8 || fastest.pairs < count {
			perPair := float64(fastest.elapsed.Nanoseconds()) / float64(fastest.pairs)
			e.count = max(1, int(float64(m.options.RepetitionTime.Nanoseconds())/max(perPair, 1)))
			break
		}
	}
	if e.load.counters != nil {
		e.before = e.load.counters()
	}
	return nil
}

// fastestRun repeats a run until one takes less than enough, at most settleRuns times.
func fastestRun(l *load, count int, enough time.Duration) (fastest repetition, err error) {
	for i := range settleRuns {
		r, err := l.run(count)
		if err != nil {
			return fastest, err
		}
		if i == 0 || r.elapsed < fastest.elapsed {
			fastest = r
		}
		if fastest.elapsed < enough {
			break
		}
	}
	return fastest, nil
}

// repeat measures once. A repetition that was much too short makes the next one longer.
func (e *entrant) repeat(wanted time.Duration) error {
	r, err := e.load.run(e.count)
	if err != nil {
		return err
	}
	if r.elapsed < wanted/2 && r.pairs >= e.count {
		e.count *= 2
	}
	e.nanos = append(e.nanos, float64(r.elapsed.Nanoseconds())/float64(r.pairs))
	e.total.pairs += r.pairs
	e.total.mallocs += r.mallocs
	return nil
}

// finish turns the measurements into a row, after the latency pass.
func (m *meter) finish(e *entrant) (Row, error) {
	row := e.row
	row.NsPerOp = quantile(e.nanos, 0.5)
	row.AllocsPerOp = float64(e.total.mallocs) / float64(e.total.pairs)
	if e.load.counters != nil {
		now := e.load.counters()
		for to, sum := range map[*float64]float64{
			row.NodeVisitsPerOp:  float64(now.nodeVisits - e.before.nodeVisits),
			row.DriverNsPerOp:    float64((now.driverTime - e.before.driverTime).Nanoseconds()),
			row.DriverCallsPerOp: float64(now.driverCalls - e.before.driverCalls),
		} {
			if to != nil {
				*to = sum / float64(e.total.pairs)
			}
		}
	}
	nanos := make([]float64, m.options.Samples)
	if err := e.load.sample(nanos); err != nil {
		return Row{}, err
	}
	for i := range nanos {
		nanos[i] = max(0, nanos[i]-m.timerNanos) / float64(max(1, e.load.samplePairs))
	}
	row.P50Nanos, row.P99Nanos, row.P999Nanos = quantile(nanos, 0.5), quantile(nanos, 0.99), quantile(nanos, 0.999)
	return row, nil
}

// quantile sorts values and picks; the middle of an even count is the mean of two.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	if q == 0.5 {
		return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
	}
	return values[min(len(values)-1, int(q*float64(len(values))))]
}

// timerCost returns the time between two successive readings of the clock.
func timerCost() float64 {
	const readings = 20_001
	nanos := make([]float64, readings)
	for i := range nanos {
		start := time.Now()
		nanos[i] = float64(time.Since(start))
	}
	return quantile(nanos, 0.5)
}

// mallocCount returns how many objects were ever allocated on the heap.
func mallocCount() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
