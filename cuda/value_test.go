package cuda_test

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

// shape is a struct that a kernel takes by value, as
//
//	struct shape { int64_t rows; float scale; uint16_t lanes[3]; bool causal; };
type shape struct {
	Rows   int64
	Scale  float32
	Lanes  [3]uint16
	Causal bool
}

const structPTX = `.version 7.0
.target sm_70
.address_size 64
.visible .entry unpack(.param .u64 to, .param .align 8 .b8 s[24], .param .u32 last)
{
	.reg .u64 %a, %rows;
	.reg .f32 %scale;
	.reg .u16 %lane, %causal;
	.reg .u32 %last;
	ld.param.u64 %a, [to];
	cvta.to.global.u64 %a, %a;
	ld.param.u64 %rows, [s];
	ld.param.f32 %scale, [s+8];
	ld.param.u16 %lane, [s+16];
	ld.param.u8 %causal, [s+18];
	ld.param.u32 %last, [last];
	st.global.u64 [%a], %rows;
	st.global.f32 [%a+8], %scale;
	st.global.u16 [%a+12], %lane;
	st.global.u8 [%a+14], %causal;
	st.global.u32 [%a+16], %last;
	ret;
}
.visible .entry two(.param .align 4 .b8 s[8]) { ret; }
.visible .entry most(.param .align 4 .b8 s[4096]) { ret; }
.visible .entry one(.param .u32 n) { ret; }
`

// A kernel reads a struct by value, with the layout of C, unchanged.
func TestStructsByValue(t *testing.T) {
	dev := vramtest.Open(t, vramtest.Kernels(vramtest.KernelConfig{}))
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	m, err := c.LoadModule([]byte(structPTX))
	require.NoError(t, err)
	f, err := m.Function("unpack")
	require.NoError(t, err)
	to, err := c.Alloc(64)
	require.NoError(t, err)
	value := shape{Rows: -5, Scale: 1.5, Lanes: [3]uint16{7, 8, 9}, Causal: true}
	require.EqualValues(t, 24, unsafe.Sizeof(value))
	require.NoError(t, c.Launch(f, cuda.Cover(1, 1), cuda.Out(to), cuda.Value(value), cuda.Value(uint32(77))))
	got := make([]byte, 20)
	require.NoError(t, c.CopyOutAt(got, to, 0))
	bits := math.Float32bits(1.5)
	assert.Equal(t, []byte{0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, byte(bits >> 16), byte(bits >> 24), 9, 0, 1}, got[:15])
	assert.Equal(t, byte(77), got[16])

	for name, args := range map[string]cuda.Arg{
		"two":  cuda.Value([2]float32{1, 2}),
		"most": cuda.Value(struct{ All [1024]int32 }{}),
		"one":  cuda.Value(int32(3)),
	} {
		f, err := m.Function(name)
		require.NoError(t, err)
		require.NoError(t, c.Launch(f, cuda.Cover(1, 1), args), name)
	}
	require.NoError(t, to.Free())
	require.NoError(t, c.Close())
}

// A launch is refused with a value that a kernel cannot take, and nothing is submitted.
func TestValuesAreRefused(t *testing.T) {
	dev := vramtest.Open(t, vramtest.Machine(sim.Config{Bytes: true, TimedKernels: true}))
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	m, err := c.LoadModule([]byte(structPTX))
	require.NoError(t, err)
	f, err := m.Function("two")
	require.NoError(t, err)
	n := 1
	for name, tt := range map[string]struct {
		arg    cuda.Arg
		inside string // of a *ValueError; "": the size is wrong
		text   string
	}{
		"a pointer":             {cuda.Value(&n), "*int", "cuda: argument 0 of kernel two, parameter s: a kernel takes no *int by value: it takes numbers of a fixed size, and structs and arrays of them"},
		"a number of any size":  {cuda.Value(5), "int", ""},
		"a slice in a struct":   {cuda.Value(struct{ A []int32 }{}), "[]int32", "cuda: argument 0 of kernel two, parameter s: a kernel takes no struct { A []int32 } by value: it has a []int32 inside"},
		"a pointer, far inside": {cuda.Value([2]struct{ P struct{ Q *float32 } }{}), "*float32", ""},
		"a buffer":              {cuda.Value(cuda.Buffer{}), "", ""},
		"a string":              {cuda.Value("x"), "string", ""},
		"a function":            {cuda.Value(func() {}), "func()", ""},
		"a size":                {cuda.Value(uintptr(1)), "uintptr", ""},
		"a number, no less":     {cuda.Value(uint(1)), "uint", ""},
		"a map":                 {cuda.Value(map[int32]int32{}), "map[int32]int32", ""},
		"a channel":             {cuda.Value(make(chan int32)), "chan int32", ""},
		"an interface":          {cuda.Value([1]error{}), "error", ""},
		"an unsafe pointer":     {cuda.Value(unsafe.Pointer(&n)), "unsafe.Pointer", ""},
		"too small":             {cuda.Value(float32(1)), "", "cuda: argument 0 of kernel two, parameter s: float32 of 4 bytes for .align 4 .b8[8] of 8"},
		"too large":             {cuda.Value(shape{}), "", "cuda: argument 0 of kernel two, parameter s: cuda_test.shape of 24 bytes for .align 4 .b8[8] of 8"},
		"nothing":               {cuda.Value(struct{}{}), "", ""},
		"more than any has":     {cuda.Value([5000]byte{}), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.Launch(f, cuda.Cover(1, 1), tt.arg)
			var argument *cuda.ArgumentError
			require.ErrorAs(t, err, &argument)
			assert.Equal(t, "two", argument.Kernel)
			var value *cuda.ValueError
			switch {
			case tt.inside != "":
				require.ErrorAs(t, err, &value)
				assert.Equal(t, tt.inside, value.Inside)
			case name == "a buffer":
				require.ErrorAs(t, err, &value)
			default:
				require.ErrorIs(t, err, cuda.ErrArgumentSize)
			}
			if tt.text != "" {
				assert.EqualError(t, err, tt.text)
			}
		})
	}
	require.NoError(t, c.Close())
}

// Numbers, and structs of a number's size, cost no allocation; longer ones one for the copy.
func TestValuesAllocateLittle(t *testing.T) {
	var sink cuda.Arg
	pair, long := struct{ A, B int32 }{1, 2}, shape{Rows: 1}
	assert.Zero(t, testing.AllocsPerRun(100, func() { sink = cuda.Value(float32(2)) }))
	assert.Zero(t, testing.AllocsPerRun(100, func() { sink = cuda.Value(pair) }))
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { sink = cuda.Value(long) }), 2.0)
	_ = sink
}
