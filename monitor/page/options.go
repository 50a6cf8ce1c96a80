package page

import "time"

// The default values of Options, and the shortest interval. Not shorter: a sample enters the turn of every stream.
const (
	DefaultInterval     = time.Second
	MinInterval         = 50 * time.Millisecond
	DefaultHistoryCount = 600
)

// Options configure a Page. The zero Options are useful.
type Options struct {
	// Interval is the time between two samples: 0 is DefaultInterval, and less than MinInterval is MinInterval.
	Interval time.Duration
	// HistoryCount is how many samples the time line keeps; 0 or less: DefaultHistoryCount.
	HistoryCount int
}

func (o Options) complete() Options {
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	o.Interval = max(o.Interval, MinInterval)
	if o.HistoryCount <= 0 {
		o.HistoryCount = DefaultHistoryCount
	}
	return o
}
