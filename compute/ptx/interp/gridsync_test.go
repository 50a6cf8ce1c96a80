package interp_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// A grid synchronises as compilers write it: the address of the barrier comes from the environment registers, and
// atomics and loads order the accesses.
func TestGridsSynchroniseThroughEnvironmentRegisters(t *testing.T) {
	g := func(n string) string {
		s := strings.ReplaceAll(gridSync(n), "membar.gl;\n", "")
		s = strings.ReplaceAll(s, "atom.global.add.u32 %r12, [%d3]", "atom.add.release.gpu.u32 %r12, [%d3]")
		return strings.ReplaceAll(s, "ld.acquire.gpu.global.u32", "ld.acquire.gpu.u32")
	}
	text := cooperative(g("1"), g("2"))
	text = strings.Replace(text, "ld.param.u64 %d3, [barrier];", "mov.u32 %r8, %envreg1; mov.u32 %r9, %envreg2; cvt.u64.u32 %d5, %r8; cvt.u64.u32 %d6, %r9; bfi.b64 %d3, %d5, %d6, 32, 32; setp.ne.s64 %p1, %d3, 0; @%p1 bra ok; trap; ok: add.s64 %d3, %d3, 4;", 1)
	for _, blocks := range []int{1, 2, 7, 33} {
		_, err := runCooperative(t, text, blocks, nil)
		require.NoError(t, err)
	}
	_, err := runCooperative(t, text, 3, func(l *interp.Launch) { l.Cooperative = false })
	require.ErrorIs(t, err, interp.Trap)
	text = cooperative(g("1"), "")
	_, err = runCooperative(t, text, 2, nil)
	require.ErrorIs(t, err, interp.GlobalRace)
}
