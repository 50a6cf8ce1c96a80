package streams

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// sleeper makes a sleeper, as the submitter of a stream of the device does.
func (r *rig) sleeper(t *testing.T, of *Stream) Sleeper {
	t.Helper()
	of.sibling = func() (*Stream, error) { return r.stream(core.Budget{}), nil }
	x, err := submitter(t, of).NewSleeper()
	require.NoError(t, err)
	return x
}

// Each call on a sleeper is announced until it has ended: Close waits for copies, and Shut for allocations.
func TestEachCallOnASleeperIsAnnounced(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	x := r.sleeper(t, r.stream(core.Budget{}))
	during := map[string][]int64{} // calls and allocations in progress
	note := func(function string) {
		during[function] = append(during[function], x.s.cuda.calls.Load(), x.s.cuda.gate.word.Load())
	}
	r.faults.SetBefore(func(function string) {
		if function == "cuStreamSynchronize" || function == "cuMemCreate" {
			note(function)
		}
	})
	b, err := x.Alloc(2 * mib)
	require.NoError(t, err)
	require.NoError(t, x.Copy(func(cudadrv.Stream) error { note("a copy"); return nil }))
	require.NoError(t, x.AwaitCopies())
	r.faults.SetBefore(nil)
	assert.Equal(t, map[string][]int64{"cuMemCreate": {0, 1}, "a copy": {1, 0}, "cuStreamSynchronize": {1, 0, 1, 0}}, during)
	require.NoError(t, b.Free())
}

// A sleeper that cannot be made is none, and says why: where its stream cannot be opened, and where it fails at once.
func TestASleeperThatCannotBe(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	home, failed := r.stream(core.Budget{}), r.stream(core.Budget{})
	_, err := submitter(t, home).NewSleeper()
	require.ErrorIs(t, err, ErrNotOpen)
	_, err = submitter(t, home).NewHold()
	require.ErrorIs(t, err, ErrNotOpen)
	cause := errors.New("planted")
	failed.ref.Stop(cause)
	<-failed.ref.Done()
	for want, open := range map[error]func() (*Stream, error){
		cudadrv.Unknown: func() (*Stream, error) { return nil, cudadrv.Unknown },
		cause:           func() (*Stream, error) { return failed, nil },
	} {
		home.sibling = open
		x, err := submitter(t, home).NewSleeper()
		require.ErrorIs(t, err, want)
		assert.Zero(t, x)
		h, err := submitter(t, home).NewHold()
		require.ErrorIs(t, err, want)
		assert.Zero(t, h)
	}
}

// The work on the memory of a sleeper has finished once it is shut, its copies were waited for, and its release has begun; and may be
// unfinished again from the next copy, restore or opening on.
func TestWhenTheWorkOfASleeperHasFinished(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	x := r.sleeper(t, r.stream(core.Budget{}))
	b, err := x.Alloc(4 * mib)
	require.NoError(t, err)
	finished := x.s.cuda.gate.finished
	copies := func() {
		require.NoError(t, x.Copy(func(on cudadrv.Stream) error { return r.gpu.Launch(on, time.Second) }))
	}
	assert.False(t, finished())
	require.NoError(t, x.Shut(t.Context()))
	require.NoError(t, x.Settle(t.Context()))
	assert.True(t, Asleep(x.s))
	_, err = x.Alloc(mib)
	require.ErrorIs(t, err, ErrAsleep)
	copies()
	r.fail("cuStreamSynchronize")
	require.ErrorIs(t, x.AwaitCopies(), cudadrv.Unknown)
	r.faults.Clear()
	for call := range uint64(2) { // of the allocator's view and of the program's
		require.NoError(t, r.faults.Add(fault.Rule{Func: "cuStreamSynchronize", First: call + 1, Count: 1, Result: cudadrv.Unknown}))
		require.ErrorIs(t, x.AwaitCopies(), cudadrv.Unknown)
		assert.True(t, x.s.cuda.gate.copies.Load(), "they may be unfinished")
		r.faults.Clear()
		copies()
	}
	now := r.gpu.Now()
	require.NoError(t, x.AwaitCopies())
	assert.GreaterOrEqual(t, r.gpu.Now()-now, time.Second, "it waits for them")
	assert.False(t, finished(), "there may be other work")
	bytes, err := x.Release(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 4*mib, bytes)
	assert.True(t, finished())
	copies()
	assert.False(t, finished(), "a copy")
	require.NoError(t, x.AwaitCopies())
	assert.True(t, finished())
	require.NoError(t, x.Restore(t.Context()))
	assert.False(t, finished(), "its memory is back")
	x.Open()
	assert.False(t, Asleep(x.s))
	require.NoError(t, b.Free())
	assert.False(t, x.Ended())
	require.NoError(t, x.Close())
	assert.True(t, x.Ended())
	require.ErrorIs(t, x.Copy(nil), ErrClosed)
	require.ErrorIs(t, x.AwaitCopies(), ErrClosed)
	_, err = x.Release(t.Context())
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, x.Restore(t.Context()), ErrClosed)
}

// A restore that the pool refuses asks the device's handler once: it is repeated if that frees memory, and its error is the refusal
// otherwise, also where the handler panics, or ends its goroutine.
func TestARestoreAsksTheHandler(t *testing.T) {
	t.Parallel()
	recoveredtest.Expect(t, "OnOutOfMemory: the function ended its goroutine")
	for name, c := range map[string]struct {
		frees, panics, ends, none bool
	}{
		"it frees memory": {frees: true}, "it does not": {}, "it panics": {panics: true}, "it ends its goroutine": {ends: true},
		"there is none": {none: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, home, other := pair(t, 16*mib)
			x := r.sleeper(t, home)
			b, err := x.Alloc(8 * mib)
			require.NoError(t, err)
			require.NoError(t, x.Shut(t.Context()))
			_, err = x.Release(t.Context())
			require.NoError(t, err)
			taken := must(t, other, 10*mib)
			asked := 0
			if !c.none {
				x.s.handler = func(short *pool.OutOfMemoryError) bool {
					asked++
					assert.Equal(t, 8*mib, short.RequestedBytes)
					if c.panics {
						panic(recoveredtest.Planted("a handler's mistake"))
					}
					if c.ends {
						runtime.Goexit()
					}
					if c.frees {
						assert.NoError(t, taken.Free())
					}
					return c.frees
				}
			}
			err = x.Restore(t.Context())
			if c.frees {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, pool.ErrOutOfMemory)
			}
			assert.Equal(t, !c.none, asked == 1)
			assert.Equal(t, c.panics, err != nil && strings.Contains(err.Error(), "a handler's mistake"))
			assert.Equal(t, c.ends, err != nil && strings.Contains(err.Error(), "the function ended its goroutine"))
			if !c.frees {
				require.NoError(t, taken.Free())
				require.NoError(t, x.Restore(t.Context()))
			}
			require.NoError(t, b.Free())
		})
	}
}

// Each driver call of Settle that fails is its error, and leaves nothing: the next one waits for the work.
func TestASettleThatFails(t *testing.T) {
	t.Parallel()
	r, home, user := pair(t, 64*mib)
	x := r.sleeper(t, home)
	b, err := x.Alloc(4 * mib)
	require.NoError(t, err)
	const takes = time.Second
	r.crosses(user, b, true, takes)
	for _, function := range []string{"cuEventRecord", "cuStreamWaitEvent", "cuEventSynchronize"} {
		r.fail(function)
		require.ErrorIs(t, x.Settle(t.Context()), cudadrv.Unknown, function)
		r.faults.Clear()
		r.until(func() bool { return user.cuda.calls.Load() == 0 }) // Close waits for none
	}
	recoveredtest.Expect(t, "driver: the function ended its goroutine")
	r.ends("cuEventSynchronize")
	require.ErrorContains(t, x.Settle(t.Context()), "the function ended its goroutine")
	require.NoError(t, x.Settle(t.Context()))
	assert.GreaterOrEqual(t, r.gpu.Now(), takes)
	users := []*Stream{r.stream(core.Budget{}), r.stream(core.Budget{}), r.stream(core.Budget{}), r.stream(core.Budget{})}
	for _, user := range users {
		r.crosses(user, b, false, 0)
	}
	require.NoError(t, users[0].Close(), "it has finished")
	start := r.gpu.Now()
	for i, user := range users[1:] {
		r.work(user, time.Duration(i+1)*takes)
	}
	require.NoError(t, x.Settle(t.Context()))
	assert.Equal(t, start+3*takes, r.gpu.Now(), "each was waited for")
	require.NoError(t, b.Free())
}

// The contents of a sleeper are its live buffers and the freed ones that are in use, in the order of their addresses.
func TestTheContentsOfASleeper(t *testing.T) {
	t.Parallel()
	r, home, user := pair(t, 64*mib)
	x := r.sleeper(t, home)
	want := map[cudadrv.Ptr]bool{}
	var all []Buffer
	for _, bytes := range []int64{2 * mib, 4 * kib, 64 * kib, 2 * mib, 4 * kib, 3 * mib} {
		b, err := x.Alloc(bytes)
		require.NoError(t, err)
		all, want[b.Ptr()] = append(all, b), true
	}
	require.NoError(t, all[0].RecordStream(user))
	r.work(user, time.Second)
	require.NoError(t, all[0].Free())
	delete(want, all[3].Ptr())
	require.NoError(t, all[3].Free())
	contents, err := x.Contents(t.Context())
	require.NoError(t, err)
	assert.Len(t, contents, len(want))
	for i, m := range contents {
		assert.True(t, want[m.Ptr], "%#x", m.Ptr)
		assert.True(t, i == 0 || contents[i-1].Ptr+cudadrv.Ptr(contents[i-1].Bytes) <= m.Ptr)
	}
}

// A work on the memory of a sleeper waits for copies that may not have finished; its error is the driver's.
func TestAWorkAfterCopies(t *testing.T) {
	t.Parallel()
	r, home, user := pair(t, 64*mib)
	x := r.sleeper(t, home)
	b, err := x.Alloc(4 * mib)
	require.NoError(t, err)
	require.NoError(t, x.Copy(func(on cudadrv.Stream) error { return r.gpu.Launch(on, time.Second) }))
	r.fail("cuStreamWaitEvent")
	c := Submitter{user}.Crossing()
	require.ErrorIs(t, c.Touch(b, true, 0), cudadrv.Unknown)
	c.Leave()
	r.faults.Clear()
	r.crosses(user, b, true, 0)
	require.NoError(t, user.cuda.synchronize())
	assert.GreaterOrEqual(t, r.gpu.Now(), time.Second)
	require.NoError(t, b.Free())
}

// All memory of a sleeper sleeps, also where the pool makes handles of several pages and other streams take their rest.
func TestASleeperSharesNoHandle(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	require.NoError(t, r.pool.Reconfigure(t.Context(), poolcore.Settings{
		LimitBytes: 64 * mib, Policy: poolcore.Policy{HandlePages: 4, Slack: 1024},
	}))
	_, err := r.pool.Warm(t.Context(), []uint32{4}) // a handle of which each may take a part
	require.NoError(t, err)
	x := r.sleeper(t, home)
	b, err := x.Alloc(2 * mib)
	require.NoError(t, err)
	taken := must(t, other, 2*mib)
	require.NoError(t, x.Shut(t.Context()))
	bytes, err := x.Release(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2*mib, bytes)
	require.NoError(t, x.Restore(t.Context()))
	require.NoError(t, b.Free())
	require.NoError(t, taken.Free())
}

// However often a stream has read memory that can sleep, its next work enters the gate: no read of it is plain.
func TestReadsOfMemoryThatCanSleepAreNeverPlain(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	other := r.stream(core.Budget{})
	x := r.sleeper(t, other)
	b, err := x.Alloc(mib)
	require.NoError(t, err)
	for range 2 * steadyReads {
		r.crosses(other, b, false, 0)
		assert.False(t, r.quietly(other, b))
	}
	require.NoError(t, x.Shut(t.Context()))
	c := Submitter{other}.Crossing()
	require.ErrorIs(t, c.Touch(b, false, 0), ErrAsleep)
	c.Leave()
	x.Open()
	r.crosses(other, b, false, 0)
	require.NoError(t, b.Free())
}
