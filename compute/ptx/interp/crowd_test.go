package interp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// Two warps read a word that a third one then changes atomically, after both, and a fourth one after one of them alone: its access races with
// the other's, whichever of the two read last.
func TestAnAtomicAccessHidesNoReader(t *testing.T) {
	for name, c := range map[string]struct{ late, early string }{"the later one": {"0", "1"}, "the earlier one": {"1", "0"}} {
		t.Run(name, func(t *testing.T) {
			k := compile(t, `
.version 7.8
.target sm_80
.address_size 64
.visible .entry k()
{
	.reg .pred %p<8>;
	.reg .b32 %r<16>;
	.shared .align 4 .b32 x;
	mov.u32 %r1, %tid.x;
	shr.u32 %r2, %r1, 5;
	and.b32 %r3, %r1, 31;
	setp.eq.u32 %p5, %r3, 0;
	setp.eq.u32 %p0, %r2, `+c.late+`;
	setp.eq.u32 %p1, %r2, `+c.early+`;
	setp.eq.u32 %p2, %r2, 2;
	setp.eq.u32 %p3, %r1, 0;
	@%p3 st.shared.u32 [x], 7;
	bar.sync 0;
	@%p0 bra LATE;
	@%p1 bra EARLY;
	@%p2 bra AFTER;
	bar.sync 3, 64; // with the late one
	@%p5 atom.shared.add.u32 %r9, [x], 1;
	ret;
LATE:
	@%p5 ld.shared.u32 %r8, [x];
	bar.arrive 1, 64;
	mov.u32 %r10, 0;
L:
	add.u32 %r10, %r10, 1;
	setp.lt.u32 %p6, %r10, 20000;
	@%p6 bra L;
	bar.sync 3, 64;
	ret;
EARLY:
	@%p5 ld.shared.u32 %r8, [x];
	bar.arrive 2, 64;
	ret;
AFTER:
	bar.sync 1, 64;
	bar.sync 2, 64;
	@%p5 atom.shared.add.u32 %r9, [x], 1;
	ret;
}
`)
			require.ErrorIs(t, k.Run(interp.Launch{Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: 128, Y: 1, Z: 1}}), interp.SharedRace)
		})
	}
}

// A plain load after an atomic access of its thread does not race with an ordered load that nothing orders: neither writes.
func TestAnAtomicAccessMakesNoLoadAStore(t *testing.T) {
	for name, p := range map[string]string{"the loading warp is the first": "%p1", "the loading warp is the last": "!%p1"} {
		f := runFault(t, 1, 64, `mov.u32 %r3, tile; setp.eq.u32 %p2, %r1, 0; and.b32 %r5, %r1, 31; setp.lt.u32 %p1, %r1, 32; mov.u32 %r6, 0;
			@%p2 st.shared.u32 [%r3], 7;
			bar.sync 0;
			setp.ne.u32 %p3, %r5, 0;
			@%p3 ret;
			@`+p+` bra LOAD;
			again: add.u32 %r6, %r6, 1; setp.lt.u32 %p3, %r6, 20000; @%p3 bra again;
			atom.shared.add.u32 %r4, [%r3], 1;
			ld.shared.u32 %r4, [%r3];
			ret;
			LOAD: ld.relaxed.cta.shared.u32 %r4, [%r3];
			ret;`)
		require.Nil(t, f, name)
	}
}

// Many warps of a block change a word atomically, then a second block and a third one do, too. A fourth one, which is ordered after the first block and the
// third one, races with the second.
func TestAtomicAccessesOfAWholeBlockHideNoOther(t *testing.T) {
	for _, warps := range []uint32{1, 4, 8, 9, 10, 32} {
		f := runFault(t, 4, 32*warps, `mov.u32 %r4, %ctaid.x; and.b32 %r5, %r1, 31; setp.ne.u32 %p1, %r5, 0;
			@%p1 ret;
			setp.ne.u32 %p1, %r4, 0;
			@%p1 bra OTHERS;
			red.global.add.u32 [%d1], 1;
			membar.gl;
			red.global.add.u32 [%d1+64], 1;
			ret;
			OTHERS: setp.ne.u32 %p1, %r1, 0;
			@%p1 ret;
			setp.eq.u32 %p1, %r4, 3;
			@%p1 bra LAST;
			red.global.add.u32 [%d1], 1;
			setp.eq.u32 %p1, %r4, 1;
			@%p1 ret;
			membar.gl;
			red.global.add.u32 [%d1+128], 1;
			ret;
			LAST: ld.acquire.gpu.global.u32 %r6, [%d1+64]; ld.acquire.gpu.global.u32 %r6, [%d1+128];
			ld.global.u32 %r6, [%d1];
			ret;`)
		require.NotNil(t, f, "%d warps", warps)
		require.Equal(t, interp.GlobalRace.String(), f.Kind.String(), f.Error())
		require.Equal(t, []uint32{3, 1}, []uint32{f.Block.X, f.Other.Block.X}, f.Error())
	}
}

// A warp has an ordered load of a word, which another warp then changes without an order, and a plain one after a barrier. Both are kept until a later
// atomic access that nothing orders after them: it races with the plain one.
func TestAnOrderedLoadHidesNoPlainOne(t *testing.T) {
	for _, ordered := range []string{"", "ld.relaxed.cta.shared.u32 %r4, [tile];"} {
		f := runFault(t, 1, 128, `and.b32 %r5, %r1, 31; setp.eq.u32 %p1, %r1, 0;
			@%p1 st.shared.v2.u32 [tile], {%r1, %r1};
			bar.sync 0;
			setp.lt.u32 %p1, %r1, 32; setp.lt.u32 %p2, %r1, 64; setp.lt.u32 %p3, %r1, 96; mov.u32 %r6, 1;
			@%p1 bra READS;
			@%p2 bra CHANGES;
			@%p3 bra HIDES;
			wait: ld.volatile.shared.u32 %r4, [tile+4]; setp.eq.u32 %p1, %r4, 0;
			@%p1 bra wait;
			red.shared.add.u32 [tile], 1;
			ret;
			READS: `+ordered+`
			bar.sync 2, 64;
			ld.shared.u32 %r4, [tile];
			bar.sync 3, 64;
			ret;
			CHANGES: red.shared.add.u32 [tile], 1;
			bar.sync 2, 64;
			ret;
			HIDES: bar.sync 3, 64;
			red.shared.add.u32 [tile], 1;
			bar.warp.sync 0xffffffff;
			st.volatile.shared.u32 [tile+4], %r6;
			ret;`)
		require.NotNil(t, f, ordered)
		require.Equal(t, interp.SharedRace.String(), f.Kind.String(), f.Error())
		require.Contains(t, f.Other.Instruction, "ld.shared", f.Error())
		require.Equal(t, uint32(3), f.Thread.X/32, f.Error())
	}
}
