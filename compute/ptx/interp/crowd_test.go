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
