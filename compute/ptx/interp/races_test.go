package interp_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// An atomic access of the reading thread does not hide unordered accesses of other threads.
func TestAtomicsThatAnotherOneHides(t *testing.T) {
	t.Parallel()
	err := runFile(t, "hidden_atomic.ptx", interp.Launch{
		Grid: interp.Dim3{X: 3, Y: 1, Z: 1}, Block: interp.Dim3{X: 1, Y: 1, Z: 1}, Params: params(uint64(0x10000), uint64(0x20000)),
		Memory: interp.Bytes{0x10000: make([]byte, 8), 0x20000: make([]byte, 4)},
	})
	var f *interp.Fault
	require.ErrorAs(t, err, &f)
	assert.Equal(t, interp.GlobalRace, f.Kind)
	assert.Contains(t, f.Instruction, "ld.global.u32")
	assert.Equal(t, uint32(2), f.Block.X)

	for name, c := range map[string]struct {
		body        string
		kind        interp.Kind
		line, other int
	}{
		"a counter that one thread sets to zero, without a barrier": {`mov.u32 %r5, tile;
			setp.eq.u32 %p1, %r1, 0;
			@%p1 st.shared.u32 [%r5], 0;
			atom.shared.add.u32 %r4, [%r5], 1;
			ret;`, interp.SharedRace, 3, 2},
		"a plain store after an ordered load that an atomic hides": {`mov.u32 %r5, %ctaid.x; setp.eq.u32 %p1, %r5, 0; setp.eq.and.u32 %p1, %r1, 0, %p1;
			setp.eq.u32 %p2, %r5, 1; setp.eq.and.u32 %p2, %r1, 0, %p2;
			@%p1 ld.relaxed.gpu.global.u32 %r6, [%d1];
			@%p2 red.global.add.u32 [%d1], 1;
			@%p2 st.global.u32 [%d1], 7;
			ret;`, interp.GlobalRace, 4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := runFault(t, 2, 64, c.body)
			require.NotNil(t, f, "nothing was found")
			assert.Equal(t, c.kind.String(), f.Kind.String(), f.Error())
			require.NotNil(t, f.Other)
			assert.Equal(t, []int{c.line, c.other}, []int{f.Line - firstLine, f.Other.Line - firstLine}, f.Error())
		})
	}
}

// The plain load of a loop around atom.cas is no race: the value is a guess that the loop confirms.
func TestLoopsAroundCompareAndSwap(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body   string
		blocks uint32
	}{
		"in global memory": {`ld.global.b32 %r4, [%d1];
			again: mov.b32 %r5, %r4;
			mov.b32 %f1, %r5; add.f32 %f1, %f1, 0f3FC00000; mov.b32 %r6, %f1;
			atom.global.cas.b32 %r4, [%d1], %r5, %r6;
			setp.ne.u32 %p1, %r4, %r5;
			@%p1 bra again;
			ret;`, 3},
		"in shared memory": {`mov.u32 %r7, tile; mov.u32 %r8, 0;
			setp.eq.u32 %p2, %r1, 0;
			@%p2 st.shared.u32 [%r7], %r8;
			bar.sync 0;
			ld.shared.b32 %r4, [%r7];
			again: mov.b32 %r5, %r4;
			mov.b32 %f1, %r5; add.f32 %f1, %f1, 0f3FC00000; mov.b32 %r6, %f1;
			atom.shared.cas.b32 %r4, [%r7], %r5, %r6;
			setp.ne.u32 %p1, %r4, %r5;
			@%p1 bra again;
			bar.sync 0;
			@!%p2 ret;
			ld.shared.u32 %r4, [%r7]; st.global.u32 [%d1], %r4;
			ret;`, 1},
		"that loads again in each round": {`again: ld.global.b32 %r4, [%d1];
			mov.b32 %f1, %r4; add.f32 %f1, %f1, 0f3FC00000; mov.b32 %r6, %f1;
			atom.global.cas.b32 %r5, [%d1], %r4, %r6;
			setp.ne.u32 %p1, %r4, %r5;
			@%p1 bra again;
			ret;`, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := make([]byte, 8)
			require.NoError(t, compile(t, prelude+c.body+"\n}").Run(interp.Launch{
				Grid: interp.Dim3{X: c.blocks, Y: 1, Z: 1}, Block: interp.Dim3{X: 64, Y: 1, Z: 1},
				Params: params(uint64(0x10000)), Memory: interp.Bytes{0x10000: out}, MaxInstructions: 100_000,
			}))
			assert.InDelta(t, 1.5*64*float64(c.blocks), math.Float32frombits(binary.LittleEndian.Uint32(out)), 0)
		})
	}
}

// A plain load that no atom.cas confirms stays a race with atomics, and so do plain stores.
func TestPlainAccessesBesideCompareAndSwap(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body        string
		line, other int
	}{
		"a load whose value is used as it is": {`atom.global.cas.b32 %r4, [%d1], 5, 6;
			ld.global.u32 %r5, [%d1];
			st.global.u32 [%d2+256], %r5;
			ret;`, 1, 0},
		"a load that another thread's atomic comes behind": {`setp.eq.u32 %p1, %r1, 40;
			@!%p1 ld.global.u32 %r5, [%d1];
			@%p1 atom.global.cas.b32 %r4, [%d1], 0, 6;
			ret;`, 2, 1},
		"a swap that compares with another value": {`ld.global.b32 %r4, [%d1]; add.u32 %r5, %r4, 1;
			atom.global.cas.b32 %r6, [%d1], %r5, 7;
			ret;`, 1, 0},
		"a store": {`setp.eq.u32 %p1, %r1, 40;
			@!%p1 atom.global.cas.b32 %r4, [%d1], 0, 6;
			@%p1 st.global.u32 [%d1], %r1;
			ret;`, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := runFault(t, 1, 64, c.body)
			require.NotNil(t, f, "nothing was found")
			assert.Equal(t, interp.GlobalRace, f.Kind, f.Error())
			require.NotNil(t, f.Other)
			assert.Equal(t, []int{c.line, c.other}, []int{f.Line - firstLine, f.Other.Line - firstLine}, f.Error())
		})
	}
}

// The reduction of CUDA's samples whose last block reads the words of all blocks has no fence after its atomic: a
// barrier stands for it, but where the launch is strict.
func TestLastBlockReads(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		out := make([]byte, 16)
		err := runFile(t, "last_block_threadfence.ptx", interp.Launch{
			Grid: interp.Dim3{X: 4, Y: 1, Z: 1}, Block: interp.Dim3{X: 64, Y: 1, Z: 1}, Params: params(uint64(0x10000), uint64(0x20000)),
			Memory: interp.Bytes{0x10000: make([]byte, 16), 0x20000: out}, Strict: strict,
		})
		if strict {
			require.ErrorIs(t, err, interp.GlobalRace)
			require.ErrorContains(t, err, "a fence is missing after the atomic access")
			continue
		}
		require.NoError(t, err)
		for n := range uint32(4) {
			assert.Equal(t, n, wordAt(out, int(n)))
		}
	}
}

// A missing barrier between volatile accesses is found where the launch is strict, and only there.
func TestVolatileAccesses(t *testing.T) {
	t.Parallel()
	k := compile(t, prelude+`st.volatile.shared.u32 [%r3], %r1;
		xor.b32 %r4, %r2, 4; mov.u32 %r5, tile; add.u32 %r5, %r5, %r4;
		ld.volatile.shared.u32 %r6, [%r5];
		st.global.u32 [%d2], %r6;
		ret;
	}`)
	launch := interp.Launch{
		Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: 32, Y: 1, Z: 1}, Params: params(uint64(0x10000)),
		Memory: interp.Bytes{0x10000: make([]byte, 128)},
	}
	require.NoError(t, k.Run(launch))
	launch.Strict = true
	require.ErrorIs(t, k.Run(launch), interp.SharedRace)
}
