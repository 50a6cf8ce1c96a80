package cuda_test

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
)

// Profiles and captures of a stream meet: each launch is of one of them, and afterwards launches are as quick as before.
func TestProfilesMeetCapturesAmongGoroutines(t *testing.T) {
	const rounds = 200
	s := newState(t, nil)
	c := s.c
	touch := func() error { return c.Launch(s.touch, oneThread, cuda.InOut(s.own)) }
	require.False(t, cuda.LaunchesSlowly(c))
	var launches, noted, captured atomic.Int64
	var over atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		for n := 0; !over.Load(); n++ {
			p, err := c.StartProfile()
			if n%8 > 0 { // most meet the begin or the end of a capture
				_, stopped := p.Stop()
				assert.NoError(t, errors.Join(err, stopped))
				continue
			}
			assert.NoError(t, err)
			assert.True(t, cuda.LaunchesSlowly(c))
			if err := touch(); err == nil {
				launches.Add(1)
			} else {
				assert.ErrorIs(t, err, cuda.ErrCapturing)
			}
			own, _ := p.Stop() // a capture that comes between a launch and its events costs the time, not the note
			noted.Add(int64(len(own)))
		}
	})
	all.Go(func() {
		defer over.Store(true)
		for range rounds {
			g, err := c.Capture(func() error {
				assert.True(t, cuda.LaunchesSlowly(c))
				launches.Add(1)
				return touch()
			})
			if assert.NoError(t, err) {
				captured.Add(int64(len(g.Kernels())))
				assert.NoError(t, g.Close())
			}
		}
	})
	all.Wait()
	assert.Equal(t, launches.Load(), noted.Load()+captured.Load())
	assert.False(t, cuda.LaunchesSlowly(c))
	p, err := c.StartProfile()
	require.NoError(t, err)
	assert.True(t, cuda.LaunchesSlowly(c))
	require.NoError(t, touch())
	own, err := p.Stop()
	require.NoError(t, err)
	assert.Len(t, own, 1)
	assert.False(t, cuda.LaunchesSlowly(c))
}

// Launches of several goroutines meet in a profile, which has each of them, and meet its end.
func TestLaunchesMeetAProfileAmongGoroutines(t *testing.T) {
	const goroutineCount, launches = 3, 5
	s := newState(t, nil)
	launchAll := func(all *sync.WaitGroup) {
		for range goroutineCount {
			all.Go(func() {
				for range launches {
					assert.NoError(t, s.c.Launch(s.touch, oneThread, cuda.InOut(s.own)))
				}
			})
		}
	}
	for range 20 {
		p, err := s.c.StartProfile()
		require.NoError(t, err)
		var all sync.WaitGroup
		launchAll(&all)
		all.Wait()
		noted, err := p.Stop()
		require.NoError(t, err)
		require.Len(t, noted, goroutineCount*launches)

		p, err = s.c.StartProfile()
		require.NoError(t, err)
		var count atomic.Int64
		launchAll(&all)
		for range 2 {
			all.Go(func() {
				noted, err := p.Stop()
				assert.NoError(t, err)
				count.Add(int64(len(noted)))
			})
		}
		all.Wait()
		require.LessOrEqual(t, count.Load(), int64(goroutineCount*launches))
		noted, err = p.Stop()
		require.NoError(t, err)
		require.Empty(t, noted)
		require.False(t, cuda.LaunchesSlowly(s.c))
	}
}

// Graphs of a pool are launched one at a time, however many goroutines launch them.
func TestGraphsOfAPoolMeetAmongGoroutines(t *testing.T) {
	p := newPair(t)
	shared, err := p.on[0].NewPool()
	require.NoError(t, err)
	var graphs [2]*cuda.Graph
	for i := range graphs {
		graphs[i], err = p.on[i].Capture(func() error { return p.on[i].Fill8(cuda.Whole(p.of[i]), 1) }, cuda.Shared(shared))
		require.NoError(t, err)
	}
	var inside, overlaps, launches atomic.Int32
	p.faults.SetBefore(func(function string) {
		if function != "cuGraphLaunch" {
			return
		}
		launches.Add(1)
		if inside.Add(1) > 1 {
			overlaps.Add(1)
		}
		runtime.Gosched() // others may begin
		inside.Add(-1)
	})
	var all sync.WaitGroup
	for i := range graphs {
		all.Go(func() {
			for range 100 {
				assert.NoError(t, graphs[i].Launch(p.on[i]))
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, 200, launches.Load())
	assert.Zero(t, overlaps.Load())
	for i, c := range p.on {
		require.NoError(t, errors.Join(c.Synchronize(t.Context()), graphs[i].Close()))
	}
	require.NoError(t, shared.Close())
	p.close()
}

// Launches of a graph meet changes and closes of it: the driver changes or ends the graph in no launch, and each call succeeds or finds the graph
// closed.
func TestChangesMeetLaunchesAmongGoroutines(t *testing.T) {
	s := newState(t, nil)
	var launching, changing, overlaps, changes atomic.Int32
	s.faults.SetBefore(func(function string) {
		switch function {
		case "cuGraphLaunch":
			launching.Add(1)
			defer launching.Add(-1)
		case "cuGraphExecKernelNodeSetParams", "cuGraphExecDestroy":
			changes.Add(1)
			if changing.Add(1) > 1 {
				overlaps.Add(1)
			}
			defer changing.Add(-1)
		default:
			return
		}
		runtime.Gosched() // others may begin
		if launching.Load() > 0 && changing.Load() > 0 {
			overlaps.Add(1)
		}
	})
	for range 20 {
		g, err := s.d.Capture(func() error { return s.d.Launch(s.touch, oneThread, cuda.InOut(s.shared)) })
		require.NoError(t, err)
		var all sync.WaitGroup
		for i, c := range []*cuda.Context{s.c, s.d} {
			all.Go(func() {
				for range 10 {
					if err := g.Launch(c); err != nil {
						assert.ErrorIs(t, err, cuda.ErrGraphClosed)
					}
				}
				assert.NoError(t, g.Close())
			})
			all.Go(func() {
				for round := range 5 {
					if err := g.SetArg(0, 0, cuda.InOut([]cuda.Buffer{s.own, s.shared}[(i+round)%2])); err != nil {
						assert.ErrorIs(t, err, cuda.ErrGraphClosed)
					}
				}
			})
		}
		all.Wait()
	}
	assert.Zero(t, overlaps.Load())
	assert.Greater(t, changes.Load(), int32(20))
}

// Streams join a capture and work for it at the same time: the graph has each launch once.
func TestStreamsOfACaptureMeetAmongGoroutines(t *testing.T) {
	const launches = 3
	s := newState(t, nil)
	var others [3]*cuda.Context
	var own [3]cuda.Buffer
	for i := range others {
		stream, err := s.dev.NewStream()
		require.NoError(t, err)
		others[i], err = cuda.NewContext(stream)
		require.NoError(t, err)
		own[i] = s.alloc(others[i], 4096)
	}
	for range 20 {
		g, err := s.c.Capture(func() error {
			var all sync.WaitGroup
			for i, c := range others {
				all.Go(func() {
					assert.NoError(t, c.Wait(s.c))
					for range launches {
						x, err := c.Workspace(4096)
						assert.NoError(t, err)
						assert.NoError(t, c.Launch(s.touch, oneThread, cuda.InOut(x)))
						assert.NoError(t, c.Launch(s.touch, oneThread, cuda.InOut(own[i])))
					}
					assert.NoError(t, s.c.Wait(c))
				})
			}
			all.Wait()
			return nil
		})
		require.NoError(t, err)
		assert.Len(t, g.Kernels(), 2*launches*len(others))
		require.NoError(t, errors.Join(g.Launch(s.c), g.Close()))
		for _, c := range append(others[:], s.c) {
			assert.False(t, cuda.LaunchesSlowly(c))
		}
	}
}

// What ends an object waits for the calls on it that are in the driver.
func TestEndsMeetCallsInTheDriver(t *testing.T) {
	for name, one := range map[string]struct {
		at        string
		call, end func(c *cuda.Context, g *cuda.Graph) error
	}{
		"a capture, and a launch": {
			"cuGraphLaunch", func(c *cuda.Context, g *cuda.Graph) error { return g.Launch(c) },
			func(c *cuda.Context, _ *cuda.Graph) error {
				g, err := c.Capture(func() error { return nil })
				return errors.Join(err, g.Close())
			},
		},
		"a graph's Close, and a launch": {
			"cuGraphLaunch", func(c *cuda.Context, g *cuda.Graph) error { return g.Launch(c) },
			func(_ *cuda.Context, g *cuda.Graph) error { return g.Close() },
		},
		"a graph's Close, and an upload": {
			"cuGraphUpload", func(c *cuda.Context, g *cuda.Graph) error { return g.Upload(c) },
			func(_ *cuda.Context, g *cuda.Graph) error { return g.Close() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				c := p.on[0]
				g, err := c.Capture(func() error { return c.Fill8(cuda.Whole(p.of[0]), 1) })
				require.NoError(t, err)
				entered, resume := p.holdUp(one.at)
				called, ended := make(chan error, 1), make(chan error, 1)
				go func() { called <- one.call(c, g) }()
				<-entered
				go func() { ended <- one.end(c, g) }()
				synctest.Wait()
				assert.Empty(t, ended, "it did not wait")
				assert.Equal(t, cudadrv.CaptureNone, p.status(c))
				resume()
				require.NoError(t, <-called)
				require.NoError(t, <-ended)
				require.NoError(t, c.Synchronize(t.Context()))
				require.NoError(t, g.Close())
				p.close()
			})
		})
	}
}

// Captures with a pool, closes of their graphs and of the pool meet: each succeeds, or finds the pool closed, and the memory is freed once.
func TestClosesOfAPoolMeetAmongGoroutines(t *testing.T) {
	p := newPair(t)
	held := p.dev.Stats().ReservedBytes
	for range 60 {
		shared, err := p.on[0].NewPool()
		require.NoError(t, err)
		var all sync.WaitGroup
		for i, c := range p.on {
			all.Go(func() {
				for range 3 {
					g, err := c.Capture(func() error { return c.Fill8(cuda.Whole(p.of[i]), 1) }, cuda.Shared(shared))
					if err != nil {
						assert.ErrorIs(t, err, cuda.ErrGraphClosed)
						return
					}
					assert.NoError(t, errors.Join(g.Close(), g.Close()))
				}
			})
		}
		all.Go(func() { assert.NoError(t, errors.Join(shared.Close(), shared.Close())) })
		all.Wait()
		_, err = shared.HeldBytes(t.Context())
		require.ErrorIs(t, err, vram.ErrClosed)
	}
	assert.Equal(t, held, p.dev.Stats().ReservedBytes)
	p.close()
}

// The size of a graph's memory is known until the graph is closed: a Close waits for the calls that read it.
func TestHeldBytesMeetACloseAmongGoroutines(t *testing.T) {
	p := newPair(t)
	c := p.on[0]
	for range 150 {
		g, err := c.Capture(func() error { return nil })
		require.NoError(t, err)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				for {
					if _, err := g.HeldBytes(t.Context()); err != nil {
						assert.ErrorIs(t, err, cuda.ErrGraphClosed)
						return
					}
				}
			})
		}
		for range 3 {
			all.Go(func() { assert.NoError(t, g.Close()) })
		}
		all.Wait()
	}
	p.close()
}
