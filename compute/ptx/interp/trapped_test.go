package interp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// A trap whose guard is the comparison before it tells the numbers that were compared; where something else may have
// led to it, it tells nothing.
func TestATrapTellsWhatWasCompared(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`mov.u64 %d3, 7; mov.u64 %d4, 5; setp.ge.u64 %p1, %d3, %d4; @%p1 trap; ret;`:       "setp.ge.u64 %p1, %d3, %d4 compared 7 with 5",
		`mov.s64 %d3, -1; setp.ge.u64 %p1, %d3, 5; @%p1 trap; ret;`:                        "compared 18446744073709551615 (-1) with 5",
		`mov.u32 %r4, -3; setp.lt.s32 %p1, %r4, 0; @%p1 trap; ret;`:                        "compared -3 with 0",
		`mov.u32 %r4, 0; setp.eq.u32 %p1, %r4, 0; @%p1 trap; ret;`:                         "compared 0 with 0",
		`mov.u32 %r4, 3; setp.lt.u32 %p1, %r4, 2; @!%p1 trap; ret;`:                        "compared 3 with 2",
		`setp.ge.u32 %p2, %r1, 0; setp.ge.u32 %p1, %r1, 9; @%p2 trap; ret;`:                "",
		`setp.ge.u32 %p1, %r1, 0; @%p1 bra A; setp.ge.u32 %p1, %r1, 9; A: @%p1 trap; ret;`: "",
		`mov.f32 %f1, 0f3f800000; setp.gt.f32 %p1, %f1, 0f00000000; @%p1 trap; ret;`:       "",
		`trap;`: "",
	} {
		f := runFault(t, 1, 1, body)
		require.NotNil(t, f, body)
		require.ErrorIs(t, f, interp.Trap, body)
		if want == "" {
			require.Empty(t, f.Detail, body)
			continue
		}
		require.Contains(t, f.Detail, want, body)
	}
}
