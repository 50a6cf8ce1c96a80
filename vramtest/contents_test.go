package vramtest_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/vramtest"
)

// faultOf runs a program and returns the fault of its kernels, or nil.
func faultOf(t *testing.T, program func(c *cuda.Context, f *cuda.Function)) *interp.Fault {
	t.Helper()
	dev, c, f := kernels(t, vramtest.Kernels())
	program(c, f)
	err := c.Synchronize(t.Context())
	if len(dev.Faults()) == 0 {
		require.NoError(t, err)
		return nil
	}
	found, ok := errors.AsType[*interp.Fault](dev.Faults()[0])
	require.True(t, ok, dev.Faults()[0])
	return found
}

// copies launches the kernel that copies so many words.
func copies(t *testing.T, c *cuda.Context, f *cuda.Function, to, from cuda.Arg, words int) {
	t.Helper()
	require.NoError(t, c.Launch(f, cuda.Cover(words, 64), to, from, cuda.Value(uint32(words)))) //nolint:gosec // few
}

// A read of global memory that nothing has written is found, with the buffer and the byte, also in memory that another
// buffer had before.
func TestReadsOfWhatNobodyWrote(t *testing.T) {
	fill := func(t *testing.T, c *cuda.Context, b vram.Buffer, from, bytes int64) {
		t.Helper()
		require.NoError(t, c.Fill32(cuda.Part(b, from, bytes), 1))
	}
	for name, p := range map[string]struct {
		prepare func(t *testing.T, c *cuda.Context, f *cuda.Function, x, other vram.Buffer)
		thread  int // that first reads unwritten memory; -1: none
	}{
		"nothing was written": {func(*testing.T, *cuda.Context, *cuda.Function, vram.Buffer, vram.Buffer) {}, 0},
		"a fill of the whole": {func(t *testing.T, c *cuda.Context, _ *cuda.Function, x, _ vram.Buffer) {
			t.Helper()
			fill(t, c, x, 0, 256)
		}, -1},
		"fills of both halves": {func(t *testing.T, c *cuda.Context, _ *cuda.Function, x, _ vram.Buffer) {
			t.Helper()
			fill(t, c, x, 100, 156)
			fill(t, c, x, 0, 100)
		}, -1},
		"a fill that ends too early": {func(t *testing.T, c *cuda.Context, _ *cuda.Function, x, _ vram.Buffer) {
			t.Helper()
			fill(t, c, x, 0, 252)
		}, 63},
		"a hole": {func(t *testing.T, c *cuda.Context, _ *cuda.Function, x, _ vram.Buffer) {
			t.Helper()
			fill(t, c, x, 0, 128)
			fill(t, c, x, 132, 124)
		}, 32},
		"a copy from the host": {func(t *testing.T, c *cuda.Context, _ *cuda.Function, x, _ vram.Buffer) {
			t.Helper()
			require.NoError(t, cuda.CopyIn(c, x, make([]uint32, 40)))
		}, 40},
		"a copy of unwritten memory": {func(t *testing.T, c *cuda.Context, _ *cuda.Function, x, other vram.Buffer) {
			t.Helper()
			fill(t, c, x, 0, 256)
			fill(t, c, other, 0, 80)
			require.NoError(t, c.Copy(cuda.Whole(x), cuda.Whole(other)))
		}, 20},
		"a kernel that writes a part": {func(t *testing.T, c *cuda.Context, f *cuda.Function, x, other vram.Buffer) {
			t.Helper()
			fill(t, c, other, 0, 256)
			copies(t, c, f, cuda.Out(x), cuda.In(other), 33)
		}, 33},
		"a kernel that writes all": {func(t *testing.T, c *cuda.Context, f *cuda.Function, x, other vram.Buffer) {
			t.Helper()
			fill(t, c, other, 0, 256)
			copies(t, c, f, cuda.Out(x), cuda.In(other), 64)
		}, -1},
		"a fill after the kernel that reads": {func(t *testing.T, c *cuda.Context, f *cuda.Function, x, other vram.Buffer) {
			t.Helper()
			copies(t, c, f, cuda.Out(other), cuda.In(x), 1)
			fill(t, c, x, 0, 256)
		}, 0},
		"a graph that fills": {func(t *testing.T, c *cuda.Context, _ *cuda.Function, x, _ vram.Buffer) {
			t.Helper()
			g, err := c.Capture(func() error { return c.Fill32(cuda.Part(x, 0, 128), 1) })
			require.NoError(t, err)
			require.NoError(t, g.Launch(c))
		}, 32},
	} {
		t.Run(name, func(t *testing.T) {
			var x vram.Buffer
			f := faultOf(t, func(c *cuda.Context, f *cuda.Function) {
				for range 3 { // the memory was another buffer's, which was written
					before := buffer(t, c, 256)
					fill(t, c, before, 0, 256)
					require.NoError(t, before.Free())
				}
				x = buffer(t, c, 256)
				other, to := buffer(t, c, 256), buffer(t, c, 256)
				p.prepare(t, c, f, x, other)
				copies(t, c, f, cuda.Out(to), cuda.In(x), 64)
			})
			if p.thread < 0 {
				assert.Nil(t, f)
				return
			}
			require.NotNil(t, f, "nothing was found")
			assert.Equal(t, interp.Uninitialised.String(), f.Kind.String(), f.Error())
			assert.Equal(t, []any{"copy", 13, p.thread}, []any{f.Kernel, f.Line, int(f.Thread.X)}, f.Error())
			assert.Contains(t, f.Error(), "nothing has written byte")
			assert.Contains(t, f.Error(), "of the buffer of 256 bytes allocated at")
			assert.Contains(t, f.Error(), "kernels_test.go:")
		})
	}
}

// A kernel that breaks its launch's declarations is found, with the parameter, the line and the thread.
func TestDeclarationsOfLaunches(t *testing.T) {
	for name, p := range map[string]struct {
		args func(to, from vram.Buffer) (cuda.Arg, cuda.Arg)
		line int // 0: none
		text string
	}{
		"as it is": {func(to, from vram.Buffer) (cuda.Arg, cuda.Arg) { return cuda.Out(to), cuda.In(from) }, 0, ""},
		"a store to a read-only parameter": {
			func(to, from vram.Buffer) (cuda.Arg, cuda.Arg) { return cuda.In(to), cuda.In(from) },
			16, "parameter 0, to, as read-only, and the kernel writes there: byte 0 of the buffer of 256 bytes",
		},
		"a read of a write-only parameter": {
			func(to, from vram.Buffer) (cuda.Arg, cuda.Arg) { return cuda.Out(to), cuda.Out(from) },
			13, "parameter 1, from, as write-only, and the kernel reads bytes that it has not written: byte 0",
		},
		"a store past the part": {
			func(to, from vram.Buffer) (cuda.Arg, cuda.Arg) { return cuda.Out(to).Of(0, 128), cuda.In(from) },
			16, "outside the parts of the buffer that the launch declares: byte 128",
		},
		"a read past the part": {
			func(to, from vram.Buffer) (cuda.Arg, cuda.Arg) { return cuda.Out(to), cuda.In(from).Of(0, 128) },
			13, "outside the parts of the buffer that the launch declares: byte 128",
		},
		"in place": {func(to, _ vram.Buffer) (cuda.Arg, cuda.Arg) { return cuda.InOut(to), cuda.In(to) }, 0, ""},
		"in place, as read and as written": {
			func(to, _ vram.Buffer) (cuda.Arg, cuda.Arg) { return cuda.Out(to), cuda.In(to) }, 0, "",
		},
		"an address by value": {
			func(to, from vram.Buffer) (cuda.Arg, cuda.Arg) { return cuda.Value(uint64(to.Ptr())), cuda.In(from) }, 0, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := faultOf(t, func(c *cuda.Context, f *cuda.Function) {
				to, from := buffer(t, c, 256), buffer(t, c, 256)
				require.NoError(t, c.Fill32(cuda.Whole(to), 1))
				require.NoError(t, c.Fill32(cuda.Whole(from), 1))
				first, second := p.args(to, from)
				copies(t, c, f, first, second, 64)
			})
			if p.line == 0 {
				assert.Nil(t, f)
				return
			}
			require.NotNil(t, f, "nothing was found")
			assert.Equal(t, interp.Undeclared.String(), f.Kind.String(), f.Error())
			assert.Equal(t, p.line, f.Line, f.Error())
			assert.Contains(t, f.Error(), p.text)
		})
	}
}

// A launch may read bytes that it has written itself, also where it declares the memory as write-only.
func TestReadsOfItsOwnStores(t *testing.T) {
	dev, c, _ := kernels(t, vramtest.Kernels())
	m, err := c.LoadModule([]byte(`.version 7.0
.target sm_70
.address_size 64
.visible .entry twice(.param .u64 to) {
	.reg .b32 %r<3>; .reg .b64 %d<3>;
	ld.param.u64 %d1, [to];
	mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
	st.global.u32 [%d1], %r1;
	ld.global.u32 %r2, [%d1]; add.u32 %r2, %r2, %r1;
	st.global.u32 [%d1], %r2;
	ret;
}`))
	require.NoError(t, err)
	f, err := m.Function("twice")
	require.NoError(t, err)
	x := buffer(t, c, 256)
	require.NoError(t, c.Launch(f, cuda.Cover(64, 64), cuda.Out(x)))
	got := make([]uint32, 64)
	require.NoError(t, cuda.CopyOut(c, got, x))
	assert.Empty(t, dev.Faults())
	assert.Equal(t, uint32(126), got[63])
	require.NoError(t, errors.Join(x.Free(), c.Close()))
}

// Work that the simulation does not execute counts as writing its declared memory.
func TestWorkThatIsNotExecuted(t *testing.T) {
	f := faultOf(t, func(c *cuda.Context, f *cuda.Function) {
		x, to := buffer(t, c, 256), buffer(t, c, 256)
		require.NoError(t, c.LaunchWith("library", func(cudadrv.Device, cudadrv.Stream) error { return nil }, cuda.Out(x)))
		copies(t, c, f, cuda.Out(to), cuda.In(x), 64)
	})
	assert.Nil(t, f)
}

// Both are no mistakes where the option says so.
func TestIgnoredContents(t *testing.T) {
	dev, c, f := kernels(t, vramtest.Kernels(vramtest.KernelConfig{Ignore: []interp.Kind{interp.Uninitialised, interp.Undeclared}}))
	to, from := buffer(t, c, 256), buffer(t, c, 256)
	copies(t, c, f, cuda.In(to), cuda.In(from), 64)
	require.NoError(t, c.Synchronize(t.Context()))
	assert.Empty(t, dev.Faults())
	require.NoError(t, errors.Join(to.Free(), from.Free(), c.Close()))
}

// The bits of written bytes equal a reference, after any fills and copies.
func TestContentsAgainstBytes(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // a test
		const words = 64
		var written [2][words]bool
		first := -1
		f := faultOf(t, func(c *cuda.Context, f *cuda.Function) {
			b := [2]vram.Buffer{buffer(t, c, 4*words), buffer(t, c, 4*words)}
			for range 2 + rnd.IntN(8) {
				from := rnd.IntN(words)
				n := 1 + rnd.IntN(words-from)
				one := rnd.IntN(2)
				if rnd.IntN(3) > 0 {
					require.NoError(t, c.Fill32(cuda.Part(b[one], int64(4*from), int64(4*n)), 1))
					for k := range n {
						written[one][from+k] = true
					}
					continue
				}
				at := rnd.IntN(words - n + 1)
				require.NoError(t, c.Copy(cuda.Part(b[one], int64(4*at), int64(4*n)), cuda.Part(b[1-one], int64(4*from), int64(4*n))))
				copy(written[one][at:at+n], written[1-one][from:from+n])
			}
			to := buffer(t, c, 4*words)
			copies(t, c, f, cuda.Out(to), cuda.In(b[0]), words)
		})
		for n := words - 1; n >= 0; n-- {
			if !written[0][n] {
				first = n
			}
		}
		if first < 0 {
			require.Nil(t, f, "seed %d", seed)
			continue
		}
		require.NotNil(t, f, "seed %d: word %d was not written", seed, first)
		require.Equal(t, first, int(f.Thread.X), "seed %d: %v", seed, f)
	}
}
