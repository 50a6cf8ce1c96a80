package cuda_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// pair is two contexts of one device, with a buffer each, whose driver calls can be held up.
type pair struct {
	*testing.T
	gpu    *sim.Device
	faults *fault.Driver
	dev    *vram.Device
	on     [2]*cuda.Context
	of     [2]cuda.Buffer
}

func newPair(t *testing.T) *pair {
	t.Helper()
	machine := sim.New(sim.Config{Bytes: true, TimedKernels: true})
	p := &pair{T: t, faults: fault.Wrap(machine)}
	var err error
	p.dev, err = vram.Open(vram.Config{Driver: p.faults})
	require.NoError(t, err)
	for i := range p.on {
		s, err := p.dev.NewStream()
		require.NoError(t, err)
		p.on[i], err = cuda.NewContext(s)
		require.NoError(t, err)
		p.of[i], err = p.on[i].Alloc(mib)
		require.NoError(t, err)
		require.NoError(t, p.on[i].Fill8(cuda.Whole(p.of[i]), 1))
	}
	p.gpu = machine.Device(0)
	return p
}

func (p *pair) close() {
	p.Helper()
	p.faults.SetBefore(nil)
	for i, b := range p.of {
		require.NoError(p, b.Free())
		require.NoError(p, p.on[i].Close())
	}
	require.NoError(p, p.dev.Close())
}

// holdUp stops the next call of a function until resume is called.
func (p *pair) holdUp(function string) (entered <-chan struct{}, resume func()) {
	in, out := make(chan struct{}), make(chan struct{})
	p.faults.SetBefore(func(called string) {
		if called == function {
			p.faults.SetBefore(nil)
			close(in)
			<-out
		}
	})
	return in, func() { close(out) }
}

func (p *pair) status(c *cuda.Context) cudadrv.CaptureStatus {
	p.Helper()
	status, err := p.gpu.StreamIsCapturing(c.Stream().Handle())
	require.NoError(p, err)
	return status
}

// calls are calls that touch the first context's stream, with a driver call that they make after they have asked whether the
// stream is being captured.
var callsOnAStream = map[string]struct {
	at   string
	call func(p *pair) error
}{
	"work on its buffer":   {"cuEventRecord", func(p *pair) error { return p.on[1].Fill8(cuda.Whole(p.of[0]), 2) }},
	"work on another's":    {"cuStreamWaitEvent", func(p *pair) error { return p.on[0].Fill8(cuda.Whole(p.of[1]), 2) }},
	"its own work":         {"cuMemsetD8Async", func(p *pair) error { return p.on[0].Fill8(cuda.Whole(p.of[0]), 2) }},
	"a wait for it":        {"cuEventRecord", func(p *pair) error { return p.on[1].Wait(p.on[0]) }},
	"its wait":             {"cuStreamWaitEvent", func(p *pair) error { return p.on[0].Wait(p.on[1]) }},
	"a trim":               {"cuEventRecord", func(p *pair) error { return p.on[0].Stream().Trim(context.Background()) }},
	"a trim of the device": {"cuStreamQuery", func(p *pair) error { _, err := p.dev.Trim(context.Background(), 0); return err }},
	"a wait on the host":   {"cuStreamSynchronize", func(p *pair) error { return p.on[0].Synchronize(context.Background()) }},
	"a copy out":           {"cuStreamSynchronize", func(p *pair) error { return p.on[0].CopyOutAt(make([]byte, 1), p.of[0], 0) }},
	"zeroed memory": {"cuMemsetD8Async", func(p *pair) error {
		b, err := p.on[0].Stream().AllocFor(context.Background(), vram.Request{Bytes: mib, Zero: true})
		if err == nil {
			err = b.Free()
		}
		return err
	}},
	"an event": {"cuEventRecord", func(p *pair) error {
		e, err := p.on[0].Record()
		if err == nil {
			err = e.Close()
		}
		return err
	}},
	"a handover": {"cuEventRecord", func(p *pair) error {
		b, err := p.of[0].Transfer(p.on[1].Stream())
		if err == nil {
			p.of[0] = b
		}
		return err
	}},
}

// A capture begins after the calls that others have begun on its stream, and neither includes work of the other.
func TestACaptureBeginsBehindCalls(t *testing.T) {
	for name, row := range callsOnAStream {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				c := p.on[0]
				if row.at == "cuStreamQuery" || name == "a trim" { // there is something to return
					b, err := c.Alloc(8 * mib)
					require.NoError(t, err)
					require.NoError(t, b.Free())
				}
				entered, resume := p.holdUp(row.at)
				called, captured, finish := make(chan error, 1), make(chan error, 1), make(chan struct{})
				go func() { called <- row.call(p) }()
				<-entered
				var g *cuda.Graph
				go func() {
					var err error
					g, err = c.Capture(func() error {
						<-finish
						return c.Fill8(cuda.Whole(p.of[1]), 3)
					})
					captured <- err
				}()
				synctest.Wait()
				assert.Equal(t, cudadrv.CaptureNone, p.status(c), "the capture waits")
				assert.Empty(t, captured)
				var forbidden *vram.CaptureError
				require.ErrorAs(t, p.on[1].Wait(c), &forbidden, "further calls are turned away")
				assert.Equal(t, c.Stream().ID(), forbidden.Stream)
				resume()
				if name == "work on another's" { // its wait was made, and the work is refused
					require.ErrorIs(t, <-called, vram.ErrCapturing)
					close(finish)
				} else {
					close(finish)
					require.NoError(t, <-called)
				}
				require.NoError(t, <-captured)
				assert.Equal(t, cudadrv.CaptureNone, p.status(p.on[1]))
				require.NoError(t, g.Launch(c))
				require.NoError(t, c.Synchronize(t.Context()))
				require.NoError(t, g.Close())
				p.close()
			})
		})
	}
}

// No call on a stream waits for the end of a capture that another goroutine has begun: it returns, or is refused, while that continues.
func TestNoCallWaitsForTheEndOfACapture(t *testing.T) {
	calls := map[string]func(p *pair) error{
		"a free":                  func(p *pair) error { return p.of[0].Free() },
		"statistics":              func(p *pair) error { _, err := p.on[0].Stream().Stats(context.Background()); return err },
		"statistics of a device":  func(p *pair) error { p.dev.Stats(); return nil },
		"the close of a context":  func(p *pair) error { return p.on[0].Close() },
		"the close of its stream": func(p *pair) error { return p.on[0].Stream().Close() },
		"a wait with a context": func(p *pair) error {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			return p.on[0].Synchronize(ctx)
		},
		"a batch": func(p *pair) error {
			all := make([]cuda.Buffer, 2)
			if err := p.on[0].AllocBatch(all, []int64{mib, 4 * mib}); err != nil {
				return err
			}
			return p.on[0].FreeBatch(all)
		},
		"a module": func(p *pair) error {
			m, err := p.on[0].LoadModule([]byte(ptx))
			if err == nil {
				err = m.Unload()
			}
			return err
		},
		"a stream": func(p *pair) error {
			c, err := p.on[0].NewStream()
			if err == nil {
				err = c.Close()
			}
			return err
		},
		"a further capture": func(p *pair) error {
			_, err := p.on[0].Capture(func() error { return nil })
			return err
		},
	}
	for name, row := range callsOnAStream {
		calls[name] = row.call
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				c := p.on[0]
				cached, err := c.Alloc(8 * mib) // there is something to return
				require.NoError(t, err)
				require.NoError(t, cached.Free())
				begun, finish, captured := make(chan struct{}), make(chan struct{}), make(chan error, 1)
				var g *cuda.Graph
				go func() {
					var err error
					g, err = c.Capture(func() error {
						close(begun)
						<-finish
						return nil
					})
					captured <- err
				}()
				<-begun
				if err := call(p); err != nil {
					require.ErrorIs(t, err, vram.ErrCapturing)
				}
				require.Empty(t, captured)
				require.Equal(t, cudadrv.CaptureActive, p.status(c), "the capture is not disturbed")
				close(finish)
				require.NoError(t, <-captured)
				require.NoError(t, g.Close())
				for i, b := range p.of {
					if b.Live() {
						require.NoError(t, b.Free())
					}
					require.NoError(t, p.on[i].Close())
				}
				require.NoError(t, p.dev.Close())
			})
		})
	}
}

// A capture of a stream that was closed does not begin, and a call in a capture has the errors that it has outside.
func TestCallsThatAreRefusedWithACapture(t *testing.T) {
	p := newPair(t)
	c, err := p.on[0].NewStream()
	require.NoError(t, err)
	require.NoError(t, c.Stream().Close())
	began := p.faults.Calls("cuStreamBeginCapture")
	_, err = c.Capture(func() error { return nil })
	require.ErrorIs(t, err, vram.ErrClosed)
	assert.Equal(t, began, p.faults.Calls("cuStreamBeginCapture"))
	require.NoError(t, c.Close())

	freed, err := p.on[1].Alloc(mib)
	require.NoError(t, err)
	require.NoError(t, freed.Free())
	c = p.on[0]
	require.ErrorIs(t, c.WaitEvent(nil), cuda.ErrNotOpen)
	require.ErrorIs(t, c.WaitEvent(&cuda.Event{}), cuda.ErrNotOpen)
	g, err := c.Capture(func() error {
		b, err := c.AllocFor(nil, vram.Request{Bytes: mib}) //nolint:staticcheck // refused
		require.ErrorIs(t, err, cuda.ErrNilContext)
		assert.Zero(t, b)
		for _, zero := range []bool{false, true} {
			for bytes, want := range map[int64]error{-1: vram.ErrNegative, 1 << 60: vram.ErrTooLarge} {
				b, err = c.AllocFor(context.Background(), vram.Request{Bytes: bytes, Zero: zero})
				require.ErrorIs(t, err, want)
				assert.Zero(t, b)
			}
		}
		var refused *cuda.ArgumentError
		require.ErrorIs(t, c.Fill8(cuda.Whole(freed), 1), cuda.ErrNotLive)
		require.False(t, errors.As(err, &refused))
		require.ErrorIs(t, c.WaitEvent(nil), cuda.ErrNotOpen)
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, g.Close())
	p.close()
}

// A stream joins a capture after the calls in progress on it.
func TestAJoiningStreamIsAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c, joins := p.on[1], p.on[0]
		entered, resume := p.holdUp("cuEventRecord")
		called := make(chan error, 1)
		b, err := joins.Alloc(8 * mib)
		require.NoError(t, err)
		require.NoError(t, b.Free())
		go func() { called <- joins.Stream().Trim(t.Context()) }()
		<-entered
		g, err := c.Capture(func() error {
			joined := make(chan error, 1)
			go func() { joined <- joins.Wait(c) }()
			synctest.Wait()
			assert.Equal(t, cudadrv.CaptureNone, p.status(joins))
			resume()
			require.NoError(t, <-joined)
			assert.Equal(t, cudadrv.CaptureActive, p.status(joins))
			return c.Wait(joins)
		})
		require.NoError(t, err)
		require.NoError(t, <-called)
		require.NoError(t, g.Close())
		p.close()
	})
}

// Work that others submit to a capture becomes part of the graph, also while the capture is ending.
func TestACaptureEndsBehindCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c := p.on[0]
		called, captured := make(chan error, 1), make(chan error, 1)
		entered, resume := p.holdUp("cuMemsetD8Async")
		var g *cuda.Graph
		go func() {
			var err error
			g, err = c.Capture(func() error {
				go func() { called <- c.Fill8(cuda.Whole(p.of[0]), 7) }()
				<-entered
				return nil
			})
			captured <- err
		}()
		synctest.Wait()
		assert.Empty(t, captured, "the capture ends after the call")
		require.ErrorIs(t, c.Fill8(cuda.Whole(p.of[0]), 8), cuda.ErrCapturing, "further work is turned away")
		resume()
		require.NoError(t, <-called)
		require.NoError(t, <-captured)
		got := make([]byte, 1)
		require.NoError(t, c.CopyOutAt(got, p.of[0], 0))
		assert.Equal(t, byte(1), got[0], "nothing has run")
		require.NoError(t, g.Launch(c))
		require.NoError(t, c.CopyOutAt(got, p.of[0], 0))
		assert.Equal(t, byte(7), got[0])
		require.NoError(t, g.Close())
		p.close()
	})
}

// A capture inside a call on its stream waits for itself, for a while.
func TestACaptureInsideACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c := p.on[0]
		require.NoError(t, c.Submit(func(cudadrv.Device, cudadrv.Stream) error {
			_, err := c.Capture(func() error { return nil })
			require.ErrorIs(t, err, vram.ErrCapturing)
			require.ErrorIs(t, err, vram.ErrBusy)
			require.ErrorContains(t, err, "no capture of stream 1")
			return nil
		}))
		g, err := c.Capture(func() error { return nil })
		require.NoError(t, err, "nothing is left of it")
		require.NoError(t, g.Close())
		p.close()
	})
}

// A capture that was not announced, and begins between a query and a call, receives none of the package's calls: work is
// refused, not lost, and the capture continues.
func TestCapturesPastTheModule(t *testing.T) {
	for name, call := range map[string]func(p *pair) error{
		"work on its buffer": func(p *pair) error { return p.on[1].Fill8(cuda.Whole(p.of[0]), 2) },
		"a wait for it":      func(p *pair) error { return p.on[1].Wait(p.on[0]) },
		"an event": func(p *pair) error {
			e, err := p.on[0].Record()
			if err == nil {
				_, err = e.Done()
				require.NoError(p, e.Close())
			}
			return err
		},
		"an event that is waited for": func(p *pair) error {
			e, err := p.on[0].Record()
			if err == nil {
				err = e.Synchronize(context.Background())
				require.NoError(p, e.Close())
			}
			return err
		},
		"an event that is waited for with a context": func(p *pair) error {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			e, err := p.on[0].Record()
			if err == nil {
				err = e.Synchronize(ctx)
				require.NoError(p, e.Close())
			}
			return err
		},
		"a handover": func(p *pair) error { _, err := p.of[0].Transfer(p.on[1].Stream()); return err },
	} {
		for _, ends := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				p := newPair(t)
				h := p.on[0].Stream().Handle()
				p.faults.SetBefore(func(called string) {
					if called != "cuEventRecord" {
						return
					}
					assert.NoError(t, p.gpu.BeginCapture(h))
					p.faults.SetBefore(func(string) {
						p.faults.SetBefore(nil)
						if ends {
							_, err := p.gpu.EndCapture(h)
							assert.NoError(t, err)
						}
					})
				})
				err := call(p)
				var forbidden *vram.CaptureError
				require.ErrorAs(t, err, &forbidden)
				require.ErrorIs(t, err, cuda.ErrCapturing)
				require.NotErrorIs(t, err, cudadrv.CapturedEvent)
				assert.Equal(t, p.on[0].Stream().ID(), forbidden.Stream)
				assert.Equal(t, cudadrv.CaptureNone, p.status(p.on[1]))
				if !ends {
					_, err = p.gpu.EndCapture(h)
					require.NoError(t, err, "the capture is not disturbed")
				}
				p.close()
			})
		}
	}
}

// A call on the legacy default stream would end the capture of a blocking stream: the capture begins after it.
func TestABlockingStreamIsCapturedBehindTheDefaultStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		h, err := p.gpu.StreamCreateBlocking()
		require.NoError(t, err)
		legacy, err := p.dev.AdoptStream(0)
		require.NoError(t, err)
		blocking, err := p.dev.AdoptStream(h)
		require.NoError(t, err)
		c, err := cuda.NewContext(blocking)
		require.NoError(t, err)
		b, err := legacy.Alloc(8 * mib)
		require.NoError(t, err)
		require.NoError(t, b.Free())
		entered, resume := p.holdUp("cuEventRecord")
		called, captured := make(chan error, 1), make(chan error, 1)
		go func() { called <- legacy.Trim(t.Context()) }()
		<-entered
		var g *cuda.Graph
		go func() {
			var err error
			g, err = c.Capture(func() error {
				assert.ErrorIs(t, p.on[0].Stream().WaitStream(legacy), cuda.ErrCapturing)
				return nil
			})
			captured <- err
		}()
		synctest.Wait()
		assert.Empty(t, captured, "the capture waits")
		resume()
		require.NoError(t, <-called)
		require.NoError(t, <-captured)
		require.NoError(t, p.on[0].Stream().WaitStream(legacy))
		require.NoError(t, g.Close())
		require.NoError(t, c.Close())
		require.NoError(t, blocking.Close())
		require.NoError(t, legacy.Close())
		require.NoError(t, p.gpu.StreamDestroy(h))
		p.close()
	})
}

// The Close of a device waits for captures of others on its GPU, which it would end.
func TestTheCloseOfADeviceSparesCapturesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c := p.on[0]
		other, err := vram.Open(vram.Config{Driver: p.faults})
		require.NoError(t, err)
		s, err := other.NewStream()
		require.NoError(t, err)
		b, err := s.Alloc(mib)
		require.NoError(t, err)
		require.NoError(t, b.Free())
		closed := make(chan error, 1)
		g, err := c.Capture(func() error {
			go func() { closed <- other.Close() }()
			synctest.Wait()
			assert.Empty(t, closed)
			return c.Fill8(cuda.Whole(p.of[0]), 3)
		})
		require.NoError(t, err, "the capture is not disturbed")
		require.NoError(t, <-closed)
		require.NoError(t, g.Close())
		p.close()
	})
}

// Work of the caller's own is not called in a capture that was begun past the package, which continues.
func TestSubmitInACapturePastTheModule(t *testing.T) {
	p := newPair(t)
	c := p.on[0]
	h := c.Stream().Handle()
	require.NoError(t, p.gpu.BeginCapture(h))
	for _, ranges := range [][]cuda.Range{nil, {cuda.Whole(p.of[0])}, {cuda.Whole(p.of[1])}} {
		require.ErrorIs(t, c.Submit(func(cudadrv.Device, cudadrv.Stream) error {
			assert.Fail(t, "called")
			return nil
		}, ranges...), cuda.ErrCapturing)
	}
	assert.Equal(t, cudadrv.CaptureActive, p.status(c))
	_, err := p.gpu.EndCapture(h)
	require.NoError(t, err)
	p.close()
}

// Each call that a capture forbids returns an error of one kind, with the stream.
func TestErrorsOfACapture(t *testing.T) {
	p := newPair(t)
	defer p.close()
	c, other := p.on[0], p.on[1]
	e, err := other.Record()
	require.NoError(t, err)
	inner, err := other.Capture(func() error { return nil })
	require.NoError(t, err)
	g, err := c.Capture(func() error {
		for name, call := range map[string]func() error{
			"synchronize": func() error { return c.Synchronize(context.Background()) },
			"with a context": func() error {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				return c.Synchronize(ctx)
			},
			"record":           func() error { _, err := c.Record(); return err },
			"wait":             func() error { return c.Wait(other) },
			"wait event":       func() error { return c.WaitEvent(e) },
			"copy in":          func() error { return cuda.CopyIn(c, p.of[0], []byte{1}) },
			"copy out":         func() error { return cuda.CopyOut(c, []byte{1}, p.of[0]) },
			"submit":           func() error { return c.Submit(func(cudadrv.Device, cudadrv.Stream) error { return nil }) },
			"capture":          func() error { _, err := c.Capture(func() error { return nil }); return err },
			"launch of graph":  func() error { return inner.Launch(c) },
			"upload":           func() error { return inner.Upload(c) },
			"another's launch": func() error { return other.Fill8(cuda.Whole(p.of[0]), 1) },
			"handover":         func() error { _, err := p.of[0].Transfer(other.Stream()); return err },
			"close":            func() error { return c.Stream().Close() },
		} {
			err := call()
			var forbidden *vram.CaptureError
			if assert.ErrorAs(t, err, &forbidden, name) {
				assert.Equal(t, c.Stream().ID(), forbidden.Stream, name)
				assert.NotEmpty(t, forbidden.Call, name)
			}
			require.ErrorIs(t, err, cuda.ErrCapturing, name)
			require.ErrorIs(t, err, vram.ErrCapturing, name)
		}
		return nil
	})
	require.NoError(t, err)
	require.ErrorAs(t, cuda.ErrCapturing, new(*vram.CaptureError))
	require.EqualError(t, cuda.ErrCapturing, "vram: the stream is being captured")
	require.NoError(t, errors.Join(e.Close(), g.Close(), inner.Close()))
}
