package meter

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/internal/call"
	"github.com/go-vram/vram/internal/together"
)

// clock is modelled time that a test sets.
type clock struct{ now time.Duration }

func (c *clock) ModelledTime() time.Duration { return c.now }

// All time with a call in progress is counted for exactly one call, also the time before the second of two overlapping calls
// began. Time between calls is not counted.
func TestTimeOfOverlappingCallsIsSomebodys(t *testing.T) {
	now := &clock{now: 100}
	c := &counter{modelled: now}
	spend := func(d time.Duration) { now.now += d }
	begin := func(f call.Call) int64 {
		began, err := c.Before(f)
		require.NoError(t, err)
		return began
	}
	sum := func() (nanos int64) {
		for i := range c.figures {
			nanos += c.figures[i].nanos.Load()
		}
		return nanos
	}
	one := begin(call.MemAlloc)
	spend(10)
	other := begin(call.MemFree)
	spend(5)
	c.After(call.MemFree, other, false)
	spend(3)
	c.After(call.MemAlloc, one, false)
	assert.EqualValues(t, 18, sum())
	spend(1000) // past the meter
	one = begin(call.MemAlloc)
	spend(2)
	c.After(call.MemAlloc, one, false)
	assert.EqualValues(t, 20, sum())
	assert.Zero(t, c.underWay.Load())
}

// A call that takes no time counts, and none is attributed to it.
func TestCallsThatTakeNoTime(t *testing.T) {
	now := &clock{now: 100}
	c := &counter{modelled: now}
	assert.EqualValues(t, 100, c.attribute(100))
	assert.Zero(t, c.attribute(100))
	assert.Zero(t, c.attribute(99))
	assert.EqualValues(t, 1, c.attribute(101))
	for range 2 {
		began, err := c.Before(call.MemAlloc)
		require.NoError(t, err)
		c.After(call.MemAlloc, began, true)
	}
	f := &c.figures[call.MemAlloc]
	assert.Equal(t, [3]int64{2, 2, 0}, [3]int64{int64(f.calls.Load()), int64(f.failures.Load()), f.nanos.Load()})
}

// Time is attributed once, also among calls that end at the same time.
func TestManyGoroutinesAttributeTime(t *testing.T) {
	c := &counter{modelled: &clock{}}
	const goroutines, end = 4, 500
	var sum atomic.Int64
	var all sync.WaitGroup
	begin := make(chan struct{})
	for range goroutines {
		all.Go(func() {
			<-begin
			for at := range int64(end) {
				sum.Add(c.attribute(at + 1))
			}
		})
	}
	close(begin)
	all.Wait()
	assert.EqualValues(t, end, sum.Load())
}

// Calls that take no time and begin together count none, however much others spent before.
func TestManyGoroutinesBeginCalls(t *testing.T) {
	now := &clock{}
	c := &counter{modelled: now}
	for range 2000 {
		now.now += time.Second // spent by others
		together.Run(2, func(int) {
			began, err := c.Before(call.MemAlloc)
			assert.NoError(t, err)
			c.After(call.MemAlloc, began, false)
		})
		require.Zero(t, c.figures[call.MemAlloc].nanos.Load())
	}
}

// The JSON of a function's figures has its time in seconds.
func TestFiguresAsJSON(t *testing.T) {
	text, err := json.Marshal(CallStats{Func: "cuMemAlloc", Calls: 3, Failures: 1, Time: 1500 * time.Millisecond})
	require.NoError(t, err)
	assert.JSONEq(t, `{"func": "cuMemAlloc", "calls": 3, "failures": 1, "time_seconds": 1.5}`, string(text))
}

// asking is a modelled clock that lets another call begin when it is read.
type asking struct {
	now  time.Duration
	then func()
}

func (a *asking) ModelledTime() time.Duration {
	if then := a.then; then != nil {
		a.then = nil
		then()
	}
	return a.now
}

// The time of a call is its own, also where another begins as it ends.
func TestACallThatBeginsAsAnotherEnds(t *testing.T) {
	clock := &asking{}
	c := &counter{modelled: clock}
	began, err := c.Before(call.EventCreate)
	require.NoError(t, err)
	clock.now = 7
	var other int64
	clock.then = func() { other, err = c.Before(call.MemCreate) }
	c.After(call.EventCreate, began, false)
	require.NoError(t, err)
	clock.now = 10
	c.After(call.MemCreate, other, false)
	assert.EqualValues(t, 7, c.figures[call.EventCreate].nanos.Load())
	assert.EqualValues(t, 3, c.figures[call.MemCreate].nanos.Load())
}
