package cuda_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/sleep"
	"github.com/go-vram/vram/cudadrv"
)

// rangeCalls are the calls on a range of a buffer, with the bytes that such a range has.
func rangeCalls(s *state) map[string]func(r cuda.Range) error {
	host := func(r cuda.Range) []byte { return make([]byte, max(0, min(r.Bytes, 8192))) }
	return map[string]func(r cuda.Range) error{
		"Fill8":        func(r cuda.Range) error { return s.c.Fill8(r, 1) },
		"Fill16":       func(r cuda.Range) error { return s.c.Fill16(r, 1) },
		"Fill32":       func(r cuda.Range) error { return s.c.Fill32(r, 1) },
		"Copy, to":     func(r cuda.Range) error { return s.c.Copy(r, cuda.Range{Buffer: s.longer, Bytes: r.Bytes}) },
		"Copy, from":   func(r cuda.Range) error { return s.c.Copy(cuda.Range{Buffer: s.longer, Bytes: r.Bytes}, r) },
		"CopyInAsync":  func(r cuda.Range) error { return s.c.CopyInAsync(r, host(r)) },
		"CopyOutAsync": func(r cuda.Range) error { return s.c.CopyOutAsync(host(r), r) },
		"Launch": func(r cuda.Range) error {
			return s.c.Launch(s.touch, oneThread, cuda.InOut(r.Buffer).Of(r.Offset, r.Bytes))
		},
		"LaunchPacked": func(r cuda.Range) error {
			return s.c.LaunchPacked(s.touch, oneThread, make([]byte, 8), cuda.InOut(r.Buffer).Of(r.Offset, r.Bytes))
		},
		"LaunchWith": func(r cuda.Range) error {
			return s.c.LaunchWith("x", nothing, cuda.InOut(r.Buffer).Of(r.Offset, r.Bytes))
		},
		"Submit": func(r cuda.Range) error { return s.c.Submit(nothing, r) },
		"Copy2D, to": func(r cuda.Range) error {
			return s.c.Copy2D(rows(r), cuda.Rows{Buffer: s.longer, Pitch: 8192}, r.Bytes, 1)
		},
		"Copy2D, from": func(r cuda.Range) error {
			return s.c.Copy2D(cuda.Rows{Buffer: s.longer, Pitch: 8192}, rows(r), r.Bytes, 1)
		},
		"Graph.SetArg": func(r cuda.Range) error { return s.graph.SetArg(0, 0, cuda.InOut(r.Buffer).Of(r.Offset, r.Bytes)) },
		"Graph.SetArgs": func(r cuda.Range) error {
			return s.graph.SetArgs(0, oneThread, cuda.InOut(r.Buffer).Of(r.Offset, r.Bytes))
		},
		"Load":  func(r cuda.Range) error { return second(cuda.Load[uint8](s.c, r, int(min(r.Bytes, 8192)))) },
		"Store": func(r cuda.Range) error { return cuda.Store(s.c, r, host(r)) },
	}
}

// isNeverCaptured reports whether one of rangeCalls may be part of no capture.
func isNeverCaptured(call string) bool {
	return slices.Contains([]string{"Submit", "Load", "Store", "Graph.SetArg", "Graph.SetArgs"}, call)
}

func nothing(cudadrv.Device, cudadrv.Stream) error { return nil }

func rows(r cuda.Range) cuda.Rows { return cuda.Rows{Buffer: r.Buffer, Offset: r.Offset, Pitch: 8192} }

// A range that is not within its buffer is refused with its numbers, and one that just is, is not: on a buffer of the context's own
// stream, on one that others use, and in a capture.
func TestRangesAtTheEndsOfABuffer(t *testing.T) {
	const length = 4096
	for name, captured := range map[string]bool{"on the stream": false, "in a capture": true} {
		t.Run(name, func(t *testing.T) {
			s := newState(t, nil)
			s.longer = s.alloc(s.c, 8192)
			try := func() error {
				for _, buffer := range []cuda.Buffer{s.own, s.shared} {
					for call, on := range rangeCalls(s) {
						if captured && isNeverCaptured(call) {
							continue
						}
						for _, in := range [][2]int64{{0, length}, {length - 4, 4}, {4, length - 4}, {length, 0}, {0, 0}} {
							if in[1] == 0 && strings.HasPrefix(call, "Copy2D") || call == "Load" && in[1] == 0 {
								continue // no rows, no ranges
							}
							assert.NoError(t, on(cuda.Range{Buffer: buffer, Offset: in[0], Bytes: in[1]}), "%s, %v", call, in)
						}
						for _, out := range [][2]int64{
							{0, length + 4}, {4, length}, {length, 4}, {length + 4, 0}, {-4, 8}, {-4, 0}, {4, -4}, {math.MaxInt64 - 3, 4}, {8, math.MaxInt64 - 3}, {math.MinInt64, 4},
						} {
							err := on(cuda.Range{Buffer: buffer, Offset: out[0], Bytes: out[1]})
							var outside *cuda.RangeError
							var length *cuda.LengthError
							if errors.As(err, &length) && (out[1] < 0 || out[1] > 8192) { // no slice has that length
								continue
							}
							if strings.HasPrefix(call, "Copy2D") && out[1] == 0 {
								continue
							}
							// Rows have a range of their own, Load and Store an element's, and the other range of a copy may be outside, too.
							others := call == "Load" || call == "Store" || strings.HasPrefix(call, "Copy2D") || call == "Copy, from" && (out[1] < 0 || out[1] > 8192)
							if assert.ErrorAs(t, err, &outside, "%s, %v", call, out) && !others {
								assert.Equal(t, cuda.RangeError{Offset: out[0], Bytes: out[1], BufferBytes: 4096}, *outside, call)
							}
						}
					}
				}
				return nil
			}
			none := s.alloc(s.c, 0)
			tryNone := func() error {
				for call, on := range rangeCalls(s) {
					if captured && isNeverCaptured(call) || call == "Load" || strings.HasPrefix(call, "Copy2D") {
						continue
					}
					assert.NoError(t, on(cuda.Range{Buffer: none}), "%s, a buffer without bytes", call)
					for _, out := range [][2]int64{{4, 0}, {-4, 0}, {0, 4}, {4, -4}, {math.MaxInt64 - 3, 0}} {
						assert.Error(t, on(cuda.Range{Buffer: none, Offset: out[0], Bytes: out[1]}), "%s, a buffer without bytes, %v", call, out)
					}
				}
				return try()
			}
			if !captured {
				require.NoError(t, tryNone())
				return
			}
			g, err := s.c.Capture(tryNone)
			require.NoError(t, err)
			require.NoError(t, g.Close())
		})
	}
}

// Memory that sleeps is refused by each call, also in a capture, and is right again after it has woken.
func TestCallsOnMemoryThatSleeps(t *testing.T) {
	s := newState(t, nil)
	s.longer = s.alloc(s.c, 8192)
	arena, err := sleep.New(s.c, sleep.Options{})
	require.NoError(t, err)
	b, err := arena.Alloc(4096)
	require.NoError(t, err)
	try := func(captured bool, want error) {
		for call, on := range rangeCalls(s) {
			if captured && isNeverCaptured(call) {
				continue
			}
			assert.ErrorIs(t, on(cuda.Whole(b)), want, "%s, captured: %t", call, captured)
		}
	}
	for _, want := range []error{nil, cuda.ErrAsleep, nil} {
		if want != nil {
			require.NoError(t, arena.Sleep(t.Context(), sleep.Save))
		}
		try(false, want)
		g, err := s.c.Capture(func() error { try(true, want); return nil })
		require.NoError(t, err)
		require.NoError(t, g.Close())
		if want != nil {
			require.NoError(t, arena.Wake(t.Context()))
		}
	}
	require.NoError(t, b.Free())
	require.NoError(t, arena.Close())
}

// Closing an object again makes no call of the driver.
func TestClosingAgainDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newState(t, nil)
		require.NoError(t, s.graph.SetArg(0, 0, cuda.InOut(s.own)))
		require.NoError(t, s.graph.Launch(s.c))
		profile, err := s.d.StartProfile()
		require.NoError(t, err)
		require.NoError(t, s.d.Launch(s.touch, oneThread, cuda.InOut(s.shared)))
		opened, err := s.d.NewStream()
		require.NoError(t, err)
		kernel, err := s.d.Kernel(ptx, "empty")
		require.NoError(t, err)
		require.NoError(t, s.d.Launch(kernel, oneThread))
		require.NoError(t, errors.Join(second(s.d.Workspace(mib)), s.c.Synchronize(context.Background())))
		queue := s.d.NewQueue()
		queue.Alloc(mib)
		for _, one := range []struct {
			name  string
			close func() error
		}{
			{"Profile", func() error { return second(profile.Stop()) }},
			{"Graph", s.graph.Close},
			{"Pool", s.pool.Close},
			{"Event", s.event.Close},
			{"Module", s.module.Unload},
			{"Queue", queue.Close},
			{"Context of NewStream", opened.Close},
			{"Context", s.d.Close},
			{"Stream", s.c.Stream().Close},
		} {
			require.NoError(t, one.close(), one.name)
			synctest.Wait() // the goroutines of streams and pool make calls that this one has left to them
			calls := []string{}
			s.faults.SetBefore(func(function string) { calls = append(calls, function) })
			require.NoError(t, one.close(), one.name)
			s.faults.SetBefore(nil)
			assert.Empty(t, calls, one.name)
		}
	})
}

// A stream uses memory again, inside a capture, that another freed before the wait between them, however short before.
func TestMemoryFreedRightBeforeAWaitIsUsedAgain(t *testing.T) {
	for name, again := range map[string]bool{"freed before the wait": true, "freed after it": false} {
		t.Run(name, func(t *testing.T) {
			s := newState(t, nil)
			g, err := s.c.Capture(func() error {
				b := s.alloc(s.c, 16*mib)
				require.NoError(t, s.c.Fill8(cuda.Whole(b), 1))
				if again {
					require.NoError(t, b.Free())
				}
				require.NoError(t, s.d.Wait(s.c))
				if !again {
					require.NoError(t, s.c.Fill8(cuda.Whole(b), 2))
					require.NoError(t, b.Free())
				}
				other := s.alloc(s.d, 16*mib)
				assert.Equal(t, again, other.Ptr() == b.Ptr())
				require.NoError(t, s.d.Fill8(cuda.Whole(other), 3))
				return errors.Join(other.Free(), s.c.Wait(s.d))
			})
			require.NoError(t, err)
			require.NoError(t, g.Launch(s.c))
			require.NoError(t, g.Close())
		})
	}
}

// A call of another goroutine that was in the capture when it ended returns: a buffer is the graph's, and a workspace, which the
// graph could not free, is refused.
func TestACaptureEndsDuringAnAllocation(t *testing.T) {
	for name, allocate := range map[string]func(s *state) (cuda.Buffer, error){
		"Alloc":     func(s *state) (cuda.Buffer, error) { return s.c.Alloc(64 * mib) },
		"Workspace": func(s *state) (cuda.Buffer, error) { return s.c.Workspace(64 * mib) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newState(t, nil)
			entered, resume := make(chan struct{}), make(chan struct{})
			var b cuda.Buffer
			var failed error
			done := make(chan struct{})
			g, err := s.c.Capture(func() error {
				s.faults.SetBefore(func(function string) {
					if function == "cuMemCreate" {
						s.faults.SetBefore(nil)
						close(entered)
						<-resume
					}
				})
				go func() {
					defer close(done)
					b, failed = allocate(s)
				}()
				<-entered
				return nil
			})
			require.NoError(t, err)
			close(resume)
			<-done
			if name == "Alloc" {
				require.NoError(t, failed)
				require.NoError(t, s.d.Fill8(cuda.Whole(b), 1))
				require.NoError(t, b.Free())
			} else {
				require.ErrorIs(t, failed, cuda.ErrCapturing)
				assert.False(t, b.Live())
			}
			held, err := g.HeldBytes(t.Context())
			require.NoError(t, err)
			assert.GreaterOrEqual(t, held, 64*mib)
			require.NoError(t, g.Close())
			before := s.dev.Stats().LiveBytes
			assert.EqualValues(t, 2*4096, before, "the state's own buffers")
		})
	}
}

// The memory of an argument that was replaced, and freed by its owner, is free as soon as the graph is closed.
func TestALeaseEndsWithItsGraph(t *testing.T) {
	s := newState(t, nil)
	x := s.alloc(s.c, 64*mib)
	require.NoError(t, s.graph.SetArg(0, 0, cuda.InOut(x)))
	require.NoError(t, s.graph.Launch(s.d))
	require.NoError(t, x.Free())
	require.NoError(t, s.graph.SetArg(0, 0, cuda.InOut(s.shared)))
	require.NoError(t, s.graph.Launch(s.d))
	require.NoError(t, s.graph.Close())
	_, err := s.dev.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.Less(t, s.dev.Stats().ReservedBytes, 64*mib)
}
