package cuda_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

// edges are the offsets and sizes at which a part of n bytes begins or ceases to be within its whole, and those with sums that overflow.
func edges(n int64) []int64 {
	return []int64{math.MinInt64, -1, 0, 1, n - 1, n, n + 1, math.MaxInt64 - n, math.MaxInt64}
}

// A part of a variable, and a part of that, is exactly what lies within it, also of no bytes.
func TestPartsOfVariablesAreWithinThem(t *testing.T) {
	r, c := newFailing(t, sim.Config{Bytes: true})
	m, err := c.LoadModule([]byte(ptx + ".visible .global .align 4 .u8 variable[16];\n"))
	require.NoError(t, err)
	whole, err := m.Variable("variable")
	require.NoError(t, err)
	want := []uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	require.NoError(t, cuda.Set(c, whole, want))
	half := whole.Part(4, 8)
	for _, v := range []cuda.Variable{whole, half} {
		n := v.Bytes()
		first := int64(v.Ptr() - whole.Ptr())
		for _, offset := range edges(n) {
			for _, bytes := range edges(n) {
				name := fmt.Sprintf("%d bytes from %d on of %d", bytes, offset, n)
				part := v.Part(offset, bytes)
				if offset < 0 || bytes < 0 || bytes > n || offset > n-bytes {
					var outside *cuda.RangeError
					require.ErrorAs(t, cuda.Set(c, part, []uint8{}), &outside, name)
					_, err := cuda.Get[uint8](c, part, 0)
					require.ErrorAs(t, err, &outside, name)
					assert.Zero(t, part.Bytes(), name)
					continue
				}
				assert.Equal(t, bytes, part.Bytes(), name)
				got, err := cuda.Get[uint8](c, part, int(bytes))
				require.NoError(t, err, name)
				assert.Equal(t, string(want[first+offset:][:bytes]), string(got), name)
				require.NoError(t, cuda.Set(c, part, got), name)
				var length *cuda.LengthError
				require.ErrorAs(t, cuda.Set(c, part, make([]uint8, bytes+1)), &length, name)
				_, err = cuda.Get[uint8](c, part, int(bytes)+1)
				require.ErrorAs(t, err, &length, name)
			}
		}
	}
	in, out := r.faults.Calls("cuMemcpyHtoDAsync"), r.faults.Calls("cuMemcpyDtoHAsync")
	require.NoError(t, cuda.Set(c, whole, []uint8{}))
	_, err = cuda.Get[uint8](c, whole, 0)
	require.NoError(t, err)
	assert.Equal(t, in, r.faults.Calls("cuMemcpyHtoDAsync"), "no bytes are no work")
	assert.Equal(t, out, r.faults.Calls("cuMemcpyDtoHAsync"))
	require.NoError(t, cuda.Set(c, whole, []uint8{9}), "one byte is")
	assert.Equal(t, in+1, r.faults.Calls("cuMemcpyHtoDAsync"))
	require.NoError(t, m.Unload())
}

// A copy of rows is refused where a width or a count is below 0, copies nothing where one is 0, and otherwise has to be within
// both buffers.
func TestCopiesOfRowsAtTheirLimits(t *testing.T) {
	r, c := newFailing(t, sim.Config{Bytes: true})
	const pitch, rows = 8, 4
	x, y := r.alloc(c, pitch*rows), r.alloc(c, pitch*rows)
	for _, offset := range []int64{-1, 0, 1, pitch, pitch + 1} {
		for _, width := range edges(pitch) {
			for _, count := range edges(rows) {
				calls := r.faults.Calls("cuMemcpy2DAsync")
				err := c.Copy2D(cuda.Rows{Buffer: y, Pitch: pitch}, cuda.Rows{Buffer: x, Offset: offset, Pitch: pitch}, width, count)
				refused := r.faults.Calls("cuMemcpy2DAsync") == calls
				name := fmt.Sprintf("%d rows of %d bytes from %d on", count, width, offset)
				switch {
				case width >= 0 && count >= 0 && (width == 0 || count == 0):
					require.NoError(t, err, name)
					assert.True(t, refused, name)
				case width < 0 || count < 0 || width > pitch || count > rows || offset < 0 || offset+(count-1)*pitch+width > pitch*rows:
					var outside *cuda.RangeError
					require.ErrorAs(t, err, &outside, name)
					assert.True(t, refused, name)
				default:
					require.NoError(t, err, name)
					assert.False(t, refused, name)
				}
			}
		}
	}
	require.NoError(t, x.Free())
	require.NoError(t, y.Free())
}

// The text of an argument's error has the sizes that are known, 0 too.
func TestTextsOfArgumentErrors(t *testing.T) {
	for want, err := range map[string]*cuda.ArgumentError{
		"cuda: argument 1 of kernel k: int8 of 1 byte for a parameter":                  {Bytes: 1, Want: -1},
		"cuda: argument 1 of kernel k: int8 of 1 byte for a parameter of 0":             {Bytes: 1, Want: 0},
		"cuda: argument 1 of kernel k: int8 of 0 bytes for a parameter of 1":            {Bytes: 0, Want: 1},
		"cuda: argument 1 of kernel k, parameter p: int8 of 2 bytes for .u32 of 4":      {Bytes: 2, Want: 4, Type: ".u32", Parameter: "p"},
		"cuda: kernel k has 1 parameter, not 2":                                         {Err: cuda.ErrArgumentCount, Bytes: 2, Want: 1},
		"cuda: kernel k has 0 bytes of parameters, not 8":                               {Err: cuda.ErrPackedBytes, Bytes: 8, Want: 0},
		"cuda: argument 1 of kernel k: the kernel has no such parameter":                {Err: cuda.ErrNoParameter},
		"cuda: argument 1 of kernel k: 3 bytes from 2 on are not within the buffer's 4": {Err: &cuda.RangeError{Offset: 2, Bytes: 3, BufferBytes: 4}},
		"cuda: argument 1 of kernel k: " + cuda.ErrForeign.Error():                      {Err: cuda.ErrForeign},
	} {
		err.Kernel, err.Index, err.Got = "k", 1, "int8"
		if err.Err == nil {
			err.Err = cuda.ErrArgumentSize
		}
		assert.Equal(t, want, err.Error())
	}
}

// An error has what the call knows of the argument, and zeros elsewhere.
func TestFieldsOfArgumentErrors(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	k := kernelsOf(t, c, ".visible .entry k(.param .u64 .ptr p, .param .u32 n) { ret; }\n")("k")
	x := r.alloc(c, mib)
	freed := r.alloc(c, mib)
	require.NoError(t, freed.Free())
	const p, n = "p", "n"
	for name, test := range map[string]struct {
		args []cuda.Arg
		want cuda.ArgumentError
	}{
		"a freed buffer":     {[]cuda.Arg{cuda.In(freed), cuda.Value(uint32(1))}, cuda.ArgumentError{Index: 0, Parameter: p, Type: ".u64 .ptr", Got: "a buffer"}},
		"a part outside":     {[]cuda.Arg{cuda.In(x).Of(mib, 1), cuda.Value(uint32(1))}, cuda.ArgumentError{Index: 0, Parameter: p, Type: ".u64 .ptr", Got: "a buffer"}},
		"a nil pointer":      {[]cuda.Arg{cuda.In(x), cuda.Null()}, cuda.ArgumentError{Index: 1, Parameter: n, Type: ".u32", Got: "a nil pointer", Bytes: 8, Want: 4}},
		"an address":         {[]cuda.Arg{cuda.In(x), cuda.Value(cudadrv.Ptr(1))}, cuda.ArgumentError{Index: 1, Parameter: n, Type: ".u32", Got: "cudadrv.Ptr", Bytes: 8, Want: 4}},
		"the address 0":      {[]cuda.Arg{cuda.In(x), cuda.Value(cudadrv.Ptr(0))}, cuda.ArgumentError{Index: 1, Parameter: n, Type: ".u32", Got: "a nil pointer", Bytes: 8, Want: 4}},
		"a number too short": {[]cuda.Arg{cuda.In(x), cuda.Value(uint8(1))}, cuda.ArgumentError{Index: 1, Parameter: n, Type: ".u32", Got: "uint8", Bytes: 1, Want: 4}},
		"another type":       {[]cuda.Arg{cuda.In(x), cuda.Value(float32(1))}, cuda.ArgumentError{Index: 1, Parameter: n, Type: ".u32", Got: "float32", Bytes: 4, Want: 4}},
		"a number":           {[]cuda.Arg{cuda.Value(uint64(1)), cuda.Value(uint32(1))}, cuda.ArgumentError{Index: 0, Parameter: p, Type: ".u64 .ptr", Got: "uint64", Bytes: 8, Want: 8}},
		"too few":            {[]cuda.Arg{cuda.In(x)}, cuda.ArgumentError{Bytes: 1, Want: 2}},
	} {
		var got *cuda.ArgumentError
		require.ErrorAs(t, c.Launch(k, oneThread, test.args...), &got, name)
		require.Error(t, got.Err, name)
		test.want.Kernel, test.want.Err = "k", got.Err
		assert.Equal(t, test.want, *got, name)
	}
	require.NoError(t, x.Free())
}

// A launch is in order if any of its buffers needs it, wherever that is in the list.
func TestOneSharedBufferOfManyIsEnough(t *testing.T) {
	r := newReading(t, 2)
	const count = 3
	k := kernelsOf(t, r.owner, ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c) { ret; }\n")("k")
	r.readAll() // the table is shared
	c := r.readers[0]
	var own []cuda.Buffer
	for range count - 1 {
		own = append(own, r.alloc(c, mib))
	}
	for shared := range count {
		var args []cuda.Arg
		for i := range count {
			if i == shared {
				args = append(args, cuda.In(r.table))
				continue
			}
			args = append(args, cuda.InOut(own[len(args)%len(own)]))
		}
		for name, launch := range map[string]func() error{
			"Launch":       func() error { return c.Launch(k, oneThread, args...) },
			"LaunchPacked": func() error { return c.LaunchPacked(k, oneThread, make([]byte, 8*count), args...) },
			"LaunchWith": func() error {
				return c.LaunchWith("library", func(_ cudadrv.Device, on cudadrv.Stream) error { return r.machine.Device(0).Launch(on, kernelTime) }, args...)
			},
		} {
			assert.Equal(t, 2*kernelTime, r.span(func() {
				r.touch(r.owner, cuda.InOut(r.table))
				require.NoError(t, launch())
			}), "%s waits for the writer of argument %d", name, shared)
			assert.Equal(t, 2*kernelTime, r.span(func() {
				require.NoError(t, launch())
				r.touch(r.owner, cuda.InOut(r.table))
			}), "the writer of argument %d waits for %s", shared, name)
		}
	}
	for _, b := range append(own, r.table) {
		require.NoError(t, b.Free())
	}
}

// A checker knows the accesses of a launch on buffers of its own stream, too, also after a capture.
func TestAccessesOfLaunchesOnOwnBuffersAreDeclared(t *testing.T) {
	watched, checker := vramtest.Watch(vram.Config{Driver: sim.New(sim.Config{Bytes: true, TimedKernels: true})})
	dev, err := vram.Open(watched)
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	c, err := cuda.NewContext(s)
	require.NoError(t, err)
	f, err := c.Kernel(ptx, "touch")
	require.NoError(t, err)
	x, err := c.Alloc(mib)
	require.NoError(t, err)
	captured, err := c.Alloc(mib)
	require.NoError(t, err)
	g, err := c.Capture(func() error { return c.Launch(f, oneThread, cuda.InOut(captured)) })
	require.NoError(t, err)
	require.NoError(t, captured.Free())
	require.NoError(t, g.Close())
	require.NoError(t, c.Launch(f, oneThread, cuda.InOut(x)))
	gpu, err := checker.View(0)
	require.NoError(t, err)
	other, err := gpu.StreamCreate()
	require.NoError(t, err)
	require.NoError(t, gpu.MemsetD8Async(x.Ptr(), 1, mib, other)) // past the package, and without an order
	require.ErrorContains(t, checker.Checker(0).Err(), "race")
	require.NoError(t, gpu.StreamSynchronize(other))
	require.NoError(t, gpu.StreamDestroy(other))
	require.NoError(t, x.Free())
	require.NoError(t, c.Close())
	require.NoError(t, dev.Close())
}

// A value that is not open has no context.
func TestContextsOfStreamsThatAreNotOpen(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	for _, s := range []*vram.Stream{nil, {}} {
		got, err := cuda.NewContext(s)
		require.ErrorIs(t, err, cuda.ErrNotOpen)
		assert.Nil(t, got)
	}
	s, err := r.dev.NewStream()
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = cuda.NewContext(s)
	require.ErrorIs(t, err, vram.ErrClosed)
	require.NoError(t, c.Synchronize(t.Context()))
}

// The error of each call is its own, and after it the same call succeeds.
func TestErrorsOfCallsAreReturned(t *testing.T) {
	r, c := newFailing(t, sim.Config{Bytes: true})
	d := r.context()
	x := r.alloc(c, mib)
	fails := func(function string) {
		t.Helper()
		require.NoError(t, r.faults.Add(fault.Rule{Func: function, First: 1, Result: cudadrv.Unknown}))
	}
	for _, function := range []string{"cuGraphGetNodes", "cuGraphNodeGetType", "cuGraphExecKernelNodeSetParams"} {
		g, err := c.Capture(func() error { return c.Launch(r.touch, oneThread, cuda.InOut(x)) })
		require.NoError(t, err)
		fails(function)
		require.ErrorIs(t, g.SetArgs(0, oneThread, cuda.In(x)), cudadrv.Unknown, function)
		r.faults.Clear()
		require.NoError(t, g.SetArgs(0, oneThread, cuda.In(x)), function)
		require.NoError(t, g.Launch(d))
		require.NoError(t, g.Close())
	}
	all := make([]cuda.Buffer, 2)
	all[0], all[1] = x, x
	require.ErrorIs(t, new(cuda.Context).AllocBatch(all, []int64{1, 1}), cuda.ErrNotOpen)
	assert.Equal(t, make([]cuda.Buffer, 2), all)
	var batch *vram.BatchError
	require.ErrorAs(t, c.AllocBatch(all, []int64{1, -1}), &batch)
	assert.Equal(t, make([]cuda.Buffer, 2), all)

	var length *cuda.LengthError
	for _, host := range [][]byte{nil, make([]byte, 7), make([]byte, 9)} {
		require.ErrorAs(t, c.CopyInAsync(cuda.Part(x, 0, 8), host), &length)
		assert.Equal(t, cuda.LengthError{DstBytes: 8, SrcBytes: int64(len(host))}, *length)
		require.ErrorAs(t, c.CopyOutAsync(host, cuda.Part(x, 0, 8)), &length)
		assert.Equal(t, cuda.LengthError{DstBytes: int64(len(host)), SrcBytes: 8}, *length)
	}
	e, err := c.Record()
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.ErrorIs(t, c.WaitEvent(e), cuda.ErrNotOpen)

	// A capture that this package does not know of.
	require.NoError(t, r.machine.Device(0).BeginCapture(c.Stream().Handle()))
	called := false
	err = c.Submit(func(cudadrv.Device, cudadrv.Stream) error { called = true; return nil }, cuda.Whole(x))
	require.ErrorIs(t, err, cuda.ErrCapturing)
	assert.False(t, called)
	_, err = r.machine.Device(0).EndCapture(c.Stream().Handle())
	require.NoError(t, err)
	require.NoError(t, x.Free())
}

// Close of a queue whose device is closed has its first error, if there was one, and the error of each buffer that cannot be freed; a
// buffer that Keep has handed over, also after an error, is not among them.
func TestCloseOfAQueueAfterItsDevice(t *testing.T) {
	for name, failed := range map[string]bool{"after an error": true, "without one": false} {
		t.Run(name, func(t *testing.T) {
			dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true, TimedKernels: true})})
			require.NoError(t, err)
			s, err := dev.NewStream()
			require.NoError(t, err)
			c, err := cuda.NewContext(s)
			require.NoError(t, err)
			q := c.NewQueue()
			q.Alloc(mib)
			kept := q.Alloc(mib)
			q.Alloc(mib)
			require.NoError(t, q.Err())
			if failed {
				q.Do("the caller's", func(*cuda.Context) error { return errPlanned })
			}
			assert.Equal(t, kept, q.Keep(kept))
			require.NoError(t, c.Close())
			var used *vram.InUseError
			require.ErrorAs(t, dev.Close(), &used)
			err = q.Close()
			require.ErrorIs(t, err, vram.ErrClosed)
			assert.Equal(t, failed, errors.Is(err, errPlanned))
			assert.Equal(t, 2, strings.Count(err.Error(), "the device is closed"), err)
		})
	}
}
