package interp_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// Blocks have as many threads as CUDA allows, in each direction, and no more.
func TestSizesOfBlocks(t *testing.T) {
	t.Parallel()
	k := compile(t, header+`.visible .entry k(.param .u64 x) {
	.reg .b64 %d<3>; .reg .b32 %r<8>;
	ld.param.u64 %d1, [x]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y;
	mad.lo.u32 %r2, %r3, %r5, %r2; mad.lo.u32 %r1, %r2, %r4, %r1;
	mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; add.u32 %r1, %r1, 1; st.global.u32 [%d1], %r1; ret;
}`)
	one := interp.Dim3{X: 1, Y: 1, Z: 1}
	for _, c := range []struct {
		block interp.Dim3
		right bool
	}{
		{one, true},
		{interp.Dim3{X: 1024, Y: 1, Z: 1}, true},
		{interp.Dim3{X: 1, Y: 1024, Z: 1}, true},
		{interp.Dim3{X: 1, Y: 1, Z: 64}, true},
		{interp.Dim3{X: 16, Y: 1, Z: 64}, true},
		{interp.Dim3{X: 1, Y: 1, Z: 65}, false},
		{interp.Dim3{X: 1, Y: 1025, Z: 1}, false},
		{interp.Dim3{X: 32, Y: 32, Z: 1}, true},
		{interp.Dim3{X: 4, Y: 8, Z: 32}, true},
		{interp.Dim3{X: 3, Y: 5, Z: 7}, true},
		{interp.Dim3{X: 1025, Y: 1, Z: 1}, false},
		{interp.Dim3{X: 33, Y: 32, Z: 1}, false},
		{interp.Dim3{X: 0, Y: 1, Z: 1}, false},
		{interp.Dim3{X: 1, Y: 1, Z: 0}, false},
		{interp.Dim3{X: 1 << 31, Y: 2, Z: 1}, false},
		{interp.Dim3{X: 1, Y: 1 << 31, Z: 2}, false},
		{interp.Dim3{X: 1, Y: 1, Z: 1 << 31}, false},
	} {
		out := make([]byte, 4*1024)
		err := k.Run(interp.Launch{Grid: one, Block: c.block, Params: params(uint64(0x10000)), Memory: interp.Bytes{0x10000: out}})
		if !c.right {
			require.ErrorIs(t, err, interp.ErrLaunch, "%v", c.block)
			continue
		}
		require.NoError(t, err, "%v", c.block)
		for n := range int(c.block.X * c.block.Y * c.block.Z) {
			require.Equal(t, uint32(n+1), wordAt(out, n), "%v", c.block)
		}
	}
}

// An address is in one space alone: of shared, local, constant and global memory.
func TestSpacesOfAddresses(t *testing.T) {
	t.Parallel()
	k := compile(t, header+`.const .align 4 .b8 table[4] = {1, 2, 3, 4};
.visible .entry k(.param .u64 x) {
	.reg .b64 %d<6>; .reg .b32 %r<3>; .reg .pred %p<5>; .local .align 4 .b8 depot[4]; .shared .align 4 .b8 tile[4];
	ld.param.u64 %d1, [x];
	mov.u64 %d2, tile; cvta.shared.u64 %d2, %d2;
	mov.u64 %d3, depot; cvta.local.u64 %d3, %d3;
	mov.u64 %d4, table; cvta.const.u64 %d4, %d4;
	mov.u32 %r1, %tid.x;
	setp.eq.u32 %p1, %r1, 0; selp.b64 %d5, %d1, %d2, %p1;
	setp.eq.u32 %p1, %r1, 2; selp.b64 %d5, %d3, %d5, %p1;
	setp.eq.u32 %p1, %r1, 3; selp.b64 %d5, %d4, %d5, %p1;
	isspacep.global %p1, %d5; isspacep.shared %p2, %d5; isspacep.local %p3, %d5; isspacep.const %p4, %d5;
	selp.u32 %r2, 1, 0, %p1; @%p2 or.b32 %r2, %r2, 2; @%p3 or.b32 %r2, %r2, 4; @%p4 or.b32 %r2, %r2, 8;
	mul.wide.u32 %d5, %r1, 4; add.u64 %d1, %d1, %d5; st.global.u32 [%d1], %r2; ret;
}`)
	out := make([]byte, 16)
	require.NoError(t, k.Run(launch(1, 4, interp.Bytes{0x10000: out}, uint64(0x10000))))
	for n, want := range []uint32{1, 2, 4, 8} {
		assert.Equal(t, want, wordAt(out, n), "address %d", n)
	}
}

// Local memory is each block's own, and shared memory, and a block finds neither written.
func TestMemoryOfBlocks(t *testing.T) {
	t.Parallel()
	for _, space := range []string{"local", "shared"} {
		for _, bytes := range []int{1, 4} {
			k := compile(t, header+fmt.Sprintf(`.visible .entry k(.param .u64 x) {
	.reg .b64 %%d<3>; .reg .b32 %%r<3>; .reg .pred %%p; .%[1]s .align %[2]d .b8 own[%[2]d];
	ld.param.u64 %%d1, [x]; mov.u32 %%r1, %%ctaid.x; setp.ne.u32 %%p, %%r1, 0;
	@%%p bra read;
	st.%[1]s.u8 [own], 7;
	read: ld.%[1]s.u8 %%r2, [own];
	st.global.u32 [%%d1], %%r2; ret;
}`, space, bytes))
			out := make([]byte, 4)
			require.NoError(t, k.Run(launch(1, 1, interp.Bytes{0x10000: out}, uint64(0x10000))))
			assert.Equal(t, uint32(7), wordAt(out, 0))
			require.ErrorIs(t, k.Run(launch(2, 1, interp.Bytes{0x10000: out}, uint64(0x10000))), interp.Uninitialised, "%s, %d bytes", space, bytes)
		}
	}
}

// Registers and predicates are each block's own, and a block finds them unwritten, also after a block that wrote them.
func TestRegistersOfBlocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ write, read string }{
		"a register":  {"mov.u32 %r2, 7;", "st.global.u32 [%d1], %r2;"},
		"a predicate": {"setp.eq.u32 %q, %r1, 0;", "@%q st.global.u32 [%d1], 1;"},
		"a selection": {"setp.eq.u32 %q, %r1, 0;", "selp.u32 %r2, 1, 2, %q; st.global.u32 [%d1], %r2;"},
	} {
		k := compile(t, header+`.visible .entry k(.param .u64 x) {
	.reg .b64 %d<3>; .reg .b32 %r<3>; .reg .pred %p, %q; ld.param.u64 %d1, [x]; mov.u32 %r1, %ctaid.x; setp.ne.u32 %p, %r1, 0;
	@%p bra read;
	`+c.write+`
	read: `+c.read+` ret; }`)
		for blocks, want := range map[uint32]error{1: nil, 2: interp.Uninitialised} {
			err := k.Run(launch(blocks, 1, interp.Bytes{0x10000: make([]byte, 4)}, uint64(0x10000)))
			require.ErrorIs(t, err, want, "%s of %d blocks", name, blocks)
		}
	}
}

// owned is memory of one owner.
type owned struct{ interp.Region }

// Range finds the owner's memory.
func (m owned) Range(uint64, int, bool) (interp.Region, error) { return m.Region, nil }

// An access that was declared does not allow others next to it, nor a load a store.
func TestDeclaredParts(t *testing.T) {
	t.Parallel()
	for body, allowed := range map[string]bool{
		"ld.global.u32 %r1, [%d1+64]; ld.global.u32 %r1, [%d1+124];": true,
		"ld.global.u32 %r1, [%d1+64]; ld.global.u32 %r1, [%d1+128];": false,
		"ld.global.u32 %r1, [%d1+64]; ld.global.u32 %r1, [%d1+60];":  false,
		"ld.global.u32 %r1, [%d1+64]; ld.global.u32 %r1, [%d1];":     false,
		"ld.global.u32 %r1, [%d1+64]; st.global.u32 [%d1+64], 1;":    false,
		"st.global.u32 [%d1+192], 1; st.global.u32 [%d1+188], 1;":    false,
		"st.global.u32 [%d1+192], 1; st.global.u32 [%d1+252], 1;":    true,
		"ld.global.u64 %d2, [%d1+120]; ld.global.u32 %r1, [%d1+64];": true,
		"ld.global.u64 %d2, [%d1+120]; ld.global.u64 %d2, [%d1+128]": false,
	} {
		k := compile(t, header+`.visible .entry k(.param .u64 x) { .reg .b64 %d<3>; .reg .b32 %r<3>; ld.param.u64 %d1, [x];`+strings.TrimSuffix(body, ";")+`; ret; }`)
		err := k.Run(launch(1, 1, owned{interp.Region{
			Start: 0x10000, Bytes: make([]byte, 256),
			Declared: []interp.Declared{{Start: 0x10000 + 64, Bytes: 64}, {Start: 0x10000 + 192, Bytes: 64, Write: true}},
		}}, uint64(0x10000)))
		if allowed {
			require.NoError(t, err, body)
		} else {
			require.ErrorIs(t, err, interp.Undeclared, body)
		}
	}
}

// Nor does it allow others of the same instruction in a later round of a loop.
func TestDeclaredPartsInLoops(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		access string
		step   int
		right  bool
	}{
		{"ld.global.u32 %r1, [%d1+64];", 4, true},
		{"ld.global.u32 %r1, [%d1+64];", 20, true},
		{"ld.global.u32 %r1, [%d1+64];", 64, false},
		{"ld.global.u32 %r1, [%d1+64];", -4, false},
		{"ld.global.u32 %r1, [%d1+64];", -64, false},
		{"st.global.u32 [%d1+192], 1;", 20, true},
		{"st.global.u32 [%d1+192], 1;", -4, false},
		{"st.global.u32 [%d1+192], 1;", -64, false},
	} {
		k := compile(t, header+fmt.Sprintf(`.visible .entry k(.param .u64 x) { .reg .b64 %%d<3>; .reg .b32 %%r<3>; .reg .pred %%p;
	ld.param.u64 %%d1, [x]; mov.u32 %%r2, 0;
	again: %s
	add.s64 %%d1, %%d1, %d; add.u32 %%r2, %%r2, 1; setp.lt.u32 %%p, %%r2, 4;
	@%%p bra again;
	ret; }`, c.access, c.step))
		err := k.Run(launch(1, 1, owned{interp.Region{
			Start: 0x10000, Bytes: make([]byte, 256),
			Declared: []interp.Declared{{Start: 0x10000 + 64, Bytes: 64}, {Start: 0x10000 + 192, Bytes: 64, Write: true}},
		}}, uint64(0x10000)))
		if c.right {
			require.NoError(t, err, "%s and %d", c.access, c.step)
		} else {
			require.ErrorIs(t, err, interp.Undeclared, "%s and %d", c.access, c.step)
		}
	}
}

// The fault of an undeclared access names the parameter whose part it is in, and the byte.
func TestParametersOfUndeclaredAccesses(t *testing.T) {
	t.Parallel()
	const start = 0x10000
	for n, name := range []string{"x", "y", "z"} {
		declared := []interp.Declared{{Start: start, Bytes: 64}, {Start: start + 64, Bytes: 64}, {Start: start + 128, Bytes: 64}}
		for access, how := range map[string]string{
			"st.global.u32 [%d1+12], 1;":   "as read-only, and the kernel writes there: byte %d of the 256 at 0x10000",
			"ld.global.u32 %r1, [%d1+20];": "as write-only, and the kernel reads bytes that it has not written: byte %d of the 256 at 0x10000",
		} {
			byteAt := map[bool]int{true: 12, false: 20}[strings.HasPrefix(access, "st")] + 64*n
			declared[n].Write = !strings.HasPrefix(access, "st")
			k := compile(t, header+`.visible .entry k(.param .u32 count, .param .u64 x, .param .u8 flag, .param .u64 y, .param .u64 z) {
	.reg .b64 %d<3>; .reg .b32 %r<3>; ld.param.u64 %d1, [`+name+`]; `+access+` ret; }`)
			err := k.Run(launch(1, 1, owned{interp.Region{Start: start, Bytes: make([]byte, 256), Declared: declared}}, uint32(3), uint64(start), uint64(1), uint64(start+64), uint64(start+128))) // the number of 8 bits has 8 bytes with those up to the next
			require.ErrorIs(t, err, interp.Undeclared, access)
			number := []int{1, 3, 4}[n]
			require.ErrorContains(t, err, fmt.Sprintf("parameter %d, %s, %s", number, name, fmt.Sprintf(how, byteAt)))
		}
	}
}

// The fault of a load of bytes that nobody wrote names the first of them.
func TestUnwrittenBytesAreNamed(t *testing.T) {
	t.Parallel()
	for _, missing := range []int{0, 5, 31, 62, 63, 64, 65, 100, 127, 128, 200, 255} {
		for _, bytes := range []int{1, 4, 8} {
			k := compile(t, header+fmt.Sprintf(`.visible .entry k(.param .u64 x) { .reg .b64 %%d<3>; ld.param.u64 %%d1, [x]; ld.global.u%d %%d2, [%%d1+%d]; ret; }`, 8*bytes, missing/bytes*bytes))
			written := []uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
			memory := owned{interp.Region{Start: 0x10000, Bytes: make([]byte, 256), Initialised: written}}
			require.NoError(t, k.Run(launch(1, 1, memory, uint64(0x10000))))
			written[missing/64] &^= 1 << (missing % 64)
			err := k.Run(launch(1, 1, memory, uint64(0x10000)))
			require.ErrorIs(t, err, interp.Uninitialised)
			require.ErrorContains(t, err, fmt.Sprintf("nothing has written byte %d of", missing))
		}
	}
}

// A non-coherent load of each width counts on each page that it reaches, also if another load has touched that page first: a store there is a
// fault.
func TestNonCoherentLoadsOfPages(t *testing.T) {
	t.Parallel()
	for _, threads := range []uint32{1, 31, 32, 64} {
		for _, typ := range []string{"u32", "u8", "u16", "u64", "v2.u32", "v4.u32"} {
			for _, store := range []bool{false, true} {
				registers, bytes := map[string]string{"v2.u32": "{%r4, %r5}", "v4.u32": "{%r4, %r5, %r6, %r7}"}[typ], map[string]int{"u8": 1, "u16": 2, "u64": 8, "v2.u32": 8, "v4.u32": 16}[typ]
				if registers == "" {
					registers = "%d4"
				}
				end := ""
				if store {
					end = "st.global.u32 [%d1+4096], 1;"
				}
				k := compile(t, prelude+fmt.Sprintf(`mul.wide.u32 %%d3, %%r1, %d; add.u64 %%d3, %%d3, %%d1; ld.global.%[2]s %[3]s, [%%d3+4096]; mov.u32 %%r8, 0;
	again: ld.global.nc.%[2]s %[3]s, [%%d3]; add.u64 %%d3, %%d3, 4096; add.u32 %%r8, %%r8, 1; setp.lt.u32 %%p1, %%r8, 2;
	@%%p1 bra again;
	bar.sync 0; %[4]s ret; }`, max(bytes, 4*btoi(bytes == 0)), typ, registers, end))
				err := k.Run(launch(1, threads, interp.Bytes{0x10000: make([]byte, 8192)}, uint64(0x10000)))
				if store {
					require.ErrorIs(t, err, interp.NonCoherent, "%s in %d threads", typ, threads)
				} else {
					require.NoError(t, err, "%s in %d threads", typ, threads)
				}
			}
		}
	}
}

// Global memory is not shared memory, also where its addresses are as low.
func TestLowAddressesOfGlobalMemory(t *testing.T) {
	t.Parallel()
	k := compile(t, prelude+`mov.u32 %r4, 0;
	again: st.shared.u32 [%r3+256], %r1; ld.global.u32 %r5, [%d2]; add.u32 %r5, %r5, 1000; st.global.u32 [%d2], %r5; ld.shared.u32 %r6, [%r3+256];
	setp.ne.u32 %p1, %r6, %r1;
	@%p1 trap;
	add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 3;
	@%p1 bra again;
	ret; }`)
	out := make([]byte, 256)
	require.NoError(t, k.Run(launch(1, 64, interp.Bytes{256: out}, uint64(256))))
	for n := range 64 {
		require.Equal(t, uint32(3000), wordAt(out, n))
	}
}

// The initial value of a variable may be the address of another one, plus a number, whether the launch has memory for that or not.
func TestAddressesAsInitialValues(t *testing.T) {
	t.Parallel()
	k := compile(t, header+`.global .align 8 .b8 own[64]; .const .align 8 .b8 given[64];
.global .align 8 .u64 all[7] = {own, own+8, own+-8, generic(own)+4, given, given+-16, generic(given)+16}; .global .align 8 .u64 self = self;
.visible .entry k(.param .u64 x) {
	.reg .b64 %d<12>; ld.param.u64 %d1, [x]; mov.u64 %d10, own; mov.u64 %d11, given;
	ld.global.u64 %d2, [all]; ld.global.u64 %d3, [all+8]; ld.global.u64 %d4, [all+16]; ld.global.u64 %d5, [all+24];
	ld.global.u64 %d6, [all+32]; ld.global.u64 %d7, [all+40]; ld.global.u64 %d8, [all+48]; ld.global.u64 %d9, [self];
	sub.u64 %d2, %d2, %d10; sub.u64 %d3, %d3, %d10; sub.u64 %d4, %d4, %d10; sub.u64 %d5, %d5, %d10;
	sub.u64 %d6, %d6, %d11; sub.u64 %d7, %d7, %d11; sub.u64 %d8, %d8, %d11; mov.u64 %d10, self; sub.u64 %d9, %d9, %d10;
	st.global.u64 [%d1], %d2; st.global.u64 [%d1+8], %d3; st.global.u64 [%d1+16], %d4; st.global.u64 [%d1+24], %d5;
	st.global.u64 [%d1+32], %d6; st.global.u64 [%d1+40], %d7; st.global.u64 [%d1+48], %d8; st.global.u64 [%d1+56], %d9; st.global.u64 [%d1+64], %d11; ret; }`)
	out := make([]byte, 72)
	l := launch(1, 1, interp.Bytes{0x10000: out, 0x20000: make([]byte, 64)}, uint64(0x10000))
	l.Globals = map[string]uint64{"given": 0x20000}
	require.NoError(t, k.Run(l))
	for n, want := range []int64{0, 8, -8, 4, 0, -16, 16, 0, 0x20000} {
		assert.Equal(t, want, int64(binary.LittleEndian.Uint64(out[8*n:])), "value %d", n) //nolint:gosec // in two's complement
	}
}

// Clocks are the same for the threads that read them at once, and not earlier for a later read; each has its half.
func TestClocks(t *testing.T) {
	t.Parallel()
	k := compile(t, header+`.visible .entry k(.param .u64 x) {
	.reg .b64 %d<8>; .reg .b32 %r<8>; .reg .pred %p;
	ld.param.u64 %d1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 40; add.u64 %d1, %d1, %d2;
	setp.eq.u32 %p, %r1, 5;
	@%p ret;
	mov.u32 %r2, %clock; mov.u64 %d3, %clock64; mov.u32 %r3, %clock_hi; mov.u64 %d4, %globaltimer; mov.u32 %r4, %globaltimer_lo; mov.u32 %r5, %globaltimer_hi;
	cvt.u64.u32 %d5, %r2; st.global.u64 [%d1], %d5; st.global.u64 [%d1+8], %d3; st.global.u64 [%d1+16], %d4;
	st.global.u32 [%d1+24], %r3; st.global.u32 [%d1+28], %r4; st.global.u32 [%d1+32], %r5; ret;
}`)
	out := make([]byte, 40*32)
	require.NoError(t, k.Run(launch(1, 32, interp.Bytes{0x10000: out}, uint64(0x10000))))
	for n := range 32 {
		at := func(byteAt int) uint64 { return binary.LittleEndian.Uint64(out[40*n+byteAt:]) }
		word := func(byteAt int) uint64 { return uint64(binary.LittleEndian.Uint32(out[40*n+byteAt:])) }
		if n == 5 {
			assert.Zero(t, at(0))
			continue
		}
		assert.Positive(t, at(0))
		assert.LessOrEqual(t, at(0), at(8))
		assert.LessOrEqual(t, at(8), at(16))
		assert.LessOrEqual(t, at(16), word(28))
		assert.Equal(t, []uint64{0, 0}, []uint64{word(24), word(32)})
		assert.Equal(t, out[40*0:40*0+36], out[40*n:40*n+36], "thread %d", n)
	}
}

// A reduction of a warp has the result of its members' values, of each operation and sign, in the low half of the result.
func TestReductionsOfWarps(t *testing.T) {
	t.Parallel()
	values := []int32{-5, 7, math.MinInt32, math.MaxInt32, 0, -1, 12}
	for name, of := range map[string]func(a, b int32) int32{
		"add.s32": func(a, b int32) int32 { return a + b }, "add.u32": func(a, b int32) int32 { return a + b },
		"min.s32": func(a, b int32) int32 { return min(a, b) }, "max.s32": func(a, b int32) int32 { return max(a, b) },
		"min.u32": func(a, b int32) int32 { return int32(min(uint32(a), uint32(b))) }, "max.u32": func(a, b int32) int32 { return int32(max(uint32(a), uint32(b))) },
		"and.b32": func(a, b int32) int32 { return a & b }, "or.b32": func(a, b int32) int32 { return a | b }, "xor.b32": func(a, b int32) int32 { return a ^ b },
	} {
		k := compile(t, header+fmt.Sprintf(`.visible .entry k(.param .u64 x) {
	.reg .b64 %%d<4>; .reg .b32 %%r<4>;
	ld.param.u64 %%d1, [x]; mov.u32 %%r1, %%tid.x; mul.wide.u32 %%d2, %%r1, 8; add.u64 %%d1, %%d1, %%d2;
	ld.global.u32 %%r2, [%%d1]; redux.sync.%s %%r3, %%r2, 127; cvt.u64.u32 %%d3, %%r3; st.global.u64 [%%d1], %%d3; ret;
}`, name))
		memory := make([]byte, 8*len(values))
		want := values[0]
		for n, v := range values {
			binary.LittleEndian.PutUint64(memory[8*n:], uint64(uint32(v)))
			if n > 0 {
				want = of(want, v)
			}
		}
		require.NoError(t, k.Run(launch(1, uint32(len(values)), interp.Bytes{0x10000: memory}, uint64(0x10000))))
		for n := range values {
			assert.Equal(t, uint64(uint32(want)), binary.LittleEndian.Uint64(memory[8*n:]), "%s, thread %d", name, n)
		}
	}
}

// Numbers that printf cuts to a size, and numbers of base 16, follow C.
func TestSizesOfPrintf(t *testing.T) {
	t.Parallel()
	const minusOne = math.MaxUint64
	float := math.Float64bits
	for format, c := range map[string]struct {
		arguments []uint64
		want      string
	}{
		"%hhu %hhx %hho %hhd": {[]uint64{0x1_0000_01ff, 0}, "255 1 0 0"},
		"%hu|%hx|%hd":         {[]uint64{0xffff_0000_ffff, 0x8000}, "65535|ffff|-32768"},
		"%u %x %d":            {[]uint64{minusOne, minusOne}, "4294967295 ffffffff -1"},
		"%zu %tx %jd %Lu":     {[]uint64{minusOne, minusOne, minusOne, 3}, "18446744073709551615 ffffffffffffffff -1 3"},
		"%5s|%-5s|":           {[]uint64{0x10008, 0x10008}, "   on|on   |"},
		"%#o %#X":             {[]uint64{8 | 0xfe<<32}, "010 0XFE"},
		"%#o|%#x|%#X|%#4x|":   {[]uint64{0, 0}, "0|0|0|   0|"},
		"%a %A %.1a":          {[]uint64{float(0.5), float(-12), float(1)}, "0x1p-1 -0X1.8P+3 0x1.0p+0"},
		"%a|%12a|%-9a|":       {[]uint64{float(1e300), float(3), float(0)}, "0x1.7e43c8800759cp+996|    0x1.8p+1|0x0p+0   |"},
		"%+e %E % g %G":       {[]uint64{float(12.5), float(1e-10), float(3), float(1e-10)}, "+1.250000e+01 1.000000E-10  3 1E-10"},
		"%+f %F %e":           {[]uint64{float(math.Inf(1)), float(math.Inf(-1)), float(math.NaN())}, "+inf -INF nan"},
	} {
		printed, _, err := runPrintf(t, printfOf(format, c.arguments...))
		require.NoError(t, err, format)
		assert.Equal(t, c.want, printed, format)
	}
}

// The result of a function that is a register of the caller has the value that the function gave it, or is undefined.
func TestResultsInRegisters(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]error{"st.param.b32 [r], 7; ret;": nil, "ret;": interp.Uninitialised} {
		k := compile(t, header+`.func (.param .b32 r) f() { `+body+` }
.visible .entry k(.param .u64 x) { .reg .b64 %d<2>; .reg .b32 %r<3>; ld.param.u64 %d1, [x]; call (%r1), f; st.global.u32 [%d1], %r1; ret; }`)
		out := make([]byte, 4)
		err := k.Run(launch(1, 1, interp.Bytes{0x10000: out}, uint64(0x10000)))
		if want != nil {
			require.ErrorIs(t, err, want)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, uint32(7), wordAt(out, 0))
	}
}

// A launch has up to as many blocks and bytes of shared memory as CUDA allows, with the static memory of the kernel, and no more.
func TestLimitsOfLaunches(t *testing.T) {
	t.Parallel()
	const shared = 227 << 10
	one := interp.Dim3{X: 1, Y: 1, Z: 1}
	for _, static := range []int{0, 16, 1024} {
		variable := ""
		if static > 0 {
			variable = fmt.Sprintf(".shared .align 16 .b8 own[%d]; st.shared.u8 [own], 1;", static)
		}
		k := compile(t, header+`.visible .entry k() .maxntid 64, 2 { `+variable+` ret; }`)
		for _, c := range []struct {
			grid, block interp.Dim3
			bytes       int
			right       bool
		}{
			{one, one, 0, true},
			{one, one, shared - static, true},
			{one, one, shared - static + 1, false},
			{one, one, -1, false},
			{interp.Dim3{X: 1<<31 - 1, Y: 1, Z: 1}, one, 0, true},
			{interp.Dim3{X: 1 << 31, Y: 1, Z: 1}, one, 0, false},
			{interp.Dim3{X: 1, Y: 1<<16 - 1, Z: 1}, one, 0, true},
			{interp.Dim3{X: 1, Y: 1 << 16, Z: 1}, one, 0, false},
			{interp.Dim3{X: 1, Y: 1, Z: 1<<16 - 1}, one, 0, true},
			{interp.Dim3{X: 1, Y: 1, Z: 1 << 16}, one, 0, false},
			{interp.Dim3{X: 0, Y: 1, Z: 1}, one, 0, false},
			{interp.Dim3{X: 1, Y: 0, Z: 1}, one, 0, false},
			{interp.Dim3{X: 1, Y: 1, Z: 0}, one, 0, false},
			{one, interp.Dim3{X: 128, Y: 1, Z: 1}, 0, true},
			{one, interp.Dim3{X: 129, Y: 1, Z: 1}, 0, false},
			{one, interp.Dim3{X: 43, Y: 3, Z: 1}, 0, false},
		} {
			err := k.Run(interp.Launch{Grid: c.grid, Block: c.block, SharedBytes: c.bytes, Blocks: 1})
			if c.right {
				require.NoError(t, err, "%+v with %d bytes", c, static)
			} else {
				require.ErrorIs(t, err, interp.ErrLaunch, "%+v with %d bytes", c, static)
			}
		}
	}
}
