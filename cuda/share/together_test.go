//go:build linux && (amd64 || arm64)

package share

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// Calls of all kinds meet each other on linked memory and its peer: each fence is taken once, and the figures equal the counts of the callers.
func TestCallsMeetAmongGoroutines(t *testing.T) {
	const perSide, rounds = 2, 60
	for name, without := range map[string]cudadrv.Capability{"by event": 0, "by host": cudadrv.EventSharing} {
		t.Run(name, func(t *testing.T) {
			driver := newSharing(sim.Config{Bytes: true, Without: without})
			a, b := newSide(t, driver), newSide(t, driver)
			mine, theirs := linkSides(t, a, b)
			publish, await := mine.Ways()
			var all sync.WaitGroup
			var opened []*cuda.Context
			for _, one := range []struct {
				*side
				m *Memory
			}{{a, mine}, {b, theirs}} {
				for range perSide {
					c := one.context()
					opened = append(opened, c)
					all.Go(func() {
						for range rounds {
							assert.NoError(t, one.m.Publish(c))
							assert.NoError(t, one.m.CopyFrom(c, 0, cuda.Part(one.x, 0, 512)))
							assert.NoError(t, one.m.Await(t.Context(), c))
							assert.NoError(t, one.m.CopyTo(c, 0, cuda.Part(one.x, 0, 512)))
							assert.NotZero(t, one.m.Ptr())
							p, w := one.m.Ways()
							assert.Equal(t, [2]Way{publish, await}, [2]Way{p, w})
							assert.LessOrEqual(t, one.m.Stats().Published, uint64(perSide*rounds))
						}
					})
				}
			}
			all.Wait()
			want := Stats{Published: perSide * rounds, Awaited: perSide * rounds}
			if without != 0 {
				want.Synchronized = perSide * rounds
			}
			for _, m := range []*Memory{mine, theirs} {
				assert.Equal(t, want, m.Stats())
				l := m.link.Load()
				assert.EqualValues(t, perSide*rounds, l.sent)
				assert.EqualValues(t, perSide*rounds, l.awaited)
				assert.EqualValues(t, perSide*rounds, l.received.Load())
			}
			for _, c := range opened {
				require.NoError(t, c.Close())
			}
			require.NoError(t, theirs.Close())
			require.NoError(t, mine.Close())
		})
	}
}

// Each of several calls of Close at once, of both sides, succeeds, and returns when nothing is left.
func TestClosesMeetAmongGoroutines(t *testing.T) {
	a, b := newSlowPair(t)
	for range 20 {
		mine, theirs := linkSides(t, a, b)
		require.NoError(t, mine.Publish(a.c))
		require.NoError(t, theirs.Await(t.Context(), b.c))
		var all sync.WaitGroup
		for _, m := range []*Memory{mine, theirs} {
			for range 2 {
				all.Go(func() {
					assert.NoError(t, m.Close())
					assert.Zero(t, m.Ptr())
					assert.Empty(t, m.marked)
				})
			}
			all.Go(func() { // as the one that watches for streams without a peer
				for m.strand() {
					runtime.Gosched()
				}
			})
		}
		all.Wait()
		require.Zero(t, a.dev.Stats().SharedBytes)
		require.Zero(t, b.dev.Stats().SharedBytes)
	}
}

// Close waits for each call on the memory that is in a driver call.
func TestCloseMeetsCallsInTheDriver(t *testing.T) {
	for name, use := range map[string]func(mine, theirs *Memory, peer, c *cuda.Context, x cuda.Buffer) error{
		"CopyFrom": func(mine, _ *Memory, _, c *cuda.Context, x cuda.Buffer) error {
			return mine.CopyFrom(c, 0, cuda.Whole(x))
		},
		"CopyTo": func(mine, _ *Memory, _, c *cuda.Context, x cuda.Buffer) error {
			return mine.CopyTo(c, 0, cuda.Whole(x))
		},
		"Publish": func(mine, _ *Memory, _, c *cuda.Context, _ cuda.Buffer) error { return mine.Publish(c) },
		"Await":   func(mine, _ *Memory, _, c *cuda.Context, _ cuda.Buffer) error { return mine.Await(background(), c) },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newSlowPair(t)
			mine, theirs := linkSides(t, a, b)
			require.NoError(t, theirs.Publish(b.c))
			var once sync.Once
			var closed <-chan error
			a.faults.SetBefore(func(string) {
				once.Do(func() {
					closed = inBackground(mine.Close)
					for !isClosed(mine.quit) && mine.use.TryRLock() { // until Close waits for the call
						mine.use.RUnlock()
						runtime.Gosched()
					}
					for range 50 {
						runtime.Gosched()
					}
					assert.False(t, isClosed(mine.quit), "Close did not wait")
				})
			})
			require.NoError(t, use(mine, theirs, b.c, a.c, a.x))
			a.faults.SetBefore(nil)
			require.NotNil(t, closed)
			require.NoError(t, <-closed)
			require.NoError(t, theirs.Close())
		})
	}
}

// A fence whose Publish waits for its work on the host is the peer's, though the publisher closes at the same time.
func TestAFenceMeetsAClose(t *testing.T) {
	driver := newSharing(sim.Config{Bytes: true, Without: cudadrv.EventSharing})
	a, b := newSide(t, driver), newSide(t, driver)
	mine, theirs := linkSides(t, a, b)
	var waiting atomic.Bool
	var closed <-chan error
	a.faults.SetBefore(func(function string) {
		if function != "cuStreamSynchronize" || waiting.Swap(true) {
			return
		}
		closed = inBackground(mine.Close)
		<-mine.settled // Close has a goodbye left
		for range 1000 {
			if theirs.link.Load().over() != nil {
				break
			}
			runtime.Gosched()
		}
	})
	require.NoError(t, mine.Publish(a.c))
	a.faults.SetBefore(nil)
	require.NotNil(t, closed)
	require.NoError(t, <-closed)
	require.NoError(t, theirs.Await(t.Context(), b.c))
	require.ErrorIs(t, theirs.Await(t.Context(), b.c), ErrPeerClosed)
	require.NoError(t, theirs.Close())
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
