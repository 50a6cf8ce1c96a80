package acceptance_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/pool"
)

// exclusive is a stream that one goroutine uses.
func (h *house) exclusive() *vram.Stream {
	s := h.stream()
	s.Exclusive()
	return s
}

// waitFor asks on a goroutine of its own.
func waitFor(s *vram.Stream, want vram.Request) <-chan served {
	return waitWithin(context.Background(), s, want)
}

func waitWithin(ctx context.Context, s *vram.Stream, want vram.Request) <-chan served {
	want.Wait = true
	answer := make(chan served, 1)
	go func() {
		b, err := s.AllocFor(ctx, want)
		answer <- served{b, err}
	}()
	return answer
}

type served struct {
	vram.Buffer
	err error
}

// got is an answer that must have come.
func got(t *testing.T, answer <-chan served) vram.Buffer {
	t.Helper()
	synctest.Wait()
	select {
	case a := <-answer:
		require.NoError(t, a.err)
		return a.Buffer
	default:
		require.Fail(t, "it still waits")
	}
	return vram.Buffer{}
}

// deadlocked fails the test if the request has not been refused since nobody would free.
func deadlocked(t *testing.T, answer <-chan served) {
	t.Helper()
	synctest.Wait()
	select {
	case a := <-answer:
		require.ErrorIs(t, a.err, vram.ErrWouldDeadlock)
	default:
		require.Fail(t, "it waits for ever")
	}
}

// waits fails the test if an answer has come.
func waits(t *testing.T, answers ...<-chan served) {
	t.Helper()
	synctest.Wait()
	for _, answer := range answers {
		select {
		case a := <-answer:
			require.Failf(t, "it has not waited", "%v, %v", a.Buffer, a.err)
		default:
		}
	}
}

// A waiting request is served as soon as another stream frees enough memory: without a tick.
func TestARequestWaitsForAFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b := h.stream(), h.stream()
		x := must(t, a, 64*mib)
		y := waitFor(b, vram.Request{Bytes: 48 * mib})
		waits(t, y)
		assert.Equal(t, 1, h.Stats().Waits.Waiting)
		before := time.Now()
		freeAll(t, x)
		freeAll(t, got(t, y))
		assert.Zero(t, time.Since(before))
		n := h.Stats().Waits
		assert.EqualValues(t, 1, n.Durations.Count())
		assert.Equal(t, pool.WaitStats{Count: 1, Longest: n.Longest, Durations: n.Durations}, n)
		h.addsUp()
	})
}

// The oldest request is served first; a smaller one may use memory that the older cannot use yet,
// up to as much as that wants itself.
func TestTheOrderOfThoseThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		holder, b, c := h.stream(), h.stream(), h.stream()
		var parts []vram.Buffer
		for range 16 {
			parts = append(parts, must(t, holder, 4*mib))
		}
		large := waitFor(b, vram.Request{Bytes: 24 * mib})
		waits(t, large)
		var small []<-chan served
		for range 10 {
			small = append(small, waitFor(c, vram.Request{Bytes: 4 * mib}))
			waits(t, small...)
		}
		for i := range 6 { // 24 MiB may pass
			freeAll(t, parts[i])
			got(t, small[i])
		}
		for i := 6; i < 11; i++ { // and no more: later frees are the large one's
			freeAll(t, parts[i])
			waits(t, append(small[6:], large)...)
		}
		freeAll(t, parts[11])
		got(t, large)
		for i := 6; i < 10; i++ {
			freeAll(t, parts[i+6])
			got(t, small[i])
		}
		h.addsUp()
	})
}

func TestPrioritiesGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 16 * mib}, sim.Config{})
		a, b, c := h.stream(), h.stream(), h.stream()
		x := must(t, a, 16*mib)
		first := waitFor(b, vram.Request{Bytes: 16 * mib})
		waits(t, first)
		urgent := waitFor(c, vram.Request{Bytes: 16 * mib, Priority: 1})
		waits(t, first, urgent)
		freeAll(t, x)
		y := got(t, urgent)
		waits(t, first)
		freeAll(t, y)
		freeAll(t, got(t, first))
	})
}

// The end of a wait gives its place up: others are granted at once, and nothing is kept.
func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b := h.stream(), h.stream()
		x, rest := must(t, a, 60*mib), must(t, a, 4*mib)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		large := waitWithin(ctx, b, vram.Request{Bytes: 8 * mib})
		waits(t, large)
		second := waitWithin(ctx, b, vram.Request{Bytes: 8 * mib})
		waits(t, second)
		third := waitFor(b, vram.Request{Bytes: 4 * mib})
		waits(t, third)
		freeAll(t, rest)
		got(t, third) // passes both
		fourth := waitFor(b, vram.Request{Bytes: 8 * mib})
		waits(t, fourth)
		<-ctx.Done() // the clock jumps there
		synctest.Wait()
		err := (<-large).err
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var ended *vram.WaitError
		require.ErrorAs(t, err, &ended)
		assert.ErrorContains(t, err, "vram: waited 1s for 8 MiB on stream 2: context deadline exceeded; stream 1 holds 60 MiB, stream 2 holds 4 MiB")
		bare := *ended
		bare.Position, bare.Ahead, bare.Largest = 0, nil, nil // two waits end at once
		assert.Equal(t, vram.WaitError{
			RequestedBytes: 8 * mib, Stream: 2, Waited: time.Second, Err: context.DeadlineExceeded,
			Holders: []pool.Holder{{Stream: 1, HeldBytes: 60 * mib}, {Stream: 2, HeldBytes: 4 * mib}},
		}, bare)
		require.ErrorIs(t, (<-second).err, context.DeadlineExceeded)
		freeAll(t, x)
		got(t, fourth)
		assert.Zero(t, h.Stats().Waits.Waiting)
		assert.EqualValues(t, time.Second, h.Stats().Waits.Longest)
		f := b.AllocAsync(context.Background(), vram.Request{Bytes: 64 * mib, Wait: true})
		synctest.Wait()
		require.True(t, f.Cancel())
		synctest.Wait()
		assert.Zero(t, h.Stats().Waits.Waiting)
		h.addsUp()
	})
}

// A batch that waits holds nothing, and gets all at once.
func TestABatchWaitsForAllOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b, c := h.stream(), h.stream(), h.stream()
		x, y := must(t, a, 32*mib), must(t, a, 16*mib)
		f := b.AllocBatchForAsync(context.Background(), vram.BatchRequest{Bytes: []int64{16 * mib, 16 * mib, 20 * mib}, Wait: true})
		synctest.Wait()
		require.False(t, f.Completed())
		z := must(t, c, 16*mib) // the batch keeps none of it
		freeAll(t, x)
		synctest.Wait()
		require.False(t, f.Completed())
		freeAll(t, y)
		synctest.Wait()
		require.False(t, f.Completed())
		freeAll(t, z)
		synctest.Wait()
		require.True(t, f.Completed())
		got, err := f.Await(context.Background())
		require.NoError(t, err)
		require.NoError(t, got.Free())
		h.addsUp()
	})
}

// Pages that a request got and did not use serve other waiting requests at once.
func TestWhatAWaitDidNotUseServesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b, c := h.stream(), h.stream(), h.stream()
		x, y := must(t, a, 32*mib), must(t, a, 30*mib)
		z := must(t, b, 2*mib) // so that it gets a reclaim request before its grant

		aligned := waitFor(b, vram.Request{Bytes: 16 * mib, Align: 16 * mib}) // any 32 MiB have a place for it
		waits(t, aligned)
		other := waitFor(c, vram.Request{Bytes: 12 * mib})
		waits(t, aligned, other)
		freeAll(t, x)
		served := got(t, aligned)
		freeAll(t, served, got(t, other), y, z)
		h.addsUp()
	})
}

// If all holders of memory wait, the youngest request is refused; its memory serves the others.
func TestADeadlockIsDeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b, c := h.exclusive(), h.exclusive(), h.exclusive()
		x, y, z := must(t, a, 24*mib), must(t, b, 24*mib), must(t, c, 16*mib)
		first := waitFor(a, vram.Request{Bytes: 24 * mib})
		waits(t, first)
		second := waitFor(b, vram.Request{Bytes: 8 * mib})
		waits(t, first, second)
		freeAll(t, z) // passes nobody by more than may be: the second has it
		w := got(t, second)
		waits(t, first)
		second = waitFor(b, vram.Request{Bytes: 16 * mib}) // a holds 24, b 32
		synctest.Wait()
		waits(t, first)
		err := (<-second).err
		var deadlock *vram.DeadlockError
		require.ErrorAs(t, err, &deadlock)
		require.ErrorIs(t, err, vram.ErrWouldDeadlock)
		assert.Len(t, deadlock.Holders, 2)
		assert.Len(t, deadlock.Waiters, 2)
		assert.EqualValues(t, 1, h.Stats().Waits.Deadlocks)
		freeAll(t, y, w)
		freeAll(t, x, got(t, first))
		h.addsUp()
	})
}

// A stream, or a tenant, has several callers unless it says otherwise: one that waits is no sign
// that the others do.
func TestASharedStreamWaitsForItself(t *testing.T) {
	for name, quota := range map[string]*vram.Quota{"stream": nil, "tenant": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
				s := h.stream()
				var tenant *vram.Tenant
				if quota != nil {
					tenant = h.tenant("several", *quota)
				}
				x, err := s.AllocFor(context.Background(), vram.Request{Bytes: 48 * mib, Tenant: tenant})
				require.NoError(t, err)
				y := waitFor(s, vram.Request{Bytes: 48 * mib, Tenant: tenant})
				waits(t, y)
				freeAll(t, x)
				freeAll(t, got(t, y))
				h.addsUp()
			})
		})
	}
}

// The receiver of a buffer by Transfer frees memory of the stream that it was allocated on.
func TestATransferredBufferIsNoDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b := h.exclusive(), h.exclusive()
		x := must(t, a, 48*mib)
		x, err := x.Transfer(b)
		require.NoError(t, err)
		y := waitFor(a, vram.Request{Bytes: 48 * mib})
		waits(t, y)
		freeAll(t, x)
		freeAll(t, got(t, y))
		h.addsUp()
	})
}

// A future that nobody awaits blocks nobody: its caller may free.
func TestAFutureIsNoDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		s := h.exclusive()
		x := must(t, s, 48*mib)
		next := s.AllocAsync(context.Background(), vram.Request{Bytes: 48 * mib, Wait: true})
		synctest.Wait()
		require.False(t, next.Completed())
		freeAll(t, x)
		y, err := next.Await(context.Background())
		require.NoError(t, err)
		next = s.AllocAsync(context.Background(), vram.Request{Bytes: 48 * mib, Wait: true})
		_, err = next.Await(context.Background())
		require.ErrorIs(t, err, vram.ErrWouldDeadlock)
		freeAll(t, y)
		h.addsUp()
	})
}

// A stream whose goroutine waits for another's work counts as waiting until that is there.
func TestASuspendedStreamFreesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b := h.exclusive(), h.exclusive()
		x := must(t, a, 48*mib)
		resume := a.Suspend()
		y := must(t, b, 16*mib)
		z := waitFor(b, vram.Request{Bytes: 16 * mib}) // only b's goroutine can resume a
		deadlocked(t, z)
		resume()
		resume() // does nothing
		z = waitFor(b, vram.Request{Bytes: 16 * mib})
		waits(t, z)
		resume = a.Suspend()
		deadlocked(t, z)
		c := h.stream() // holds nothing and wants nothing
		z = waitFor(b, vram.Request{Bytes: 16 * mib})
		deadlocked(t, z)
		resume()
		resume = a.Suspend(b, c) // is runnable, and may resume a
		z = waitFor(b, vram.Request{Bytes: 16 * mib})
		waits(t, z)
		resumeToo := c.Suspend(a)
		deadlocked(t, z)
		resumeToo()
		z = waitFor(b, vram.Request{Bytes: 16 * mib})
		waits(t, z)
		require.NoError(t, c.Close())
		h.Stats()   // a turn of the pool
		waits(t, z) // c's goroutine may resume a after the close
		resume()
		freeAll(t, x)
		freeAll(t, y, got(t, z))
		h.addsUp()
	})
}

// A stream that stays suspended while one wait ends and the next begins is suspended for both.
func TestAStreamIsSuspendedForAllWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b := h.exclusive(), h.exclusive()
		x := must(t, a, 32*mib)
		resume := a.Suspend()
		for range 3 {
			y := must(t, b, 32*mib)
			z := waitFor(b, vram.Request{Bytes: 32 * mib})
			deadlocked(t, z)
			freeAll(t, y)
		}
		y := must(t, b, 32*mib)
		resume()
		z := waitFor(b, vram.Request{Bytes: 32 * mib})
		waits(t, z) // though nobody waited when a resumed
		freeAll(t, x)
		freeAll(t, y, got(t, z))
		h.addsUp()
	})
}

// The program's own handler may free and have a request tried again; a request that it refuses
// fails, or waits.
func TestAHandlerHelps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var spare []vram.Buffer
		var asked []int64
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib, OnOutOfMemory: func(e *vram.OutOfMemoryError) bool {
			asked = append(asked, e.RequestedBytes)
			if len(spare) == 0 {
				return false
			}
			freeAll(t, spare[0])
			spare = spare[1:]
			return true
		}}, sim.Config{})
		a, b := h.stream(), h.stream()
		for range 4 {
			spare = append(spare, must(t, a, 16*mib))
		}
		x := must(t, b, 32*mib) // two of them, one after the other
		assert.Equal(t, []int64{32 * mib, 32 * mib}, asked)
		assert.Len(t, spare, 2)
		y := must(t, b, 32*mib)
		_, err := b.Alloc(16 * mib)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		assert.Len(t, asked, 5)
		z := waitFor(b, vram.Request{Bytes: 16 * mib})
		waits(t, z)
		assert.Len(t, asked, 6)
		freeAll(t, x, y)
		freeAll(t, got(t, z))
		h.addsUp()
	})
}

func TestAHandlerThatNeverEndsIsAskedSixteenTimes(t *testing.T) {
	asked := 0
	h := openHouse(t, vram.Config{LimitBytes: 16 * mib, OnOutOfMemory: func(*vram.OutOfMemoryError) bool {
		asked++
		return true
	}}, sim.Config{})
	s := h.stream()
	x := must(t, s, 16*mib)
	dst := make([]vram.Buffer, 2)
	require.ErrorIs(t, s.AllocBatch(dst, []int64{8 * mib, 4 * mib}), vram.ErrOutOfMemory)
	assert.Equal(t, 16, asked)
	freeAll(t, x)
}

// A handler that does not return says no, and the error has the reason, in each way in which a request is made.
func TestAHandlerThatDoesNotReturnSaysNo(t *testing.T) {
	recoveredtest.Expect(t, "OnOutOfMemory: the function ended its goroutine")
	for want, misbehave := range map[string]func(){
		"my own mistake":                   func() { panic(recoveredtest.Planted("my own mistake")) },
		"the function ended its goroutine": runtime.Goexit,
	} {
		for name, ask := range ways() {
			if name == "a reservation" { // it asks no handler
				continue
			}
			h := openHouse(t, vram.Config{OnOutOfMemory: func(*vram.OutOfMemoryError) bool {
				misbehave()
				return true
			}}, sim.Config{TotalBytes: 4 * gib})
			s := h.stream()
			x := must(t, s, 2*gib)
			err := ask(t.Context(), h.Device, s)
			require.ErrorIs(t, err, vram.ErrOutOfMemory, name)
			require.ErrorContains(t, err, "vram: OnOutOfMemory panicked: ", name)
			require.ErrorContains(t, err, want, name)
			freeAll(t, x)
			assert.EqualValues(t, 1, h.Stats().Panics, name)
		}
	}
}
