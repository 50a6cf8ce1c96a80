package interp_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// A loop that waits at a barrier each time ends, too; past the limit it would leave the memory.
func TestLoopsAroundBarriers(t *testing.T) {
	t.Parallel()
	f := runFault(t, 1, 64, `mov.u32 %r4, 0;
again: bar.sync 0;
		add.u32 %r4, %r4, 1;
		shr.u32 %r5, %r4, 7;
		cvt.u64.u32 %d2, %r5;
		add.u64 %d2, %d2, %d1;
		ld.global.u8 %r6, [%d2];
		bra again;`)
	require.NotNil(t, f)
	assert.Equal(t, interp.InstructionLimit.String(), f.Kind.String())
}

// A warp may execute as many instructions as the launch allows, and no more, also where these are whole turns.
func TestTheLimitOfInstructions(t *testing.T) {
	t.Parallel()
	for _, rounds := range []int64{0, 1, 5, 4000, 10921} {
		k := compile(t, header+`.visible .entry k(.param .u32 n) { .reg .b32 %r<2>; .reg .pred %p; ld.param.u32 %r1, [n]; bra next;
	again: sub.u32 %r1, %r1, 1;
	next: setp.ne.u32 %p, %r1, 0;
	@%p bra again;
	ret; }`)
		count := 5 + 3*rounds
		for limit, want := range map[int64]error{count: nil, count + 1: nil, count - 1: interp.InstructionLimit, 1: interp.InstructionLimit} {
			l := launch(2, 64, nil, uint32(rounds)) //nolint:gosec // small
			l.MaxInstructions = limit
			require.ErrorIs(t, k.Run(l), want, "%d of %d", limit, count)
		}
	}
}

// Single precision rounded from double precision is not always right: here double precision rounds to a tie, whichever of the product and
// the addend is larger, with all signs.
func TestFmaIsRoundedOnce(t *testing.T) {
	t.Parallel()
	k := compile(t, header+`.visible .entry k(.param .u64 x, .param .f32 a, .param .f32 b, .param .f32 c) {
	.reg .f32 %f<4>; .reg .b64 %d;
	ld.param.f32 %f1, [a]; ld.param.f32 %f2, [b]; ld.param.f32 %f3, [c]; ld.param.u64 %d, [x];
	fma.rn.f32 %f1, %f1, %f2, %f3; st.global.f32 [%d], %f1; ret; }`)
	for name, c := range map[string]struct{ a, b, c, want float32 }{
		"a larger product": {1 + 0x1p-12, 1 + 0x1p-12, 0x1p-60, 1 + 0x1p-11 + 0x1p-23},          // 1 + 2^-11 + 2^-24 is a tie; the rest is above it
		"a larger addend":  {0x1p-12 + 0x1p-35, 0x1p-12 - 0x1p-35, 1 + 0x1p-23, 1 + 0x1p-23},    // 1 + 2^-23 + 2^-24 is a tie; the rest is below it
		"another sign":     {-(0x1p-12 + 0x1p-35), 0x1p-12 - 0x1p-35, 1 + 0x1p-22, 1 + 0x1p-22}, // and above it
		"both negative":    {0x1p-12 + 0x1p-35, -(0x1p-12 - 0x1p-35), -(1 + 0x1p-23), -(1 + 0x1p-23)},
	} {
		out := make([]byte, 4)
		require.NoError(t, k.Run(launch(1, 1, interp.Bytes{4096: out}, uint64(4096), c.a, c.b, c.c)))
		assert.Equal(t, math.Float32bits(c.want), math.Float32bits(floatAt(out, 0)), name)
	}
}

// A vote of threads that arrive one after the other has the predicate of each, negated where the text says so.
func TestVotesOfPredicatesAndTheirNegations(t *testing.T) {
	t.Parallel()
	for predicate, want := range map[string]uint32{"%p1": 0x0000_0fff, "!%p1": 0xffff_f000} {
		words := runWarp(t, `setp.lt.u32 %p1, %r1, 12; setp.lt.u32 %p2, %r1, 7;
			@%p2 bra MEET;
			add.u32 %r4, %r1, 1;
			MEET: vote.sync.ballot.b32 %r4, `+predicate+`, 0xffffffff; st.global.u32 [%d2], %r4; ret;`)
		for n := range 32 {
			assert.Equal(t, want, words[n], predicate)
		}
	}
}

// Shuffles in segments of eight threads: the table follows the pseudocode in the PTX manual.
func TestShuffles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode        string
		b, segments uint32 // segments: the third operand
		from        func(lane int) (int, bool)
	}{
		{"down", 3, 0x181f, func(lane int) (int, bool) { return lane + 3, lane%8+3 < 8 }},
		{"down", 16, 31, func(lane int) (int, bool) { return lane + 16, lane < 16 }},
		{"up", 3, 0x1800, func(lane int) (int, bool) { return lane - 3, lane%8 >= 3 }},
		{"bfly", 4, 0x181f, func(lane int) (int, bool) { return lane ^ 4, true }},
		{"bfly", 8, 0x181f, func(lane int) (int, bool) { return lane ^ 8, lane&8 != 0 }},
		{"idx", 5, 0x181f, func(lane int) (int, bool) { return lane&^7 | 5, true }},
		{"idx", 5, 3, func(int) (int, bool) { return 5, false }},
	} {
		text := header + fmt.Sprintf(`.visible .entry k(.param .u64 x) {
	.reg .b32 %%r<6>; .reg .b64 %%d<3>; .reg .pred %%p;
	ld.param.u64 %%d1, [x]; mov.u32 %%r1, %%tid.x; mul.wide.u32 %%d2, %%r1, 8; add.u64 %%d1, %%d1, %%d2;
	shfl.sync.%s.b32 %%r2|%%p, %%r1, %d, %d, 0xffffffff;
	selp.u32 %%r3, 1, 0, %%p; st.global.v2.u32 [%%d1], {%%r2, %%r3}; ret; }`, c.mode, c.b, c.segments)
		out := make([]byte, 256)
		require.NoError(t, compile(t, text).Run(launch(1, 32, interp.Bytes{4096: out}, uint64(4096))))
		for lane := range 32 {
			from, inRange := c.from(lane)
			if !inRange {
				from = lane
			}
			assert.Equal(t, []uint32{uint32(from), uint32(btoi(inRange))}, []uint32{wordAt(out, 2*lane), wordAt(out, 2*lane+1)},
				"%s %d %#x, thread %d", c.mode, c.b, c.segments, lane)
		}
	}
}
