package cuda_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
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

// A kernel reads each byte of a value, of any size.
func TestValuesOfEachSize(t *testing.T) {
	all := make([]byte, 41)
	for i := range all {
		all[i] = byte(0xa1 + i)
	}
	values := []cuda.Arg{
		cuda.Value([1]byte(all)), cuda.Value([2]byte(all)), cuda.Value([3]byte(all)), cuda.Value([4]byte(all)), cuda.Value([5]byte(all)), cuda.Value([6]byte(all)), cuda.Value([7]byte(all)), cuda.Value([8]byte(all)),
		cuda.Value([9]byte(all)), cuda.Value([10]byte(all)), cuda.Value([11]byte(all)), cuda.Value([12]byte(all)), cuda.Value([13]byte(all)), cuda.Value([14]byte(all)), cuda.Value([15]byte(all)), cuda.Value([16]byte(all)),
		cuda.Value([17]byte(all)), cuda.Value([18]byte(all)), cuda.Value([19]byte(all)), cuda.Value([20]byte(all)), cuda.Value([21]byte(all)), cuda.Value([22]byte(all)), cuda.Value([23]byte(all)), cuda.Value([24]byte(all)),
		cuda.Value([25]byte(all)), cuda.Value([26]byte(all)), cuda.Value([27]byte(all)), cuda.Value([28]byte(all)), cuda.Value([29]byte(all)), cuda.Value([30]byte(all)), cuda.Value([31]byte(all)), cuda.Value([32]byte(all)),
		cuda.Value([33]byte(all)), cuda.Value([34]byte(all)), cuda.Value([35]byte(all)), cuda.Value([36]byte(all)), cuda.Value([37]byte(all)), cuda.Value([38]byte(all)), cuda.Value([39]byte(all)), cuda.Value([40]byte(all)),
	}
	var text strings.Builder
	for size := range values {
		fmt.Fprintf(&text, ".visible .entry k%d(.param .u64 to, .param .b8 s[%d])\n{\n.reg .u64 %%a;\n.reg .u16 %%b;\nld.param.u64 %%a, [to];\n", size+1, size+1)
		for at := range size + 1 {
			fmt.Fprintf(&text, "ld.param.u8 %%b, [s+%d];\nst.global.u8 [%%a+%d], %%b;\n", at, at)
		}
		text.WriteString("ret;\n}\n")
	}
	c, err := cuda.NewContext(vramtest.Open(t, vramtest.Kernels()).Stream())
	require.NoError(t, err)
	kernel := kernelsOf(t, c, text.String())
	to, err := c.AllocZeroed(64)
	require.NoError(t, err)
	got := make([]byte, 41)
	for i, value := range values {
		size := i + 1
		require.NoError(t, c.Launch(kernel(fmt.Sprintf("k%d", size)), oneThread, cuda.Out(to), value))
		require.NoError(t, c.CopyOutAt(got, to, 0))
		assert.Equal(t, append(slices.Clone(all[:size]), make([]byte, 41-size)...), got, "%d bytes", size)
	}
	require.NoError(t, to.Free())
	require.NoError(t, c.Close())
}

// A struct has numbers of any kind of a fixed size, alone and in arrays and structs.
func TestStructsOfEachNumber(t *testing.T) {
	_, c := newRig(t)
	var text strings.Builder
	for size := range 64 {
		fmt.Fprintf(&text, ".visible .entry k%d(.param .align 8 .b8 s[%d]) { ret; }\n", size+1, size+1)
	}
	kernel := kernelsOf(t, c, text.String())
	for name, all := range map[string][]structOf{
		"bool": structsOf[bool](), "int8": structsOf[int8](), "int16": structsOf[int16](), "int32": structsOf[int32](), "int64": structsOf[int64](),
		"uint8": structsOf[uint8](), "uint16": structsOf[uint16](), "uint32": structsOf[uint32](), "uint64": structsOf[uint64](),
		"float32": structsOf[float32](), "float64": structsOf[float64](), "complex64": structsOf[complex64](), "complex128": structsOf[complex128](),
	} {
		for _, one := range all {
			require.NoError(t, c.Launch(kernel(fmt.Sprintf("k%d", one.bytes)), oneThread, one.arg), "%s, %d bytes", name, one.bytes)
		}
	}
}

// structOf is a struct and its size.
type structOf struct {
	bytes uintptr
	arg   cuda.Arg
}

// structsOf returns structs of a type of numbers.
func structsOf[T any]() []structOf {
	var number T
	size := unsafe.Sizeof(number)
	return []structOf{
		{size, cuda.Struct(struct{ A T }{})}, {3 * size, cuda.Struct(struct{ A [3]T }{})}, {4 * size, cuda.Struct(struct{ A [2]struct{ B, C T } }{})},
	}
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
