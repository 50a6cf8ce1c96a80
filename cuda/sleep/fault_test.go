package sleep_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/sleep"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

// fails adds rules by which calls fail.
func (r *rig) fails(rules ...fault.Rule) {
	r.Helper()
	require.NoError(r, r.faults.Add(rules...))
}

// TestEveryCallFails has each driver call of a sleep and a wake fail, one at a time, two in a row, and all from one on. The arena is
// in the state that it reports, and has every byte as soon as the driver serves again. The short form leaves Unknown out of the
// last two.
func TestEveryCallFails(t *testing.T) {
	for name, count := range map[string]uint64{"one": 1, "two": 2, "all": fault.Forever} {
		for _, result := range []cudadrv.Result{cudadrv.Unknown, cudadrv.OutOfMemory} {
			if testing.Short() && count > 1 && result == cudadrv.Unknown {
				continue
			}
			t.Run(name+"/"+result.String(), func(t *testing.T) {
				const page = 64 * kib // few bytes, in as many pages as of a GPU
				r := newFaultyRig(t, sleep.Options{BlockBytes: 3 * page / 2}, vramtest.Machine(sim.Config{Bytes: true, TimedKernels: true, GranularityBytes: page}))
				var buffers []cuda.Buffer
				var want [][]byte
				for i, n := range []int64{kib, 5 * page / 2, 3 * kib, page} {
					b, bytes := r.filled(n, uint64(i)) //nolint:gosec // a small number
					buffers, want = append(buffers, b), append(want, bytes)
				}
				for call := uint64(1); ; call++ {
					before := r.faults.Injected()
					r.fails(fault.Rule{First: call, Count: count, Result: result})
					r.cycle()
					r.faults.Clear()
					injected := r.faults.Injected() - before
					if r.arena.State() == sleep.Asleep {
						require.ErrorIs(t, cuda.CopyIn(r.c, buffers[0], want[0]), sleep.ErrAsleep)
						require.NoError(t, r.arena.Wake(t.Context()), "call %d", call)
					}
					require.NoError(t, cuda.CopyIn(r.c, buffers[1], want[1])) // after copies in progress
					for i, b := range buffers {
						r.holds(b, want[i])
					}
					assert.Zero(t, r.dev.Stats().SleepingBytes)
					if injected == 0 {
						assert.Greater(t, call, uint64(20), "so many calls can fail")
						return
					}
				}
			})
		}
	}
}

// cycle puts the arena to sleep and wakes it, as far as the driver serves, and checks that errors and states agree.
func (r *rig) cycle() {
	r.Helper()
	err := r.arena.Sleep(r.Context(), sleep.Save)
	r.agrees(err)
	if err == nil {
		assert.Equal(r, sleep.Asleep, r.arena.State())
	}
	if r.arena.State() == sleep.Awake {
		return
	}
	err = r.arena.Wake(r.Context())
	r.agrees(err)
	assert.Equal(r, err == nil, r.arena.State() == sleep.Awake)
}

// agrees checks that an error has the state.
func (r *rig) agrees(err error) {
	r.Helper()
	if err == nil {
		return
	}
	var failed *sleep.Error
	require.ErrorAs(r, err, &failed)
	assert.Equal(r, r.arena.State(), failed.State)
	assert.Contains(r, err.Error(), failed.State.String())
}

// While it is not known that copies have ended, no memory is returned, of the device or of the host. Both kinds are as soon as the
// driver reports the end.
func TestCopiesWhoseEndIsNotKnown(t *testing.T) {
	r := newFaultyRig(t, sleep.Options{})
	b, want := r.filled(5*mib, 1)
	unknownFrom := func(copies string) { // once a copy has begun
		r.faults.SetBefore(func(function string) {
			if function == copies {
				r.faults.SetBefore(nil)
				r.fails(fault.Rule{Func: "cuStreamSynchronize", First: 1, Count: fault.Forever, Result: cudadrv.Unknown})
			}
		})
	}
	returned := func() [2]uint64 { return [2]uint64{r.faults.Calls("cuMemUnmap"), r.faults.Calls("cuMemFreeHost")} }
	none := returned()

	unknownFrom("cuMemcpyDtoHAsync")
	err := r.arena.Sleep(t.Context(), sleep.Save)
	require.ErrorContains(t, err, "saving contents")
	require.ErrorIs(t, err, cudadrv.Unknown)
	assert.Equal(t, sleep.Awake, r.arena.State())
	assert.Equal(t, none, returned())
	r.faults.Clear()
	require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))

	asleep := returned()
	assert.Greater(t, asleep[0], none[0])
	unknownFrom("cuMemcpyHtoDAsync")
	err = r.arena.Wake(t.Context())
	require.ErrorContains(t, err, "copying contents back")
	require.ErrorContains(t, err, "waiting for copies")
	assert.Equal(t, sleep.Asleep, r.arena.State())
	assert.Equal(t, asleep, returned())
	r.faults.Clear()
	require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
	assert.Greater(t, returned()[0], asleep[0])
	require.NoError(t, r.arena.Wake(t.Context()))
	assert.Equal(t, none[1]+2, returned()[1], "of both sleeps")
	r.holds(b, want)
}

func TestSleepGoesOnWithTheRest(t *testing.T) {
	r := newFaultyRig(t, sleep.Options{})
	b, want := r.filled(9*mib, 1)
	r.fails(fault.Rule{Func: "cuMemRelease", First: 1, Count: fault.Forever, Result: cudadrv.Unknown})
	for range 2 { // the first call, and one that continues
		err := r.arena.Sleep(t.Context(), sleep.Save)
		require.ErrorIs(t, err, cudadrv.Unknown)
		require.ErrorContains(t, err, "giving memory back")
		assert.Equal(t, sleep.Asleep, r.arena.State())
	}
	r.faults.Clear()
	free := r.freeBytes()
	require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
	assert.GreaterOrEqual(t, r.freeBytes()-free, 8*mib)
	require.NoError(t, r.arena.Wake(t.Context()))
	r.holds(b, want)
}

func TestNoMemoryToWake(t *testing.T) {
	r := newRig(t, sleep.Options{}, vramtest.Machine(sim.Config{Bytes: true, TimedKernels: true, TotalBytes: 24 * mib}))
	b, want := r.filled(10*mib, 1)
	require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
	r.dev.SetCapacity(8 * mib) // another process takes memory
	for range 2 {
		err := r.arena.Wake(t.Context())
		var short *vram.OutOfMemoryError
		require.ErrorAs(t, err, &short)
		require.ErrorIs(t, err, cudadrv.OutOfMemory)
		assert.GreaterOrEqual(t, short.MissingBytes, 10*mib)
		assert.Equal(t, sleep.Asleep, r.arena.State())
		n := r.dev.Stats()
		assert.GreaterOrEqual(t, n.SleepingBytes, 10*mib, "a part of it is of no use")
		assert.Zero(t, n.ReservedBytes)
	}
	r.dev.SetCapacity(24 * mib)
	require.NoError(t, r.arena.Wake(t.Context()))
	r.holds(b, want)
}

func TestTheLimitLeavesNoRoomToWake(t *testing.T) {
	r := newRig(t, sleep.Options{}, vramtest.Config(vram.Config{LimitBytes: 16 * mib, Debug: true}))
	b, want := r.filled(10*mib, 1)
	require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
	other, err := r.c.Alloc(13 * mib)
	require.NoError(t, err, "memory that sleeps is free for others")
	var short *vram.OutOfMemoryError
	require.ErrorAs(t, r.arena.Wake(t.Context()), &short)
	assert.Equal(t, 16*mib, short.LimitBytes)
	require.NoError(t, other.Free())
	require.NoError(t, r.arena.Wake(t.Context()), "cached memory makes room")
	r.holds(b, want)
	_, err = r.c.Alloc(13 * mib)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
}

func TestNoMemoryOfTheHost(t *testing.T) {
	r := newFaultyRig(t, sleep.Options{BlockBytes: 4 * mib})
	b, want := r.filled(20*mib, 1)
	r.fails(fault.Rule{Func: "cuMemHostAlloc", First: 3, Result: cudadrv.OutOfMemory})
	err := r.arena.Sleep(t.Context(), sleep.Save)
	require.ErrorContains(t, err, "saving contents")
	assert.Equal(t, sleep.Awake, r.arena.State())
	n, err := r.arena.Stats(context.Background())
	require.NoError(t, err)
	assert.Zero(t, n.SavedBytes)
	r.holds(b, want)
}

// TestAWakeReleasesFreeMemory has the driver refuse where a stream keeps memory that it does not use.
func TestAWakeReleasesFreeMemory(t *testing.T) {
	r := newRig(t, sleep.Options{}, vramtest.Machine(sim.Config{Bytes: true, TimedKernels: true, TotalBytes: 32 * mib}),
		vramtest.Config(vram.Config{LimitBytes: 25 * mib, Debug: true}))
	b, want := r.filled(10*mib, 1)
	require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
	other, err := r.c.Alloc(13 * mib)
	require.NoError(t, err)
	live, err := r.c.Alloc(mib)
	require.NoError(t, err)
	require.NoError(t, other.Free())
	r.dev.SetCapacity(20 * mib)
	require.NoError(t, r.arena.Wake(t.Context()))
	r.holds(b, want)
	require.NoError(t, live.Free())
}

// TestTheProgramMakesRoomForAWake has the program's handler free a buffer.
func TestTheProgramMakesRoomForAWake(t *testing.T) {
	var other cuda.Buffer
	asked := 0
	r := newRig(t, sleep.Options{}, vramtest.Config(vram.Config{LimitBytes: 16 * mib, Debug: true, OnOutOfMemory: func(*vram.OutOfMemoryError) bool {
		asked++
		return other.Free() == nil
	}}))
	b, want := r.filled(10*mib, 1)
	require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
	var err error
	other, err = r.c.Alloc(13 * mib)
	require.NoError(t, err)
	require.NoError(t, r.arena.Wake(t.Context()))
	assert.Equal(t, 1, asked)
	r.holds(b, want)
}

// A capture that nobody announced, and that begins and ends while Sleep marks a stream, takes the mark. The stream is marked again.
func TestACaptureThatComesAndGoes(t *testing.T) {
	r := newFaultyRig(t, sleep.Options{})
	b, want := r.filled(5*mib, 1)
	require.NoError(t, r.c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(b)))
	gpu, h := r.dev.GPU(), r.c.Stream().Handle()
	r.faults.SetBefore(func(function string) {
		if function != "cuEventRecord" {
			return
		}
		assert.NoError(t, gpu.StreamBeginCapture(h, cudadrv.CaptureRelaxed))
		r.faults.SetBefore(func(string) { // the query after the record
			r.faults.SetBefore(nil)
			g, err := gpu.StreamEndCapture(h)
			assert.NoError(t, err)
			assert.NoError(t, gpu.GraphDestroy(g))
		})
	})
	marks := r.faults.Calls("cuEventRecord")
	require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
	assert.GreaterOrEqual(t, r.faults.Calls("cuEventRecord"), marks+2)
	assert.Equal(t, sleep.Asleep, r.arena.State())
	require.NoError(t, r.arena.Wake(t.Context()))
	r.holds(b, want)
}

// Sleep gives up with its context while a call is being submitted: the arena stays awake, and serves.
func TestSleepThatIsCancelledStaysAwake(t *testing.T) {
	synctest.Test(t, sleepCancelled)
}

func sleepCancelled(t *testing.T) {
	t.Helper()
	r := newFaultyRig(t, sleep.Options{})
	b, want := r.filled(4*kib, 1)
	entered, resume := make(chan struct{}), make(chan struct{})
	r.faults.SetBefore(func(function string) {
		if function == "cuMemsetD8Async" {
			r.faults.SetBefore(nil)
			close(entered)
			<-resume
		}
	})
	filled := make(chan error, 1)
	other := r.context()
	go func() { filled <- other.Fill8(cuda.Part(b, 0, 0), 1) }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	slept := make(chan error, 1)
	go func() { slept <- r.arena.Sleep(ctx, sleep.Save) }()
	synctest.Wait() // it waits for the call
	cancel()
	err := <-slept
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "waiting for calls")
	assert.Equal(t, sleep.Awake, r.arena.State())
	close(resume)
	require.NoError(t, <-filled)
	r.holds(b, want)
	stats, err := r.arena.Stats(t.Context())
	require.NoError(t, err)
	assert.Zero(t, stats.Sleeps)
	require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
	require.ErrorIs(t, r.arena.Sleep(ctx, sleep.Drop), context.Canceled, "before it begins")
	require.ErrorIs(t, r.arena.Wake(ctx), context.Canceled)
	assert.Equal(t, sleep.Asleep, r.arena.State())
	require.NoError(t, r.arena.Wake(t.Context()))
	r.holds(b, want)
}

// Of several calls on an arena each waits for the one before it, or its context, which ends nothing but that wait.
func TestTheContextEndsTheWaitForAnotherCall(t *testing.T) {
	for _, asleep := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newFaultyRig(t, sleep.Options{})
			b, want := r.filled(4*kib, 1)
			before, call := "cuMemcpyDtoHAsync", func() error { return r.arena.Sleep(t.Context(), sleep.Save) }
			if asleep {
				require.NoError(t, call())
				before, call = "cuMemcpyHtoDAsync", func() error { return r.arena.Wake(t.Context()) }
			}
			entered, resume := make(chan struct{}), make(chan struct{})
			r.faults.SetBefore(func(function string) {
				if function == before {
					r.faults.SetBefore(nil)
					close(entered)
					<-resume
				}
			})
			first := make(chan error, 1)
			go func() { first <- call() }()
			<-entered
			ctx, cancel := context.WithCancel(t.Context())
			others := make(chan error, 3)
			go func() { others <- r.arena.Sleep(ctx, sleep.Drop) }()
			go func() { others <- r.arena.Sleep(ctx, sleep.Save) }()
			go func() { others <- r.arena.Wake(ctx) }()
			synctest.Wait()
			assert.Empty(t, others, "they wait")
			cancel()
			for range cap(others) {
				require.ErrorIs(t, <-others, context.Canceled)
			}
			assert.Equal(t, asleep, r.arena.State() == sleep.Asleep)
			close(resume)
			require.NoError(t, <-first)
			assert.Equal(t, !asleep, r.arena.State() == sleep.Asleep)
			require.NoError(t, r.arena.Wake(t.Context()))
			r.holds(b, want)
			n, err := r.arena.Stats(t.Context())
			require.NoError(t, err)
			assert.Equal(t, []uint64{1, 1}, []uint64{n.Sleeps, n.Wakes})
		})
	}
}
