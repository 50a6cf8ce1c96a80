package interp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/ptx/interp"
)

// ofWarp runs a kernel on one warp, in text of a version and a target. It returns 32 words that the kernel has written.
func ofWarp(t *testing.T, target, body string, change func(*interp.Launch)) ([]byte, error) {
	t.Helper()
	m, err := ptx.Parse(fmt.Sprintf(`.version %s
.address_size 64
.global .texref picture;
.visible .entry k(.param .u64 to) {
	.reg .pred %%p<4>; .reg .b32 %%r<12>; .reg .f32 %%f<8>; .reg .b64 %%d<4>;
	.shared .align 4 .b8 sums[256];
	ld.param.u64 %%d1, [to]; mov.u32 %%r1, %%tid.x; mul.wide.u32 %%d2, %%r1, 4; add.u64 %%d2, %%d1, %%d2;
	shl.b32 %%r2, %%r1, 2; mov.u32 %%r3, sums; add.u32 %%r2, %%r2, %%r3;
	%s
	ret;
}`, target, body))
	require.NoError(t, err)
	k, err := interp.Compile(m, "k")
	require.NoError(t, err)
	to := make([]byte, 128)
	l := launch(1, 32, interp.Bytes{0x10000: to}, uint64(0x10000))
	if change != nil {
		change(&l)
	}
	return to, k.Run(l)
}

// Instructions of a warp without .sync work on the threads that execute them together, down to PTX 2.0 and sm_20.
func TestLockstep(t *testing.T) {
	t.Parallel()
	to, err := ofWarp(t, "3.0\n.target sm_30", "shfl.bfly.b32 %r4|%p1, %r1, 1, 31; st.global.u32 [%d2], %r4;", nil)
	require.NoError(t, err)
	for n := range 32 {
		assert.Equal(t, uint32(n^1), wordAt(to, n)) //nolint:gosec // few
	}
	to, err = ofWarp(t, "2.0\n.target sm_20", "setp.gt.u32 %p1, %r1, 3; @%p1 bra END; setp.ne.u32 %p2, %r1, 1; vote.ballot.b32 %r4, %p2; st.global.u32 [%d2], %r4; END:", nil)
	require.NoError(t, err)
	for n := range 32 {
		want := uint32(0)
		if n < 4 {
			want = 0b1101
		}
		assert.Equal(t, want, wordAt(to, n))
	}
	to, err = ofWarp(t, "2.0\n.target sm_20", "setp.lt.u32 %p1, %r1, 32; vote.all.pred %p2, %p1; selp.u32 %r4, 1, 0, %p2; st.global.u32 [%d2], %r4; ldu.global.u32 %r5, [%d2];", nil)
	require.NoError(t, err)
	assert.Equal(t, uint32(1), wordAt(to, 31))
	_, err = ofWarp(t, "3.0\n.target sm_30", "setp.gt.u32 %p1, %r1, 3; @%p1 bra END; shfl.down.b32 %r4, %r1, 1, 31; st.global.u32 [%d2], %r4; END:", nil)
	require.ErrorContains(t, err, "reads a thread that takes no part")
}

// A kernel that executes an instruction that is not known fails there; one that does not runs.
func TestUnknownInstructions(t *testing.T) {
	t.Parallel()
	for _, unknown := range []string{
		"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [picture, {%f5, %f6}]", "suld.b.1d.b32.trap {%r4}, [picture, {%r1}]", "foo.bar %r1 - %r2 , { a b }", "vadd.u32.u32.u32 %r4, %r1.b0, %r1.h1, 7",
		"add.f16x4 %r4, %r4, %r4",
	} {
		_, err := ofWarp(t, "7.0\n.target sm_70", "setp.gt.u32 %p1, %r1, 31; @%p1 "+unknown+";", nil)
		require.NoError(t, err, unknown)
		_, err = ofWarp(t, "7.0\n.target sm_70", "setp.gt.u32 %p1, %r1, 30; @%p1 "+unknown+";", nil)
		require.ErrorIs(t, err, interp.Unsupported, unknown)
		require.ErrorContains(t, err, "thread (31,0,0): @%p1 "+unknown+": ")
	}
}
