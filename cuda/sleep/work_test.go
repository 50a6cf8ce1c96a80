package sleep_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/sleep"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

func TestSleepIsBehindWorkOfEveryStream(t *testing.T) {
	r := newRig(t, sleep.Options{}, vramtest.Machine(sim.Config{Bytes: true, TimedKernels: true, KernelTime: func(string, cuda.Geometry) time.Duration { return time.Second }}))
	b, _ := r.filled(4*mib, 1)
	d := r.context()
	source, err := d.Alloc(4 * mib)
	require.NoError(t, err)
	want := randomBytes(4*mib, 2)
	require.NoError(t, cuda.CopyIn(d, source, want))
	require.NoError(t, d.Launch(r.touch, cuda.Cover(1, 1), cuda.In(source))) // a second
	require.NoError(t, d.Copy(cuda.Whole(b), cuda.Whole(source)))
	require.NoError(t, r.c.Launch(r.touch, cuda.Cover(1, 1), cuda.In(b))) // another one after it

	began := r.dev.Now()
	require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
	assert.GreaterOrEqual(t, r.dev.Now()-began, 2*time.Second)
	require.NoError(t, r.arena.Wake(t.Context()))
	r.holds(b, want)
	require.NoError(t, source.Free())
}

// TestTheContextEndsTheWaitForWork has the device never come to the end of the work until the test lets it.
func TestTheContextEndsTheWaitForWork(t *testing.T) {
	r := newFaultyRig(t, sleep.Options{})
	b, want := r.filled(4*mib, 1)
	release := newLatch(t)
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	r.faults.SetBefore(func(function string) {
		if function == "cuEventSynchronize" {
			once.Do(func() {
				cancel()
				<-release.opened
			})
		}
	})
	slept := make(chan error, 1)
	go func() { slept <- r.arena.Sleep(ctx, sleep.Save) }()
	var err error
	select {
	case err = <-slept:
	case <-time.After(time.Minute):
		require.Fail(t, "the wait did not end")
	}
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "waiting for work: context canceled; the arena is awake")
	release.open()
	r.faults.SetBefore(nil)
	r.holds(b, want)
	require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
	require.NoError(t, r.arena.Wake(t.Context()))
	r.holds(b, want)
}

// TestTheContextEndsBetweenBlocks ends a sleep and a wake after the first copy of each.
func TestTheContextEndsBetweenBlocks(t *testing.T) {
	r := newFaultyRig(t, sleep.Options{BlockBytes: mib})
	b, want := r.filled(4*mib, 1)
	during := func(call string, f func(context.Context) error) {
		ctx, cancel := context.WithCancel(t.Context())
		r.faults.SetBefore(func(function string) {
			if function == call {
				cancel()
			}
		})
		before := r.faults.Calls(call)
		require.ErrorIs(t, f(ctx), context.Canceled)
		assert.Equal(t, uint64(1), r.faults.Calls(call)-before)
		r.faults.SetBefore(nil)
	}
	during("cuMemcpyDtoHAsync", func(ctx context.Context) error { return r.arena.Sleep(ctx, sleep.Save) })
	assert.Equal(t, sleep.Awake, r.arena.State())
	r.holds(b, want)
	require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
	asleep := r.freeBytes()
	during("cuMemcpyHtoDAsync", r.arena.Wake)
	assert.Equal(t, sleep.Asleep, r.arena.State())
	assert.Equal(t, asleep, r.freeBytes(), "the memory went back")
	require.NoError(t, r.arena.Wake(t.Context()))
	r.holds(b, want)
}

// latch is opened once, at the end of its test at the latest.
type latch struct {
	opened chan struct{}
	once   sync.Once
}

func newLatch(t *testing.T) *latch {
	t.Helper()
	l := &latch{opened: make(chan struct{})}
	t.Cleanup(l.open)
	return l
}

func (l *latch) open() { l.once.Do(func() { close(l.opened) }) }

// TestALaunchThatHasBegunHoldsUpSleep has a launch stop in its driver call.
func TestALaunchThatHasBegunHoldsUpSleep(t *testing.T) {
	r := newFaultyRig(t, sleep.Options{})
	b, want := r.filled(4*mib, 1)
	reached, release := make(chan struct{}), newLatch(t)
	r.faults.SetBefore(func(function string) {
		if function == "cuLaunchKernel" {
			close(reached)
			<-release.opened
		}
	})
	launched := make(chan error, 1)
	go func() { launched <- r.c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(b)) }()
	<-reached
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, r.arena.Sleep(ctx, sleep.Save), context.DeadlineExceeded)
	assert.Equal(t, sleep.Awake, r.arena.State())
	slept := make(chan error, 1)
	go func() { slept <- r.arena.Sleep(t.Context(), sleep.Save) }()
	for { // until Sleep has begun
		x, err := r.arena.Alloc(512)
		if err != nil {
			require.ErrorIs(t, err, sleep.ErrAsleep)
			break
		}
		require.NoError(t, x.Free())
	}
	assert.Equal(t, sleep.Awake, r.arena.State())
	release.open()
	require.NoError(t, <-launched)
	require.NoError(t, <-slept)
	r.faults.SetBefore(nil)
	require.NoError(t, r.arena.Wake(t.Context()))
	r.holds(b, want)
}

func TestGraphsOfASleepingArena(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, sleep.Options{})
	b, want := r.filled(4*mib, 1)
	capture := func() (*cuda.Graph, error) {
		return r.c.Capture(func() error { return r.c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(b)) })
	}
	g, err := capture()
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	require.NoError(t, g.Launch(r.c))
	require.NoError(t, r.arena.Sleep(ctx, sleep.Save))
	require.ErrorIs(t, g.Launch(r.c), cuda.ErrAsleep)
	_, err = capture()
	require.ErrorIs(t, err, cuda.ErrAsleep)
	require.NoError(t, r.arena.Wake(ctx))
	require.NoError(t, g.Launch(r.c), "the addresses are the same")
	r.holds(b, want)
}

// The end of the context does not interrupt the release: a part of the memory would be of no use to others.
func TestTheReleaseIsNotInterrupted(t *testing.T) {
	for _, contents := range []sleep.Contents{sleep.Save, sleep.Drop} {
		r := newFaultyRig(t, sleep.Options{})
		b, _ := r.filled(8*mib, 1)
		ctx, cancel := context.WithCancel(t.Context())
		r.faults.SetBefore(func(function string) {
			if function == "cuMemUnmap" {
				cancel()
			}
		})
		require.NoError(t, r.arena.Sleep(ctx, contents))
		r.faults.SetBefore(nil)
		require.Error(t, ctx.Err(), "it has ended in the release")
		stats, err := r.arena.Stats(t.Context())
		require.NoError(t, err)
		assert.Equal(t, stats.HeldBytes, stats.SleepingBytes)
		require.NoError(t, r.arena.Wake(t.Context()))
		require.NoError(t, b.Free())
	}
}

// A graph with buffers of several arenas runs while all of them are awake.
func TestAGraphOfSeveralArenas(t *testing.T) {
	r := newRig(t, sleep.Options{})
	arenas := []*sleep.Arena{r.arena}
	for range 2 {
		a, err := sleep.New(r.c, sleep.Options{})
		require.NoError(t, err)
		arenas = append(arenas, a)
	}
	var buffers []cuda.Buffer
	for _, a := range arenas {
		b, err := a.Alloc(mib)
		require.NoError(t, err)
		buffers = append(buffers, b)
	}
	g, err := r.c.Capture(func() error {
		for _, b := range buffers {
			require.NoError(t, r.c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(b)))
		}
		return nil
	})
	require.NoError(t, err)
	for i, a := range arenas {
		require.NoError(t, a.Sleep(t.Context(), sleep.Save))
		require.ErrorIs(t, g.Launch(r.c), cuda.ErrAsleep, "arena %d", i)
		require.NoError(t, a.Wake(t.Context()))
		require.NoError(t, g.Launch(r.c))
	}
	require.NoError(t, g.Close())
	for i, b := range buffers {
		require.NoError(t, b.Free())
		if i > 0 {
			require.NoError(t, arenas[i].Close())
		}
	}
}

func TestACapturedStreamKeepsTheArenaAwake(t *testing.T) {
	r := newRig(t, sleep.Options{})
	b, want := r.filled(4*mib, 1)
	g, err := r.c.Capture(func() error {
		var captured *vram.CaptureError
		require.ErrorAs(t, r.arena.Sleep(t.Context(), sleep.Save), &captured)
		return r.c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(b))
	})
	require.NoError(t, err)
	require.NoError(t, g.Launch(r.c))
	require.NoError(t, g.Close())
	r.holds(b, want)
}

func TestAllWorkIsRefused(t *testing.T) {
	r := newRig(t, sleep.Options{})
	a, _ := r.filled(mib, 1)
	other, err := r.c.Alloc(mib)
	require.NoError(t, err)
	require.NoError(t, r.arena.Sleep(t.Context(), sleep.Drop))
	part, whole := cuda.Whole(a), cuda.Whole(other)
	calls := r.dev.Stats().DriverCalls
	for name, work := range map[string]func() error{
		"copy from":   func() error { return r.c.Copy(whole, part) },
		"copy to":     func() error { return r.c.Copy(part, whole) },
		"copy in":     func() error { return r.c.CopyInAsync(part, make([]byte, mib)) },
		"copy out":    func() error { return r.c.CopyOutAsync(make([]byte, mib), part) },
		"fill":        func() error { return r.c.Fill8(part, 1) },
		"wide fill":   func() error { return r.c.Fill32(part, 1) },
		"launch":      func() error { return r.c.Launch(r.touch, cuda.Cover(1, 1), cuda.In(a)) },
		"by the hand": func() error { return r.c.Submit(nil, part) },
	} {
		require.ErrorIs(t, work(), cuda.ErrAsleep, name)
	}
	assert.Equal(t, calls, r.dev.Stats().DriverCalls)
	require.NoError(t, other.Free())
}

func TestStreamsThatUsedTheArenaAreClosed(t *testing.T) {
	r := newRig(t, sleep.Options{})
	b, want := r.filled(mib, 1)
	s := r.dev.Stream()
	c, err := cuda.NewContext(s)
	require.NoError(t, err)
	require.NoError(t, c.Launch(r.touch, cuda.Cover(1, 1), cuda.In(b)))
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
	require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
	require.NoError(t, r.arena.Wake(t.Context()))
	r.holds(b, want)
}

func TestTheArenaIsClosedAsleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, sleep.Options{})
		before := r.freeBytes()
		b, err := r.arena.Alloc(9 * mib)
		require.NoError(t, err)
		c, err := r.arena.Alloc(4 * kib)
		require.NoError(t, err)
		require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
		require.NoError(t, c.Free())
		require.NoError(t, r.arena.Close())
		require.NoError(t, r.arena.Close())
		require.ErrorIs(t, r.c.Fill8(cuda.Whole(b), 1), cuda.ErrAsleep)
		require.NoError(t, b.Free())
		synctest.Wait() // a closed stream returns memory after Free
		n := r.dev.Stats()
		assert.Equal(t, [...]int64{0, 0, 0}, [...]int64{n.SleepingBytes, n.LiveBytes, n.ReservedBytes})
		assert.Equal(t, before, r.freeBytes())
	})
}

func TestTheArenaIsClosedAwake(t *testing.T) {
	r := newRig(t, sleep.Options{})
	b, want := r.filled(9*mib, 1)
	require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
	require.NoError(t, r.arena.Wake(t.Context()))
	require.NoError(t, r.arena.Close())
	r.holds(b, want)
	require.NoError(t, b.Free())
}

func TestTheDeviceIsClosedAsleep(t *testing.T) {
	for _, all := range []bool{true, false} {
		r := newRig(t, sleep.Options{})
		b, _ := r.filled(9*mib, 1)
		other, err := r.c.Alloc(mib)
		require.NoError(t, err)
		if all { // only sleeping memory is left on the device
			require.NoError(t, other.Free())
			require.NoError(t, r.c.Stream().Close())
		}
		require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
		var inUse *vram.InUseError
		require.ErrorAs(t, r.dev.Close(), &inUse)
		err = r.arena.Wake(t.Context())
		require.ErrorIs(t, err, sleep.ErrClosed)
		require.NotContains(t, err.Error(), "giving memory back", "there is none")
		_, err = sleep.New(r.c, sleep.Options{})
		require.ErrorIs(t, err, sleep.ErrClosed)
		require.ErrorIs(t, b.Free(), vram.ErrClosed)
		assert.Equal(t, sleep.Asleep, r.arena.State())
	}
}

// An arena of a device that was closed says so, and does not fall asleep.
func TestTheDeviceIsClosedAwake(t *testing.T) {
	r := newRig(t, sleep.Options{})
	b, _ := r.filled(9*mib, 1)
	var inUse *vram.InUseError
	require.ErrorAs(t, r.dev.Close(), &inUse)
	err := r.arena.Sleep(t.Context(), sleep.Save)
	require.ErrorIs(t, err, sleep.ErrClosed)
	require.ErrorContains(t, err, "saving contents")
	assert.Equal(t, sleep.Awake, r.arena.State())
	n, err := r.arena.Stats(t.Context())
	require.ErrorIs(t, err, sleep.ErrClosed)
	assert.Zero(t, n)
	_, err = r.arena.Alloc(mib)
	require.ErrorIs(t, err, sleep.ErrClosed)
	require.ErrorIs(t, b.Free(), vram.ErrClosed)
}

func TestConcurrentCalls(t *testing.T) {
	r := newRig(t, sleep.Options{BlockBytes: mib})
	b, want := r.filled(3*mib, 1)
	var group sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		c := r.context()
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, err := range []error{
					c.Launch(r.touch, cuda.Cover(1, 1), cuda.In(b)),
					func() error {
						x, err := r.arena.Alloc(100 * kib)
						if err != nil {
							return err
						}
						err = c.Fill8(cuda.Whole(x), 7)
						assert.NoError(t, x.Free())
						return err
					}(),
				} {
					if err != nil {
						assert.ErrorIs(t, err, sleep.ErrAsleep)
					}
				}
			}
		})
	}
	for range 10 {
		require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
		require.NoError(t, r.arena.Wake(t.Context()))
	}
	close(stop)
	group.Wait()
	r.holds(b, want)
}

// A buffer that was freed after a capture belongs to the graph alone. Its contents are restored like live buffers' contents.
func TestContentsThatOnlyAGraphHoldsComeBack(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, sleep.Options{})
	b, err := r.arena.Alloc(4 * mib)
	require.NoError(t, err)
	want := r.fill(b, 1)
	out, err := r.c.Alloc(4 * mib)
	require.NoError(t, err)
	defer func() { require.NoError(t, out.Free()) }()
	g, err := r.c.Capture(func() error { return r.c.Copy(cuda.Whole(out), cuda.Whole(b)) })
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	require.NoError(t, b.Free())
	for range 2 {
		require.NoError(t, r.arena.Sleep(ctx, sleep.Save))
		require.ErrorIs(t, g.Launch(r.c), cuda.ErrAsleep)
		require.NoError(t, r.arena.Wake(ctx))
		require.NoError(t, r.c.Fill8(cuda.Whole(out), 0))
		require.NoError(t, g.Launch(r.c))
		r.holds(out, want)
	}
}
