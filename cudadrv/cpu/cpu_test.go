package cpu_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/cpu"
	"github.com/go-vram/vram/cudadrv/drivertest"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// copyWords copies n words, without a guard for the ends of its buffers.
const copyWords = `.version 7.0
.target sm_70
.address_size 64
.visible .entry copy_words(.param .u64 to, .param .u64 from, .param .u32 n) {
	.reg .pred %p; .reg .b32 %r<5>; .reg .b64 %d<4>;
	ld.param.u64 %d1, [to]; ld.param.u64 %d2, [from]; ld.param.u32 %r1, [n];
	mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
	mad.lo.u32 %r2, %r2, %r3, %r4;
	setp.ge.u32 %p, %r2, %r1;
	@%p ret;
	mul.wide.u32 %d3, %r2, 4;
	add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;
	ld.global.u32 %r1, [%d2];
	st.global.u32 [%d1], %r1;
	ret;
}`

// copier is a device with a kernel that copies words.
type copier struct {
	dev  *vram.Device
	c    *cuda.Context
	copy *cuda.Function
}

func newCopier(t *testing.T, driver cudadrv.Driver) copier {
	t.Helper()
	dev, err := vram.Open(vram.Config{Driver: driver})
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	c, err := cuda.NewContext(s)
	require.NoError(t, err)
	m, err := c.LoadModule([]byte(copyWords))
	require.NoError(t, err)
	f, err := m.Function("copy_words")
	require.NoError(t, err)
	return copier{dev, c, f}
}

// alloc allocates a buffer of words that are all written, with a tag.
func (x copier) alloc(t *testing.T, words int, tag string) vram.Buffer {
	t.Helper()
	b, err := x.c.Stream().AllocFor(t.Context(), vram.Request{Bytes: int64(4 * words), Tag: tag})
	require.NoError(t, err)
	require.NoError(t, cuda.CopyIn(x.c, b, make([]uint32, words)))
	return b
}

func (x copier) launch(t *testing.T, to, from vram.Buffer, words int) error {
	t.Helper()
	require.NoError(t, x.c.Launch(x.copy, cuda.Cover(words, 64), cuda.Out(to), cuda.In(from), cuda.Value(uint32(words)))) //nolint:gosec // few
	return x.c.Synchronize(context.Background())
}

// The import registers the names, and a launch on the named driver's device computes.
func TestANamedDeviceComputes(t *testing.T) {
	driver, err := vram.DriverNamed(cpu.Name)
	require.NoError(t, err)
	x := newCopier(t, driver)
	assert.Equal(t, cpu.Name, x.dev.Info().Driver)
	to, from := x.alloc(t, 100, ""), x.alloc(t, 100, "")
	want := make([]uint32, 100)
	for n := range want {
		want[n] = uint32(3*n + 1) //nolint:gosec // few
	}
	require.NoError(t, cuda.CopyIn(x.c, from, want))
	require.NoError(t, x.launch(t, to, from, 100))
	got := make([]uint32, 100)
	require.NoError(t, cuda.CopyOut(x.c, got, to))
	assert.Equal(t, want, got)
	require.NoError(t, errors.Join(to.Free(), from.Free(), x.c.Close(), x.dev.Close()))
}

// The environment names the device, too.
func TestTheEnvironmentNamesTheDevice(t *testing.T) {
	t.Setenv("VRAM_DRIVER", cpu.Name)
	config, err := vram.ConfigFromEnv(vram.Config{})
	require.NoError(t, err)
	assert.Equal(t, cpu.Name, config.Driver.Name())
}

// An access past the end of a buffer ends the work of the device, and the error of the next call names the buffer.
func TestAFaultNamesTheBuffer(t *testing.T) {
	driver := cpu.New(cpu.Config{})
	x := newCopier(t, driver)
	to, from := x.alloc(t, 16, ""), x.alloc(t, 12, "samples")
	err := x.launch(t, to, from, 16)
	require.ErrorIs(t, err, cudadrv.IllegalAddress)
	require.ErrorContains(t, err, `the buffer of 48 bytes "samples" allocated at cpu_test.copier.alloc (cpu_test.go:`)
	require.ErrorContains(t, err, "it is 0 bytes past the end of")
	require.Len(t, driver.Faults(), 1)
	fault, ok := errors.AsType[*interp.Fault](driver.Faults()[0])
	require.True(t, ok)
	assert.Equal(t, interp.OutOfBounds, fault.Kind)
	assert.EqualValues(t, 12, fault.Thread.X)
	require.Error(t, x.dev.Close(), "every call fails after a fault")
}

// The names of buffers reach the driver also if the program observes them.
func TestAnObserverDoesNotHideBuffers(t *testing.T) {
	driver := cpu.New(cpu.Config{})
	x := newCopier(t, driver)
	stop, err := x.dev.Observe(vram.Observer{Allocated: func(vram.BufferEvent) {}})
	require.NoError(t, err)
	to, from := x.alloc(t, 16, ""), x.alloc(t, 12, "observed")
	stop()
	again := x.alloc(t, 8, "after stop")
	require.NoError(t, x.launch(t, to, again, 8))
	require.ErrorContains(t, x.launch(t, to, from, 16), `the buffer of 48 bytes "observed"`)
	require.Error(t, x.dev.Close())
}

// The names of buffers reach the driver also through drivers that wrap it.
func TestWrappersDoNotHideBuffers(t *testing.T) {
	for name, wrap := range map[string]func(cudadrv.Driver) cudadrv.Driver{
		"fault":  func(d cudadrv.Driver) cudadrv.Driver { return fault.Wrap(d) },
		"hazard": func(d cudadrv.Driver) cudadrv.Driver { return hazard.Wrap(d) },
		"both":   func(d cudadrv.Driver) cudadrv.Driver { return hazard.Wrap(fault.Wrap(d)).Allocator() },
	} {
		t.Run(name, func(t *testing.T) {
			x := newCopier(t, wrap(cpu.New(cpu.Config{})))
			to, from := x.alloc(t, 16, ""), x.alloc(t, 12, "wrapped")
			require.ErrorContains(t, x.launch(t, to, from, 16), `the buffer of 48 bytes "wrapped"`)
			require.Error(t, x.dev.Close())
		})
	}
	assert.Nil(t, cudadrv.BufferObserverOf(nil))
	assert.Nil(t, cudadrv.BufferObserverOf(fault.Wrap(sim.New(sim.Config{}))))
	driver := cpu.New(cpu.Config{})
	assert.Same(t, driver, cudadrv.BufferObserverOf(hazard.Wrap(driver)))
}

// ArgumentsOnly finds a step over the end of a buffer into the next one.
func TestArgumentsOnly(t *testing.T) {
	for _, only := range []bool{false, true} {
		driver := cpu.New(cpu.Config{ArgumentsOnly: only})
		x := newCopier(t, driver)
		from, next := x.alloc(t, 128, "first"), x.alloc(t, 128, "second")
		require.Equal(t, from.Ptr()+512, next.Ptr())
		to := x.alloc(t, 256, "")
		err := x.launch(t, to, from, 129)
		if !only {
			require.NoError(t, err)
			require.NoError(t, errors.Join(from.Free(), next.Free(), to.Free(), x.c.Close(), x.dev.Close()))
			continue
		}
		require.ErrorContains(t, err, `byte 0 belongs to a buffer that is no argument of the launch: the buffer of 512 bytes "second"`)
		require.Error(t, x.dev.Close())
	}
}

// The output of printf goes to the writer.
func TestOutput(t *testing.T) {
	var output bytes.Buffer
	x := newCopier(t, cpu.New(cpu.Config{Output: &output}))
	m, err := x.c.LoadModule([]byte(`.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 format, .param .b64 values);
.global .align 1 .b8 text[7] = {104, 101, 108, 108, 111, 10, 0};
.visible .entry hello() {
	.reg .b64 %d<3>; .reg .b32 %r;
	mov.u64 %d1, text; cvta.global.u64 %d1, %d1; mov.u64 %d2, 0;
	{ .param .b64 format; st.param.b64 [format], %d1; .param .b64 values; st.param.b64 [values], %d2; .param .b32 r;
	call.uni (r), vprintf, (format, values); ld.param.b32 %r, [r]; }
	ret;
}`))
	require.NoError(t, err)
	f, err := m.Function("hello")
	require.NoError(t, err)
	require.NoError(t, x.c.Launch(f, cuda.Cover(1, 1)))
	require.NoError(t, x.c.Synchronize(t.Context()))
	assert.Equal(t, "hello\n", output.String())
	require.NoError(t, errors.Join(x.c.Close(), x.dev.Close()))
}

// A Config that cannot be is an error of the first use.
func TestConfigThatCannotBe(t *testing.T) {
	_, err := vram.Open(vram.Config{Driver: cpu.New(cpu.Config{Devices: -1})})
	require.ErrorIs(t, err, vram.ErrNoDriver)
	assert.Empty(t, (*cpu.Driver)(nil).Faults())
}

// Each number of a Config has the effect of its name.
func TestNumbersOfAConfig(t *testing.T) {
	d := cpu.New(cpu.Config{Devices: 3, TotalBytes: 64 << 20, MaxInstructions: 1 << 20})
	count, err := d.DeviceCount()
	require.NoError(t, err)
	assert.Equal(t, 3, count)
	dev, err := d.Open(2)
	require.NoError(t, err)
	assert.EqualValues(t, 64<<20, dev.Info().TotalBytes)
	require.NoError(t, dev.Close())
}

// The device keeps the rules of every driver.
func TestConformance(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) cudadrv.Driver {
		t.Helper()
		driver := cpu.New(cpu.Config{})
		t.Cleanup(func() { require.NoError(t, driver.Device(0).Audit()) })
		return driver
	})
}

// An address of a freed buffer is a mistake, and a driver that New has not made refuses all and learns nothing.
func TestAFreedBufferIsNotTouched(t *testing.T) {
	d := cpu.New(cpu.Config{})
	x := newCopier(t, d)
	from, to, other := x.alloc(t, 64, "from"), x.alloc(t, 64, "to"), x.alloc(t, 64, "other")
	address := to.Ptr()
	require.NoError(t, x.launch(t, other, from, 64))
	require.NoError(t, to.Free())
	require.NoError(t, x.c.Launch(x.copy, cuda.Cover(64, 64), cuda.Value(address), cuda.In(from), cuda.Value(uint32(64))))
	err := x.c.Synchronize(context.Background())
	require.Error(t, err)
	require.Len(t, d.Faults(), 1)
	require.ErrorContains(t, d.Faults()[0], "freed")
	require.Error(t, x.dev.Close()) // the device has failed

	for _, none := range []*cpu.Driver{nil, new(cpu.Driver)} {
		count, err := none.DeviceCount()
		require.ErrorIs(t, err, cudadrv.ErrNotOpen)
		assert.Zero(t, count)
		_, err = none.Open(0)
		require.ErrorIs(t, err, cudadrv.ErrNotOpen)
		assert.Nil(t, none.Device(0))
		assert.Empty(t, none.Faults())
		none.BufferAllocated(cudadrv.BufferEvent{})
		none.BufferFreed(cudadrv.BufferEvent{})
		assert.Equal(t, cpu.Name, none.Name())
	}
}
