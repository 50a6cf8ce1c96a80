//go:build linux && (amd64 || arm64)

package share

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// Close waits for each context that the memory was used with, whatever the call was: work that was submitted after the call may
// use the address.
func TestCloseWaitsForEveryUse(t *testing.T) {
	for name, use := range map[string]func(mine, theirs *Memory, peer, c *cuda.Context, x cuda.Buffer) error{
		"CopyFrom": func(mine, _ *Memory, _, c *cuda.Context, x cuda.Buffer) error {
			return mine.CopyFrom(c, 0, cuda.Part(x, 0, 1))
		},
		"CopyTo": func(mine, _ *Memory, _, c *cuda.Context, x cuda.Buffer) error {
			return mine.CopyTo(c, 0, cuda.Part(x, 0, 1))
		},
		"Publish": func(mine, _ *Memory, _, c *cuda.Context, _ cuda.Buffer) error { return mine.Publish(c) },
		"Await": func(mine, theirs *Memory, peer, c *cuda.Context, _ cuda.Buffer) error {
			return errors.Join(theirs.Publish(peer), mine.Await(background(), c))
		},
		"Await on the host": func(mine, theirs *Memory, peer, c *cuda.Context, _ cuda.Buffer) error {
			mine.link.Load().awaitsEvents, theirs.link.Load().publishesEvents = false, false
			return errors.Join(theirs.Publish(peer), mine.Await(background(), c))
		},
		"Await after the peer's Close": func(mine, theirs *Memory, peer, c *cuda.Context, _ cuda.Buffer) error {
			return errors.Join(theirs.Publish(peer), theirs.Close(), mine.Await(background(), c))
		},
	} {
		for _, exporter := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				a, b := newSlowPair(t)
				mine, theirs := linkSides(t, a, b)
				if !exporter {
					mine, theirs, a, b = theirs, mine, b, a
				}
				c := a.context() // no other call of the memory has it
				defer func() { assert.NoError(t, c.Close()) }()
				x, err := c.Alloc(bytes)
				require.NoError(t, err)
				for range 2 { // the memory has other users, which have finished
					idle := a.context()
					require.NoError(t, mine.CopyFrom(idle, 0, cuda.Part(a.x, 0, 1)))
					require.NoError(t, idle.Synchronize(t.Context()))
					defer func() { assert.NoError(t, idle.Close()) }()
				}
				require.NoError(t, use(mine, theirs, b.c, c, x))
				for range 100 {
					require.NoError(t, c.Fill8(cuda.Whole(x), 1))
				}
				e, err := c.Record()
				require.NoError(t, err)
				passed, err := e.Done()
				require.NoError(t, err)
				require.False(t, passed, "the work takes no time")
				require.NoError(t, mine.Close())
				passed, err = e.Done()
				require.NoError(t, err)
				assert.True(t, passed, "Close did not wait")
				require.NoError(t, errors.Join(e.Close(), x.Free()))
			})
		}
	}
}

// A fence that came before the end of the connection is taken, also where both are seen at once.
func TestFencesBeforeTheEndCount(t *testing.T) {
	for name, one := range map[string]struct {
		awaited, received uint64 // received after the call has begun to wait
		notified, ended   bool
		err               error
		closed            bool // by this process, as well
	}{
		"a Close, and the end":               {0, 0, true, true, ErrClosed, true},
		"a fence":                            {0, 1, true, false, nil, false},
		"a fence, and the end":               {0, 1, true, true, nil, false},
		"a fence, and the end is seen first": {0, 1, false, true, nil, false},
		"several fences, and the end":        {3, 7, false, true, nil, false},
		"the end":                            {0, 0, false, true, ErrPeerDied, false},
		"a notice of an old fence, the end":  {2, 2, true, true, ErrPeerDied, false},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // select takes either of two
				synctest.Test(t, func(t *testing.T) {
					l := &link{arrived: make(chan struct{}, 1), ended: make(chan struct{}), awaited: one.awaited}
					l.received.Store(one.awaited)
					m := &Memory{quit: make(chan struct{})}
					failed := inBackground(func() error { return m.arrival(background(), l) })
					synctest.Wait()
					l.received.Store(one.received)
					if one.closed {
						close(m.quit)
					}
					if one.notified {
						l.arrived <- struct{}{}
					}
					if one.ended {
						l.end(ErrPeerDied)
					}
					require.ErrorIs(t, <-failed, one.err)
				})
			}
		})
	}
}

// GPUs are the same if they have the same UUID: two that have none may be two.
func TestGPUsAreTheSameByTheirUUID(t *testing.T) {
	f := newSharing(sim.Config{Bytes: true})
	s := newSide(t, f)
	info := s.dev.Info()
	none, one, other := cudadrv.UUID{}, cudadrv.UUID{1}, cudadrv.UUID{15: 1}
	for _, offered := range []cudadrv.UUID{none, one, other} {
		for _, own := range []cudadrv.UUID{none, one, other} {
			offer := greeting{gpu: offered, bytes: bytes, granularity: info.GranularityBytes}
			var err error
			offer.roundedBytes, err = round(bytes, info)
			require.NoError(t, err)
			info.UUID = own
			refusal, err := checkOffer(offer, info)
			if offered == own && own != none {
				require.NoError(t, err)
				continue
			}
			require.Equal(t, RefusedGPU, refusal)
			var refused *GPUError
			require.ErrorAs(t, err, &refused)
		}
	}
}
