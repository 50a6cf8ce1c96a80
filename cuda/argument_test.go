package cuda_test

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

// kernelsOf loads text and returns its kernels by name.
func kernelsOf(t *testing.T, c *cuda.Context, text string) func(name string) *cuda.Function {
	t.Helper()
	m, err := c.LoadModule([]byte(".version 7.0\n.target sm_70\n.address_size 64\n" + text))
	require.NoError(t, err)
	return func(name string) *cuda.Function {
		t.Helper()
		f, err := m.Function(name)
		require.NoError(t, err)
		return f
	}
}

// numbers are arguments of each Go type that a kernel takes, except structs and arrays.
func numbers() map[string]cuda.Arg {
	type celsius float32
	return map[string]cuda.Arg{
		"bool": cuda.Value(true), "int8": cuda.Value(int8(1)), "int16": cuda.Value(int16(1)), "int32": cuda.Value(int32(1)), "int64": cuda.Value(int64(1)),
		"uint8": cuda.Value(uint8(1)), "uint16": cuda.Value(uint16(1)), "uint32": cuda.Value(uint32(1)), "uint64": cuda.Value(uint64(1)),
		"float32": cuda.Value(float32(1)), "float64": cuda.Value(float64(1)), "celsius float32": cuda.Value(celsius(1)),
		"complex64": cuda.Value(complex64(1)), "complex128": cuda.Value(complex128(1)),
		"Ptr": cuda.Value(cudadrv.Ptr(4096)), "Null": cuda.Null(),
	}
}

// bitsOf returns the number at the end of a type's name, and the letters before it. Addresses have 64 bits.
func bitsOf(name string) (letters string, bits int) {
	name = name[strings.LastIndexByte(name, ' ')+1:]
	letters = strings.TrimRight(name, "0123456789")
	bits, _ = strconv.Atoi(name[len(letters):])
	switch letters {
	case "Ptr", "Null":
		return "address", 64
	case "bool":
		return "bool", 8
	}
	return letters, bits
}

// fitting says whether a parameter of a class takes a number: the rules of ErrArgumentType, for arguments of the right size.
func fitting(class string, bits int, number string) bool {
	switch class {
	case "b":
		return true
	case "u":
		return number == "int" || number == "uint" || number == "bool" || number == "address"
	case "s":
		return number == "int"
	case "f":
		return number == "float" || bits == 16 && number == "uint"
	case "bf":
		return number == "uint"
	}
	return false
}

// Each type of PTX takes exactly the Go types that have its size and its meaning.
func TestTypesOfParameters(t *testing.T) {
	r, c := newRig(t)
	buffer := r.alloc(c, 4096)
	types := []string{"bf16"}
	for _, class := range []string{"b", "u", "s", "f"} {
		for bits := 8; bits <= 64; bits *= 2 {
			if class != "f" || bits > 8 {
				types = append(types, class+strconv.Itoa(bits))
			}
		}
	}
	var text strings.Builder
	text.WriteString(".visible .entry wide(.param .align 8 .b8 x[16]) { ret; }\n.visible .entry pointer(.param .u64 .ptr .global .align 4 x) { ret; }\n")
	for _, typ := range types {
		fmt.Fprintf(&text, ".visible .entry k%s(.param .%s x) { ret; }\n", typ, typ)
	}
	kernel := kernelsOf(t, c, text.String())
	launched, refused := 0, 0
	for _, typ := range types {
		class, bits := bitsOf(typ)
		for name, arg := range numbers() {
			number, argBits := bitsOf(name)
			err := c.Launch(kernel("k"+typ), cuda.Cover(1, 1), arg)
			switch {
			case argBits != bits:
				require.ErrorIs(t, err, cuda.ErrArgumentSize, "%s for .%s", name, typ)
			case fitting(class, bits, number):
				require.NoError(t, err, "%s for .%s", name, typ)
				launched++
			default:
				require.ErrorIs(t, err, cuda.ErrArgumentType, "%s for .%s", name, typ)
				refused++
			}
		}
		err := c.Launch(kernel("k"+typ), cuda.Cover(1, 1), cuda.In(buffer))
		assert.Equal(t, bits == 64 && (class == "b" || class == "u"), err == nil, "a buffer for .%s: %v", typ, err)
	}
	assert.Equal(t, []int{35, 24}, []int{launched, refused}, "each type, and each refusal")
	for name, arg := range numbers() {
		number, bits := bitsOf(name)
		err := c.Launch(kernel("pointer"), cuda.Cover(1, 1), arg)
		assert.Equal(t, number == "address", err == nil, "%s for a pointer: %v", name, err)
		assert.Equal(t, number != "address" && bits == 64, errors.Is(err, cuda.ErrArgumentType), name)
	}
	require.NoError(t, c.Launch(kernel("pointer"), cuda.Cover(1, 1), cuda.In(buffer)))
	require.NoError(t, c.Launch(kernel("wide"), cuda.Cover(1, 1), cuda.Value(complex128(1))))
	r.free(buffer)
}

// A refusal names kernel, index and parameter, the types on both sides, and the arguments that the parameter takes.
func TestARefusalNamesTypes(t *testing.T) {
	r, c := newRig(t)
	kernel := kernelsOf(t, c, `.visible .entry k(.param .f32 by, .param .s32 n, .param .u64 .ptr to, .param .align 4 .b8 s[16], .param .u32 m) { ret; }`)
	type wide struct{ A, B float64 }
	b := r.alloc(c, 4096)
	good := []cuda.Arg{cuda.Value(float32(1)), cuda.Value(int32(1)), cuda.Out(b), cuda.Value([4]float32{}), cuda.Value(uint32(1))}
	require.NoError(t, c.Launch(kernel("k"), cuda.Cover(1, 1), good...))
	for _, tt := range []struct {
		arg  cuda.Arg
		want cuda.ArgumentError
		text string
	}{
		{cuda.Value(int32(1)), cuda.ArgumentError{Index: 0, Parameter: "by", Type: ".f32", Got: "int32", Bytes: 4, Want: 4}, "int32 for .f32, which takes float32"},
		{cuda.Value(uint32(1)), cuda.ArgumentError{Index: 1, Parameter: "n", Type: ".s32", Got: "uint32", Bytes: 4, Want: 4}, "uint32 for .s32, which takes int32"},
		{
			cuda.Value(uint64(1)),
			cuda.ArgumentError{Index: 2, Parameter: "to", Type: ".u64 .ptr", Got: "uint64", Bytes: 8, Want: 8},
			"uint64 for .u64 .ptr, which takes a buffer, a nil pointer or a cudadrv.Ptr",
		},
		{
			cuda.Struct(wide{}),
			cuda.ArgumentError{Index: 3, Parameter: "s", Type: ".align 4 .b8[16]", Got: "cuda_test.wide", Bytes: 16, Want: 16},
			"cuda_test.wide for .align 4 .b8[16], which takes values that are aligned to at most 4 bytes",
		},
		{cuda.Value(float32(1)), cuda.ArgumentError{Index: 4, Parameter: "m", Type: ".u32", Got: "float32", Bytes: 4, Want: 4}, "float32 for .u32, which takes int32 or uint32"},
		{cuda.Value([2]uint16{}), cuda.ArgumentError{Index: 4, Parameter: "m", Type: ".u32", Got: "[2]uint16", Bytes: 4, Want: 4}, "[2]uint16 for .u32, which takes int32 or uint32"},
	} {
		args := append([]cuda.Arg{}, good...)
		args[tt.want.Index] = tt.arg
		err := c.Launch(kernel("k"), cuda.Cover(1, 1), args...)
		tt.want.Kernel, tt.want.Err = "k", cuda.ErrArgumentType
		assert.Equal(t, &tt.want, err)
		assert.EqualError(t, err, fmt.Sprintf("cuda: argument %d of kernel k, parameter %s: %s", tt.want.Index, tt.want.Parameter, tt.text))
	}
	r.free(b)
}

// Structs of all sizes up to 4 KiB are launched, and none of a larger size; the alignment is at most the parameter's.
func TestSizesAndAlignmentsOfStructs(t *testing.T) {
	_, c := newRig(t)
	var text strings.Builder
	for _, size := range []int{1, 8, 24, 25, 4096, 4097} {
		for align := 1; align <= 16; align *= 2 {
			fmt.Fprintf(&text, ".visible .entry k%d_%d(.param .align %d .b8 s[%d]) { ret; }\n", size, align, align, size)
		}
	}
	text.WriteString(".visible .entry far(.param .u64 p, .param .b8 s[4096]) { ret; }\n")
	kernel := kernelsOf(t, c, text.String()+".visible .entry two(.param .align 4 .b8 s[4092], .param .u32 n) { ret; }\n")
	for name, tt := range map[string]struct {
		arg         cuda.Arg
		size, align int
	}{
		"a byte":           {cuda.Struct(struct{ A uint8 }{}), 1, 1},
		"8 bytes":          {cuda.Struct(struct{ A uint64 }{}), 8, 8},
		"8 bytes of two":   {cuda.Struct(struct{ A, B uint32 }{}), 8, 4},
		"24 bytes":         {cuda.Struct(struct{ A [3]int64 }{}), 24, 8},
		"24 bytes of 2":    {cuda.Struct(struct{ A [12]uint16 }{}), 24, 2},
		"25 bytes":         {cuda.Struct(struct{ A [25]bool }{}), 25, 1},
		"4096 bytes":       {cuda.Struct(struct{ A [4096]byte }{}), 4096, 1},
		"4096 bytes of 8":  {cuda.Struct(struct{ A [512]float64 }{}), 4096, 8},
		"4096 bytes, mine": {cuda.Value([1024]float32{}), 4096, 4},
	} {
		for align := 1; align <= 16; align *= 2 {
			err := c.Launch(kernel(fmt.Sprintf("k%d_%d", tt.size, align)), cuda.Cover(1, 1), tt.arg)
			if align >= tt.align {
				require.NoError(t, err, "%s for %d", name, align)
			} else {
				require.ErrorIs(t, err, cuda.ErrArgumentType, "%s for %d", name, align)
			}
		}
	}
	nothing, large := cuda.Struct(struct{}{}), cuda.Struct(struct{ A [4097]byte }{})
	require.ErrorIs(t, c.Launch(kernel("k1_1"), cuda.Cover(1, 1), nothing), cuda.ErrArgumentSize)
	require.ErrorIs(t, c.Launch(kernel("k4096_1"), cuda.Cover(1, 1), large), cuda.ErrArgumentSize)
	err := c.Launch(kernel("k4097_1"), cuda.Cover(1, 1), large)
	require.ErrorIs(t, err, cuda.ErrArgumentSize, "it has the size of the parameter, and no kernel takes that")
	var refused *cuda.ArgumentError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, int64(4097), refused.Bytes)
	assert.EqualError(t, c.Launch(kernel("far"), cuda.Cover(1, 1), cuda.Null(), cuda.Value([4096]byte{})),
		"cuda: argument 1 of kernel far, parameter s: wrong size of an argument: with the arguments before it, it takes more than 4096 bytes")
	require.NoError(t, c.Launch(kernel("two"), cuda.Cover(1, 1), cuda.Struct(struct{ A [1023]int32 }{}), cuda.Value(uint32(1))))
	require.ErrorIs(t, c.Launch(kernel("two"), cuda.Cover(1, 1), cuda.Struct(struct{ A [1024]int32 }{}), cuda.Value(uint32(1))), cuda.ErrArgumentSize)
}

// Struct takes structs only, without pointers in any form, and says what is wrong.
func TestStructRefusesPointers(t *testing.T) {
	_, c := newRig(t)
	kernel := kernelsOf(t, c, ".visible .entry k(.param .align 8 .b8 s[16]) { ret; }\n")("k")
	for name, tt := range map[string]struct {
		arg    cuda.Arg
		inside string
	}{
		"a pointer":    {cuda.Struct(struct{ A, B *int32 }{}), "*int32"},
		"a map":        {cuda.Struct(struct{ A map[int32]int32 }{}), "map[int32]int32"},
		"a string":     {cuda.Struct(struct{ A string }{}), "string"},
		"a slice":      {cuda.Struct(struct{ A []float32 }{}), "[]float32"},
		"an interface": {cuda.Struct(struct{ A any }{}), "interface {}"},
		"an int":       {cuda.Struct(struct{ A, B int }{}), "int"},
		"far inside":   {cuda.Struct(struct{ A [2]struct{ B [1]chan bool } }{}), "chan bool"},
		"a number":     {cuda.Struct(float32(1)), ""},
		"an array":     {cuda.Struct([2]uint64{}), ""},
		"a pointer to": {cuda.Struct(&struct{ A, B uint64 }{}), ""},
	} {
		err := c.Launch(kernel, cuda.Cover(1, 1), tt.arg)
		var value *cuda.ValueError
		require.ErrorAs(t, err, &value, name)
		assert.Equal(t, tt.inside, value.Inside, name)
		if tt.inside == "" {
			assert.Contains(t, err.Error(), "which is no struct", name)
		}
	}
}

const optionalPTX = `.visible .entry fill(.param .u64 .ptr .global .align 4 to, .param .u64 .ptr .global .align 4 bias, .param .align 4 .b8 s[12])
{
	.reg .pred %p;
	.reg .u64 %to, %bias;
	.reg .f32 %x, %y;
	.reg .u32 %i;
	.reg .u64 %at;
	ld.param.u64 %to, [to];
	ld.param.u64 %bias, [bias];
	ld.param.u32 %i, [s];
	ld.param.f32 %x, [s+4];
	ld.param.f32 %y, [s+8];
	add.f32 %x, %x, %y;
	setp.eq.u64 %p, %bias, 0;
	@%p bra store;
	ld.global.f32 %y, [%bias];
	add.f32 %x, %x, %y;
store:
	mul.wide.u32 %at, %i, 4;
	add.u64 %to, %to, %at;
	st.global.f32 [%to], %x;
	ret;
}
`

// A kernel gets a nil pointer for Null and for the zero Buffer, and the fields of a struct.
func TestNilPointersAndStructsOnTheDevice(t *testing.T) {
	dev := vramtest.Open(t, vramtest.Kernels())
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	fill := kernelsOf(t, c, optionalPTX)("fill")
	type place struct {
		Index int32
		X, Y  float32
	}
	to, err := c.Alloc(16)
	require.NoError(t, err)
	bias, err := c.Alloc(4)
	require.NoError(t, err)
	require.NoError(t, cuda.CopyIn(c, bias, []float32{100}))
	for i, arg := range []cuda.Arg{cuda.Null(), cuda.OrNull(cuda.Buffer{}, cuda.In), cuda.OrNull(bias, cuda.In), cuda.Value(bias.Ptr())} {
		require.NoError(t, c.Launch(fill, cuda.Cover(1, 1), cuda.Out(to), arg, cuda.Struct(place{int32(i), 1, float32(i)})))
	}
	got := make([]float32, 4)
	require.NoError(t, cuda.CopyOut(c, got, to))
	assert.Equal(t, []float32{1, 2, 103, 104}, got)

	args := func(bias cuda.Arg) []cuda.Arg { return []cuda.Arg{cuda.Out(to), bias, cuda.Struct(place{})} }
	require.NoError(t, bias.Free())
	err = c.Launch(fill, cuda.Cover(1, 1), args(cuda.OrNull(bias, cuda.In))...)
	require.ErrorIs(t, err, cuda.ErrNotLive, "a freed buffer is not the zero Buffer")
	assert.Regexp(t, `parameter bias: a buffer of 4 B, which was freed at .*argument_test.go:\d+\)`, err.Error())
	require.EqualError(t, c.Launch(fill, cuda.Cover(1, 1), args(cuda.In(cuda.Buffer{}))...),
		"cuda: argument 1 of kernel fill, parameter bias: a buffer that nobody has allocated")
	require.ErrorIs(t, c.Launch(fill, cuda.Cover(1, 1), args(cuda.OrNull(to, nil))...), cuda.ErrArgumentSize)
	require.NoError(t, to.Free())
	require.NoError(t, c.Close())
}

// Parameters have the driver's places and the text's types; of a driver that cannot tell places, the text's.
func TestParametersOfKernels(t *testing.T) {
	const text = `.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u8 a, .param .u64 .ptr b, .param .align 16 .b8 s[20], .param .f32 c) { ret; }
.visible .entry none() { ret; }
.visible .entry without { ret; }
`
	want := []cuda.Parameter{
		{Name: "a", Type: ".u8", Offset: 0, Bytes: 1},
		{Name: "b", Type: ".u64 .ptr", Offset: 8, Bytes: 8},
		{Name: "s", Type: ".align 16 .b8[20]", Offset: 16, Bytes: 20},
		{Name: "c", Type: ".f32", Offset: 36, Bytes: 4},
	}
	r, c := newFailing(t, sim.Config{})
	for _, cannotTell := range []bool{false, true} {
		if cannotTell {
			require.NoError(t, r.faults.Add(fault.Rule{Func: "cuFuncGetParamInfo", Result: cudadrv.NotSupported}))
		}
		m, err := c.LoadModule([]byte(text))
		require.NoError(t, err)
		f, err := m.Function("k")
		require.NoError(t, err)
		all, known := f.Parameters()
		assert.True(t, known)
		assert.Equal(t, want, all)
		all[0].Name = "changed"
		again, _ := f.Parameters()
		assert.Equal(t, want, again)
		require.NoError(t, c.Launch(f, cuda.Cover(1, 1), cuda.Value(true), cuda.Null(), cuda.Value([5]float32{}), cuda.Value(float32(1))))
		require.ErrorIs(t, c.Launch(f, cuda.Cover(1, 1), cuda.Value(true), cuda.Null(), cuda.Value([5]float32{}), cuda.Value(int32(1))), cuda.ErrArgumentType)
		require.ErrorIs(t, c.Launch(f, cuda.Cover(1, 1)), cuda.ErrArgumentCount)
		for _, name := range []string{"none", "without"} {
			none, err := m.Function(name)
			require.NoError(t, err)
			all, known = none.Parameters()
			assert.True(t, known, name)
			assert.Empty(t, all, name)
			require.NoError(t, c.Launch(none, cuda.Cover(1, 1)), name)
			require.ErrorIs(t, c.Launch(none, cuda.Cover(1, 1), cuda.Value(int32(1))), cuda.ErrArgumentCount, name)
		}
		require.NoError(t, c.Synchronize(t.Context()))
		require.NoError(t, m.Unload())
	}
	_, known := (*cuda.Function)(nil).Parameters()
	assert.False(t, known)
}

// Arguments cost no allocation, except structs of more than 24 bytes: one.
func TestArgumentsAllocateLittle(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	kernel := kernelsOf(t, c, `.visible .entry small(.param .u64 .ptr x, .param .align 8 .b8 s[24], .param .f32 by) { ret; }
.visible .entry large(.param .u64 .ptr x, .param .align 8 .b8 s[4080], .param .f32 by) { ret; }
`)
	small, large := kernel("small"), kernel("large")
	x := r.alloc(c, 4096)
	type three struct{ A, B, C int64 }
	type page struct{ A [510]int64 }
	values, most := three{1, 2, 3}, page{}
	kept := cuda.Struct(most)
	launch := func(f *cuda.Function, args ...cuda.Arg) {
		if err := c.Launch(f, cuda.Cover(1, 1), args...); err != nil {
			t.Error(err)
		}
	}
	base := testing.AllocsPerRun(100, func() { launch(r.touch, cuda.InOut(x)) }) // the simulated device's
	for name, tt := range map[string]struct {
		launch func()
		want   float64
	}{
		"a small struct": {func() { launch(small, cuda.InOut(x), cuda.Struct(values), cuda.Value(float32(1))) }, 0},
		"a nil pointer": {func() {
			launch(small, cuda.OrNull(cuda.Buffer{}, cuda.In), cuda.Value([3]int64{}), cuda.Value(float32(1)))
		}, 0},
		"a large struct":              {func() { launch(large, cuda.InOut(x), cuda.Struct(most), cuda.Value(float32(1))) }, 1},
		"a large struct that is kept": {func() { launch(large, cuda.InOut(x), kept, cuda.Value(float32(1))) }, 0},
	} {
		before := r.faults.Calls("cuLaunchKernel")
		got := testing.AllocsPerRun(100, tt.launch)
		assert.InDelta(t, tt.want, got-base, 0.5, "%s: of %v", name, got)
		assert.Equal(t, uint64(101), r.faults.Calls("cuLaunchKernel")-before, "one call each")
	}
	assert.Equal(t, uintptr(64), reflect.TypeFor[cuda.Arg]().Size(), "each argument of a launch is copied")
	require.NoError(t, x.Free())
}
