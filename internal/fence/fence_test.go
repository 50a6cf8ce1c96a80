package fence

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/recoveredtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// bench is a source over a simulated device with fault injection.
type bench struct {
	*Events
	t      *testing.T
	faults *fault.Driver
	sim    *sim.Device
	stream cudadrv.Stream
}

func newBench(t *testing.T) *bench {
	t.Helper()
	simulator := sim.New(sim.Config{})
	b := &bench{t: t, faults: fault.Wrap(simulator), sim: simulator.Device(0)}
	device, err := b.faults.Open(0)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, device.Close()) })
	b.stream, err = device.StreamCreate()
	require.NoError(t, err)
	b.Events = NewEvents(device)
	return b
}

func (b *bench) advance(d time.Duration) { b.sim.Advance(d) }

func (b *bench) mark() Mark {
	b.t.Helper()
	m, err := b.Record(b.stream)
	require.NoError(b.t, err)
	require.False(b.t, m.Zero())
	return m
}

func (b *bench) passed(m Mark) bool {
	b.t.Helper()
	passed, err := b.Passed(m)
	require.NoError(b.t, err)
	return passed
}

// fail makes every later call of a function fail.
func (b *bench) fail(function string) {
	b.t.Helper()
	require.NoError(b.t, b.faults.Add(fault.Rule{Func: function, Result: cudadrv.LaunchFailed}))
}

// A mark passes with the work that the stream had when it was recorded, not with later work.
func TestMarkPassesWithTheWorkBeforeIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	assert.True(t, b.passed(b.mark()), "an idle stream has nothing before the mark")
	require.NoError(t, b.sim.Launch(b.stream, time.Second))
	m := b.mark()
	require.NoError(t, b.sim.Launch(b.stream, time.Second))
	later := b.mark()
	assert.False(t, b.passed(m))
	b.advance(time.Second - 1)
	assert.False(t, b.passed(m))
	b.advance(1)
	assert.True(t, b.passed(m))
	assert.False(t, b.passed(later))
	require.NoError(t, b.Wait(later))
	assert.Equal(t, 2*time.Second, b.sim.Now(), "Wait waits for the mark")
	assert.True(t, b.passed(later))
}

// A mark outlives its stream: work of a destroyed stream still runs to its end.
func TestMarkOutlivesItsStream(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	require.NoError(t, b.sim.Launch(b.stream, time.Second))
	m := b.mark()
	require.NoError(t, b.sim.StreamDestroy(b.stream))
	assert.False(t, b.passed(m))
	b.advance(time.Second)
	assert.True(t, b.passed(m))
}

// The zero mark has passed and makes no driver call.
func TestZeroMarkHasPassed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, function := range []string{"cuEventQuery", "cuEventSynchronize", "cuEventDestroy"} {
		b.fail(function)
	}
	assert.True(t, Mark{}.Zero())
	assert.True(t, b.passed(Mark{}))
	require.NoError(t, b.Wait(Mark{}))
	require.NoError(t, b.Release(Mark{}))
	assert.Zero(t, b.faults.Injected())
}

// A released event serves the next mark, for that mark's work alone.
func TestReleasedEventsServeAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range 10 {
		require.NoError(t, b.sim.Launch(b.stream, time.Second))
		m := b.mark()
		assert.False(t, b.passed(m))
		require.NoError(t, b.Wait(m))
		require.NoError(t, b.Release(m))
	}
	assert.EqualValues(t, 1, b.faults.Calls("cuEventCreate"))
	assert.Zero(t, b.faults.Calls("cuEventDestroy"))
	require.NoError(t, b.Close())
	assert.EqualValues(t, 1, b.faults.Calls("cuEventDestroy"))
}

// Only so many events are kept; the excess, and those kept at Close, are destroyed.
func TestEventsGoBackToTheDriver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	marks := make([]Mark, spareLimit+5)
	for i := range marks {
		marks[i] = b.mark()
	}
	for _, m := range marks {
		require.NoError(t, b.Release(m))
	}
	assert.EqualValues(t, 5, b.faults.Calls("cuEventDestroy"))
	require.NoError(t, b.Close())
	assert.EqualValues(t, len(marks), b.faults.Calls("cuEventDestroy"))
	require.NoError(t, b.Close(), "nothing is left")
	require.NoError(t, b.Release(b.mark()), "it can be used again")
	require.NoError(t, b.Close())
}

// Every error of the driver is returned unchanged.
func TestErrorsAreTheDrivers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	over := make([]Mark, spareLimit+1)
	for i := range over {
		over[i] = b.mark()
	}
	m := b.mark()
	b.fail("cuEventCreate")
	b.fail("cuEventQuery")
	b.fail("cuEventSynchronize")
	b.fail("cuEventDestroy")

	_, err := b.Record(b.stream)
	b.expect(err, "cuEventCreate")
	passed, err := b.Passed(m)
	b.expect(err, "cuEventQuery")
	assert.False(t, passed, "what cannot be asked has not passed")
	b.expect(b.Wait(m), "cuEventSynchronize")
	for _, m := range over[:spareLimit] {
		require.NoError(t, b.Release(m))
	}
	b.expect(b.Release(over[spareLimit]), "cuEventDestroy")
	b.expect(b.Close(), "cuEventDestroy")
	assert.EqualValues(t, spareLimit+1, b.faults.Calls("cuEventDestroy"), "Close tries all of them")
}

// Of several errors Close returns the first.
func TestCloseTellsTheFirstRefusal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, other := b.mark(), b.mark()
	require.NoError(t, b.Release(one))
	require.NoError(t, b.Release(other))
	require.NoError(t, b.faults.Add(
		fault.Rule{Func: "cuEventDestroy", First: 1, Result: cudadrv.LaunchFailed}, fault.Rule{Func: "cuEventDestroy", First: 1, Result: cudadrv.Unknown}, // of those that the first rule passes
	))
	b.expect(b.Close(), "cuEventDestroy")
}

func (b *bench) expect(err error, function string) {
	b.t.Helper()
	require.ErrorIs(b.t, err, cudadrv.LaunchFailed)
	require.ErrorContains(b.t, err, "fence: "+function)
}

// An event whose record failed is not lost: it serves the next mark.
func TestFailedRecordLosesNoEvent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fail("cuEventRecord")
	m, err := b.Record(b.stream)
	b.expect(err, "cuEventRecord")
	assert.True(t, m.Zero())
	b.faults.Clear()
	b.mark()
	assert.EqualValues(t, 1, b.faults.Calls("cuEventCreate"))
}

// Goroutines that record and release marks concurrently never share one.
func TestMarksAreNotShared(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var mu sync.Mutex
	out := map[Mark]bool{}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				m, err := b.Record(b.stream)
				assert.NoError(t, err)
				mu.Lock()
				assert.False(t, out[m])
				out[m] = true
				mu.Unlock()
				_, err = b.Passed(m)
				assert.NoError(t, err)
				mu.Lock()
				delete(out, m)
				mu.Unlock()
				assert.NoError(t, b.Release(m))
			}
		})
	}
	group.Wait()
	require.NoError(t, b.Close())
	assert.Equal(t, b.faults.Calls("cuEventCreate"), b.faults.Calls("cuEventDestroy"))
}
