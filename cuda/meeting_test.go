package cuda_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
)

// Calls of all kinds meet each other on the same objects: each succeeds, or is refused for a capture, a freeze or a profile of another.
// Afterwards all succeed, so no call has left anything on that it began.
func TestCallsMeetAmongGoroutines(t *testing.T) {
	const goroutineCount, callCount = 4, 150
	s := newState(t, nil)
	all := slices.DeleteFunc(append(stateCalls(), objectCalls()...), func(one stateCall) bool {
		return slices.Contains([]string{"Context.FreeBatch", "Context.WithContext", "Context.StartProfile", "Context.Freeze"}, one.name)
	})
	all = append(all, []stateCall{
		{"a profile", func(s *state) error {
			p, err := s.c.StartProfile()
			if err != nil {
				return err
			}
			err = s.c.Launch(s.touch, oneThread, cuda.InOut(s.own))
			_, stopped := p.Stop()
			return errors.Join(err, stopped)
		}},
		{"a freeze", func(s *state) error { return errors.Join(s.c.Freeze(s.own), s.c.Thaw(s.own)) }},
		{"a graph", func(s *state) error {
			var workspace cuda.Buffer
			g, err := s.c.Capture(func() (err error) {
				if workspace, err = s.c.Workspace(4096); err == nil {
					err = s.c.Launch(s.touch, oneThread, cuda.InOut(workspace))
				}
				return err
			}, cuda.Shared(s.pool))
			if err != nil {
				return err
			}
			_, held := g.HeldBytes(context.Background())
			return errors.Join(held, g.Launch(s.c), g.Close())
		}},
	}...)
	var over atomic.Bool
	var clock, group sync.WaitGroup
	clock.Go(func() {
		for !over.Load() {
			s.machine.Device(0).Advance(time.Millisecond)
			runtime.Gosched()
		}
	})
	for g := range goroutineCount {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1)) //nolint:gosec // a test
			for range callCount {
				one := all[random.IntN(len(all))]
				err := one.call(s)
				refused := errors.Is(err, cuda.ErrCapturing) || errors.Is(err, cuda.ErrFrozen) || errors.Is(err, cuda.ErrProfiling)
				assert.True(t, err == nil || refused, "%s: %v", one.name, err)
			}
		})
	}
	group.Wait()
	for _, one := range all {
		assert.NoError(t, one.call(s), one.name)
	}
	_, err := s.pool.HeldBytes(t.Context())
	require.NoError(t, err)
	over.Store(true)
	clock.Wait()
}

// A call that finds a capture before its end and comes after it is refused as one that meets a capture, also if the pool is closed.
func TestCallsThatComeAfterACapture(t *testing.T) {
	s := newState(t, nil)
	var touch, alloc func(cuda.Buffer) error
	g, err := s.c.Capture(func() error {
		touch, alloc = cuda.Late(s.c)
		return nil
	})
	require.NoError(t, err)
	require.ErrorIs(t, touch(s.own), cuda.ErrCapturing)
	require.NoError(t, g.Close())
	for _, call := range []func(cuda.Buffer) error{touch, alloc} {
		require.ErrorIs(t, call(s.own), cuda.ErrCapturing)
	}
}
