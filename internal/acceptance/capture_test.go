package acceptance_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// capture captures the work of f on the stream, which must not be disturbed: the graph has one
// kernel. With joins the capture begins on another stream of the program's, and the program draws
// the stream into it.
func (h *house) capture(s *vram.Stream, f func()) {
	h.t.Helper()
	if h.joins {
		h.draw(s, f)
		return
	}
	require.NoError(h.t, h.gpu.BeginCapture(s.Handle()))
	require.NoError(h.t, h.gpu.Launch(s.Handle(), time.Millisecond))
	f()
	g, err := h.gpu.EndCapture(s.Handle())
	require.NoError(h.t, err)
	assert.Equal(h.t, []string{"cuLaunchKernel"}, g.Calls(), "nothing of the allocator's is part of the graph")
	require.NoError(h.t, h.gpu.LaunchGraph(g, s.Handle()))
}

// draw is capture with a stream that is drawn into the capture of another.
func (h *house) draw(s *vram.Stream, f func()) {
	h.t.Helper()
	origin, err := h.gpu.StreamCreate()
	require.NoError(h.t, err)
	e, err := h.gpu.EventCreate()
	require.NoError(h.t, err)
	require.NoError(h.t, h.gpu.BeginCapture(origin))
	require.NoError(h.t, h.gpu.EventRecord(e, origin))
	require.NoError(h.t, h.gpu.StreamWaitEvent(s.Handle(), e))
	require.NoError(h.t, h.gpu.Launch(s.Handle(), time.Millisecond))
	f()
	require.NoError(h.t, h.gpu.EventRecord(e, s.Handle()))
	require.NoError(h.t, h.gpu.StreamWaitEvent(origin, e))
	g, err := h.gpu.EndCapture(origin)
	require.NoError(h.t, err)
	calls := []string{"cuEventRecord", "cuStreamWaitEvent", "cuLaunchKernel", "cuEventRecord", "cuStreamWaitEvent"}
	assert.Equal(h.t, calls, g.Calls(), "nothing of the allocator's is part of the graph")
	require.NoError(h.t, h.gpu.LaunchGraph(g, s.Handle()))
	require.NoError(h.t, h.gpu.StreamDestroy(origin))
	require.NoError(h.t, h.gpu.EventDestroy(e))
}

// eachKindOfStream runs a test on a stream of the device's and on an adopted one, each captured and
// drawn into a capture.
func eachKindOfStream(t *testing.T, cfg vram.Config, test func(t *testing.T, h *house, s *vram.Stream)) {
	t.Helper()
	eachKindWithin(t, func(t *testing.T, f func(*testing.T)) { t.Helper(); f(t) }, cfg, test)
}

// eachKindWithin runs each test within something.
func eachKindWithin(t *testing.T, within func(*testing.T, func(*testing.T)), cfg vram.Config, test func(t *testing.T, h *house, s *vram.Stream)) {
	t.Helper()
	for _, joins := range []bool{false, true} {
		for _, adopted := range []bool{false, true} {
			t.Run(fmt.Sprintf("adopted %v, drawn %v", adopted, joins), func(t *testing.T) {
				within(t, func(t *testing.T) {
					t.Helper()
					h := openHouse(t, cfg, sim.Config{})
					h.joins = joins
					if adopted {
						test(t, h, h.adopt())
					} else {
						test(t, h, h.stream())
					}
				})
			})
		}
	}
}

// While a stream is captured, requests that need no call on it are served; zeroing is refused with
// an error that names a remedy.
func TestRequestsDuringACapture(t *testing.T) {
	eachKindOfStream(t, vram.Config{LimitBytes: 64 * mib}, func(t *testing.T, h *house, s *vram.Stream) {
		t.Helper()
		freeAll(t, must(t, s, 8*mib), must(t, s, 3*kib))
		var inside []vram.Buffer
		h.capture(s, func() {
			inside = append(inside, must(t, s, 8*mib), must(t, s, 3*kib), must(t, s, 20*mib)) // cached, a magazine's, and mapped
			_, err := s.AllocFor(context.Background(), vram.Request{Bytes: mib, Zero: true})
			var refused *vram.CaptureError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, s.ID(), refused.Stream)
			assert.Equal(t, "cuMemsetD8Async", refused.Call)
			assert.ErrorContains(t, err, "before the capture begins")
		})
		zeroed, err := s.AllocFor(context.Background(), vram.Request{Bytes: mib, Zero: true})
		require.NoError(t, err)
		freeAll(t, append(inside, zeroed)...)
		h.addsUp()
	})
}

// Memory freed during a capture serves its own stream at once, and others once the capture has
// ended and a fence was recorded after it.
func TestFreesDuringACapture(t *testing.T) {
	eachKindOfStream(t, vram.Config{LimitBytes: 32 * mib}, func(t *testing.T, h *house, s *vram.Stream) {
		t.Helper()
		other := h.stream()
		early := must(t, s, 32*mib)
		h.capture(s, func() {
			freeAll(t, early)
			_, err := other.Alloc(32 * mib)
			require.ErrorIs(t, err, vram.ErrOutOfMemory)
			h.trim()
			again := must(t, s, 32*mib)
			assert.Equal(t, early.Ptr(), again.Ptr())
			freeAll(t, again)
			require.NoError(t, s.Trim(context.Background()))
			_, err = other.Alloc(mib)
			require.ErrorIs(t, err, vram.ErrOutOfMemory)
		})
		require.NoError(t, s.Trim(context.Background()))
		y := must(t, other, 32*mib)
		assert.GreaterOrEqual(t, max(h.gpu.Now(), h.busyUntil(other)), time.Millisecond, "behind the graph")
		freeAll(t, y)
		h.addsUp()
	})
}

// A request that only a fence could serve fails with both reasons.
func TestAShortageDuringACapture(t *testing.T) {
	eachKindOfStream(t, vram.Config{LimitBytes: 16 * mib}, func(t *testing.T, h *house, s *vram.Stream) {
		t.Helper()
		crumbs := []vram.Buffer{must(t, s, 6*mib), must(t, s, 4*mib), must(t, s, 6*mib)}
		freeAll(t, crumbs[0], crumbs[2])
		h.capture(s, func() {
			_, err := s.Alloc(12 * mib)
			require.ErrorIs(t, err, vram.ErrOutOfMemory)
			var refused *vram.CaptureError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, "cuEventRecord", refused.Call)
			err = s.AllocBatch(make([]vram.Buffer, 1), []int64{12 * mib})
			require.ErrorAs(t, err, &refused)
		})
		freeAll(t, must(t, s, 12*mib), crumbs[1])
	})
}

// A capture that has ended is no reason for a shortage, though nothing was asked of the stream
// since.
func TestAShortageAfterACapture(t *testing.T) {
	eachKindOfStream(t, vram.Config{LimitBytes: 16 * mib}, func(t *testing.T, h *house, s *vram.Stream) {
		t.Helper()
		all := must(t, s, 16*mib-4*kib)
		h.capture(s, func() {
			_, err := s.AllocFor(context.Background(), vram.Request{Bytes: kib, Zero: true})
			require.ErrorAs(t, err, new(*vram.CaptureError))
		})
		_, err := s.Alloc(8 * mib)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		require.NotErrorAs(t, err, new(*vram.CaptureError))
		err = s.AllocBatch(make([]vram.Buffer, 1), []int64{8 * mib})
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		require.NotErrorAs(t, err, new(*vram.CaptureError))
		freeAll(t, all)
	})
}

// A captured stream is not made to wait for another: the host waits.
func TestNoWaitOnACapturedStream(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 32 * mib}, sim.Config{})
	a, b := h.stream(), h.stream()
	x := must(t, a, 32*mib)
	require.NoError(t, h.gpu.Launch(a.Handle(), time.Second))
	freeAll(t, x)
	h.capture(b, func() {
		y := must(t, b, 32*mib)
		assert.GreaterOrEqual(t, h.gpu.Now(), time.Second)
		freeAll(t, y)
	})
	assert.Zero(t, h.faults.Calls("cuStreamWaitEvent"))
}

// A stream that is captured is not closed, and can be closed afterwards. The background leaves it
// alone.
func TestClosingACapturedStream(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // once: allocations of the process, not of the test
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{}, sim.Config{})
		s := h.stream()
		freeAll(t, must(t, s, 8*mib))
		h.capture(s, func() {
			<-time.After(3 * time.Second) // ticks, and a decay that would record
			synctest.Wait()
			var refused *vram.CaptureError
			require.ErrorAs(t, s.Close(), &refused)
			freeAll(t, must(t, s, 8*mib))
		})
		<-time.After(3 * time.Second)
		synctest.Wait()
		assert.Zero(t, h.Stats().CachedBytes)
		require.NoError(t, s.Close())
	})
}

// A stream that is captured is neither end of a Transfer, and is drawn into no capture by one;
// memory that it used becomes free after the capture. No background work in between is part of the
// graph.
func TestUsesAndTransfersDuringACapture(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // once: allocations of the process, not of the test
	eachKindWithin(t, synctest.Test, vram.Config{LimitBytes: 64 * mib}, func(t *testing.T, h *house, s *vram.Stream) {
		t.Helper()
		other := h.stream()
		mine, theirs, used := must(t, s, 2*mib), must(t, other, 2*mib), must(t, other, 4*mib)
		h.capture(s, func() {
			for _, transfer := range []func() error{
				func() error { _, err := mine.Transfer(other); return err },
				func() error { _, err := theirs.Transfer(s); return err },
			} {
				var refused *vram.CaptureError
				require.ErrorAs(t, transfer(), &refused)
				assert.Equal(t, s.ID(), refused.Stream)
			}
			u, err := used.Use(s)
			require.NoError(t, err)
			require.NoError(t, u.Done())
			freeAll(t, used)
			<-time.After(3 * time.Second) // ticks: looks at fences, and takes those that are missing
			synctest.Wait()
			h.trim()
			assert.EqualValues(t, 4*mib, h.Stats().PendingBytes)
			freeAll(t, must(t, other, 2*mib))
		})
		moved, err := mine.Transfer(other)
		require.NoError(t, err)
		back, err := theirs.Transfer(s)
		require.NoError(t, err)
		freeAll(t, moved, back)
		h.gpu.Advance(time.Second)
		for range 3 {
			h.trim() // takes the fences that were owed, and looks
		}
		assert.Zero(t, h.Stats().PendingBytes)
		assert.Zero(t, h.Stats().LostFences)
		h.addsUp()
	})
}

// captureAtRecord begins a capture of a stream right before the next fence is recorded, after the
// allocator was told that it is not captured. end ends it.
func (h *house) captureAtRecord(s *vram.Stream) (end func()) {
	h.t.Helper()
	h.faults.SetBefore(func(function string) {
		if function == "cuEventRecord" {
			h.faults.SetBefore(nil)
			assert.NoError(h.t, h.gpu.BeginCapture(s.Handle()))
		}
	})
	return func() {
		h.t.Helper()
		_, err := h.gpu.EndCapture(s.Handle())
		require.NoError(h.t, err, "the capture was not disturbed")
	}
}

// A fence that a capture swallows which begins at its record is neither asked about nor waited for:
// that would break the capture, or draw another stream into it. It is recorded again after the
// capture.
func TestACaptureThatBeginsAtAFence(t *testing.T) {
	for name, fence := range map[string]func(t *testing.T, s, other *vram.Stream, b vram.Buffer) vram.Buffer{
		"of a return": func(t *testing.T, s, _ *vram.Stream, b vram.Buffer) vram.Buffer {
			t.Helper()
			freeAll(t, b)
			require.NoError(t, s.Trim(context.Background()))
			return vram.Buffer{}
		},
		"of a transfer": func(t *testing.T, _, other *vram.Stream, b vram.Buffer) vram.Buffer {
			t.Helper()
			_, err := b.Transfer(other)
			require.ErrorAs(t, err, new(*vram.CaptureError))
			return b
		},
		"of a use": func(t *testing.T, s, other *vram.Stream, b vram.Buffer) vram.Buffer {
			t.Helper()
			shared := must(t, other, 4*mib)
			u, err := shared.Use(s)
			require.NoError(t, err)
			require.NoError(t, u.Done())
			freeAll(t, shared)
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachKindOfStream(t, vram.Config{LimitBytes: 32 * mib}, func(t *testing.T, h *house, s *vram.Stream) {
				t.Helper()
				other := h.stream()
				b := must(t, s, 24*mib)
				end := h.captureAtRecord(s)
				left := fence(t, s, other, b)
				h.trim()
				_, err := other.Alloc(16 * mib)
				require.ErrorIs(t, err, vram.ErrOutOfMemory)
				status, err := h.gpu.StreamIsCapturing(other.Handle())
				require.NoError(t, err)
				assert.Equal(t, cudadrv.CaptureNone, status)
				end()
				if left != (vram.Buffer{}) {
					left, err = left.Transfer(other)
					require.NoError(t, err)
					freeAll(t, left)
					h.trim() // it becomes free
				}
				require.NoError(t, s.Trim(context.Background()))
				freeAll(t, must(t, other, 32*mib))
				n := h.addsUp()
				assert.Positive(t, n.LostFences)
				assert.Zero(t, n.PendingBytes)
			})
		})
	}
}
