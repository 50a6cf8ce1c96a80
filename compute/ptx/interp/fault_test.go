package interp_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/ptx/interp"
)

// prelude gives a kernel its registers: %r1 is the thread, %r2 its offset in words, %d1 the parameter.
const prelude = header + `
.visible .entry k(.param .u64 x) {
	.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .f32 %f<8>; .reg .b16 %h<4>;
	.shared .align 16 .b8 tile[1024];
	ld.param.u64 %d1, [x]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;
	cvt.u64.u32 %d2, %r2; add.u64 %d2, %d2, %d1; // line 8: the thread's word
`

// firstLine is the line of the first instruction after the prelude.
const firstLine = 10

// runFault executes a kernel with 64 threads in two blocks, and returns its fault.
func runFault(t *testing.T, blocks, threads uint32, body string) *interp.Fault {
	t.Helper()
	k := compile(t, prelude+body+"\n}")
	err := k.Run(interp.Launch{
		Grid: interp.Dim3{X: blocks, Y: 1, Z: 1}, Block: interp.Dim3{X: threads, Y: 1, Z: 1},
		Params: params(uint64(0x10000)), Memory: interp.Bytes{0x10000: make([]byte, 1024)}, MaxInstructions: 100_000,
	})
	kept(t, err, blocks, threads, body)
	if err == nil {
		return nil
	}
	var f *interp.Fault
	require.ErrorAs(t, err, &f)
	return f
}

// Each mistake in a kernel is found, with its kind, its line and the line of the other access.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body        string
		kind        interp.Kind
		line, other int // after the prelude, from 0; other -1: none
		thread      uint32
	}{
		"a missing barrier": {`st.shared.u32 [%r3], %r1;
			xor.b32 %r4, %r2, 128; mov.u32 %r5, tile; add.u32 %r5, %r5, %r4;
			ld.shared.u32 %r6, [%r5];
			ret;`, interp.SharedRace, 0, 2, 32},
		"a missing barrier in one warp": {`st.shared.u32 [%r3], %r1;
			xor.b32 %r4, %r2, 4; mov.u32 %r5, tile; add.u32 %r5, %r5, %r4;
			ld.shared.u32 %r6, [%r5];
			ret;`, interp.SharedRace, 2, 0, 0},
		"a missing barrier behind the loads": {`st.shared.u32 [%r3], %r1;
			bar.sync 0;
			xor.b32 %r4, %r2, 128; mov.u32 %r5, tile; add.u32 %r5, %r5, %r4;
			ld.shared.u32 %r6, [%r5];
			add.u32 %r6, %r6, 1;
			st.shared.u32 [%r3], %r6;
			ret;`, interp.SharedRace, 3, 5, 0},
		"a missing barrier in a loop": {`st.shared.u32 [%r3], %r1;
			mov.u32 %r4, 128;
			again: setp.ge.u32 %p1, %r2, %r4;
			@%p1 bra next;
			add.u32 %r5, %r3, %r4;
			ld.shared.u32 %r6, [%r5];
			st.shared.u32 [%r3], %r6;
			next: shr.u32 %r4, %r4, 1; setp.ne.u32 %p1, %r4, 0;
			@%p1 bra again;
			ret;`, interp.SharedRace, 5, 6, 0},
		"one too far": {`st.global.u32 [%d2+772], %r1;
			ret;`, interp.OutOfBounds, 0, -1, 63},
		"shared memory, one too far": {`st.shared.u32 [%r3+772], %r1;
			ret;`, interp.OutOfBounds, 0, -1, 63},
		"a wrong predicate": {`setp.gt.u32 %p1, %r1, 3;
			@!%p1 mov.u32 %r4, 1;
			st.global.u32 [%d2], %r4;
			ret;`, interp.Uninitialised, 2, -1, 4},
		"a predicate that was not written": {`setp.gt.u32 %p1, %r1, 3;
			@%p1 setp.eq.u32 %p2, %r1, 7;
			@%p2 mov.u32 %r4, 1;
			ret;`, interp.Uninitialised, 2, -1, 0},
		"a missing wait for a copy": {`cp.async.ca.shared.global [%r3], [%d2], 4;
			cp.async.commit_group;
			ld.shared.u32 %r4, [%r3];
			cp.async.wait_group 0;
			ret;`, interp.AsyncInFlight, 2, 0, 0},
		"a wait that leaves the last group": {`cp.async.ca.shared.global [%r3], [%d2], 4;
			cp.async.commit_group;
			cp.async.wait_group 1;
			ld.shared.u32 %r4, [%r3];
			ret;`, interp.AsyncInFlight, 3, 0, 0},
		"a misaligned source of a copy that nobody waits for": {`add.u64 %d2, %d2, 2;
			cp.async.ca.shared.global [%r3], [%d2], 4;
			ret;`, interp.Misaligned, 1, -1, 0},
		"a copy past shared memory that nobody waits for": {`cp.async.ca.shared.global [%r3+772], [%d2], 4;
			ret;`, interp.OutOfBounds, 0, -1, 63},
		"a missing barrier behind the wait": {`cp.async.ca.shared.global [%r3], [%d2], 4;
			cp.async.wait_all;
			xor.b32 %r4, %r2, 4; mov.u32 %r5, tile; add.u32 %r5, %r5, %r4;
			ld.shared.u32 %r4, [%r5];
			ret;`, interp.SharedRace, 3, 0, 0},
		"uninitialised shared memory": {`mov.u32 %r4, 0;
			ld.shared.u32 %r5, [%r3];
			ret;`, interp.Uninitialised, 1, -1, 0},
		"shared memory of another block": {`mov.u32 %r5, %ctaid.x; setp.eq.u32 %p1, %r5, 0;
			@%p1 st.shared.u32 [%r3], %r1;
			ld.shared.u32 %r4, [%r3];
			ret;`, interp.Uninitialised, 2, -1, 0},
		"a shuffle whose mask lacks the thread": {`shfl.sync.idx.b32 %r4, %r1, 0, 31, 0xfffffffe;
			ret;`, interp.DivergentWarp, 0, -1, 0},
		"a shuffle that half of the warp never reaches": {`setp.lt.u32 %p1, %r1, 16;
			@%p1 bra a;
			bar.sync 0;
			ret;
			a: shfl.sync.idx.b32 %r4, %r1, 0, 31, 0xffffffff;
			ret;`, interp.BarrierDeadlock, 2, 4, 32},
		"a shuffle from a thread that takes no part": {`setp.lt.u32 %p1, %r1, 16;
			@!%p1 ret;
			shfl.sync.idx.b32 %r4, %r1, 20, 31, 0xffffffff;
			st.global.u32 [%d2], %r4;
			ret;`, interp.Uninitialised, 3, -1, 0},
		"a barrier in one branch": {`setp.lt.u32 %p1, %r1, 16;
			@%p1 bra a;
			bar.sync 0;
			ret;
			a: bar.sync 0;
			ret;`, interp.DivergentBarrier, 4, 2, 0},
		"a bar.arrive in each branch": {`and.b32 %r4, %r1, 31; setp.lt.u32 %p1, %r4, 16; setp.lt.u32 %p2, %r1, 32;
			@!%p2 bra wait;
			@%p1 bra a;
			bar.arrive 1, 96;
			ret;
			a: bar.arrive 1, 96;
			ret;
			wait: bar.sync 1, 96;
			ret;`, interp.DivergentBarrier, 5, 3, 0},
		"a bar.arrive in one branch, and a barrier in the other": {`and.b32 %r4, %r1, 31; setp.lt.u32 %p1, %r4, 16;
			@%p1 bra a;
			bar.arrive 1, 96;
			bar.sync 0;
			ret;
			a: bar.sync 0;
			ret;`, interp.DivergentBarrier, 5, 2, 0},
		"a bar.arrive of half of a warp": {`and.b32 %r4, %r1, 31; setp.lt.u32 %p1, %r4, 16;
			@%p1 bar.arrive 1, 64;
			bar.sync 0;
			ret;`, interp.DivergentBarrier, 2, 1, 16},
		"a warp that arrives in two parts counts once": {`setp.lt.u32 %p1, %r1, 16; setp.lt.u32 %p2, %r1, 32;
			@!%p2 bra wait;
			mov.u32 %r4, 0;
			again: add.u32 %r4, %r4, 1;
			@!%p1 bra arrive;
			setp.lt.u32 %p3, %r4, 9000; @%p3 bra again;
			arrive: bar.arrive 1, 96;
			ret;
			wait: bar.sync 1, 96;
			ret;`, interp.BarrierDeadlock, 8, -1, 32},
		"a barrier that one warp waits at for nothing": {`setp.lt.u32 %p1, %r1, 32;
			@%p1 bar.sync 1, 64;
			bar.sync 0;
			ret;`, interp.BarrierDeadlock, 1, 2, 0},
		"threads of a warp at different barriers": {`and.b32 %r4, %r1, 1;
			bar.sync %r4;
			ret;`, interp.DivergentBarrier, 1, -1, 1},
		"warps at different barriers": {`shr.u32 %r4, %r1, 5;
			bar.sync %r4, 64;
			ret;`, interp.BarrierDeadlock, 1, 1, 0},
		"a shuffle and a vote that wait for each other": {`and.b32 %r4, %r1, 31; setp.lt.u32 %p1, %r4, 16;
			@%p1 bra a;
			vote.sync.ballot.b32 %r5, %p1, 0xffffffff;
			ret;
			a: shfl.sync.idx.b32 %r4, %r1, 0, 31, 0xffffffff;
			ret;`, interp.BarrierDeadlock, 4, 2, 0},
		"a thread at a barrier, and others that wait for threads of their warp": {`and.b32 %r4, %r1, 31; setp.lt.u32 %p1, %r4, 16; setp.eq.u32 %p2, %r1, 32;
			@%p2 barrier.sync 1, 64;
			@%p1 bra a;
			vote.sync.ballot.b32 %r5, %p1, 0xffffffff;
			ret;
			a: shfl.sync.idx.b32 %r4, %r1, 0, 31, 0xffffffff;
			ret;`, interp.BarrierDeadlock, 1, 5, 32},
		"a misaligned address": {`st.global.u32 [%d2+2], %r1;
			ret;`, interp.Misaligned, 0, -1, 0},
		"trap": {`setp.eq.u32 %p1, %r1, 5;
			@%p1 trap;
			ret;`, interp.Trap, 1, -1, 5},
		"brkpt": {`brkpt;
			ret;`, interp.Trap, 0, -1, 0},
		"an endless loop": {`mov.u32 %r4, 0;
			again: add.u32 %r4, %r4, 1;
			bra again;`, interp.InstructionLimit, 1, -1, 0},
		"two blocks store to one place": {`mov.u32 %r4, %ctaid.x; add.u32 %r4, %r4, %r1;
			st.global.u32 [%d2], %r4;
			ret;`, interp.GlobalRace, 1, 1, 0},
		"a block reads what another one wrote": {`mov.u32 %r4, %ctaid.x; setp.eq.u32 %p1, %r4, 0;
			@%p1 st.global.u32 [%d2], %r1;
			@!%p1 ld.global.u32 %r5, [%d2];
			ret;`, interp.GlobalRace, 2, 1, 0},
		"unwritten memory before a race of others": {`ld.shared.u32 %r5, [%r3+512];
			st.shared.u32 [tile], %r1;
			ret;`, interp.Uninitialised, 0, -1, 0},
		"a plain load beside atomics": {`red.global.add.u32 [%d1], 1;
			ld.global.u32 %r5, [%d1];
			ret;`, interp.GlobalRace, 1, 0, 0},
		"a store to parameters": {`mov.u64 %d3, x; cvta.param.u64 %d3, %d3;
			st.u32 [%d3], %r1;
			ret;`, interp.ReadOnly, 1, -1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := runFault(t, 2, 64, c.body)
			require.NotNil(t, f, "nothing was found")
			assert.Equal(t, c.kind.String(), f.Kind.String(), f.Error())
			assert.Equal(t, "k", f.Kernel)
			lines := []int{f.Line - firstLine}
			if f.Other != nil {
				lines = append(lines, f.Other.Line-firstLine)
			} else {
				lines = append(lines, -1)
			}
			assert.Equal(t, []int{c.line, c.other}, lines, f.Error())
			assert.Equal(t, c.thread, f.Thread.X, f.Error())
			assert.ErrorIs(t, f, c.kind)
		})
	}
}

// Kernels that look like mistakes and have none.
func TestNoFaults(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"a barrier": `st.shared.u32 [%r3], %r1;
			bar.sync 0;
			xor.b32 %r4, %r2, 128; mov.u32 %r5, tile; add.u32 %r5, %r5, %r4;
			ld.shared.u32 %r6, [%r5];
			bar.sync 0;
			st.shared.u32 [%r3], %r6;
			ret;`,
		"a sync of the warp": `st.shared.u32 [%r3], %r1;
			bar.warp.sync 0xffffffff;
			xor.b32 %r4, %r2, 4; mov.u32 %r5, tile; add.u32 %r5, %r5, %r4;
			ld.shared.u32 %r6, [%r5];
			ret;`,
		"a sync of a pair": `st.shared.u32 [%r3], %r1;
			and.b32 %r7, %r1, 30; mov.u32 %r8, 3; shl.b32 %r8, %r8, %r7;
			bar.warp.sync %r8;
			xor.b32 %r4, %r2, 4; mov.u32 %r5, tile; add.u32 %r5, %r5, %r4;
			ld.shared.u32 %r6, [%r5];
			ret;`,
		"a barrier after some have ended": `setp.gt.u32 %p1, %r1, 40;
			@%p1 ret;
			bar.sync 0;
			ret;`,
		"a barrier before some end": `setp.gt.u32 %p1, %r1, 40;
			@%p1 bra out;
			bar.sync 0;
			ret;
			out: ret;`,
		"a producer and a consumer": `setp.lt.u32 %p1, %r1, 32;
			@%p1 bra produce;
			bar.sync 1, 64;
			mov.u32 %r5, tile; ld.shared.u32 %r6, [%r5];
			ret;
			produce: st.shared.u32 [%r3], %r1;
			bar.arrive 1, 64;
			ret;`,
		"a producer whose threads come one after the other": `setp.lt.u32 %p1, %r1, 16; setp.lt.u32 %p2, %r1, 32;
			@!%p2 bra consume;
			mov.u32 %r4, 0;
			again: add.u32 %r4, %r4, 1;
			@!%p1 bra arrive;
			setp.lt.u32 %p3, %r4, 9000; @%p3 bra again;
			st.shared.u32 [tile], 7;
			arrive: bar.arrive 1, 64;
			ret;
			consume: bar.sync 1, 64;
			ld.shared.u32 %r6, [tile];
			ret;`,
		"a producer of which some threads end": `and.b32 %r4, %r1, 31; setp.lt.u32 %p1, %r4, 16; setp.lt.u32 %p2, %r1, 32;
			@!%p2 bra consume;
			@%p1 st.shared.u32 [%r3], %r1;
			@%p1 bar.arrive 1, 64;
			ret;
			consume: bar.sync 1, 64;
			ld.shared.u32 %r6, [tile];
			ret;`,
		"a lock between threads of a warp": `mov.u32 %r9, %ctaid.x; shl.b32 %r9, %r9, 7; cvt.u64.u32 %d4, %r9; add.u64 %d4, %d1, %d4;
			again: atom.global.cas.b32 %r4, [%d4], 0, 1;
			setp.ne.u32 %p1, %r4, 0;
			@%p1 bra again;
			membar.gl;
			ld.global.u32 %r5, [%d4+64]; add.u32 %r5, %r5, 1; st.global.u32 [%d4+64], %r5;
			membar.gl;
			atom.global.exch.b32 %r4, [%d4], 0;
			ret;`,
		"the last block reads what all wrote": `mov.u32 %r4, %ctaid.x; shl.b32 %r5, %r4, 8; cvt.u64.u32 %d3, %r5; add.u64 %d3, %d3, %d2;
			st.global.u32 [%d3], %r1;
			membar.gl;
			bar.sync 0;
			setp.ne.u32 %p1, %r1, 0;
			@%p1 ret;
			atom.global.add.u32 %r6, [%d1+1020], 1;
			setp.ne.u32 %p1, %r6, 1;
			@%p1 ret;
			membar.gl;
			ld.global.u32 %r7, [%d1+4]; ld.global.u32 %r7, [%d1+260];
			ret;`,
		"all threads write the same": `st.global.u32 [%d1], 7;
			ret;`,
		"two branches shuffle together": `setp.lt.u32 %p1, %r1, 16;
			@%p1 bra a;
			shfl.sync.idx.b32 %r4, %r1, 0, 31, 0xffffffff;
			ret;
			a: shfl.sync.idx.b32 %r5, %r1, 17, 31, 0xffffffff;
			ret;`,
		"a spin on a flag of another warp": `setp.lt.u32 %p1, %r1, 32;
			mov.u32 %r9, 0; mov.u32 %r8, tile;
			@%p1 bra wait;
			atom.shared.exch.b32 %r4, [%r8], 1;
			ret;
			wait: atom.shared.or.b32 %r4, [%r8], 0;
			setp.eq.u32 %p2, %r4, 0;
			@%p2 bra wait;
			ret;`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := runFault(t, 2, 64, body)
			if name == "a spin on a flag of another warp" { // atomics on memory without a value
				require.NotNil(t, f)
				assert.Equal(t, interp.Uninitialised, f.Kind)
				return
			}
			if f != nil {
				assert.Fail(t, f.Error())
			}
		})
	}
}

// A launch that cannot be is refused, and so is a kernel that cannot be executed.
func TestRefusals(t *testing.T) {
	t.Parallel()
	k := compile(t, ptxOfAdd)
	one := interp.Dim3{X: 1, Y: 1, Z: 1}
	for _, l := range []interp.Launch{
		{Grid: one, Block: interp.Dim3{X: 1025, Y: 1, Z: 1}, Params: make([]byte, 28)},
		{Grid: one, Block: interp.Dim3{X: 64, Y: 64, Z: 1}, Params: make([]byte, 28)},
		{Grid: one, Block: interp.Dim3{X: 1 << 31, Y: 1 << 31, Z: 4}, Params: make([]byte, 28)},
		{Grid: interp.Dim3{}, Block: one, Params: make([]byte, 28)},
		{Grid: one, Block: one, Params: make([]byte, 24)},
		{Grid: one, Block: one, Params: make([]byte, 28), SharedBytes: -1},
	} {
		require.ErrorIs(t, k.Run(l), interp.ErrLaunch)
	}
	asked := 0
	err := k.Run(interp.Launch{Grid: interp.Dim3{X: 100, Y: 1, Z: 1}, Block: one, Params: make([]byte, 28), Stop: func() bool { asked++; return asked > 3 }})
	require.ErrorIs(t, err, interp.ErrStopped)

	m, err := ptx.Parse(header + ".visible .entry k() {\n .reg .b32 %r<2>;\n add.u32 %r1, %r1;\n ret; }\n.visible .entry other() { ret; }")
	require.NoError(t, err)
	_, err = interp.Compile(m, "k")
	var found *ptx.CheckError
	require.ErrorAs(t, err, &found)
	assert.Equal(t, 6, found.Pos.Line)
	assert.Contains(t, found.Error(), "add.u32")
	_, err = interp.Compile(m, "other")
	require.NoError(t, err, "mistakes of another kernel do not count")
	_, err = interp.Compile(m, "nothing")
	require.True(t, errors.Is(err, interp.ErrNoKernel))
}
