package interp_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// runWarp executes a kernel with one warp, whose parameter is the address of 32 words, and returns them.
func runWarp(t *testing.T, body string) []uint32 {
	t.Helper()
	out := make([]byte, 4*32)
	k := compile(t, prelude+body+"\n}")
	require.NoError(t, k.Run(interp.Launch{
		Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: 32, Y: 1, Z: 1},
		Params: params(uint64(0x10000)), Memory: interp.Bytes{0x10000: out}, MaxInstructions: 100_000,
	}))
	words := make([]uint32, 32)
	for n := range words {
		words[n] = binary.LittleEndian.Uint32(out[4*n:])
	}
	return words
}

// Threads that arrive at one instruction together meet in groups where their masks differ, whichever thread comes
// first, and all of them meet again later.
func TestThreadsMeetByTheirOwnMasks(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"groups of equal keys shuffle": `and.b32 %r4, %r1, 3;
			match.any.sync.b32 %r5, %r4, 0xffffffff;
			brev.b32 %r6, %r5; clz.b32 %r6, %r6;
			shfl.sync.idx.b32 %r7, %r1, %r6, 31, %r5;`,
		"groups vote": `and.b32 %r4, %r1, 3;
			match.any.sync.b32 %r5, %r4, 0xffffffff;
			setp.eq.u32 %p1, %r4, %r1;
			vote.sync.ballot.b32 %r6, %p1, %r5;
			brev.b32 %r7, %r6; clz.b32 %r7, %r7;`,
		"half of them wait at a barrier of the warp, by a mask of their own": `and.b32 %r7, %r1, 3;
			and.b32 %r4, %r1, 1; setp.eq.u32 %p1, %r4, 0;
			selp.b32 %r5, 0x55555555, 0xaaaaaaaa, %p1;
			bar.warp.sync %r5;`,
		"groups reduce": `and.b32 %r4, %r1, 3;
			match.any.sync.b32 %r5, %r4, 0xffffffff;
			redux.sync.min.u32 %r7, %r1, %r5;`,
		"pairs, of which the odd ones come late": `and.b32 %r4, %r1, 30; mov.u32 %r5, 3; shl.b32 %r5, %r5, %r4;
			mov.u32 %r6, %r1;
			and.b32 %r8, %r1, 1; setp.eq.u32 %p1, %r8, 0;
			@%p1 bra even;
			add.u32 %r6, %r6, 100;
			even: shfl.sync.bfly.b32 %r7, %r6, 1, 31, %r5;
			add.u32 %r7, %r7, %r6; sub.u32 %r7, %r7, %r1; sub.u32 %r7, %r7, %r1; and.b32 %r7, %r7, 1;
			and.b32 %r4, %r1, 2; selp.b32 %r8, 1, 0, %p1; xor.b32 %r8, %r8, 1; or.b32 %r7, %r4, %r8;`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			words := runWarp(t, body+"\nsetp.eq.u32 %p3, %r1, %r1; vote.sync.all.pred %p3, %p3, 0xffffffff; st.global.u32 [%d2], %r7; ret;")
			for n, word := range words {
				assert.Equal(t, uint32(n&3), word, "thread %d", n) //nolint:gosec // small
			}
		})
	}
}

// Votes of all, some and no threads, of the whole warp and of four of it.
func TestVotes(t *testing.T) {
	t.Parallel()
	for limit, want := range map[uint32][2]uint32{ // ballot; all, any, uni
		32: {0xffffffff, 0b111}, 3: {0x7, 0b010}, 0: {0, 0b100},
	} {
		for _, mask := range []uint32{0xffffffff, 0x1e} {
			part, flags := want[0]&mask, want[1]
			words := runWarp(t, fmt.Sprintf(`setp.lt.u32 %%p1, %%r1, %d;
				mov.u32 %%r7, 0;
				mov.u32 %%r4, %#x; shr.u32 %%r5, %%r4, %%r1; and.b32 %%r5, %%r5, 1; setp.eq.u32 %%p3, %%r5, 0;
				@%%p3 bra end;
				vote.sync.all.pred %%p2, %%p1, %%r4; selp.u32 %%r6, 1, 0, %%p2; or.b32 %%r7, %%r7, %%r6;
				vote.sync.any.pred %%p2, %%p1, %%r4; selp.u32 %%r6, 2, 0, %%p2; or.b32 %%r7, %%r7, %%r6;
				vote.sync.uni.pred %%p2, %%p1, %%r4; selp.u32 %%r6, 4, 0, %%p2; or.b32 %%r7, %%r7, %%r6;
				vote.sync.ballot.b32 %%r6, %%p1, %%r4; shl.b32 %%r6, %%r6, 3; or.b32 %%r7, %%r7, %%r6;
				end: st.global.u32 [%%d2], %%r7; ret;`, limit, mask))
			for n, word := range words {
				if mask>>n&1 != 0 {
					assert.Equal(t, part<<3|flags, word, "thread %d of %#x, below %d", n, mask, limit)
				} else {
					assert.Zero(t, word)
				}
			}
		}
	}
}

// A group whose mask names a thread that never comes still does not complete.
func TestAGroupWithoutItsThreadNeverMeets(t *testing.T) {
	t.Parallel()
	f := runFault(t, 1, 32, `setp.lt.u32 %p1, %r1, 4;
		@%p1 bra first;
		selp.b32 %r5, 0xfffffff0, 0xffffffff, %p1;
		mov.u32 %r6, 31; setp.eq.u32 %p2, %r1, %r6; selp.b32 %r5, 0xffffffff, 0x7ffffff0, %p2;
		shfl.sync.idx.b32 %r4, %r1, 5, 31, %r5;
		first: bar.sync 0;
		ret;`)
	require.NotNil(t, f)
	assert.Equal(t, interp.BarrierDeadlock, f.Kind, f.Error())
}
