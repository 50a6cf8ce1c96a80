package interp_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// Registers that nobody wrote are no mistake where nothing depends on them: they are moved, computed with, shuffled,
// selected away.
func TestUndefinedRegistersThatNothingDependsOn(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{ // %r7 is stored and is the thread, %r1
		"a broadcast of the only thread that has a value": `setp.eq.u32 %p1, %r1, 0;
			@%p1 mov.u32 %r4, 0;
			shfl.sync.idx.b32 %r5, %r4, 0, 31, 0xffffffff;
			add.u32 %r7, %r5, %r1;`,
		"a predicated load that is moved, shuffled and added": `setp.lt.u32 %p1, %r1, 2;
			@%p1 ld.global.b32 %r4, [%d2];
			mov.b32 %f1, %r4;
			shfl.sync.bfly.b32 %r5, %r4, 1, 31, 0xffffffff;
			mov.b32 %f2, %r5;
			add.rn.f32 %f1, %f1, %f2; cvt.rzi.u32.f32 %r6, %f1;
			selp.b32 %r6, %r6, 0, %p1;
			add.u32 %r7, %r6, %r1;`,
		"an implicit definition that is selected away": `setp.eq.u32 %p1, %r1, %r1;
			mov.b32 %r5, %r4;
			selp.b32 %r7, %r1, %r5, %p1;`,
		"a pair of which one half is used": `cvt.u16.u32 %h1, %r1;
			mov.b32 %r5, {%h1, %h2};
			mov.b32 {%h3, %h2}, %r5;
			cvt.u32.u16 %r7, %h3;`,
		"a half that is shifted, masked and put in": `cvt.u16.u32 %h1, %r1;
			mov.b32 %r5, {%h2, %h1};
			shr.u32 %r6, %r5, 16; and.b32 %r4, %r5, 0xffff0000; shr.u32 %r4, %r4, 16;
			prmt.b32 %r8, %r5, %r5, 0x3232; bfe.u32 %r8, %r8, 0, 16;
			bfi.b32 %r9, %r6, %r5, 0, 16; cvt.u32.u16 %r9, %r9;
			min.u32 %r7, %r4, %r6; min.u32 %r7, %r7, %r8; min.u32 %r7, %r7, %r9;`,
		"a word of 64 bits with one half": `mov.b64 %d4, {%r1, %r4};
			cvt.u32.u64 %r7, %d4;`,
		"bits that another operand decides": `mov.u32 %r5, 0;
			and.b32 %r6, %r4, %r5; not.b32 %r8, %r5; or.b32 %r8, %r4, %r8; add.u32 %r8, %r8, 1;
			add.u32 %r7, %r6, %r1; add.u32 %r7, %r7, %r8;`,
		"a predicate that another one decides": `setp.ne.u32 %p1, %r1, %r1;
			setp.eq.u32 %p2, %r4, 0;
			and.pred %p3, %p1, %p2;
			setp.eq.and.u32 %p2, %r4, 0, %p1; or.pred %p3, %p3, %p2;
			mov.u32 %r7, %r1;
			@%p3 mov.u32 %r7, 7;`,
		"a register that was undefined once": `mov.u32 %r5, %r4;
			add.u32 %r7, %r5, 1;
			mov.u32 %r7, %r1;`,
		"one of several, in the threads that have it": `setp.lt.u32 %p1, %r1, 16;
			@%p1 mov.u32 %r4, %r1;
			mov.u32 %r5, %r4;
			mov.u32 %r7, %r1;
			@%p1 mov.u32 %r7, %r5;`,
		"memory of the thread, copied as a whole": `.local .align 8 .b8 pair[16];
			st.local.u32 [pair], %r1;
			ld.local.u64 %d4, [pair]; st.local.u64 [pair+8], %d4;
			ld.local.u32 %r7, [pair+8];`,
		"collectives after a shuffle whose result nobody needs": `setp.lt.u32 %p1, %r1, 16;
			@%p1 mov.u32 %r4, %r1;
			shfl.sync.down.b32 %r5, %r4, 1, 31, 0xffffffff;
			shfl.sync.idx.b32 %r7, %r1, %r1, 31, 0xffffffff;
			shfl.sync.down.b32 %r5, %r4, 1, 31, 0xffffffff;
			vote.sync.ballot.b32 %r6, %p1, 0xffffffff;
			shfl.sync.down.b32 %r5, %r4, 1, 31, 0xffffffff;
			redux.sync.max.u32 %r8, %r1, 0xffffffff;
			shfl.sync.down.b32 %r5, %r4, 1, 31, 0xffffffff;
			match.any.sync.b32 %r9, %r1, 0xffffffff;
			popc.b32 %r6, %r6; popc.b32 %r9, %r9; add.u32 %r6, %r6, %r9; sub.u32 %r6, %r6, 17; sub.u32 %r8, %r8, 31;
			add.u32 %r7, %r7, %r6; add.u32 %r7, %r7, %r8;`,
		"an undefined value that is stored in memory of the thread": `.local .align 8 .b8 pair[16];
			mov.u64 %d5, pair; cvta.local.u64 %d5, %d5;
			st.v2.u32 [%d5], {%r4, %r1};
			ld.v2.u32 {%r5, %r7}, [%d5];`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n, word := range runWarp(t, body+"\nst.global.u32 [%d2], %r7; ret;") {
				require.Equal(t, uint32(n), word) //nolint:gosec // small
			}
		})
	}
}

// In lockstep, too, a shuffle needs no more than the values that it moves to threads that use them.
func TestUndefinedValuesInLockstep(t *testing.T) {
	t.Parallel()
	k := compile(t, ".version 6.0\n.target sm_60\n.address_size 64\n"+`.visible .entry k(.param .u64 x) {
	.reg .b32 %first, %r<8>; .reg .b64 %d<3>; .reg .pred %p<3>;
	setp.eq.u32 %p2, 0, 1;
	@%p2 mov.u32 %first, 1;
	mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 7;
	@%p1 mov.u32 %r2, 5;
	shfl.idx.b32 %r3, %r2, 7, 31;
	vote.ballot.b32 %r4, %p1;
	add.u32 %r3, %r3, %r4;
	ld.param.u64 %d1, [x]; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r3; ret; }`)
	out := make([]byte, 128)
	require.NoError(t, k.Run(launch(1, 32, interp.Bytes{0x10000: out}, uint64(0x10000))))
	for n := range 32 {
		assert.Equal(t, uint32(5+1<<7), wordAt(out, n))
	}
}

// An instruction that depends on a register that nobody wrote is a fault, which names the register.
func TestUndefinedRegistersThatMatter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body   string
		line   int
		thread uint32
		detail string
	}{
		"a store": {`mov.u32 %r5, %r4;
			st.global.u32 [%d2], %r5; ret;`, 1, 0, "register %r5 is undefined: register %r4 was not written"},
		"a store in shared memory": {`st.shared.u32 [%r3], %r4; ret;`, 0, 0, "register %r4 was not written"},
		"a store of a pair with an undefined half": {`cvt.u16.u32 %h1, %r1;
			mov.b32 %r5, {%h1, %h2};
			st.global.u32 [%d2], %r5; ret;`, 2, 0, "register %r5 is undefined: register %h2 was not written"},
		"an address": {`add.u64 %d4, %d5, 8;
			ld.global.u32 %r5, [%d4]; ret;`, 1, 0, "register %d4 is undefined: register %d5 was not written"},
		"an address of a store in memory of the thread": {`.local .align 4 .b8 own[4];
			st.local.u32 [%r4], %r1; ret;`, 1, 0, "register %r4 was not written"},
		"a condition": {`add.u32 %r5, %r4, %r1;
			setp.eq.u32 %p1, %r5, 3;
			@%p1 bra out;
			out: ret;`, 2, 0, "register %p1 is undefined: register %r4 was not written"},
		"a predicated instruction": {`setp.eq.u32 %p1, %r1, 5;
			@!%p1 setp.eq.u32 %p2, %r1, 5;
			not.pred %p3, %p2;
			@%p3 mov.u32 %r5, 1;
			ret;`, 3, 5, "register %p3 is undefined: register %p2 was not written"},
		"a vote": {`setp.eq.u32 %p1, %r4, 5;
			vote.sync.any.pred %p2, %p1, 0xffffffff; ret;`, 1, 0, "register %p1 is undefined"},
		"a shuffle's lane": {`shfl.sync.idx.b32 %r5, %r1, %r4, 31, 0xffffffff; ret;`, 0, 0, "register %r4 was not written"},
		"the result of a shuffle from a thread without a value": {`setp.ne.u32 %p1, %r1, 3;
			@%p1 mov.u32 %r4, 1;
			shfl.sync.down.b32 %r5, %r4, 1, 31, 0xffffffff;
			st.global.u32 [%d2], %r5; ret;`, 3, 2, "register %r5 is undefined: register %r4 was not written"},
		"the result of a shuffle from a thread that has ended": {`setp.ge.u32 %p1, %r1, 16;
			@%p1 ret;
			shfl.sync.down.b32 %r5, %r1, 1, 31, 0xffffffff;
			st.global.u32 [%d2], %r5; ret;`, 3, 15, "register %r5 is undefined: line 12 reads a thread that takes no part"},
		"an atomic operation": {`red.global.add.u32 [%d1], %r4; ret;`, 0, 0, "register %r4 was not written"},
		"a selection by an undefined predicate": {`setp.eq.u32 %p1, %r4, 0;
			selp.b32 %r5, 1, 2, %p1;
			st.global.u32 [%d2], %r5; ret;`, 2, 0, "register %r5 is undefined: register %r4 was not written"},
		"memory of the thread that nobody wrote": {`.local .align 4 .b8 own[8];
			st.local.u32 [own], %r1;
			ld.local.v2.u32 {%r4, %r5}, [own];
			st.global.u32 [%d2], %r4;
			st.global.u32 [%d2], %r5; ret;`, 4, 0, "register %r5 is undefined: line 12 loads memory of the thread that was not written"},
		"a sign that is undefined": {`cvt.u16.u32 %h1, %r1;
			mov.b32 %r5, {%h1, %h2};
			shr.s32 %r5, %r5, 31;
			st.global.u32 [%d2], %r5; ret;`, 3, 0, "register %h2 was not written"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := runFault(t, 1, 32, c.body)
			require.NotNil(t, f, "nothing was found")
			assert.Equal(t, interp.Uninitialised, f.Kind)
			assert.Equal(t, c.line, f.Line-firstLine, f.Error())
			assert.Equal(t, c.thread, f.Thread.X, f.Error())
			assert.Contains(t, f.Detail, c.detail)
		})
	}
}

// An argument that a function does not use may be undefined, and one that it uses is found where it matters.
func TestUndefinedArguments(t *testing.T) {
	t.Parallel()
	const text = header + `
.func (.param .b32 r) choose(.param .b32 a, .param .b32 b, .param .b32 first) {
	.reg .pred %p; .reg .b32 %r<5>;
	ld.param.u32 %r1, [a]; ld.param.u32 %r2, [b]; ld.param.u32 %r3, [first];
	setp.ne.u32 %p, %r3, 0;
	selp.b32 %r4, %r1, %r2, %p;
	st.param.b32 [r], %r4;
	ret;
}
.visible .entry k(.param .u64 x, .param .u32 n) {
	.reg .b32 %r<5>; .reg .b64 %d<2>;
	.param .b32 a; .param .b32 b; .param .b32 c; .param .b32 r;
	ld.param.u64 %d1, [x]; ld.param.u32 %r1, [n];
	st.param.b32 [a], 5; st.param.b32 [b], %r2; st.param.b32 [c], %r1;
	call (r), choose, (a, b, c);
	ld.param.b32 %r3, [r];
	st.global.u32 [%d1], %r3;
	ret;
}`
	k, out := compile(t, text), make([]byte, 4)
	launch := interp.Launch{
		Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: 1, Y: 1, Z: 1}, Params: params(uint64(0x10000), uint32(1)),
		Memory: interp.Bytes{0x10000: out},
	}
	require.NoError(t, k.Run(launch))
	assert.Equal(t, uint32(5), wordAt(out, 0))
	launch.Params = params(uint64(0x10000), uint32(0))
	err := k.Run(launch)
	require.ErrorIs(t, err, interp.Uninitialised)
	require.ErrorContains(t, err, "st.global.u32")
}

// The last step of a reduction as Triton writes it: two threads load partial sums, all shuffle and add, one stores.
func TestPredicatedLoadBeforeAShuffle(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/predicated_load_shuffle.ptx")
	require.NoError(t, err)
	out := make([]byte, 4)
	require.NoError(t, compile(t, string(text)).Run(interp.Launch{
		Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: 32, Y: 1, Z: 1}, Params: params(uint64(0x10000)),
		Memory: interp.Bytes{0x10000: out},
	}))
	assert.InDelta(t, 3, floatAt(out, 0), 0)
}
