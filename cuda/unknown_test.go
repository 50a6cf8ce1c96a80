package cuda

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// Where neither the driver nor a text tells the parameters, launches lay the arguments out as C does, and check no types.
func TestParametersThatAreNotKnown(t *testing.T) {
	driver := fault.Wrap(sim.New(sim.Config{TimedKernels: true}))
	dev, err := vram.Open(vram.Config{Driver: driver})
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	c, err := NewContext(s)
	require.NoError(t, err)
	m, err := c.LoadModule([]byte(".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u8 a, .param .u64 .ptr b, .param .f32 c) { ret; }\n"))
	require.NoError(t, err)
	m.signatures = nil
	require.NoError(t, driver.Add(fault.Rule{Func: "cuFuncGetParamInfo", Result: cudadrv.NotSupported}))
	f, err := m.Function("k")
	require.NoError(t, err)
	all, known := f.Parameters()
	assert.False(t, known)
	assert.Empty(t, all)
	one := Cover(1, 1)
	var p params
	_, err = placeAll(c, f, &p, Value(uint8(7)), Value(uint64(8)), Value(int32(9)))
	require.NoError(t, err)
	assert.Equal(t, []byte{7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0}, p.bytes[:p.size])
	for _, arg := range []Arg{{}, Value(5), Value([4]string{}), Struct(struct{}{}), Struct([1]byte{}), Struct(struct{ A [4097]byte }{})} {
		err := c.Launch(f, one, Value(true), arg)
		var refused *ArgumentError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, []any{1, "", int64(-1)}, []any{refused.Index, refused.Parameter, refused.Want})
		err = c.LaunchWith("k", func(cudadrv.Device, cudadrv.Stream) error { t.Error("the work is submitted"); return nil }, Value(true), arg)
		assert.Equal(t, refused, err, "a library's work has no parameters that are known either")
	}
	require.EqualError(t, c.Launch(f, one, Arg{}), "cuda: argument 0 of kernel k: no argument of 0 bytes for a parameter")
	require.ErrorIs(t, c.LaunchPacked(f, one, make([]byte, 4097)), ErrPackedBytes)
	require.NoError(t, c.LaunchPacked(f, one, make([]byte, 20)))
	for _, bytes := range []int{0, 19, 4096} { // the driver alone knows
		var launch *LaunchError
		require.ErrorAs(t, c.LaunchPacked(f, one, make([]byte, bytes)), &launch, "%d bytes", bytes)
	}
	var refused *ArgumentError
	require.ErrorAs(t, c.LaunchPacked(f, one, make([]byte, 4097)), &refused)
	assert.Equal(t, ArgumentError{Kernel: "k", Index: -1, Err: ErrPackedBytes, Bytes: 4097, Want: 4096}, *refused)
	whole := Struct(struct{ A [4096]byte }{})
	require.NotErrorIs(t, c.Launch(f, one, whole), ErrArgumentSize)
	require.ErrorAs(t, c.Launch(f, one, whole, Value(true)), &refused)
	assert.Equal(t, ArgumentError{Kernel: "k", Index: 1, Got: "bool", Err: errParameterSpace, Bytes: 1, Want: maxParamBytes}, *refused)

	g, err := c.Capture(func() error { return c.Launch(f, one, Value(true), Null(), Value(float32(1))) })
	require.NoError(t, err)
	require.NoError(t, g.SetArg(0, 2, Value(uint32(0x01020304))))
	assert.Equal(t, []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1}, g.kernels[0].packed)
	require.NoError(t, g.SetArg(0, 0, Value(uint8(5))))
	require.NoError(t, g.SetArg(0, 1, Null()))
	assert.Equal(t, []byte{5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1}, g.kernels[0].packed)
	for _, wrong := range []struct {
		parameter int
		arg       Arg
	}{{2, Value(uint64(1))}, {2, Value(uint8(1))}, {1, Value(uint32(1))}, {0, Value(uint16(1))}} {
		require.ErrorIs(t, g.SetArg(0, wrong.parameter, wrong.arg), ErrArgumentSize)
	}
	require.ErrorIs(t, g.SetArg(0, 3, Null()), ErrNoParameter)
	require.NoError(t, g.Close())
	odd, err := c.Capture(func() error {
		return c.Launch(f, one, Value(true), Value(uint8(1)), Value(uint8(2)), Value(uint64(3)), Value(float32(4)))
	})
	require.NoError(t, err)
	for parameter := range 3 { // at each offset
		require.NoError(t, odd.SetArg(0, parameter, Value(uint8(7+parameter))))
	}
	assert.Equal(t, []byte{7, 8, 9}, odd.kernels[0].packed[:3])
	assert.Equal(t, []byte{3, 0, 0, 0, 0, 0, 0, 0}, odd.kernels[0].packed[8:16])
	require.NoError(t, odd.Close())
	packed, err := c.Capture(func() error { return c.LaunchPacked(f, one, make([]byte, 20)) })
	require.NoError(t, err)
	require.ErrorIs(t, packed.SetArg(0, 0, Value(true)), ErrNoParameter)
	require.NoError(t, packed.SetArgs(0, one, Value(true), Null(), Value(float32(1))))
	require.NoError(t, packed.SetArg(0, 0, Value(false)))
	require.NoError(t, packed.Close())
	require.NoError(t, c.Synchronize(t.Context()))
	require.NoError(t, m.Unload())
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
	require.NoError(t, dev.Close())
}

// Arguments are aligned as C aligns them.
func TestArgumentsAreAlignedAsInC(t *testing.T) {
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	c, err := NewContext(s)
	require.NoError(t, err)
	b, err := c.Alloc(512)
	require.NoError(t, err)
	pair := struct{ A, B int16 }{1, 2}
	for _, one := range []struct {
		arg         Arg
		align, size int
	}{
		{Value(true), 1, 1},
		{Value(int8(1)), 1, 1},
		{Value(uint16(1)), 2, 2},
		{Value(int32(1)), 4, 4},
		{Value(uint32(1)), 4, 4},
		{Value(float32(1)), 4, 4},
		{Value(int64(1)), 8, 8},
		{Value(uint64(1)), 8, 8},
		{Value(float64(1)), 8, 8},
		{Value(complex64(1)), 4, 8},
		{Value(complex128(1)), 8, 16},
		{Value([3]int32{}), 4, 12},
		{Struct(pair), 2, 4},
		{Value(b.Ptr()), 8, 8},
		{Null(), 8, 8},
		{In(b), 8, 8},
		{Out(b), 8, 8},
		{InOut(b), 8, 8},
		{OrNull(b, In), 8, 8},
		{OrNull(Buffer{}, In), 8, 8},
	} {
		for before := 1; before <= 8; before++ { // bytes in front of it
			args := []Arg{}
			for range before {
				args = append(args, Value(uint8(7)))
			}
			var p params
			_, err := c.placeAll(&Function{module: &Module{on: c.submission}}, &p, append(args, one.arg))
			require.NoError(t, err)
			assert.Equal(t, (before+one.align-1)/one.align*one.align+one.size, p.size, "%d bytes before %s", before, one.arg.got())
		}
	}
	require.NoError(t, b.Free())
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
	require.NoError(t, dev.Close())
}

// A text that disagrees with the driver tells nothing.
func TestTextThatDisagreesWithTheDriver(t *testing.T) {
	s := signatures([]byte(".entry k(.param .u32 a, .param .u64 b, .param .texref c, .param .f32 d) { ret; }"))["k"]
	driver := []param{{0, 4, anyKind}, {8, 8, anyKind}, {16, 8, anyKind}, {24, 4, anyKind}}
	assert.True(t, s.agrees(driver))
	assert.Nil(t, s.places(), "the size of c is not known")
	for i, change := range []func(p *param){func(p *param) { p.bytes++ }, func(p *param) { p.offset += 4 }} {
		for at := range driver {
			other := append([]param{}, driver...)
			change(&other[at])
			free := at == 2 || i == 1 && at > 2 // the text does not tell
			assert.Equal(t, free, s.agrees(other), "%v", other)
		}
	}
	assert.False(t, s.agrees(driver[:3]))
	assert.False(t, signature{count: 4}.agrees(driver))
}

// BenchmarkPlace measures the host's work for a launch before the driver's call.
func BenchmarkPlace(b *testing.B) {
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{TimedKernels: true})})
	require.NoError(b, err)
	s, err := dev.NewStream()
	require.NoError(b, err)
	c, err := NewContext(s)
	require.NoError(b, err)
	m, err := c.LoadModule([]byte(".version 7.0\n.target sm_70\n.address_size 64\n" +
		".visible .entry k(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n) { ret; }\n" +
		".visible .entry s(.param .u64 x, .param .align 8 .b8 s[24]) { ret; }\n"))
	require.NoError(b, err)
	k, err := m.Function("k")
	require.NoError(b, err)
	x, err := c.Alloc(4096)
	require.NoError(b, err)
	var p params
	b.Run("args=4", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := placeAll(c, k, &p, In(x), Out(x), Value(float32(1)), Value(uint32(4096))); err != nil {
				b.Fatal(err)
			}
		}
	})
	benchmarkMore(b, c, m, &p, x)
	require.NoError(b, x.Free())
	require.NoError(b, c.Close())
	require.NoError(b, s.Close())
	require.NoError(b, dev.Close())
}

//go:noinline
func placeAll(c *Context, f *Function, p *params, args ...Arg) (bool, error) {
	if err := f.accepts(0, len(f.params), args); err != nil {
		return false, err
	}
	return c.placeAll(f, p, args)
}

// benchmarkMore measures structs and refusals.
func benchmarkMore(b *testing.B, c *Context, m *Module, p *params, x Buffer) {
	b.Helper()
	k, err := m.Function("k")
	require.NoError(b, err)
	s, err := m.Function("s")
	require.NoError(b, err)
	type three struct{ A, B, C int64 }
	b.Run("args=1,struct=24", func(b *testing.B) {
		b.ReportAllocs()
		for i := int64(0); b.Loop(); i++ {
			if _, err := placeAll(c, s, p, In(x), Struct(three{i, 2, 3})); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, wrong := range map[string][2]Arg{ // by turns
		"refusal":            {Value(int32(1)), Value(int32(2))},
		"refusal=other kind": {Value(int32(1)), Value(uint32(1))},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := placeAll(c, k, p, In(x), Out(x), wrong[i%2], Value(uint32(4096))); err == nil {
					b.Fatal("placed")
				}
			}
		})
	}
}
