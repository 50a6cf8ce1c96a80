//go:build linux && (amd64 || arm64)

package dynamic

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newGate() *gate {
	g := &gate{}
	g.init()
	return g
}

// Every frame is out once at most, also the extra ones, and all of a gate's own come back.
func TestFramesBelongToOneCallEach(t *testing.T) {
	g := newGate()
	const own, extra = shardCount * shardFrames, 5
	seen := map[*frame]bool{}
	for i := range own + extra {
		f := g.enter()
		require.NotNil(t, f)
		assert.False(t, seen[f], "frame %d is out twice", i)
		seen[f] = true
		assert.Equal(t, i >= own, f.home == nil, "frame %d", i)
	}
	assert.EqualValues(t, extra, g.extra.Load())
	for f := range seen {
		g.leave(f)
	}
	assert.True(t, func() bool { g.close(); return g.idle() }())
	assert.Nil(t, g.enter(), "closed")
}

// A frame that comes back brings nothing of its call with it: no failure, and no memory that the collector would keep.
func TestAFrameForgetsItsCall(t *testing.T) {
	g := newGate()
	var all []*frame
	for range shardCount * shardFrames {
		f := g.enter()
		require.NotNil(t, f)
		f.failing = true
		f.hold(unsafe.Pointer(new(int)))
		all = append(all, f)
	}
	for _, f := range all {
		g.leave(f)
	}
	for range all {
		f := g.enter()
		require.NotNil(t, f.home)
		assert.False(t, f.failing)
		assert.Nil(t, f.keep)
	}
}

// Frames are used by goroutines at the same time without meeting, until one of them closes the gate: close returns when no call
// is in progress.
func TestCloseWaitsForCallsUnderWay(t *testing.T) {
	g := newGate()
	const goroutines = 400 // more than there are frames
	var (
		all     sync.WaitGroup
		running atomic.Int64
		turns   atomic.Int64
		busy    = make(chan struct{})
		once    sync.Once
	)
	for range goroutines {
		all.Go(func() {
			for {
				f := g.enter()
				if f == nil {
					return
				}
				running.Add(1)
				f.out[0]++ // a frame in two calls is a race
				if turns.Add(1) == 1000 {
					once.Do(func() { close(busy) })
				}
				running.Add(-1)
				g.leave(f)
			}
		})
	}
	<-busy
	g.close()
	assert.Zero(t, running.Load(), "calls in progress after closing")
	all.Wait()
	assert.True(t, g.idle())
}

// Calls that find all frames in use meet a close: none begins after it has returned.
func TestExtraFramesMeetAClose(t *testing.T) {
	for range 900 {
		g := newGate()
		for i := range g.shards {
			g.shards[i].free.Store(0)
		}
		var closed atomic.Bool
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				for f := g.enter(); f != nil; f = g.enter() {
					assert.False(t, closed.Load())
					g.leave(f)
				}
			})
		}
		for i := range g.shards {
			g.shards[i].free.Store(allFree)
		}
		g.close()
		closed.Store(true)
		all.Wait()
	}
}

func TestCloseWaitsForABlockedCall(t *testing.T) {
	for name, count := range map[string]int{"a frame": 1, "an extra frame comes last": shardCount*shardFrames + 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate()
				var out []*frame
				for range count {
					out = append(out, g.enter())
				}
				closed := false
				go func() { g.close(); closed = true }()
				for _, f := range out {
					synctest.Wait()
					require.False(t, closed, "closed with calls in progress")
					require.Nil(t, g.enter(), "a call after the closing began")
					g.leave(f)
				}
				synctest.Wait()
				require.True(t, closed)
			})
		})
	}
}

// A call that finds all frames in use while the device closes does not enter: closing begins with the flag, and shards close one
// after the other, so that a full shard may look open. However far the closing is, a call that enters is one that Close waits for.
func TestNoCallEntersAfterClosingBegan(t *testing.T) {
	for shut := range shardCount + 1 { // shards that the closing has reached
		g := newGate()
		var out []*frame
		for range shardCount * shardFrames {
			out = append(out, g.enter())
		}
		g.closed.Store(true)
		for i := range shut {
			g.shards[i].free.Or(closedBit)
		}
		require.Nil(t, g.enter(), "%d shards are closed", shut)
		require.Zero(t, g.extra.Load())
		require.False(t, g.idle())
		for _, f := range out {
			g.leave(f)
		}
		g.close()
		require.True(t, g.idle())
	}
}

// A queued function has a place of its own until it is taken out, in as many blocks as are needed.
func TestHostCallsHoldEachFunctionOnce(t *testing.T) {
	h := newHostCalls()
	const count = 3*hostCallCount + 1
	var calls []*hostCall
	seen := map[*hostCall]bool{}
	ran := make([]int, count)
	for i := range count {
		c := h.take(func() { ran[i]++ })
		require.False(t, seen[c])
		seen[c] = true
		calls = append(calls, c)
	}
	for _, c := range calls {
		runHostCall(c)
	}
	for i := range ran {
		require.Equal(t, 1, ran[i])
	}
	blocks := 0
	for b := h; b != nil; b = b.next.Load() {
		blocks++
		assert.Equal(t, ^uint64(0), b.free.Load(), "every place is free again")
	}
	assert.Equal(t, 4, blocks)
	h.take(func() {}).give()
	assert.Nil(t, calls[0].f, "a function that has run is kept by nobody")
}
