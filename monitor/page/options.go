package page

import (
	"context"
	"time"

	"github.com/go-vram/vram"
)

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
	// Calls reads the call stacks of a device with the most live bytes, the most first: a heap profile for instance. It is called when a viewer
	// asks, by one goroutine at a time, and once in an interval at most. Nil: the page has no such section.
	Calls func(ctx context.Context, dev *vram.Device) ([]Call, error)
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

// Call is a call stack and the live buffers that were allocated there.
type Call struct {
	Frames      []Frame `json:"frames"` // the innermost first
	LiveBytes   int64   `json:"liveBytes"`
	BufferCount int64   `json:"bufferCount"`
}

// Frame is a place in a program.
type Frame struct {
	Function string `json:"function"`
	File     string `json:"file"`
	Line     int    `json:"line"`
}

// Calls is the answer of calls.json.
type Calls struct {
	Calls []Call `json:"calls"`
}
