package interp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// The kernels of the benchmark are of the shapes that programs have: element by element with loads of constant memory, a
// stencil over a tile in shared memory, a reduction that ends in a warp of volatile shared memory, and a product of
// matrices by tiles.
const (
	ptxOfStencil = header + `
.visible .entry stencil(.param .u64 in, .param .u64 out, .param .u32 n) {
	.reg .pred %p<4>; .reg .f32 %f<8>; .reg .b32 %r<12>; .reg .b64 %d<8>;
	.shared .align 4 .b8 tile[1032];
	ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; ld.param.u32 %r1, [n];
	cvta.to.global.u64 %d1, %d1; cvta.to.global.u64 %d2, %d2;
	mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
	mad.lo.s32 %r5, %r2, %r3, %r4;
	mul.wide.s32 %d3, %r5, 4;
	add.s64 %d4, %d1, %d3;
	shl.b32 %r6, %r4, 2; mov.u32 %r7, tile; add.s32 %r6, %r7, %r6;
	ld.global.nc.f32 %f1, [%d4];
	st.shared.f32 [%r6+4], %f1;
	setp.ne.s32 %p1, %r4, 0;
	@%p1 bra RIGHT;
	setp.eq.s32 %p2, %r5, 0;
	mov.f32 %f2, 0f00000000;
	@%p2 bra LEFT;
	ld.global.nc.f32 %f2, [%d4+-4];
LEFT:
	st.shared.f32 [%r6], %f2;
RIGHT:
	add.s32 %r8, %r4, 1;
	setp.ne.s32 %p1, %r8, %r3;
	@%p1 bra SYNC;
	add.s32 %r9, %r5, 1;
	setp.ge.s32 %p2, %r9, %r1;
	mov.f32 %f2, 0f00000000;
	@%p2 bra EDGE;
	ld.global.nc.f32 %f2, [%d4+4];
EDGE:
	st.shared.f32 [%r6+8], %f2;
SYNC:
	bar.sync 0;
	ld.shared.f32 %f3, [%r6]; ld.shared.f32 %f4, [%r6+4]; ld.shared.f32 %f5, [%r6+8];
	add.f32 %f6, %f3, %f5;
	fma.rn.f32 %f6, %f4, 0fC0000000, %f6;
	add.s64 %d5, %d2, %d3;
	st.global.f32 [%d5], %f6;
	ret;
}`
	ptxOfReduction = `.version 6.0
.target sm_52
.address_size 64
.visible .entry reduce(.param .u64 in, .param .u64 out, .param .u32 n) {
	.reg .pred %p<4>; .reg .f32 %f<8>; .reg .b32 %r<12>; .reg .b64 %d<8>;
	.shared .align 4 .b8 sums[1024];
	ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; ld.param.u32 %r1, [n];
	cvta.to.global.u64 %d1, %d1; cvta.to.global.u64 %d2, %d2;
	mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mov.u32 %r5, %nctaid.x;
	mad.lo.s32 %r6, %r2, %r3, %r4;
	mul.lo.s32 %r7, %r3, %r5;
	mov.f32 %f1, 0f00000000;
	setp.ge.s32 %p1, %r6, %r1;
	@%p1 bra DONE;
MORE:
	mul.wide.s32 %d3, %r6, 4;
	add.s64 %d4, %d1, %d3;
	ld.global.nc.f32 %f2, [%d4];
	add.f32 %f1, %f1, %f2;
	add.s32 %r6, %r6, %r7;
	setp.lt.s32 %p1, %r6, %r1;
	@%p1 bra MORE;
DONE:
	shl.b32 %r8, %r4, 2; mov.u32 %r9, sums; add.s32 %r8, %r9, %r8;
	st.shared.f32 [%r8], %f1;
	bar.sync 0;
	setp.lt.u32 %p1, %r3, 66;
	@%p1 bra LAST;
HALF:
	shr.u32 %r10, %r3, 1;
	setp.ge.u32 %p2, %r4, %r10;
	@%p2 bra NEXT;
	ld.shared.f32 %f3, [%r8];
	shl.b32 %r11, %r10, 2; add.s32 %r11, %r8, %r11;
	ld.shared.f32 %f4, [%r11];
	add.f32 %f3, %f3, %f4;
	st.shared.f32 [%r8], %f3;
NEXT:
	bar.sync 0;
	setp.gt.u32 %p3, %r3, 131;
	mov.u32 %r3, %r10;
	@%p3 bra HALF;
LAST:
	setp.gt.s32 %p1, %r4, 31;
	@%p1 bra STORE;
` + volatileSteps + `
STORE:
	setp.ne.s32 %p1, %r4, 0;
	@%p1 ret;
	ld.shared.f32 %f5, [sums];
	atom.global.add.f32 %f6, [%d2], %f5;
	ret;
}`
	ptxOfProduct = header + `
.visible .entry product(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {
	.reg .pred %p<2>; .reg .f32 %f<4>; .reg .b32 %r<16>; .reg .b64 %d<12>;
	.shared .align 4 .b8 left[1024]; .shared .align 4 .b8 right[1024];
	ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u64 %d3, [c]; ld.param.u32 %r1, [n];
	mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y;
	shl.b32 %r6, %r5, 4; add.s32 %r6, %r6, %r3; shl.b32 %r7, %r4, 4; add.s32 %r7, %r7, %r2;
	mad.lo.s32 %r8, %r6, %r1, %r2; mul.wide.s32 %d4, %r8, 4; add.s64 %d4, %d1, %d4;
	mad.lo.s32 %r9, %r3, %r1, %r7; mul.wide.s32 %d5, %r9, 4; add.s64 %d5, %d2, %d5;
	shl.b32 %r10, %r1, 6; cvt.s64.s32 %d6, %r10;
	shl.b32 %r11, %r3, 6; shl.b32 %r12, %r2, 2; add.s32 %r13, %r11, %r12;
	mov.u32 %r14, left; add.s32 %r10, %r14, %r11; add.s32 %r14, %r14, %r13;
	mov.u32 %r15, right; add.s32 %r12, %r15, %r12; add.s32 %r15, %r15, %r13;
	mov.f32 %f1, 0f00000000;
	mov.u32 %r13, 0;
TILE:
	ld.global.f32 %f2, [%d4]; st.shared.f32 [%r14], %f2;
	ld.global.f32 %f2, [%d5]; st.shared.f32 [%r15], %f2;
	bar.sync 0;
` + productSteps + `
	bar.sync 0;
	add.s64 %d4, %d4, 64; add.s64 %d5, %d5, %d6;
	add.s32 %r13, %r13, 16;
	setp.lt.s32 %p1, %r13, %r1;
	@%p1 bra TILE;
	mad.lo.s32 %r8, %r6, %r1, %r7; mul.wide.s32 %d7, %r8, 4; add.s64 %d7, %d3, %d7;
	st.global.f32 [%d7], %f1;
	ret;
}`
	volatileSteps = `
	ld.volatile.shared.f32 %f3, [%r8]; ld.volatile.shared.f32 %f4, [%r8+128]; add.f32 %f3, %f3, %f4; st.volatile.shared.f32 [%r8], %f3;
	ld.volatile.shared.f32 %f3, [%r8]; ld.volatile.shared.f32 %f4, [%r8+64]; add.f32 %f3, %f3, %f4; st.volatile.shared.f32 [%r8], %f3;
	ld.volatile.shared.f32 %f3, [%r8]; ld.volatile.shared.f32 %f4, [%r8+32]; add.f32 %f3, %f3, %f4; st.volatile.shared.f32 [%r8], %f3;
	ld.volatile.shared.f32 %f3, [%r8]; ld.volatile.shared.f32 %f4, [%r8+16]; add.f32 %f3, %f3, %f4; st.volatile.shared.f32 [%r8], %f3;
	ld.volatile.shared.f32 %f3, [%r8]; ld.volatile.shared.f32 %f4, [%r8+8]; add.f32 %f3, %f3, %f4; st.volatile.shared.f32 [%r8], %f3;
	ld.volatile.shared.f32 %f3, [%r8]; ld.volatile.shared.f32 %f4, [%r8+4]; add.f32 %f3, %f3, %f4; st.volatile.shared.f32 [%r8], %f3;`
	productSteps = `
	ld.shared.f32 %f2, [%r10+0]; ld.shared.f32 %f3, [%r12+0]; fma.rn.f32 %f1, %f2, %f3, %f1;
	ld.shared.f32 %f2, [%r10+4]; ld.shared.f32 %f3, [%r12+64]; fma.rn.f32 %f1, %f2, %f3, %f1;
	ld.shared.f32 %f2, [%r10+8]; ld.shared.f32 %f3, [%r12+128]; fma.rn.f32 %f1, %f2, %f3, %f1;
	ld.shared.f32 %f2, [%r10+12]; ld.shared.f32 %f3, [%r12+192]; fma.rn.f32 %f1, %f2, %f3, %f1;
	ld.shared.f32 %f2, [%r10+16]; ld.shared.f32 %f3, [%r12+256]; fma.rn.f32 %f1, %f2, %f3, %f1;
	ld.shared.f32 %f2, [%r10+20]; ld.shared.f32 %f3, [%r12+320]; fma.rn.f32 %f1, %f2, %f3, %f1;
	ld.shared.f32 %f2, [%r10+24]; ld.shared.f32 %f3, [%r12+384]; fma.rn.f32 %f1, %f2, %f3, %f1;
	ld.shared.f32 %f2, [%r10+28]; ld.shared.f32 %f3, [%r12+448]; fma.rn.f32 %f1, %f2, %f3, %f1;
	ld.shared.f32 %f2, [%r10+32]; ld.shared.f32 %f3, [%r12+512]; fma.rn.f32 %f1, %f2, %f3, %f1;
	ld.shared.f32 %f2, [%r10+36]; ld.shared.f32 %f3, [%r12+576]; fma.rn.f32 %f1, %f2, %f3, %f1;
	ld.shared.f32 %f2, [%r10+40]; ld.shared.f32 %f3, [%r12+640]; fma.rn.f32 %f1, %f2, %f3, %f1;
	ld.shared.f32 %f2, [%r10+44]; ld.shared.f32 %f3, [%r12+704]; fma.rn.f32 %f1, %f2, %f3, %f1;
	ld.shared.f32 %f2, [%r10+48]; ld.shared.f32 %f3, [%r12+768]; fma.rn.f32 %f1, %f2, %f3, %f1;
	ld.shared.f32 %f2, [%r10+52]; ld.shared.f32 %f3, [%r12+832]; fma.rn.f32 %f1, %f2, %f3, %f1;
	ld.shared.f32 %f2, [%r10+56]; ld.shared.f32 %f3, [%r12+896]; fma.rn.f32 %f1, %f2, %f3, %f1;
	ld.shared.f32 %f2, [%r10+60]; ld.shared.f32 %f3, [%r12+960]; fma.rn.f32 %f1, %f2, %f3, %f1;`
)

// representative are launches of the kernels of the benchmark, and the elements of each.
func representative(tb testing.TB) map[string]struct {
	elements int
	run      func() error
} {
	tb.Helper()
	const n, side = 1 << 18, 128
	x, y, z := make([]byte, 4*n), make([]byte, 4*n), make([]byte, 4*n)
	for i := range n {
		copy(x[4*i:], floats(float32(i%17)))
		copy(y[4*i:], floats(float32(i%13)))
	}
	memory := interp.Bytes{1 << 24: x, 2 << 24: y, 3 << 24: z}
	a, b, c := uint64(1<<24), uint64(2<<24), uint64(3<<24)
	line := func(text string, blocks uint32, values ...any) func() error {
		k := compile(tb, text)
		return func() error {
			return k.Run(interp.Launch{
				Grid: interp.Dim3{X: blocks, Y: 1, Z: 1}, Block: interp.Dim3{X: 256, Y: 1, Z: 1}, Params: params(values...), Memory: memory,
			})
		}
	}
	product := compile(tb, ptxOfProduct)
	return map[string]struct {
		elements int
		run      func() error
	}{
		"elements":  {n, line(ptxOfAdd, n/256, a, b, c, uint32(n))},
		"stencil":   {n, line(ptxOfStencil, n/256, a, c, uint32(n))},
		"reduction": {n, line(ptxOfReduction, 32, a, c, uint32(n))},
		"product": {side * side, func() error {
			return product.Run(interp.Launch{
				Grid: interp.Dim3{X: side / 16, Y: side / 16, Z: 1}, Block: interp.Dim3{X: 16, Y: 16, Z: 1},
				Params: params(a, b, c, uint32(side)), Memory: memory,
			})
		}},
	}
}

// BenchmarkShapes measures the kernels of the shapes that programs have.
func BenchmarkShapes(b *testing.B) {
	for name, shape := range representative(b) {
		b.Run("shape="+name, func(b *testing.B) {
			require.NoError(b, shape.run())
			b.ReportAllocs()
			for b.Loop() {
				if err := shape.run(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(shape.elements), "ns/element")
		})
	}
}
