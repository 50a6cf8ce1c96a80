package streams

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/actors"
)

// callKinds are the ways to enter, with the way to leave. A call of the last kind belongs to an announced capture.
func callKinds(a *announcement) []struct{ enter, leave func() bool } {
	left := func(leave func()) func() bool { return func() bool { leave(); return true } }
	quickly := func() bool {
		if a.enterQuick() {
			return true
		}
		a.leaveQuick()
		return false
	}
	return []struct{ enter, leave func() bool }{
		{a.enter, left(a.leave)},
		{quickly, left(a.leaveQuick)},
		{a.join, left(a.leave)},
	}
}

// Calls enter while no capture is announced, and calls of the capture while one is. One that was refused leaves nothing.
func TestCallsEnterBetweenCaptures(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var a announcement
		announced, inside := false, make([]int, 3)
		kinds := callKinds(&a)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch k := rapid.IntRange(0, 4).Draw(t, "what"); {
			case k == 3:
				require.Equal(t, !announced, a.announce(), "one at a time")
				announced = true
			case k == 4:
				a.withdraw()
				announced = false
			case rapid.Bool().Draw(t, "enters"):
				entered := kinds[k].enter()
				require.Equal(t, announced == (k == 2), entered, "kind %d", k)
				if entered {
					inside[k]++
				}
			case inside[k] > 0:
				kinds[k].leave()
				inside[k]--
			}
			require.Equal(t, announced, a.announced())
			require.Equal(t, inside[0]+inside[1]+inside[2] > 0, a.busy())
			if inside[1] == 0 {
				a.awaitQuick(nil) // returns
			}
		}
	})
}

// A capture begins once the last call of any kind has left, and gives up on one that does not leave in time.
func TestACaptureBeginsOnceTheLastCallHasLeft(t *testing.T) {
	t.Parallel()
	for kind := range 2 {
		for _, leaves := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				var a announcement
				calls := callKinds(&a)
				require.True(t, calls[kind].enter())
				require.True(t, calls[kind].enter())
				require.True(t, a.announce())
				begins := make(chan bool, 1)
				start := time.Now()
				go func() { begins <- a.await(nil) }()
				synctest.Wait()
				calls[kind].leave()
				require.False(t, calls[kind].enter(), "it is announced")
				synctest.Wait()
				assert.Empty(t, begins, "one call is left")
				if leaves {
					calls[kind].leave()
				}
				assert.Equal(t, leaves, <-begins)
				if leaves {
					assert.Zero(t, time.Since(start))
				} else {
					assert.Equal(t, captureTimeout, time.Since(start))
					calls[kind].leave()
				}
				assert.True(t, a.await(nil), "none is left")
			})
		}
	}
}

// The end of the time of a wait that is over ends no later one.
func TestALateTimerEndsNoOtherWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a announcement
		over := &quietening{over: make(chan struct{})}
		require.False(t, a.join())
		a.word.Add(1) // a call has entered
		require.True(t, a.announce())
		begins := make(chan bool, 1)
		go func() { begins <- a.await(nil) }()
		synctest.Wait()
		a.expire(over)
		synctest.Wait()
		assert.Empty(t, begins)
		a.leave()
		assert.True(t, <-begins)
	})
}

// leavingHost is a host on which the last call leaves at one place, and nobody else wakes who waits.
type leavingHost struct {
	actors.Host
	place string
	leave func() bool
	waits []<-chan struct{} // that were not closed
}

func (h *leavingHost) Reach(place string) {
	if h.leave != nil && place == h.place {
		h.leave()
		h.leave = nil
	}
}

func (h *leavingHost) Wait(closed ...<-chan struct{}) {
	for _, c := range closed {
		select {
		case <-c:
		default:
			h.waits = append(h.waits, c)
		}
	}
}

// A capture is woken by a call that leaves after the capture has seen it, and before it waits.
func TestACallThatLeavesBeforeTheCaptureWaits(t *testing.T) {
	t.Parallel()
	for kind := range 2 {
		var a announcement
		calls := callKinds(&a)
		require.True(t, calls[kind].enter())
		require.True(t, a.announce())
		host := &leavingHost{place: beforeWaiting, leave: calls[kind].leave}
		assert.True(t, a.await(host))
		assert.Nil(t, host.leave, "the place was reached")
		assert.Empty(t, host.waits, "nobody would end the wait")
	}
}
