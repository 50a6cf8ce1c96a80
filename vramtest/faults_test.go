package vramtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
	"github.com/go-vram/vram/vramtest"
)

// A fault is read once: the test's failure has its text, the first call refers to it, and later calls name the launch.
func TestAFaultIsToldOnce(t *testing.T) {
	log := &sheet{}
	dev := vramtest.Open(log, vramtest.Kernels())
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	m, err := c.LoadModule([]byte(ptxOfCopy))
	require.NoError(t, err)
	f, err := m.Function("copy")
	require.NoError(t, err)
	from, to := buffer(t, c, 1024), buffer(t, c, 512)
	require.NoError(t, c.Fill32(cuda.Whole(from), 1))
	require.NoError(t, c.Launch(f, cuda.Cover(256, 256), cuda.Out(to), cuda.In(from), cuda.Value(uint32(129))))
	texts := make([]string, 0, 4)
	err = c.Synchronize(t.Context())
	require.ErrorContains(t, err, "CUDA_ERROR_ILLEGAL_ADDRESS: kernel copy: the test reports its fault")
	require.ErrorIs(t, err, interp.OutOfBounds)
	texts = append(texts, err.Error())
	for range 2 {
		err = c.Synchronize(t.Context())
		require.ErrorIs(t, err, interp.OutOfBounds)
		require.ErrorIs(t, err, cudadrv.IllegalAddress)
		assert.Regexp(t, `the device failed before: CUDA_ERROR_ILLEGAL_ADDRESS of kernel copy, launched at vramtest_test\.TestAFaultIsToldOnce \(faults_test\.go:\d+\)$`, err.Error())
		texts = append(texts, err.Error())
	}
	log.end()
	require.Len(t, log.failures, 1)
	assert.Equal(t, 1, strings.Count(strings.Join(append(texts, log.failures...), "\n"), "out of bounds"))
	assert.Contains(t, log.failures[0], "0 bytes past the end of the buffer of 512 bytes allocated at")
}

// A fault that shows as the end of the test waits for the work is the test's as an earlier one is: it is reported with its text, or,
// where the test expects faults, not at all. So it is in the test's own Close.
func TestAFaultThatShowsAtTheEnd(t *testing.T) {
	for name, closes := range map[string]bool{"at the end": false, "in Close": true} {
		for _, expected := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, expected %v", name, expected), func(t *testing.T) {
				log, options := &sheet{}, []vramtest.Option{vramtest.Kernels()}
				if expected {
					options = append(options, vramtest.Expected())
				}
				dev := vramtest.Open(log, options...)
				c, err := cuda.NewContext(dev.Stream())
				require.NoError(t, err)
				m, err := c.LoadModule([]byte(ptxOfCopy))
				require.NoError(t, err)
				f, err := m.Function("copy")
				require.NoError(t, err)
				x := buffer(t, c, 512)
				require.NoError(t, c.Fill32(cuda.Whole(x), 1))
				require.NoError(t, c.Launch(f, cuda.Cover(256, 256), cuda.InOut(x), cuda.In(x), cuda.Value(uint32(129))))
				require.NoError(t, x.Free())
				require.Empty(t, dev.Faults(), "nobody has waited for the work")
				if closes {
					require.ErrorIs(t, dev.Close(), cudadrv.IllegalAddress)
				}
				log.end()
				require.Len(t, dev.Faults(), 1)
				if expected {
					assert.Empty(t, log.failures)
					return
				}
				require.Len(t, log.failures, 1)
				assert.Contains(t, log.failures[0], "0 bytes past the end of the buffer of 512 bytes allocated at")
			})
		}
	}
}

// The error of a call names the kernel once where the test expects faults.
func TestAnExpectedFaultNamesItsKernelOnce(t *testing.T) {
	_, c, f := kernels(t, vramtest.Kernels())
	x := buffer(t, c, 4)
	require.NoError(t, c.Launch(f, cuda.Cover(2, 2), cuda.Out(x), cuda.In(x), cuda.Value(uint32(2))))
	err := c.Synchronize(t.Context())
	require.Error(t, err)
	assert.Equal(t, 1, strings.Count(err.Error(), "kernel copy"), err.Error())
}

// ptxOfRace is two kernels with a race in global memory: in a buffer, and in a variable of the module.
const ptxOfRace = `.version 7.0
.target sm_70
.address_size 64
.global .u32 counter;
.visible .entry inbuffer(.param .u64 x) {
	.reg .b32 %r<3>; .reg .b64 %d<3>;
	ld.param.u64 %d1, [x];
	mov.u32 %r1, %tid.x;
	st.global.u32 [%d1+8], %r1;
	ret;
}
.visible .entry invariable() {
	.reg .b32 %r<3>;
	mov.u32 %r1, %tid.x;
	st.global.u32 [counter], %r1;
	ret;
}`

// A race names the buffer, as an access out of bounds does, or the variable.
func TestARaceNamesTheBuffer(t *testing.T) {
	for name, texts := range map[string][]string{
		"inbuffer":   {"byte 8 of the buffer of 64 bytes \"weights\" allocated at", "faults_test.go:"},
		"invariable": {"byte 0 of variable counter"},
	} {
		log := &sheet{}
		dev := vramtest.Open(log, vramtest.Kernels(), vramtest.Expected())
		c, err := cuda.NewContext(dev.Stream())
		require.NoError(t, err)
		m, err := c.LoadModule([]byte(ptxOfRace))
		require.NoError(t, err)
		f, err := m.Function(name)
		require.NoError(t, err)
		x, err := c.Stream().AllocFor(t.Context(), vram.Request{Bytes: 64, Tag: "weights"})
		require.NoError(t, err)
		if name == "inbuffer" {
			require.NoError(t, c.Launch(f, cuda.Cover(2, 2), cuda.Out(x)))
		} else {
			require.NoError(t, c.Launch(f, cuda.Cover(2, 2)))
		}
		require.Error(t, c.Synchronize(t.Context()))
		require.Len(t, dev.Faults(), 1)
		require.ErrorIs(t, dev.Faults()[0], interp.GlobalRace)
		for _, text := range texts {
			assert.Contains(t, dev.Faults()[0].Error(), text)
		}
		log.end()
	}
}

// ptxOfReach is a kernel that stores a word at an address in its second parameter, plus an offset.
const ptxOfReach = `.version 7.0
.target sm_70
.address_size 64
.visible .entry reach(.param .u32 n, .param .u64 first, .param .u64 second, .param .u64 offset) {
	.reg .b64 %d<4>;
	ld.param.u64 %d1, [second]; ld.param.u64 %d2, [offset];
	add.u64 %d1, %d1, %d2;
	st.global.u32 [%d1], 1;
	ret;
}`

// step is a program's own helper, as a type with a method.
type step struct{ c *cuda.Context }

//go:noinline
func (s *step) launch(f *cuda.Function, args ...cuda.Arg) error {
	return s.c.Launch(f, cuda.Cover(1, 1), args...)
}

func inlinedAlloc(c *cuda.Context, bytes int64, tag string) (vram.Buffer, error) {
	return c.AllocFor(context.Background(), vram.Request{Bytes: bytes, Tag: tag})
}

// A fault names the parameter that it concerns, its buffer, and the places of the launch and the allocation in the program:
// helpers are left out.
func TestAFaultNamesTheLaunchAndTheParameter(t *testing.T) {
	const pkg = "github.com/go-vram/vram/vramtest_test."
	const here = `vramtest_test\.TestAFaultNamesTheLaunchAndTheParameter\.func[\d.]+ \(faults_test\.go:\d+\)`
	for name, c := range map[string]struct {
		offset   int64
		freed    bool
		captured bool
		kind     interp.Kind
		text     string
	}{
		"past the end":  {64, false, false, interp.OutOfBounds, `it is 0 bytes past the end of the buffer of 64 bytes "y" allocated at ` + here + `; the buffer is parameter 2, second; launched at ` + here},
		"misaligned":    {2, false, false, interp.Misaligned, `; parameter 2, second, is the buffer of 64 bytes "y" allocated at ` + here + `; launched at ` + here},
		"freed":         {0, true, false, interp.NotLive, `the buffer of 64 bytes "y" allocated at ` + here + `, freed at ` + here + `; the buffer is parameter 2, second; launched at ` + here},
		"in a graph":    {64, false, true, interp.OutOfBounds, `; the buffer is parameter 2, second; launched at ` + here},
		"another's end": {-4, false, false, interp.OutOfBounds, `parameter 1, first; launched at `},
	} {
		t.Run(name, func(t *testing.T) {
			log := &sheet{}
			dev := vramtest.Open(log, vramtest.Kernels(), vramtest.Expected(), vramtest.Config(vram.Config{Helpers: []string{pkg + "(*step).launch", pkg + "inlinedAlloc"}}))
			defer log.end()
			on, err := cuda.NewContext(dev.Stream())
			require.NoError(t, err)
			m, err := on.LoadModule([]byte(ptxOfReach))
			require.NoError(t, err)
			f, err := m.Function("reach")
			require.NoError(t, err)
			x, err := inlinedAlloc(on, 32, "x")
			require.NoError(t, err)
			y, err := inlinedAlloc(on, 64, "y")
			require.NoError(t, err)
			at := cuda.Out(y)
			if c.freed {
				at = cuda.Value(uint64(y.Ptr()))
				require.NoError(t, y.Free())
			}
			launch := func() error {
				return (&step{on}).launch(f, cuda.Value(uint32(1)), cuda.Out(x), at, cuda.Value(c.offset))
			}
			if c.captured {
				g, err := on.Capture(launch)
				require.NoError(t, err)
				require.NoError(t, g.Launch(on))
			} else {
				require.NoError(t, launch())
			}
			require.Error(t, on.Synchronize(t.Context()))
			require.Len(t, dev.Faults(), 1)
			err = dev.Faults()[0]
			require.ErrorIs(t, err, c.kind)
			assert.Regexp(t, c.text, err.Error())
			assert.NotContains(t, err.Error(), "launch (")
			failed, ok := errors.AsType[*ptxrun.Error](err)
			require.True(t, ok)
			assert.Equal(t, "reach", failed.Kernel)
			require.NotNil(t, failed.Argument)
			if c.offset >= 0 {
				assert.Equal(t, 2, failed.Argument.Index)
				assert.Equal(t, "second", failed.Argument.Name)
				assert.Equal(t, "y", failed.Argument.Buffer.Tag)
				assert.Equal(t, c.freed, failed.Argument.Buffer.Freed.Known())
			}
		})
	}
}

// A fault in a variable of the module concerns no argument.
func TestAFaultInAVariableConcernsNoArgument(t *testing.T) {
	log := &sheet{}
	dev := vramtest.Open(log, vramtest.Kernels(), vramtest.Expected())
	defer log.end()
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	m, err := c.LoadModule([]byte(strings.Replace(ptxOfRace, "invariable()", "invariable(.param .u64 x)", 1)))
	require.NoError(t, err)
	f, err := m.Function("invariable")
	require.NoError(t, err)
	require.NoError(t, c.Launch(f, cuda.Cover(2, 2), cuda.Out(buffer(t, c, 64))))
	require.Error(t, c.Synchronize(t.Context()))
	failed, ok := errors.AsType[*ptxrun.Error](dev.Faults()[0])
	require.True(t, ok)
	assert.Nil(t, failed.Argument)
}

// The places of a hazard are the program's, without its helpers.
func TestAHazardNamesNoHelper(t *testing.T) {
	log := &sheet{}
	const pkg = "github.com/go-vram/vram/vramtest_test."
	dev := vramtest.Open(log, vramtest.Expected(), vramtest.Config(vram.Config{Helpers: []string{pkg + "touched", pkg + "inlinedAlloc"}}))
	s := dev.Stream()
	c, err := cuda.NewContext(s)
	require.NoError(t, err)
	x, err := inlinedAlloc(c, 64, "x")
	require.NoError(t, err)
	touched(dev, s, x)
	touched(dev, dev.Stream(), x)
	require.NoError(t, x.Free())
	touched(dev, s, x) // stale
	log.end()
	require.Len(t, dev.Hazards(), 2, "a race, and a use of a freed buffer")
	for _, r := range dev.Hazards() {
		assert.Contains(t, r.Now.Place.String(), "TestAHazardNamesNoHelper")
		assert.NotContains(t, r.String(), "touched")
		assert.NotContains(t, r.String(), "inlinedAlloc")
	}
}

//go:noinline
func touched[B any](dev *vramtest.Device, s *vram.Stream, b B) {
	dev.Launch(s, time.Millisecond, vramtest.Writes(any(b).(vram.Buffer)))
}
