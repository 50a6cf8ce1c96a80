package fence

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// counting allows all records, and counts them.
type counting struct{ begun, ended atomic.Int64 }

func (c *counting) Enter() error { c.begun.Add(1); return nil }
func (*counting) Check() error   { return nil }
func (c *counting) Leave()       { c.ended.Add(1) }

// A timeline among goroutines that make all of its calls, with and without a free cell, is idle afterwards, has ended each record that it
// began, and has given up each mark.
func TestAllCallsAmongGoroutines(t *testing.T) {
	t.Parallel()
	const goroutineCount, rounds = 4, 40
	b := newBench(t)
	access := new(counting)
	l := NewTimeline(b.Events, b.stream, false, access)
	other, err := b.sim.StreamCreate()
	require.NoError(t, err)
	for _, passes := range []bool{false, true} { // else all cells are soon in use
		require.NoError(t, b.sim.Launch(b.stream, time.Second))
		if passes {
			b.advance(time.Hour)
		}
		var all sync.WaitGroup
		var ready atomic.Int64
		for g := range goroutineCount {
			all.Go(func() {
				for ready.Add(1); ready.Load() < goroutineCount; {
					runtime.Gosched()
				}
				for round := range rounds {
					var err error
					switch (g + round) % 4 {
					default:
						_, err = l.Order(other)
					case 1:
						_, err = l.Take(l.Next())
					case 2:
						_, err = l.Look()
					case 3:
						if l.TakeNow(); passes {
							_, err = l.Wait()
						}
					}
					assert.NoError(t, err)
				}
			})
		}
		all.Wait()
		assert.True(t, l.Idle())
		assert.False(t, l.Busy())
		assert.Equal(t, access.begun.Load(), access.ended.Load())
		assert.EqualValues(t, access.begun.Load(), b.faults.Calls("cuEventRecord"))
		b.advance(time.Hour)
		b.look(l)
		assert.EqualValues(t, b.faults.Calls("cuEventCreate"), len(b.spare))
	}
	l.Shut()
	l.Finish()
	require.NoError(t, b.Close())
	assert.Equal(t, b.faults.Calls("cuEventCreate"), b.faults.Calls("cuEventDestroy"))
}

// A wait for another goroutine's wait ends with it, and not before.
func TestAWaitAmongGoroutinesEndsWithTheFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.timeline()
	b.take(l, l.Next())
	var over <-chan struct{}
	b.faults.SetBefore(func(function string) {
		if function == "cuEventSynchronize" {
			var err error
			over, err = l.Wait()
			assert.NoError(t, err)
			select {
			case <-over:
				assert.Fail(t, "the first wait has not ended")
			default:
			}
		}
	})
	_, err := l.Wait()
	require.NoError(t, err)
	require.NotNil(t, over)
	<-over
}
