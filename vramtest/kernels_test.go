package vramtest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/vramtest"
)

// ptxOfCopy is a kernel that copies so many words, whose addresses are parameters.
const ptxOfCopy = `.version 7.0
.target sm_70
.address_size 64
.global .u32 base = 5;
.visible .entry copy(.param .u64 to, .param .u64 from, .param .u32 n) {
	.reg .pred %p; .reg .b32 %r<5>; .reg .b64 %d<4>;
	ld.param.u64 %d1, [to]; ld.param.u64 %d2, [from]; ld.param.u32 %r1, [n];
	mov.u32 %r2, %tid.x;
	setp.ge.u32 %p, %r2, %r1;
	@%p ret;
	mul.wide.u32 %d3, %r2, 4;
	add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;
	ld.global.u32 %r3, [%d2];
	ld.global.u32 %r4, [base];
	add.u32 %r3, %r3, %r4;
	st.global.u32 [%d1], %r3;
	ret;
}`

// kernels is a test's device with a context and the kernel.
func kernels(t *testing.T, options ...vramtest.Option) (*vramtest.Device, *cuda.Context, *cuda.Function) {
	t.Helper()
	other := &sheet{}
	dev := vramtest.Open(other, append(options, vramtest.Expected())...)
	t.Cleanup(other.end)
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	m, err := c.LoadModule([]byte(ptxOfCopy))
	require.NoError(t, err)
	f, err := m.Function("copy")
	require.NoError(t, err)
	return dev, c, f
}

func buffer(t *testing.T, c *cuda.Context, bytes int64) vram.Buffer {
	t.Helper()
	b, err := c.Alloc(bytes)
	require.NoError(t, err)
	return b
}

// Kernels run after earlier work of their stream, on its bytes, and variables have their initial values.
func TestKernelsRunInTheOrderOfTheirStream(t *testing.T) {
	_, c, f := kernels(t, vramtest.Kernels())
	from, to := buffer(t, c, 256), buffer(t, c, 256)
	require.NoError(t, c.Fill32(cuda.Whole(from), 37))
	require.NoError(t, c.Launch(f, cuda.Cover(64, 64), cuda.Out(to), cuda.In(from), cuda.Value(uint32(64))))
	require.NoError(t, c.Fill32(cuda.Whole(from), 1))
	require.NoError(t, c.Launch(f, cuda.Cover(64, 64), cuda.Out(from), cuda.In(to), cuda.Value(uint32(32))))
	values := make([]uint32, 64)
	require.NoError(t, cuda.CopyOut(c, values, to))
	assert.Equal(t, uint32(42), values[63])
	require.NoError(t, cuda.CopyOut(c, values, from))
	assert.Equal(t, []uint32{47, 1}, []uint32{values[31], values[32]})
	require.NoError(t, to.Free())
	require.NoError(t, from.Free())
	require.NoError(t, c.Close())
}

// A graph runs its kernels at each launch.
func TestGraphsRunKernels(t *testing.T) {
	_, c, f := kernels(t, vramtest.Kernels())
	x := buffer(t, c, 256)
	require.NoError(t, c.Fill32(cuda.Whole(x), 0))
	g, err := c.Capture(func() error {
		return c.Launch(f, cuda.Cover(64, 64), cuda.Out(x), cuda.In(x), cuda.Value(uint32(64)))
	})
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, g.Launch(c))
	}
	values := make([]uint32, 64)
	require.NoError(t, cuda.CopyOut(c, values, x))
	assert.Equal(t, uint32(15), values[63])
	require.NoError(t, g.Close())
	require.NoError(t, x.Free())
	require.NoError(t, c.Close())
}

// Accesses of a kernel to wrong memory are found with the buffer and the offset, and the device fails as hardware does.
func TestMistakesOfKernels(t *testing.T) {
	for name, c := range map[string]struct {
		launch func(t *testing.T, c *cuda.Context, f *cuda.Function) error
		kind   interp.Kind
		texts  []string
	}{
		"one too far, into another buffer": {func(t *testing.T, c *cuda.Context, f *cuda.Function) error {
			t.Helper()
			from, to, next := buffer(t, c, 1024), buffer(t, c, 512), buffer(t, c, 512)
			require.Equal(t, to.Ptr()+512, next.Ptr(), "the buffers lie side by side")
			require.NoError(t, c.Fill32(cuda.Whole(from), 1))
			return c.Launch(f, cuda.Cover(256, 256), cuda.Out(to), cuda.In(from), cuda.Value(uint32(129)))
		}, interp.OutOfBounds, []string{"no argument of the launch", "0 bytes past the end of the buffer of 512 bytes", "kernels_test.go:"}},
		"a freed buffer by its address": {func(t *testing.T, c *cuda.Context, f *cuda.Function) error {
			t.Helper()
			from, to := buffer(t, c, 512), buffer(t, c, 512)
			p := uint64(from.Ptr())
			require.NoError(t, from.Free())
			return c.Launch(f, cuda.Cover(1, 1), cuda.Out(to), cuda.Value(p), cuda.Value(uint32(1)))
		}, interp.NotLive, []string{"the buffer of 512 bytes", "freed at"}},
		"no memory": {func(t *testing.T, c *cuda.Context, f *cuda.Function) error {
			t.Helper()
			return c.Launch(f, cuda.Cover(1, 1), cuda.Out(buffer(t, c, 512)), cuda.Value(uint64(1<<20)), cuda.Value(uint32(1)))
		}, interp.NotLive, []string{"not mapped"}},
	} {
		t.Run(name, func(t *testing.T) {
			dev, context, f := kernels(t, vramtest.Kernels())
			require.NoError(t, c.launch(t, context, f), "the mistake shows when the kernel runs")
			err := context.Synchronize(t.Context())
			failed, ok := errors.AsType[*cudadrv.CallError](err)
			require.True(t, ok, err)
			assert.Equal(t, cudadrv.IllegalAddress, failed.Result)
			require.Len(t, dev.Faults(), 1)
			require.ErrorIs(t, dev.Faults()[0], c.kind)
			for _, text := range c.texts {
				assert.Contains(t, dev.Faults()[0].Error(), text)
			}
		})
	}
}

// ptxOfConfigs is a kernel for each field of the options that changes a kernel's permissions: one of a thousand rounds, one whose
// warps read each other's volatile stores without a barrier, and one whose first block waits for the second one.
const ptxOfConfigs = `.version 7.0
.target sm_70
.address_size 64
.visible .entry rounds(.param .u64 x) {
	.reg .pred %p; .reg .b32 %r<2>;
	mov.u32 %r1, 0;
	again: add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 1000;
	@%p bra again;
	ret;
}
.visible .entry volatiles(.param .u64 x) {
	.shared .align 4 .b8 tile[256];
	.reg .b32 %r<6>;
	mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 4, %r2;
	st.volatile.shared.u32 [%r3], 99;
	bar.sync 0;
	st.volatile.shared.u32 [%r3], %r1;
	xor.b32 %r4, %r1, 32; mad.lo.u32 %r4, %r4, 4, %r2;
	ld.volatile.shared.u32 %r5, [%r4];
	ret;
}
.visible .entry meeting(.param .u64 x) {
	.reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<2>;
	ld.param.u64 %d1, [x];
	mov.u32 %r1, %ctaid.x; setp.eq.u32 %p, %r1, 0;
	@%p bra spin;
	atom.global.add.u32 %r2, [%d1], 1;
	ret;
	spin: ld.acquire.gpu.global.u32 %r3, [%d1]; setp.eq.u32 %p, %r3, 0;
	@%p bra spin;
	ret;
}`

// Each field of the options counts, and for its own sentence alone.
func TestEachFieldOfTheKernelConfig(t *testing.T) {
	const bound = 20_000
	for _, p := range []struct {
		kernel string
		config vramtest.KernelConfig
		fault  interp.Kind
	}{
		{"rounds", vramtest.KernelConfig{}, interp.NoFault},
		{"rounds", vramtest.KernelConfig{MaxInstructions: bound}, interp.NoFault},
		{"rounds", vramtest.KernelConfig{MaxInstructions: 1000}, interp.InstructionLimit},
		{"volatiles", vramtest.KernelConfig{}, interp.NoFault},
		{"volatiles", vramtest.KernelConfig{Strict: true}, interp.SharedRace},
		{"meeting", vramtest.KernelConfig{MaxInstructions: bound}, interp.InstructionLimit},
		{"meeting", vramtest.KernelConfig{MaxInstructions: bound, Cooperative: true}, interp.NoFault},
	} {
		dev, c, _ := kernels(t, vramtest.Kernels(p.config))
		m, err := c.LoadModule([]byte(ptxOfConfigs))
		require.NoError(t, err)
		f, err := m.Function(p.kernel)
		require.NoError(t, err)
		x := buffer(t, c, 4)
		require.NoError(t, c.Fill32(cuda.Whole(x), 0))
		require.NoError(t, c.Launch(f, cuda.Cover(128, 64), cuda.InOut(x)))
		err = c.Synchronize(t.Context())
		if p.fault != interp.NoFault {
			require.ErrorIs(t, err, p.fault, "%s %+v", p.kernel, p.config)
			require.Len(t, dev.Faults(), 1)
			continue
		}
		require.NoError(t, err, "%s %+v", p.kernel, p.config)
		require.NoError(t, errors.Join(x.Free(), c.Close()))
	}
}

// A kernel may reach buffers through addresses in memory, where the option says so.
func TestPointersInMemory(t *testing.T) {
	dev, c, f := kernels(t, vramtest.Kernels(vramtest.KernelConfig{Pointers: true}))
	from, to, next := buffer(t, c, 512), buffer(t, c, 512), buffer(t, c, 512)
	require.Equal(t, to.Ptr()+512, next.Ptr())
	require.NoError(t, c.Fill32(cuda.Whole(from), 1))
	require.NoError(t, c.Launch(f, cuda.Cover(64, 64), cuda.Value(uint64(to.Ptr()+512)), cuda.In(from), cuda.Value(uint32(64))))
	require.NoError(t, c.Synchronize(t.Context()))
	assert.Empty(t, dev.Faults())
	for _, b := range []vram.Buffer{from, to, next} {
		require.NoError(t, b.Free())
	}
	require.NoError(t, c.Close())
}

// A graph's kernel may follow an address to a buffer that was allocated after the capture, and not to one that was freed before
// the graph's launch.
func TestPointersInGraphs(t *testing.T) {
	dev, c, f := kernels(t, vramtest.Kernels(vramtest.KernelConfig{Pointers: true}))
	from, before := buffer(t, c, 512), buffer(t, c, 1024)
	require.NoError(t, c.Fill32(cuda.Whole(from), 1))
	address := before.Ptr()
	require.NoError(t, before.Free())
	g, err := c.Capture(func() error {
		return c.Launch(f, cuda.Cover(64, 64), cuda.Value(uint64(address)), cuda.In(from), cuda.Value(uint32(64)))
	})
	require.NoError(t, err)
	to := buffer(t, c, 1024)
	require.Equal(t, address, to.Ptr())
	require.NoError(t, g.Launch(c))
	require.NoError(t, to.Free(), "after its last use in the stream's order")
	require.NoError(t, c.Synchronize(t.Context()))
	require.Empty(t, dev.Faults())
	require.NoError(t, g.Launch(c))
	require.Error(t, c.Synchronize(t.Context()))
	require.Len(t, dev.Faults(), 1)
	require.ErrorContains(t, dev.Faults()[0], "freed at")
	_ = g.Close()
	_ = from.Free()
	_ = c.Close() // the device has failed
}

// A buffer that is freed after a launch is the kernel's until that has run, also if its memory is allocated again.
func TestABufferFreedBehindItsLaunch(t *testing.T) {
	dev, c, f := kernels(t, vramtest.Kernels())
	from, to := buffer(t, c, 1024), buffer(t, c, 1024)
	require.NoError(t, c.Fill32(cuda.Whole(from), 1))
	require.NoError(t, c.Launch(f, cuda.Cover(256, 256), cuda.Out(to), cuda.In(from), cuda.Value(uint32(256))))
	require.NoError(t, from.Free())
	again := buffer(t, c, 512)
	require.NoError(t, c.Fill32(cuda.Whole(again), 7))
	require.NoError(t, c.Synchronize(t.Context()))
	assert.Empty(t, dev.Faults())
	require.NoError(t, again.Free())
	require.NoError(t, to.Free())
	require.NoError(t, c.Close())
}

// A mistake fails a test that expects none, once.
func TestAMistakeFailsTheTest(t *testing.T) {
	other := &sheet{}
	dev := vramtest.Open(other, vramtest.Kernels())
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	m, err := c.LoadModule([]byte(ptxOfCopy))
	require.NoError(t, err)
	f, err := m.Function("copy")
	require.NoError(t, err)
	require.NoError(t, c.Launch(f, cuda.Cover(1, 1), cuda.Value(uint64(8)), cuda.Value(uint64(8)), cuda.Value(uint32(1))))
	require.Error(t, c.Synchronize(t.Context()))
	other.end()
	require.Len(t, other.failures, 1)
	assert.Contains(t, other.failures[0], "ptx: kernel copy: memory is not live: line 13")
}

// A module that a driver's compiler refuses is refused when it is loaded, with the line.
func TestModulesThatAreRefused(t *testing.T) {
	_, c, _ := kernels(t, vramtest.Kernels())
	const text = ".version %s\n.target %s\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %%r<3>;\nmov.u32 %%r1, 1;\n%s\nret; }\n"
	for _, wrong := range []struct {
		version, target, instruction string
		result                       cudadrv.Result
		line                         string
	}{
		{"7.0", "sm_70", "", cudadrv.Success, ""},
		{"7.0", "sm_70", "add.rz.u32 %r1, %r1, %r1;", cudadrv.InvalidPTX, "ptx: 8:1:"},
		{"7.0", "sm_70", "redux.sync.add.u32 %r1, %r1, 0xffffffff;", cudadrv.InvalidPTX, "ptx: 8:1:"},
		{"8.0", "sm_90", "wgmma.fence.sync.aligned;", cudadrv.InvalidPTX, "ptx: 8:1:"},
		{"8.0", "sm_90a", "wgmma.fence.sync.aligned;", cudadrv.Success, ""},
		{"7.0", "sm_70", "foo.u32 %r1;", cudadrv.InvalidPTX, "line 8:"},
		{"7.0", "sm_60", "", cudadrv.Success, ""},
		{"7.0", "sm_60", "redux.sync.add.u32 %r1, %r1, 0xffffffff;", cudadrv.InvalidPTX, "compile with -arch=sm_70 or later"},
		{"7.8", "sm_80", "mul24.lo.u32 %r1, %r1, %r1;", cudadrv.Success, ""},
		{"7.9", "sm_70", "", cudadrv.InvalidPTX, "ptx: 1:1:"},
		{"9.9", "sm_90", "", cudadrv.UnsupportedPTXVersion, "line 1:"},
	} {
		m, err := c.LoadModule(fmt.Appendf(nil, text, wrong.version, wrong.target, wrong.instruction))
		if wrong.result == cudadrv.Success {
			require.NoError(t, err)
			require.NoError(t, m.Unload())
			continue
		}
		require.ErrorIs(t, err, wrong.result, wrong)
		assert.Contains(t, err.Error(), wrong.line)
	}
	require.NoError(t, c.Close())
}

// A kernel that executes an instruction that is not known fails there, with the finding; one that does not, and others of
// the module, run.
func TestAKernelThatIsNotKnown(t *testing.T) {
	const text = `.version 7.8
.target sm_80
.address_size 64
.global .texref picture;
.visible .entry unknown(.param .u64 to) {
	.reg .b32 %r<3>;
	mul24.lo.u32 %r1, %r1, %r1;
	ret;
}
.visible .entry textured(.param .u64 to) {
	.reg .f32 %f<9>;
	tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [picture, {%f5, %f6}];
	ret;
}
.visible .entry passing(.param .u64 to) {
	.reg .b32 %r<3>; .reg .pred %p; .reg .b64 %d<2>;
	setp.eq.u32 %p, 0, 1;
	@%p tex.1d.v4.f32.s32 {_, _, _, _}, [picture, {%r1}];
	ld.param.u64 %d1, [to];
	st.global.u32 [%d1], 7;
	ret;
}
.visible .entry known(.param .u64 to) {
	.reg .b64 %d<2>;
	ld.param.u64 %d1, [to];
	st.global.u32 [%d1], 7;
	ret;
}`
	for name, want := range map[string]string{
		"unknown": "line 7, block (0,0,0), thread (0,0,0): mul24.lo.u32 %r1, %r1, %r1: the instruction is not known", "textured": "textures are not supported",
		"known": "", "passing": "",
	} {
		dev, c, _ := kernels(t, vramtest.Kernels())
		m, err := c.LoadModule([]byte(text))
		require.NoError(t, err)
		f, err := m.Function(name)
		require.NoError(t, err)
		to := buffer(t, c, 512)
		require.NoError(t, c.Launch(f, cuda.Cover(1, 1), cuda.Out(to)))
		err = c.Synchronize(t.Context())
		if want == "" {
			require.NoError(t, err)
			require.NoError(t, to.Free())
			require.NoError(t, c.Close())
			continue
		}
		require.ErrorIs(t, err, cudadrv.NotSupported)
		require.Len(t, dev.Faults(), 1)
		require.ErrorIs(t, dev.Faults()[0], interp.Unsupported)
		assert.ErrorContains(t, dev.Faults()[0], want)
	}
}
