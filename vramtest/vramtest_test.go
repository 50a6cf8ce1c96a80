package vramtest_test

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/vramtest"
)

// goroutinesAtStart is how many there were before anything was opened.
var goroutinesAtStart int

func TestMain(m *testing.M) {
	goroutinesAtStart = runtime.NumGoroutine()
	recoveredtest.Main(m)
}

func TestImportingStartsNothing(t *testing.T) { assert.Equal(t, 1, goroutinesAtStart) }

// sheet is a test other than this one: it records its failures.
type sheet struct {
	page
	failures []string
}

func (s *sheet) Errorf(format string, args ...any) {
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

func alloc(t *testing.T, s *vram.Stream, bytes int64) vram.Buffer {
	t.Helper()
	b, err := s.Alloc(bytes)
	require.NoError(t, err)
	return b
}

// A program without a mistake fails nothing.
func TestARightProgram(t *testing.T) {
	dev := vramtest.Open(t)
	load, step := dev.Stream(), dev.Stream()
	for range 20 {
		batch, scratch := alloc(t, load, 3<<20), alloc(t, step, 5<<20)
		dev.Launch(load, time.Millisecond, vramtest.Writes(batch))
		dev.Wait(step, dev.Record(load))
		dev.Launch(step, time.Millisecond, vramtest.Reads(batch), vramtest.Writes(scratch))
		dev.Launch(step, time.Millisecond, vramtest.ReadsRange(scratch.Ptr()+512, 512), vramtest.WritesRange(scratch.Ptr(), 512))
		dev.Wait(load, dev.Record(step)) // before the batch is freed: its stream may reuse it at once
		require.NoError(t, batch.Free())
		require.NoError(t, scratch.Free())
	}
	late := dev.Record(step)
	assert.False(t, dev.Passed(late))
	dev.Advance(time.Second)
	assert.True(t, dev.Passed(late))
	dev.Synchronize(load)
	assert.Positive(t, dev.Now())
	_, err := dev.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.Empty(t, dev.Hazards())
}

// Each kind of mistake fails the test that makes it, with both places in this file.
func TestMistakesOfAProgram(t *testing.T) {
	for name, c := range map[string]struct {
		mistake func(t *testing.T, dev *vramtest.Device)
		kind    hazard.Kind
		places  int
	}{
		"a missing wait": {func(t *testing.T, dev *vramtest.Device) {
			t.Helper()
			one, two := dev.Stream(), dev.Stream()
			b := alloc(t, one, 4096)
			dev.Launch(one, time.Millisecond, vramtest.Writes(b))
			dev.Launch(two, time.Millisecond, vramtest.Reads(b))
			require.NoError(t, b.Free())
		}, hazard.Race, 3},
		"a use after free": {func(t *testing.T, dev *vramtest.Device) {
			t.Helper()
			s := dev.Stream()
			b := alloc(t, s, 4096)
			require.NoError(t, b.Free())
			dev.Launch(s, time.Millisecond, vramtest.Reads(b))
		}, hazard.UseAfterFree, 3},
		"a use after free by an address": {func(t *testing.T, dev *vramtest.Device) {
			t.Helper()
			s := dev.Stream()
			b := alloc(t, s, 4096)
			p := b.Ptr()
			require.NoError(t, b.Free())
			dev.Launch(s, time.Millisecond, vramtest.WritesRange(p+8, 8))
		}, hazard.UseAfterFree, 3},
		"a use of an old buffer whose memory is another's": {func(t *testing.T, dev *vramtest.Device) {
			t.Helper()
			s := dev.Stream()
			b := alloc(t, s, 4096)
			require.NoError(t, b.Free())
			again := alloc(t, s, 4096)
			require.Equal(t, b.Ptr(), again.Ptr())
			dev.Launch(s, time.Millisecond, vramtest.Reads(b))
			require.NoError(t, again.Free())
		}, hazard.UseAfterFree, 3},
		"a use beyond the end": {func(t *testing.T, dev *vramtest.Device) {
			t.Helper()
			s := dev.Stream()
			b := alloc(t, s, 4096)
			dev.Launch(s, time.Millisecond, vramtest.WritesRange(b.Ptr(), 4097))
			require.NoError(t, b.Free())
		}, hazard.NeverAllocated, 1},
		"a use of trimmed memory": {func(t *testing.T, dev *vramtest.Device) {
			t.Helper()
			s := dev.Stream()
			b := alloc(t, s, 64<<20)
			p := b.Ptr()
			require.NoError(t, b.Free())
			_, err := dev.Trim(t.Context(), 0)
			require.NoError(t, err)
			dev.Launch(s, time.Millisecond, vramtest.WritesRange(p, 1))
		}, hazard.Unmapped, 3},
		"a use elsewhere that was not announced": {func(t *testing.T, dev *vramtest.Device) {
			t.Helper()
			one, two := dev.Stream(), dev.Stream()
			b := alloc(t, one, 4096)
			dev.Launch(two, time.Millisecond, vramtest.Reads(b))
			require.NoError(t, b.Free())
			again := alloc(t, one, 4096)
			require.NoError(t, again.Free())
		}, hazard.EarlyReuse, 5},
	} {
		t.Run(name, func(t *testing.T) {
			other := &sheet{}
			c.mistake(t, vramtest.Open(other))
			assert.Empty(t, other.failures, "not before the end")
			other.end()
			require.Len(t, other.failures, 1)
			assert.Contains(t, other.failures[0], c.kind.String())
			assert.GreaterOrEqual(t, countPlaces(other.failures[0]), c.places, other.failures[0])

			other = &sheet{}
			c.mistake(t, vramtest.Open(other, vramtest.AtOnce()))
			assert.Len(t, other.failures, 1, "at once")
			other.end()
			assert.Len(t, other.failures, 1)

			other = &sheet{}
			dev := vramtest.Open(other, vramtest.Expected())
			c.mistake(t, dev)
			other.end()
			assert.Empty(t, other.failures)
			require.Len(t, dev.Hazards(), 1)
			assert.Equal(t, c.kind, dev.Hazards()[0].Kind)
		})
	}
}

// countPlaces counts the paragraphs of calls that begin in this file.
func countPlaces(report string) (n int) {
	wasCall := false
	for line := range strings.SplitSeq(report, "\n") {
		isCall := len(line) > 4 && line[:4] == "    "
		if isCall && !wasCall {
			n++
		}
		wasCall = isCall
	}
	return n
}

// A buffer that is not freed fails the test, with its place, however it treats hazards.
func TestALeakFailsTheTest(t *testing.T) {
	for _, options := range [][]vramtest.Option{nil, {vramtest.AtOnce()}, {vramtest.Expected()}} {
		other := &sheet{}
		dev := vramtest.Open(other, options...)
		b := alloc(t, dev.Stream(), 4096)
		other.end()
		require.Len(t, other.failures, 1, "and is no hazard")
		assert.Contains(t, other.failures[0], "1 live buffer, ")
		assert.Contains(t, other.failures[0], "(vramtest_test.go:")
		require.ErrorIs(t, b.Free(), vram.ErrClosed)
	}

	other := &sheet{}
	dev := vramtest.Open(other)
	alloc(t, dev.Stream(), 4096)
	var inUse *vram.InUseError
	require.ErrorAs(t, dev.Close(), &inUse)
	other.end()
	assert.Empty(t, other.failures, "the error was the caller's")
}

// An impossible request fails the test and nothing else.
func TestWhatCannotBe(t *testing.T) {
	other := &sheet{}
	dev := vramtest.Open(other, vramtest.Machine(sim.Config{TotalBytes: 1 << 30}))
	s := dev.Stream()
	require.NoError(t, s.Close())
	dev.Launch(s, -1)
	dev.Synchronize(s)
	e := dev.Record(s)
	dev.Wait(s, e)
	assert.False(t, dev.Passed(vramtest.Event{}))
	assert.Len(t, other.failures, 5)
	other.end()
	assert.Len(t, other.failures, 5)
	dev.Record(s)
	assert.Contains(t, other.failures[5], "cuEventCreate")

	assert.Panics(t, func() { vramtest.Open(&sheet{}, vramtest.Config(vram.Config{Ordinal: 7})) }, "the sheet's Fatalf")
	assert.Panics(t, func() { vramtest.Open(&sheet{}, vramtest.Config(vram.Config{LimitBytes: -7})) })
}

// A device that cannot be opened leaves no view of the simulated one.
func TestADeviceThatCannotBeOpenedLeavesNoView(t *testing.T) {
	var machine *sim.Driver
	wrap := vramtest.Wrap(func(inner cudadrv.Driver) cudadrv.Driver {
		for machine == nil {
			wrapped, ok := inner.(interface{ Unwrap() cudadrv.Driver })
			require.True(t, ok)
			inner = wrapped.Unwrap()
			machine, _ = inner.(*sim.Driver)
		}
		return inner
	})
	other := &sheet{}
	assert.Panics(t, func() { vramtest.Open(other, wrap, vramtest.Config(vram.Config{LimitBytes: -7})) }, "the sheet's Fatalf")
	calls := machine.Device(0).Counts()
	assert.Equal(t, calls["cuDevicePrimaryCtxRetain"], calls["cuDevicePrimaryCtxRelease"])
	assert.Positive(t, calls["cuDevicePrimaryCtxRetain"])
	other.end()
	assert.Empty(t, other.failures)
}

// The allocator's driver may fail, and an observer of the caller's is told as well: also where kernels are executed.
func TestOptions(t *testing.T) {
	for _, more := range [][]vramtest.Option{nil, {vramtest.Kernels()}} {
		var faults *fault.Driver
		var told []string
		var events []vram.BufferEvent
		tell := func(what string) func(vram.BufferEvent) {
			return func(e vram.BufferEvent) { told, events = append(told, what), append(events, e) }
		}
		dev := vramtest.Open(t, append(more,
			vramtest.Config(vram.Config{Observer: vram.Observer{
				Allocated: tell("allocated"), Freed: tell("freed"), Closed: func() { told = append(told, "closed") },
			}}),
			vramtest.Wrap(func(inner cudadrv.Driver) cudadrv.Driver {
				faults = fault.Wrap(inner)
				return faults
			}),
		)...)
		s := dev.Stream()
		require.NoError(t, faults.Add(fault.Rule{Func: "cuMemCreate", Result: cudadrv.OutOfMemory}))
		_, err := s.Alloc(4096)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		faults.Clear()
		b, err := s.AllocFor(t.Context(), vram.Request{Bytes: 4096, Tag: "named"})
		require.NoError(t, err)
		require.NoError(t, b.Free())
		require.Len(t, events, 2)
		for _, e := range events {
			assert.Equal(t, []any{b.Ptr(), int64(4096), s.ID(), s.Handle(), "named"}, []any{e.Ptr, e.Bytes, e.Stream, e.Handle, e.Tag})
			assert.Contains(t, e.Place.String(), "TestOptions")
		}
		p, err := dev.GPU().MemAlloc(4096)
		require.NoError(t, err)
		require.NoError(t, dev.GPU().MemsetD8Async(p, 0, 4096, s.Handle()))
		require.NoError(t, dev.GPU().MemFree(p))
		dev.SetCapacity(0)
		_, err = s.Alloc(1 << 30)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		require.NoError(t, dev.Close())
		assert.Equal(t, []string{"allocated", "freed", "closed"}, told)
	}
}

// All functions of an Observer are called, with the same arguments, also one that the checker does not need.
func TestWatchTellsTheObserverOfAll(t *testing.T) {
	arguments := map[reflect.Type]reflect.Value{}
	for _, a := range []any{vram.BufferEvent{Ptr: 1 << 20, Bytes: 4096, Tag: "named"}, cudadrv.Ptr(1 << 21), int64(-7), new(vram.OutOfMemoryError)} {
		arguments[reflect.TypeOf(a)] = reflect.ValueOf(a)
	}
	var told []any
	config := vram.Config{Driver: sim.New(sim.Config{})}
	also := reflect.ValueOf(&config.Observer).Elem()
	for i := range also.NumField() {
		also.Field(i).Set(reflect.MakeFunc(also.Field(i).Type(), func(given []reflect.Value) []reflect.Value {
			told = append(told, also.Type().Field(i).Name)
			for _, a := range given {
				told = append(told, a.Interface())
			}
			return nil
		}))
	}
	watched, _ := vramtest.Watch(config)
	for i := range also.NumField() {
		name, f := also.Type().Field(i).Name, reflect.ValueOf(watched.Observer).Field(i)
		require.False(t, f.IsNil(), name)
		want, given := []any{name}, []reflect.Value{}
		for of := range f.Type().Ins() {
			a := arguments[of]
			require.True(t, a.IsValid(), "%s: no value of type %v", name, of)
			want, given = append(want, a.Interface()), append(given, a)
		}
		told = nil
		f.Call(given)
		assert.Equal(t, want, told)
	}
}

// expecting opens a device whose hazards fail nothing, nor does a buffer that lives at the end.
func expecting(t *testing.T, options ...vramtest.Option) *vramtest.Device {
	t.Helper()
	other := &sheet{}
	dev := vramtest.Open(other, append(options, vramtest.Expected())...)
	t.Cleanup(other.end)
	return dev
}

// A kernel has all that it touches, and each stale buffer of a launch is a hazard of its own.
func TestALaunchOfManyTouches(t *testing.T) {
	const count = 3
	for n := range count {
		dev := expecting(t)
		one, two := dev.Stream(), dev.Stream()
		var touches []vramtest.Touch
		var racing vram.Buffer
		for i := range count {
			b := alloc(t, one, 4096)
			if touches = append(touches, vramtest.Reads(b)); i == n {
				racing = b
			}
		}
		dev.Wait(two, dev.Record(one)) // after the allocations
		dev.Launch(one, time.Millisecond, vramtest.Writes(racing))
		dev.Launch(two, time.Millisecond, touches...)
		require.Len(t, dev.Hazards(), 1, n)
		assert.Equal(t, hazard.Race, dev.Hazards()[0].Kind)
	}
	for i, touches := range [][2]func(vram.Ptr, int64) vramtest.Touch{ // ranges race as whole buffers do
		{vramtest.WritesRange, vramtest.ReadsRange}, {vramtest.ReadsRange, vramtest.WritesRange}, {vramtest.WritesRange, vramtest.WritesRange}, {vramtest.ReadsRange, vramtest.ReadsRange},
	} {
		dev := expecting(t)
		one, two := dev.Stream(), dev.Stream()
		b := alloc(t, one, 4096)
		dev.Wait(two, dev.Record(one))
		dev.Launch(one, time.Millisecond, touches[0](b.Ptr(), 100))
		dev.Launch(two, time.Millisecond, touches[1](b.Ptr()+100, 100))
		require.Empty(t, dev.Hazards(), "they are next to each other")
		dev.Launch(two, time.Millisecond, touches[1](b.Ptr()+99, 1))
		require.Len(t, dev.Hazards(), []int{1, 1, 1, 0}[i])
	}
	dev := expecting(t)
	s := dev.Stream()
	first := alloc(t, s, 4096)
	second := alloc(t, s, 8192)
	third := alloc(t, s, 16384) // each at a place of its own
	require.NoError(t, first.Free())
	require.NoError(t, second.Free())
	require.NoError(t, third.Free())
	dev.Launch(s, time.Millisecond, vramtest.Reads(first, second), vramtest.Writes(third))
	var sizes []int64
	for _, r := range dev.Hazards() {
		assert.Equal(t, hazard.UseAfterFree, r.Kind)
		sizes = append(sizes, r.Buffer.Bytes)
	}
	assert.ElementsMatch(t, []int64{4096, 8192, 16384}, sizes)
}

// The test's own view is closed at the end of the test, whether the test has closed the device before or not.
func TestTheViewEndsWithTheTest(t *testing.T) {
	for _, close := range []func(dev *vramtest.Device) error{
		(*vramtest.Device).Close,
		func(*vramtest.Device) error { return nil },
	} {
		other := &sheet{}
		dev := vramtest.Open(other)
		require.NoError(t, close(dev))
		p, err := dev.GPU().MemAlloc(4096)
		require.NoError(t, err, "before the end")
		require.NoError(t, dev.GPU().MemFree(p))
		other.end()
		assert.Empty(t, other.failures)
		_, err = dev.GPU().MemAlloc(4096)
		require.Error(t, err)
	}
}

// The device that the configuration names is the one that is checked, and that has the test's work.
func TestAnotherDevice(t *testing.T) {
	dev := expecting(t, vramtest.Machine(sim.Config{Devices: 3}), vramtest.Config(vram.Config{Ordinal: 2}))
	one, two := dev.Stream(), dev.Stream()
	b, err := one.AllocFor(t.Context(), vram.Request{Bytes: 4096, Tag: "weights"})
	require.NoError(t, err)
	dev.Wait(two, dev.Record(one))
	dev.Launch(one, time.Millisecond, vramtest.Writes(b))
	dev.Launch(two, time.Millisecond, vramtest.WritesRange(b.Ptr(), 1))
	require.NoError(t, b.Free())
	require.NotEmpty(t, dev.Hazards())
	assert.Contains(t, dev.Hazards()[0].String(), `, tag "weights", allocated at`)
	before := dev.Now()
	dev.Advance(time.Second)
	assert.Equal(t, before+time.Second, dev.Now())
}

// Memory that the closed device had is reported with the place of Close.
func TestAUseAfterClose(t *testing.T) {
	dev := expecting(t)
	s := dev.Stream()
	p := alloc(t, s, 4096).Ptr()
	require.Error(t, dev.Close(), "a buffer lives")
	own, err := dev.GPU().StreamCreate()
	require.NoError(t, err)
	_ = dev.GPU().Kernel(own, time.Millisecond, hazard.Access{Ptr: p, Bytes: 1})
	require.NotEmpty(t, dev.Hazards())
	assert.Contains(t, dev.Hazards()[0].String(), "freed at\n    vramtest_test.TestAUseAfterClose")
}
