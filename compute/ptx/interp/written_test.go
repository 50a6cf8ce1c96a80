package interp_test

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/ptx/interp"
)

// one is a kernel with addresses of two pieces of memory, run by so many threads; the result is the second piece.
func one(t *testing.T, target, statements string, in []byte, outBytes int, threads uint32) []byte {
	t.Helper()
	out := make([]byte, outBytes)
	k := compile(t, ".version 7.8\n.target "+target+`
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
	.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .f32 %f<40>;
	ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
	mov.u32 %r0, %tid.x;
`+statements+"\nret;\n}\n")
	require.NoError(t, k.Run(launch(1, threads, interp.Bytes{0x10000: in, 0x20000: out}, uint64(0x10000), uint64(0x20000))))
	return out
}

// Triton writes a load and a store of one word with a vector of one register.
func TestVectorsOfOneElement(t *testing.T) {
	in := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	out := one(t, "sm_80", `mul.wide.u32 %rd3, %r0, 4; add.s64 %rd4, %rd1, %rd3;
	ld.global.b32 { %r2 }, [ %rd4 + 0 ];
	add.s64 %rd4, %rd2, %rd3;
	st.global.b32 [ %rd4 + 0 ], { %r2 };`, in, 8, 2)
	assert.Equal(t, in, out)
}

// The order of the parts of a name makes no difference, and a number of 32 bits may stand in a wider register.
func TestNamesInAnotherOrder(t *testing.T) {
	in := []byte{0, 0, 0x80, 0x3f, 5, 0, 0, 0}
	out := one(t, "sm_80", `
	ld.global.f32 %rd3, [%rd1];
	st.global.f32 [%rd2], %rd3;
	ld.global.acquire.sys.u32 %r1, [%rd1+4];
	atom.global.sys.relaxed.cas.b32 %r2, [%rd1+4], %r1, WARP_SZ;
	ld.relaxed.gpu.global.u32 %r3, [%rd1+4];
	st.global.u32 [%rd2+4], %r3;
	st.global.u32 [%rd2+8], %r2;
	mov.b32 %f1, 0f40400000; mov.b32 %f2, 0f40000000;
	div.ftz.rn.f32 %f1, %f1, %f2;
	cvt.f32.rn.s32 %rd4, %r3;
	cvt.rzi.s32.f32 %r4, %rd4;
	st.global.f32 [%rd2+12], %f1;
	st.global.u32 [%rd2+16], %r4;
	add.u64 %rd5, %rd4, WARP_SZ;
	st.global.u64 [%rd2+24], %rd5;`, in, 32, 1)
	assert.Equal(t, []byte{0, 0, 0x80, 0x3f, 32, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0xc0, 0x3f, 32, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0x42, 0, 0, 0, 0}, out)
}

// set of halves gives a half, as cuda_fp16.hpp has it in hexp.
func TestSetOfHalves(t *testing.T) {
	out := one(t, "sm_80", `
	mov.b16 %h1, 0x3C00; mov.b16 %h2, 0x3C00;
	set.eq.f16.f16 %h3, %h1, %h2;
	st.global.b16 [%rd2], %h3;
	mov.b32 %r1, 0x3C004000; mov.b32 %r2, 0x3C004200;
	set.eq.f16x2.f16x2 %r3, %r1, %r2;
	st.global.b32 [%rd2+4], %r3;
	set.ne.u32.f16x2 %r3, %r1, %r2;
	st.global.b32 [%rd2+8], %r3;`, nil, 12, 1)
	assert.Equal(t, []byte{0, 0x3c, 0, 0, 0, 0, 0, 0x3c, 0xff, 0xff, 0, 0}, out)
}

// Chains of carries are products and sums of long numbers.
func TestCarryChains(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	const threads = 64
	in := make([]byte, 32*threads)
	for n := range in {
		in[n] = byte(rnd.Uint32() >> (rnd.IntN(2) * 31)) // often 0 or 1
		if rnd.IntN(3) == 0 {
			in[n] = 0xff
		}
	}
	out := one(t, "sm_80", `
	mul.wide.u32 %rd3, %r0, 32; add.u64 %rd1, %rd1, %rd3;
	mul.wide.u32 %rd3, %r0, 64; add.u64 %rd2, %rd2, %rd3;
	ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1]; ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd1+16];
	add.cc.u32 %r11, %r1, %r5; addc.cc.u32 %r12, %r2, %r6; addc.cc.u32 %r13, %r3, %r7; addc.u32 %r14, %r4, %r8;
	st.global.v4.u32 [%rd2], {%r11, %r12, %r13, %r14};
	sub.cc.u32 %r11, %r1, %r5; subc.cc.u32 %r12, %r2, %r6; subc.cc.u32 %r13, %r3, %r7; subc.u32 %r14, %r4, %r8;
	st.global.v4.u32 [%rd2+16], {%r11, %r12, %r13, %r14};
	mul.lo.u32 %r11, %r1, %r5; mul.hi.u32 %r12, %r1, %r5;
	mad.lo.cc.u32 %r12, %r1, %r6, %r12; madc.hi.u32 %r13, %r1, %r6, 0;
	mad.lo.cc.u32 %r12, %r2, %r5, %r12; madc.hi.cc.u32 %r13, %r2, %r5, %r13; addc.u32 %r14, 0, 0;
	mad.lo.cc.u32 %r13, %r2, %r6, %r13; madc.hi.u32 %r14, %r2, %r6, %r14;
	st.global.v4.u32 [%rd2+32], {%r11, %r12, %r13, %r14};
	ld.global.v2.u64 {%rd3, %rd4}, [%rd1]; ld.global.v2.u64 {%rd5, %rd6}, [%rd1+16];
	add.cc.u64 %rd7, %rd3, %rd5; addc.u64 %rd8, %rd4, %rd6;
	st.global.v2.u64 [%rd2+48], {%rd7, %rd8};`, in, 64*threads, threads)
	number := func(b []byte) *big.Int {
		x := new(big.Int).SetUint64(binary.LittleEndian.Uint64(b[8:]))
		return x.Or(x.Lsh(x, 64), new(big.Int).SetUint64(binary.LittleEndian.Uint64(b)))
	}
	cut := func(x *big.Int) *big.Int {
		return x.And(x, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1)))
	}
	low := func(b []byte) *big.Int { return new(big.Int).SetUint64(binary.LittleEndian.Uint64(b)) }
	for n := range threads {
		a, b, got := in[32*n:], in[32*n+16:], out[64*n:]
		assert.Equal(t, cut(new(big.Int).Add(number(a), number(b))), number(got), "sum of thread %d", n)
		assert.Equal(t, cut(new(big.Int).Sub(number(a), number(b))), number(got[16:]), "difference of thread %d", n)
		assert.Equal(t, new(big.Int).Mul(low(a), low(b)), number(got[32:]), "product of thread %d", n)
		assert.Equal(t, number(got), number(got[48:]), "sum in halves of thread %d", n)
	}
}

// Text for an architecture before sm_70 runs as one for it.
func TestAnOldArchitecture(t *testing.T) {
	assert.Equal(t, []byte{5, 0, 0, 0}, one(t, "sm_52", "mov.u32 %r1, 5; st.global.u32 [%rd2], %r1;", nil, 4, 1))
}

// A kernel has memory for the shared variables that it names, also in its first instruction alone, and not for variables of other kernels of its
// module.
func TestSharedMemoryOfOtherKernels(t *testing.T) {
	k := compile(t, `.version 7.8
.target sm_80
.address_size 64
.shared .align 4 .b8 others[2000000000];
.shared .align 4 .b8 own[64];
.visible .entry k(.param .u64 out)
{
	.reg .b32 %r<3>; .reg .b64 %rd<3>;
	mov.u32 %r2, own;
	ld.param.u64 %rd1, [out];
	st.shared.u32 [%r2], 7;
	ld.shared.u32 %r1, [%r2];
	st.global.u32 [%rd1], %r1;
	ret;
}`)
	out := make([]byte, 4)
	assert.Equal(t, 64, k.SharedBytes())
	assert.NotEmpty(t, k.Name())
	var none *interp.Kernel
	assert.Equal(t, [...]any{"", 0, 0}, [...]any{none.Name(), none.ParamBytes(), none.SharedBytes()})
	require.NoError(t, k.Run(launch(1, 1, interp.Bytes{0x10000: out}, uint64(0x10000))))
	assert.Equal(t, []byte{7, 0, 0, 0}, out)
}

// Each block has its own place in the grid, in all three directions, and each thread its own in the block.
func TestPlacesInTheGrid(t *testing.T) {
	k := compile(t, `.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
	.reg .b32 %r<12>; .reg .b64 %rd<3>;
	ld.param.u64 %rd1, [out];
	mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
	mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y; mov.u32 %r6, %nctaid.z;
	mov.u32 %r7, %tid.x; mov.u32 %r8, %tid.y; mov.u32 %r9, %tid.z;
	mad.lo.u32 %r10, %r3, %r5, %r2;
	mad.lo.u32 %r10, %r10, %r4, %r1;
	mad.lo.u32 %r10, %r10, 2, %r9;
	mad.lo.u32 %r10, %r10, 3, %r8;
	mad.lo.u32 %r10, %r10, 2, %r7;
	mul.wide.u32 %rd2, %r10, 4;
	add.u64 %rd1, %rd1, %rd2;
	mad.lo.u32 %r11, %r6, 10, %r3;
	mad.lo.u32 %r11, %r11, 10, %r2;
	mad.lo.u32 %r11, %r11, 10, %r1;
	mad.lo.u32 %r11, %r11, 10, %r9;
	mad.lo.u32 %r11, %r11, 10, %r8;
	mad.lo.u32 %r11, %r11, 10, %r7;
	st.global.u32 [%rd1], %r11;
	ret;
}`)
	grid, block := interp.Dim3{X: 2, Y: 3, Z: 4}, interp.Dim3{X: 2, Y: 3, Z: 2}
	var want []uint32
	for z := range grid.Z {
		for y := range grid.Y {
			for x := range grid.X {
				for c := range block.Z {
					for b := range block.Y {
						for a := range block.X {
							want = append(want, grid.Z*1e6+z*1e5+y*1e4+x*1e3+c*100+b*10+a)
						}
					}
				}
			}
		}
	}
	out := make([]byte, 4*len(want))
	require.NoError(t, k.Run(interp.Launch{Grid: grid, Block: block, Params: params(uint64(0x10000)), Memory: interp.Bytes{0x10000: out}}))
	assert.Equal(t, words(want...), out)
}

// Each special register that is no clock has its value in every thread of every block, also in a frame that an earlier block has used.
func TestSpecialRegistersOfEveryThread(t *testing.T) {
	t.Parallel()
	grid, block := interp.Dim3{X: 3, Y: 2, Z: 2}, interp.Dim3{X: 5, Y: 4, Z: 3}
	const threads, blocks, static, dynamic = 60, 12, 64, 48
	values := map[string]func(thread, block uint32) uint32{
		"%tid.x": func(n, _ uint32) uint32 { return n % 5 }, "%tid.y": func(n, _ uint32) uint32 { return n / 5 % 4 }, "%tid.z": func(n, _ uint32) uint32 { return n / 20 },
		"%ctaid.x": func(_, n uint32) uint32 { return n % 3 }, "%ctaid.y": func(_, n uint32) uint32 { return n / 3 % 2 }, "%ctaid.z": func(_, n uint32) uint32 { return n / 6 },
		"%laneid": func(n, _ uint32) uint32 { return n % 32 }, "%warpid": func(n, _ uint32) uint32 { return n / 32 }, "%smid": func(_, n uint32) uint32 { return n },
		"%lanemask_eq": func(n, _ uint32) uint32 { return 1 << (n % 32) }, "%lanemask_lt": func(n, _ uint32) uint32 { return 1<<(n%32) - 1 },
		"%lanemask_le": func(n, _ uint32) uint32 { return 1<<(n%32) | (1<<(n%32) - 1) }, "%lanemask_gt": func(n, _ uint32) uint32 { return ^(1<<(n%32) | (1<<(n%32) - 1)) },
		"%lanemask_ge": func(n, _ uint32) uint32 { return ^(1<<(n%32) - 1) },
	}
	for name, value := range map[string]uint32{
		"%ntid.x": 5, "%ntid.y": 4, "%ntid.z": 3, "%nctaid.x": 3, "%nctaid.y": 2, "%nctaid.z": 2, "%nwarpid": 2, "%nsmid": 132, "%gridid": 0,
		"%dynamic_smem_size": dynamic, "%total_smem_size": static + dynamic, "WARP_SZ": 32,
	} {
		values[name] = func(uint32, uint32) uint32 { return value }
	}
	for register := ptx.TidX; register.String() != ""; register++ {
		name := register.String()
		value := values[name]
		switch {
		case strings.HasPrefix(name, "%envreg"):
			value = func(uint32, uint32) uint32 { return 0 }
		case strings.HasPrefix(name, "%clock"), strings.HasPrefix(name, "%globaltimer"):
			continue // TestClocks
		}
		require.NotNil(t, value, name)
		k := compile(t, header+fmt.Sprintf(`.visible .entry k(.param .u64 out) {
			.reg .b32 %%r<4>; .reg .b64 %%d<4>; .shared .align 16 .b8 own[%d]; st.shared.u8 [own], 0;
			ld.param.u64 %%d1, [out]; mov.u32 %%r1, %%nctaid.x; mov.u32 %%r2, %%ctaid.z; mov.u32 %%r3, %%ctaid.y; mad.lo.u32 %%r2, %%r2, 2, %%r3;
			mov.u32 %%r3, %%ctaid.x; mad.lo.u32 %%r2, %%r2, %%r1, %%r3; mov.u32 %%r3, %%tid.z; mad.lo.u32 %%r2, %%r2, 3, %%r3; mov.u32 %%r3, %%tid.y;
			mad.lo.u32 %%r2, %%r2, 4, %%r3; mov.u32 %%r3, %%tid.x; mad.lo.u32 %%r2, %%r2, 5, %%r3; mul.wide.u32 %%d2, %%r2, 8; add.u64 %%d1, %%d1, %%d2;
			mov.b%[2]d %%%[3]s3, %[4]s; cvt.u64.u%[2]d %%d3, %%%[3]s3; st.global.u64 [%%d1], %%d3; ret; }`,
			static, register.Type().Bits(), map[int]string{32: "r", 64: "d"}[register.Type().Bits()], name))
		out := make([]byte, 8*threads*blocks)
		require.NoError(t, k.Run(interp.Launch{
			Grid: grid, Block: block, SharedBytes: dynamic, Params: params(uint64(0x10000)), Memory: interp.Bytes{0x10000: out},
		}), name)
		for n := range uint32(threads * blocks) {
			require.Equal(t, uint64(value(n%threads, n/threads)), binary.LittleEndian.Uint64(out[8*n:]), "%s of thread %d of block %d", name, n%threads, n/threads)
		}
	}
}
