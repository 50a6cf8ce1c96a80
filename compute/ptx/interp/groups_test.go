package interp_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
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

// A reduction at a barrier has the count, the conjunction or the disjunction of the threads that take part, with the sign of the predicate,
// and each use of the barrier counts from zero.
func TestReductionsAtBarriers(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(19, 20))
	for _, row := range table(t) {
		if !strings.HasPrefix(row.name, "bar.red") && !strings.HasPrefix(row.name, "barrier.red") {
			continue
		}
		for _, name := range row.names(rnd, 100) {
			counted := strings.Count(row.operands, "u32") == 2
			for _, not := range []string{"", "!"} {
				parted := strings.HasPrefix(name, "barrier") && !strings.Contains(name, ".aligned") // half the threads of each warp at another instruction
				for _, threads := range []int{96, 72} {                                             // in the second the last warp is not full
					checkReduction(t, rnd, name, not, threads, counted, parted)
				}
			}
		}
	}
}

// checkReduction uses a barrier four times, on predicates by chance, of all threads, none and some.
func checkReduction(t *testing.T, rnd *rand.Rand, name, not string, threads int, counted, parted bool) {
	t.Helper()
	const rounds = 4
	members := threads
	operands := "%[1]s, 3, %[2]s%%p1"
	if counted {
		members = 64
		operands = "%[1]s, 3, 64, %[2]s%%p1"
	}
	result, write := "%p2", "selp.u32 %r6, 1, 0, %p2;"
	if strings.Contains(name, ".popc") {
		result, write = "%r6", ""
	}
	line := name + " " + fmt.Sprintf(operands, result, not) + ";"
	if parted {
		line = fmt.Sprintf("and.b32 %%r7, %%r1, 1; setp.eq.u32 %%p3, %%r7, 0;\n@%%p3 bra even;\n%[1]s bra.uni done;\neven: %[1]s\ndone:", line)
	}
	k := compile(t, prelude+fmt.Sprintf(`setp.ge.u32 %%p1, %%r1, %d; @%%p1 bra end;
		mov.u32 %%r5, 0; mov.u32 %%r6, 77; mul.wide.u32 %%d2, %%r1, %d; add.u64 %%d2, %%d2, %%d1;
		again: ld.global.u32 %%r4, [%%d2]; setp.ne.u32 %%p1, %%r4, 0;
		%s
		%s st.global.u32 [%%d2], %%r6; add.u64 %%d2, %%d2, 4;
		add.u32 %%r5, %%r5, 1; setp.lt.u32 %%p1, %%r5, %d;
		@%%p1 bra again;
		end: ret; }`, members, 4*rounds, line, write, rounds))
	memory := make([]byte, 4*rounds*threads)
	var counts [rounds]uint32
	for round := range rounds {
		chosen := rnd.IntN(members)
		for thread := range members {
			holds := [...]bool{true, false, thread == chosen, rnd.IntN(2) == 0}[round]
			binary.LittleEndian.PutUint32(memory[4*(thread*rounds+round):], uint32(btoi(holds)))
			counts[round] += uint32(btoi(holds != (not == "!")))
		}
	}
	require.NoError(t, k.Run(launch(1, uint32(threads), interp.Bytes{0x10000: memory}, uint64(0x10000))), name)
	for thread := range members {
		for round, count := range counts {
			want := count
			switch {
			case strings.Contains(name, ".and"):
				want = uint32(btoi(count == uint32(members)))
			case strings.Contains(name, ".or"):
				want = uint32(btoi(count > 0))
			}
			require.Equal(t, want, wordAt(memory, thread*rounds+round), "%s%s, round %d, thread %d", not, name, round, thread)
		}
	}
}

// Threads that match have the masks of equal values, of all and of any, whichever bit differs and whichever threads take part.
func TestMatchesOfRandomValues(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(21, 22))
	for _, width := range []int{32, 64} {
		k := compile(t, prelude+fmt.Sprintf(`mul.wide.u32 %%d3, %%r1, 16; add.u64 %%d1, %%d1, %%d3; ld.global.u64 %%d4, [%%d1]; ld.global.u32 %%r4, [%%d1+8];
			shr.u32 %%r5, %%r4, %%r1; and.b32 %%r5, %%r5, 1; setp.eq.u32 %%p1, %%r5, 0; @%%p1 ret;
			%s
			match.any.sync.b%[2]d %%r7, %%%[3]s, %%r4; match.all.sync.b%[2]d %%r8|%%p2, %%%[3]s, %%r4; selp.u32 %%r9, 1, 0, %%p2;
			st.global.u32 [%%d1], %%r7; st.global.u32 [%%d1+4], %%r8; st.global.u32 [%%d1+8], %%r9; ret; }`,
			"cvt.u32.u64 %r6, %d4;", width, map[int]string{32: "r6", 64: "d4"}[width]))
		for range 100 {
			members := rnd.Uint32() | 1<<rnd.IntN(32)
			base, other := rnd.Uint64(), uint64(1)<<rnd.IntN(width)
			var values [32]uint64
			memory := make([]byte, 16*32)
			rare := rnd.IntN(40)
			for n := range values {
				if values[n] = base; n == rare || rare > 35 && rnd.IntN(2) == 0 {
					values[n] ^= other
				}
				binary.LittleEndian.PutUint64(memory[16*n:], values[n])
				binary.LittleEndian.PutUint32(memory[16*n+8:], members)
			}
			require.NoError(t, k.Run(launch(1, 32, interp.Bytes{0x10000: memory}, uint64(0x10000))))
			for n := range values {
				if members>>n&1 == 0 {
					continue
				}
				var equal uint32
				for m := range values {
					if members>>m&1 != 0 && values[m] == values[n] {
						equal |= 1 << m
					}
				}
				all := uint32(0)
				if equal == members {
					all = members
				}
				want := [3]uint32{equal, all, uint32(btoi(all != 0))}
				require.Equal(t, want, [3]uint32{wordAt(memory, 4*n), wordAt(memory, 4*n+1), wordAt(memory, 4*n+2)}, "thread %d of %#x, %d bits, values %#x", n, members, width, values)
			}
		}
	}
}
