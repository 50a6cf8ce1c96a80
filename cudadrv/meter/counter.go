package meter

import (
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// counter is the interceptor's hook. The mark of a call is the clock when it began.
type counter struct {
	modelled cudadrv.Modelled // nil: the wall clock
	epoch    time.Time        // the wall clock's zero

	// attributed is the modelled time up to which every nanosecond was assigned to a call, or was spent by others while this
	// meter had no call in progress. It only grows.
	attributed atomic.Int64
	underWay   atomic.Int64 // calls between Before and After
	figures    [call.Count]figures
}

// figures are the counts of one function. Functions share cache lines: a call costs a hundred times more than that can.
type figures struct {
	calls    atomic.Uint64
	failures atomic.Uint64
	nanos    atomic.Int64
}

// clock returns the time that calls are measured in.
func (c *counter) clock() int64 {
	if c.modelled != nil {
		return int64(c.modelled.ModelledTime())
	}
	return int64(time.Since(c.epoch))
}

// Before notes the begin of the call. Time of others before the first of several overlapping calls is not counted: it is attributed before the
// call counts as in progress, or a call that overlaps could end first, and count it. The clock is read before the look at others, so that no
// part of a later call is skipped.
func (c *counter) Before(call.Call) (began int64, err error) {
	began = c.clock()
	if c.modelled != nil {
		if c.underWay.Load() == 0 {
			c.attribute(began)
		}
		c.underWay.Add(1)
	}
	return began, nil
}

// After counts the call. Modelled time is attributed before the call counts as over.
func (c *counter) After(function call.Call, began int64, failed bool) {
	f := &c.figures[function]
	f.calls.Add(1)
	if failed {
		f.failures.Add(1)
	}
	if c.modelled == nil {
		f.nanos.Add(c.clock() - began)
		return
	}
	f.nanos.Add(c.attribute(c.clock()))
	c.underWay.Add(-1)
}

// attribute moves the attributed time up to t and says by how much.
func (c *counter) attribute(t int64) int64 {
	for {
		attributed := c.attributed.Load()
		if t <= attributed {
			return 0
		}
		if c.attributed.CompareAndSwap(attributed, t) {
			return t - attributed
		}
	}
}
