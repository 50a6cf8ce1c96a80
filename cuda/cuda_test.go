package cuda_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

const (
	mib = int64(1) << 20
	ptx = `.version 7.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 by, .param .u32 n) { ret; }
.visible .entry add(.param .u64 to, .param .u64 a, .param .u64 b, .param .u32 n) { ret; }
.visible .entry touch(.param .u64 x) { ret; }
.visible .entry empty() { ret; }
`
)

// rig is a checked device with contexts and kernels.
type rig struct {
	*testing.T
	dev   *vramtest.Device
	scale *cuda.Function
	add   *cuda.Function
	touch *cuda.Function
	empty *cuda.Function
}

func newRig(t *testing.T, options ...vramtest.Option) (*rig, *cuda.Context) {
	t.Helper()
	r := &rig{T: t, dev: vramtest.Open(t, append([]vramtest.Option{vramtest.Machine(sim.Config{Bytes: true, TimedKernels: true})}, options...)...)}
	c := r.context()
	m, err := c.LoadModule([]byte(ptx))
	require.NoError(t, err)
	for name, f := range map[string]**cuda.Function{"scale": &r.scale, "add": &r.add, "touch": &r.touch, "empty": &r.empty} {
		*f, err = m.Function(name)
		require.NoError(t, err)
		assert.Equal(t, name, (*f).Name())
	}
	return r, c
}

func (r *rig) context() *cuda.Context {
	r.Helper()
	c, err := cuda.NewContext(r.dev.Stream())
	require.NoError(r, err)
	r.Cleanup(func() { assert.NoError(r, c.Close()) })
	return c
}

func (r *rig) alloc(c *cuda.Context, bytes int64) cuda.Buffer {
	r.Helper()
	b, err := c.Alloc(bytes)
	require.NoError(r, err)
	return b
}

func (r *rig) free(all ...cuda.Buffer) {
	r.Helper()
	for _, b := range all {
		require.NoError(r, b.Free())
	}
}

// sync waits for the device, whose clock moves only then.
func (r *rig) sync(all ...*cuda.Context) {
	r.Helper()
	for _, c := range all {
		require.NoError(r, c.Synchronize(context.Background()))
	}
}

func TestBytesGoInAndOut(t *testing.T) {
	r, c := newRig(t)
	x, y := r.alloc(c, 4096), r.alloc(c, 4096)
	in, out := make([]float32, 1024), make([]float32, 1024)
	for i := range in {
		in[i] = float32(i)
	}
	require.NoError(t, cuda.CopyIn(c, x, in))
	require.NoError(t, c.Copy(cuda.Whole(y), cuda.Whole(x)))
	require.NoError(t, cuda.CopyOut(c, out, y))
	assert.Equal(t, in, out)

	require.NoError(t, c.Fill32(cuda.Part(y, 0, 2048), 0x3f800000))
	require.NoError(t, c.Fill16(cuda.Part(y, 2048, 1024), 0x1234))
	require.NoError(t, c.Fill8(cuda.Part(y, 3072, 1024), 7))
	got := make([]byte, 4096)
	require.NoError(t, c.CopyOutAt(got, y, 0))
	assert.Equal(t, []byte{0, 0, 0x80, 0x3f}, got[:4])
	assert.Equal(t, []byte{0x34, 0x12}, got[2048:2050])
	assert.Equal(t, byte(7), got[4095])

	// Four rows of eight bytes out of rows of 64.
	require.NoError(t, c.Copy2D(cuda.Rows{Buffer: x, Pitch: 8}, cuda.Rows{Buffer: y, Offset: 3000, Pitch: 64}, 8, 4))
	require.NoError(t, c.CopyOutAt(got[:32], x, 0))
	assert.Equal(t, append(append([]byte{}, repeat(0x34, 0x12, 8)...), repeat(0x34, 0x12, 8)...)[:8], got[:8])
	assert.Equal(t, byte(7), got[24])

	zeroed, err := c.AllocZeroed(4096)
	require.NoError(t, err)
	require.NoError(t, c.CopyOutAt(got, zeroed, 0))
	assert.Equal(t, make([]byte, 4096), got)
	r.free(x, y, zeroed)
}

func repeat(a, b byte, n int) (all []byte) {
	for range n / 2 {
		all = append(all, a, b)
	}
	return all
}

// lines are the places in errors.
var lines = regexp.MustCompile(`\w+\.go:\d+`)

// Nothing is submitted where an argument is wrong, and the error says which.
func TestLaunchesAreRefused(t *testing.T) {
	r, c := newRig(t)
	other, d := newRig(t)
	x := r.alloc(c, mib)
	freed := r.alloc(c, mib)
	r.free(freed)
	foreign := other.alloc(d, mib)
	g := cuda.Cover(1000, 256)
	assert.Equal(t, cuda.Geometry{Grid: cuda.Dim3{X: 4, Y: 1, Z: 1}, Block: cuda.Dim3{X: 256, Y: 1, Z: 1}}, g)
	before := r.dev.GPU().Now()
	one := []cuda.Arg{cuda.InOut(x), cuda.Value(float32(2)), cuda.Value(uint32(1))}
	for name, tt := range map[string]struct {
		args  []cuda.Arg
		want  error
		index int
		text  string
	}{
		"freed":     {[]cuda.Arg{cuda.InOut(freed), cuda.Value(float32(2)), cuda.Value(uint32(1))}, cuda.ErrNotLive, 0, "cuda: argument 0 of kernel scale, parameter x: a buffer of 1 MiB, which was freed at cuda_test.(*rig).free (FILE); allocated at cuda_test.(*rig).alloc (FILE)"},
		"foreign":   {[]cuda.Arg{cuda.InOut(foreign), cuda.Value(float32(2)), cuda.Value(uint32(1))}, cuda.ErrForeign, 0, ""},
		"zero":      {[]cuda.Arg{cuda.InOut(cuda.Buffer{}), cuda.Value(float32(2)), cuda.Value(uint32(1))}, cuda.ErrNotLive, 0, "cuda: argument 0 of kernel scale, parameter x: a buffer that nobody has allocated"},
		"too few":   {[]cuda.Arg{cuda.InOut(x)}, cuda.ErrArgumentCount, 0, "cuda: kernel scale has 3 parameters, not 1"},
		"too many":  {append(one, cuda.Value(uint32(1))), cuda.ErrArgumentCount, 0, "cuda: kernel scale has 3 parameters, not 4"},
		"too large": {[]cuda.Arg{cuda.InOut(x), cuda.Value(float64(2)), cuda.Value(uint32(1))}, cuda.ErrArgumentSize, 1, "cuda: argument 1 of kernel scale, parameter by: float64 of 8 bytes for .f32 of 4"},
		"no value":  {[]cuda.Arg{cuda.InOut(x), {}, cuda.Value(uint32(1))}, cuda.ErrArgumentSize, 1, "cuda: argument 1 of kernel scale, parameter by: no argument of 0 bytes for .f32 of 4"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.Launch(r.scale, g, tt.args...)
			require.ErrorIs(t, err, tt.want)
			var refused *cuda.ArgumentError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, tt.index, refused.Index)
			assert.Equal(t, "scale", refused.Kernel)
			if tt.text != "" {
				assert.Equal(t, tt.text, lines.ReplaceAllString(err.Error(), "FILE"))
			}
		})
	}
	var outside *cuda.RangeError
	for _, part := range [][2]int64{{mib, 1}, {-1, 1}, {0, mib + 1}, {1, mib}, {0, -1}} {
		require.ErrorAs(t, c.Launch(r.touch, g, cuda.InOut(x).Of(part[0], part[1])), &outside)
		require.ErrorAs(t, c.Copy(cuda.Part(x, part[0], part[1]), cuda.Part(x, part[0], part[1])), &outside)
	}
	require.ErrorIs(t, c.Launch(other.scale, g, cuda.InOut(x), cuda.Value(float32(2)), cuda.Value(uint32(1))), cuda.ErrForeign)
	require.ErrorIs(t, c.Launch(nil, g), cuda.ErrNotOpen)
	require.ErrorIs(t, (*cuda.Context)(nil).Launch(r.empty, g), cuda.ErrNotOpen)
	require.ErrorIs(t, c.Copy(cuda.Whole(freed), cuda.Whole(x)), cuda.ErrNotLive)
	var length *cuda.LengthError
	require.ErrorAs(t, c.Copy(cuda.Part(x, 0, 8), cuda.Part(x, 8, 4)), &length)

	var launch *cuda.LaunchError
	err := c.Launch(r.empty, cuda.Geometry{Grid: cuda.Dim3{X: 1, Y: 1, Z: 1}, Block: cuda.Dim3{X: 2000, Y: 1, Z: 1}})
	require.ErrorAs(t, err, &launch)
	require.ErrorIs(t, err, cudadrv.InvalidValue)
	assert.Contains(t, err.Error(), "launching empty, grid (1,1,1), block (2000,1,1)")
	r.sync(c)
	assert.Equal(t, before, r.dev.GPU().Now(), "no kernel has run")
	r.free(x)
	other.free(foreign)
}

// A driver launches a kernel with fewer bytes of arguments than it has parameters, and the kernel has anything for the rest. So
// a kernel with more than any launch here can have is refused here, too.
func TestAKernelWithTooManyParameters(t *testing.T) {
	_, c := newRig(t)
	m, err := c.LoadModule([]byte(".version 7.0\n.target sm_70\n.visible .entry wide(.param .b8 x[5000]) { ret; }"))
	require.NoError(t, err)
	f, err := m.Function("wide")
	require.NoError(t, err)
	require.ErrorIs(t, c.Launch(f, cuda.Cover(1, 1)), cuda.ErrArgumentCount)
	require.ErrorIs(t, c.Launch(f, cuda.Cover(1, 1), cuda.Value(uint64(1))), cuda.ErrArgumentSize)
	require.NoError(t, m.Unload())
}

func TestModulesAreUnloaded(t *testing.T) {
	r, c := newRig(t)
	m, err := c.LoadModule([]byte(ptx))
	require.NoError(t, err)
	f, err := m.Function("empty")
	require.NoError(t, err)
	_, err = m.Function("nothing")
	require.ErrorIs(t, err, cudadrv.NotFound)
	_, err = c.LoadModule([]byte("no code"))
	require.Error(t, err)
	blocks, err := f.ActiveBlocks(256, 0)
	require.NoError(t, err)
	assert.Positive(t, blocks)
	_, threads, err := f.BestBlock(0)
	require.NoError(t, err)
	assert.Greater(t, threads, 1, "it has no limit")
	require.NoError(t, f.SetMaxSharedBytes(64<<10))
	require.NoError(t, c.Launch(f, cuda.Cover(1, 1)))
	r.sync(c)
	require.NoError(t, m.Unload())
	require.NoError(t, m.Unload())
	require.ErrorIs(t, c.Launch(f, cuda.Cover(1, 1)), cuda.ErrUnloaded)
	_, err = m.Function("empty")
	require.ErrorIs(t, err, cuda.ErrUnloaded)
}

// Work on a buffer of another stream waits for that stream, and the stream's next work on the buffer waits for it. The checker
// reports work without an order.
func TestWorkOnBuffersOfOtherStreams(t *testing.T) {
	r, a := newRig(t)
	b, c := r.context(), r.context()
	g := cuda.Cover(1, 32)
	x := r.alloc(a, mib)
	for range 5 {
		require.NoError(t, a.Launch(r.touch, g, cuda.Out(x)))
		require.NoError(t, b.Launch(r.touch, g, cuda.InOut(x)))
		require.NoError(t, c.Launch(r.touch, g, cuda.InOut(x)), "after b's")
		require.NoError(t, b.Fill8(cuda.Whole(x), 1))
		require.NoError(t, a.Launch(r.touch, g, cuda.In(x)))
	}
	r.free(x) // b and c are announced
	y := r.alloc(a, mib)
	require.NoError(t, a.Launch(r.touch, g, cuda.Out(y)))
	r.sync(a, b, c)
	r.free(y)
	assert.Empty(t, r.dev.Hazards())
}

// Streams are not put in order for buffers that only one of them uses.
func TestOtherBuffersAreNotWaitedFor(t *testing.T) {
	r, a := newRig(t)
	b := r.context()
	g := cuda.Cover(1, 32)
	x, y := r.alloc(a, mib), r.alloc(a, mib)
	require.NoError(t, b.Launch(r.touch, g, cuda.InOut(x)))
	require.NoError(t, r.dev.GPU().Launch(b.Stream().Handle(), time.Hour))
	require.NoError(t, a.Launch(r.touch, g, cuda.InOut(y)))
	r.sync(a)
	assert.Less(t, r.dev.GPU().Now(), time.Hour)
	r.sync(b)
	r.free(x, y)
}

func TestEventsTellTheTime(t *testing.T) {
	r, c := newRig(t)
	start, err := c.Record()
	require.NoError(t, err)
	require.NoError(t, r.dev.GPU().Launch(c.Stream().Handle(), time.Millisecond))
	end, err := c.Record()
	require.NoError(t, err)
	done, err := end.Done()
	require.NoError(t, err)
	assert.False(t, done)
	_, err = end.Since(start)
	require.ErrorIs(t, err, cudadrv.NotReady)
	require.NoError(t, end.Synchronize(context.Background()))
	took, err := end.Since(start)
	require.NoError(t, err)
	assert.InDelta(t, time.Millisecond, took, float64(time.Microsecond))
	d := r.context()
	require.NoError(t, d.WaitEvent(end))
	require.NoError(t, end.Close())
	require.NoError(t, end.Close())
	_, err = end.Done()
	require.ErrorIs(t, err, cuda.ErrNotOpen)
	require.NoError(t, start.Close())

	require.ErrorIs(t, c.Synchronize(nil), cuda.ErrNilContext) //nolint:staticcheck // a caller's mistake
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, r.dev.GPU().Launch(c.Stream().Handle(), time.Millisecond))
	err = c.Synchronize(ctx)
	assert.True(t, err == nil || errors.Is(err, context.Canceled))
	r.sync(c)
}

func TestAProfileHasEachKernel(t *testing.T) {
	r, c := newRig(t, vramtest.Machine(sim.Config{Bytes: true, TimedKernels: true, KernelTime: func(name string, g cudadrv.Geometry) time.Duration {
		return time.Duration(len(name)*int(g.Grid.X)) * time.Microsecond
	}}))
	x := r.alloc(c, mib)
	p, err := c.StartProfile()
	require.NoError(t, err)
	_, err = c.StartProfile()
	require.ErrorIs(t, err, cuda.ErrProfiling)
	require.NoError(t, c.Launch(r.touch, cuda.Cover(256, 256), cuda.InOut(x)))
	require.NoError(t, c.Launch(r.empty, cuda.Cover(1024, 256)))
	all, err := p.Stop()
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, "touch", all[0].Kernel)
	assert.Equal(t, 5*time.Microsecond, all[0].Duration)
	assert.Equal(t, "empty", all[1].Kernel)
	assert.Equal(t, 20*time.Microsecond, all[1].Duration)
	require.NoError(t, c.Launch(r.empty, cuda.Cover(1024, 256)))
	all, err = p.Stop()
	require.NoError(t, err)
	assert.Empty(t, all)

	submitted := 0
	for range 1000 {
		require.NoError(t, cuda.LaunchLate(p, func() error { submitted++; return nil }))
	}
	assert.Equal(t, 1000, submitted)
	all, err = p.Stop()
	require.NoError(t, err)
	assert.Empty(t, all, "nobody would destroy their events")
	r.free(x)
}

// Stop tells an error once, with the launches that it concerns.
func TestAProfileTellsItsErrorsOnce(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	for _, function := range []string{"cuEventCreate", "cuEventSynchronize", "cuEventElapsedTime", "cuEventDestroy"} {
		p, err := c.StartProfile()
		require.NoError(t, err)
		require.NoError(t, r.faults.Add(fault.Rule{Func: function, First: 1, Result: cudadrv.Unknown}))
		require.NoError(t, c.Launch(r.touch, oneThread, cuda.Null()))
		all, err := p.Stop()
		require.ErrorIs(t, err, cudadrv.Unknown, function)
		assert.Len(t, all, 1)
		r.faults.Clear()
		all, err = p.Stop()
		require.NoError(t, err, function)
		assert.Empty(t, all)
	}
}

// A launch that the driver has taken is in the profile, without a time, also where the driver panics at the event after it; one that
// it panics ahead of is not. No event stays.
func TestAProfileOfALaunchThatPanics(t *testing.T) {
	for launches := range 2 { // that the driver has taken before it panics
		r, c := newFailing(t, sim.Config{})
		p, err := c.StartProfile()
		require.NoError(t, err)
		before := r.machine.Device(0).Objects()
		events := 0
		r.faults.SetBefore(func(function string) {
			if function != "cuEventCreate" {
				return
			}
			if events++; events == launches+1 {
				panic("the driver panics")
			}
		})
		assert.Panics(t, func() { _ = c.Launch(r.touch, oneThread, cuda.Null()) })
		r.faults.SetBefore(nil)
		all, err := p.Stop()
		require.NoError(t, err)
		require.Len(t, all, launches)
		for _, one := range all {
			assert.Negative(t, one.Duration)
		}
		assert.Equal(t, before, r.machine.Device(0).Objects())
	}
}

// Launches cost nothing more once a profile, a capture that others have joined, or a capture that failed has ended.
func TestLaunchesAreQuickAgain(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	d := r.context()
	x := map[*cuda.Context]cuda.Buffer{c: r.alloc(c, 64), d: r.alloc(d, 64)}
	launch := func(on *cuda.Context) error { return on.Launch(r.touch, oneThread, cuda.InOut(x[on])) }
	for name, ended := range map[string]func() error{
		"a profile": func() error {
			p, err := c.StartProfile()
			if err == nil {
				err = launch(c)
				_, stopped := p.Stop()
				err = errors.Join(err, stopped)
			}
			return err
		},
		"a capture": func() error {
			g, err := c.Capture(func() error { return errors.Join(launch(c), d.Wait(c), launch(d), c.Wait(d)) })
			if err == nil {
				err = errors.Join(g.Launch(d), g.Close())
			}
			return err
		},
		"a capture that failed": func() error {
			_, err := c.Capture(func() error { return errors.Join(d.Wait(c), launch(d), errPlanned) })
			if errors.Is(err, errPlanned) {
				return nil
			}
			return err
		},
	} {
		require.NoError(t, ended(), name)
		for _, on := range []*cuda.Context{c, d} {
			assert.False(t, cuda.LaunchesSlowly(on), name)
			assert.Zero(t, testing.AllocsPerRun(10, func() { _ = launch(on) }), name)
			calls := 0
			r.faults.SetBefore(func(string) { calls++ })
			require.NoError(t, launch(on))
			r.faults.SetBefore(nil)
			assert.Equal(t, 1, calls, "%s: driver calls of a launch", name)
		}
	}
	for _, b := range x {
		require.NoError(t, b.Free())
	}
}
