package interp_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
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
		"of eight bytes": {`ld.global.b64 %d3, [%d1];
			again: mov.b64 {%r4, %r8}, %d3;
			mov.b32 %f1, %r4; add.f32 %f1, %f1, 0f3FC00000; mov.b32 %r6, %f1;
			mov.b64 %d4, {%r6, %r8};
			atom.global.cas.b64 %d5, [%d1], %d3, %d4;
			setp.ne.u64 %p1, %d5, %d3;
			mov.b64 %d3, %d5;
			@%p1 bra again;
			ret;`, 3},
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

// A missing barrier between volatile accesses of two warps is found where the launch is strict, and only there. One between
// threads of a warp is a kind of its own, where warps do not run in lockstep.
func TestVolatileAccesses(t *testing.T) {
	t.Parallel()
	run := func(target string, distance int, barrier string, change func(*interp.Launch)) error {
		text := prelude + fmt.Sprintf(`st.shared.u32 [%%r3], 99; bar.sync 0; st.volatile.shared.u32 [%%r3], %%r1;
			%s xor.b32 %%r4, %%r2, %d; mov.u32 %%r5, tile; add.u32 %%r5, %%r5, %%r4;
			ld.volatile.shared.u32 %%r6, [%%r5];
			st.global.u32 [%%d2], %%r6;
			ret;
		}`, barrier, distance)
		l := launch(1, 64, interp.Bytes{0x10000: make([]byte, 256)}, uint64(0x10000))
		if change != nil {
			change(&l)
		}
		return compile(t, strings.Replace(text, ".target sm_90", ".target "+target, 1)).Run(l)
	}
	strict := func(l *interp.Launch) { l.Strict = true }
	for _, target := range []string{"sm_60", "sm_70", "sm_90"} {
		require.NoError(t, run(target, 128, "", nil), "other warps")
		require.ErrorIs(t, run(target, 128, "", strict), interp.SharedRace)
		require.ErrorIs(t, run(target, 4, "", strict), interp.SharedRace)
		require.NoError(t, run(target, 4, "", func(l *interp.Launch) { l.Ignore = []interp.Kind{interp.WarpRace} }))
		require.NoError(t, run(target, 4, "bar.warp.sync -1;", nil))
		require.NoError(t, run(target, 4, "bar.sync 0;", nil))
	}
	require.NoError(t, run("sm_60", 4, "", nil), "in lockstep")
	err := run("sm_70", 4, "", nil)
	require.ErrorIs(t, err, interp.WarpRace)
	require.ErrorContains(t, err, "a bar.warp.sync is missing")
	f, ok := errors.AsType[*interp.Fault](err)
	require.True(t, ok)
	assert.Equal(t, f.Thread.X^1, f.Other.Thread.X)
}

// Threads of a warp that meet in pairs are ordered along the chain of pairs, and those that no chain joins are not.
func TestChainsOfThreadsThatMeet(t *testing.T) {
	t.Parallel()
	meet := func(masks ...int) (text string) {
		for _, m := range masks {
			text += fmt.Sprintf("shr.u32 %%r4, %d, %%r1; and.b32 %%r4, %%r4, 1; setp.eq.u32 %%p1, %%r4, 1; @%%p1 bar.warp.sync %d;\n", m, m)
		}
		return text
	}
	for name, c := range map[string]struct {
		masks   []int
		ordered bool
	}{
		"one pair": {[]int{0b1001}, true}, "a chain": {[]int{0b0011, 0b0110, 0b1100}, true}, "down and up": {[]int{0b10001, 0b10010, 0b1010}, true},
		"through a group": {[]int{0b0011, 0b1110}, true}, "a pair too late": {[]int{0b0011, 0b1100, 0b0110}, false}, "a gap": {[]int{0b0011, 0b1100}, false}, "none": {nil, false},
	} {
		f := runFault(t, 1, 32, "mov.u32 %r3, tile; setp.eq.u32 %p2, %r1, 0; setp.eq.u32 %p3, %r1, 3;\n@%p2 st.shared.u32 [%r3], 7;\n"+meet(c.masks...)+"@%p3 ld.shared.u32 %r5, [%r3];\nret;")
		if c.ordered {
			require.Nil(t, f, name)
			continue
		}
		require.NotNil(t, f, name)
		assert.Equal(t, interp.SharedRace.String(), f.Kind.String(), name)
	}
}

// A volatile access of a warp without lockstep races with each earlier one of another thread that conflicts: with the last store, with the last
// load, and with a load before it.
func TestVolatileAccessesRaceWithEachEarlierOne(t *testing.T) {
	t.Parallel()
	const load, store = "ld.volatile.shared.u32 %r4, [%r3];\n", "st.volatile.shared.u32 [%r3], %r1;\n"
	for name, body := range map[string]string{
		"a store": "@%p1 " + store + "@%p2 " + load, "a load": "@%p1 " + load + "@%p2 " + store, "a load before its own": "@%p1 " + load + "@%p2 " + load + "@%p2 " + store,
		"another store": "@%p1 " + store + "@%p2 " + store,
	} {
		f := runFault(t, 1, 32, "mov.u32 %r3, tile; setp.eq.u32 %p1, %r1, 4; setp.eq.u32 %p2, %r1, 5; setp.eq.u32 %p3, %r1, 0;\n@%p3 st.shared.u32 [%r3], 99; bar.sync 0;\n"+body+"ret;")
		require.NotNil(t, f, name)
		assert.Equal(t, interp.WarpRace.String(), f.Kind.String(), name)
		require.NotNil(t, f.Other, name)
		assert.Equal(t, []uint32{5, 4}, []uint32{f.Thread.X, f.Other.Thread.X}, name)
	}
}

// A non-coherent load of memory that the launch stores is found, whichever comes first and whichever block stores.
func TestNonCoherentLoads(t *testing.T) {
	t.Parallel()
	const (
		load  = "ld.global.nc.u32 %r4, [%d2];"
		store = "st.global.u32 [%d2], %r1;"
	)
	for name, c := range map[string]struct {
		blocks uint32
		text   string
		want   error
	}{
		"before":        {1, load + "\n" + store + "ret;", interp.NonCoherent},
		"after":         {1, store + "\n" + load + "ret;", interp.NonCoherent},
		"atomic":        {1, load + "\nred.global.add.u32 [%d2], 1; ret;", interp.NonCoherent},
		"another block": {2, "mov.u32 %r5, %ctaid.x; setp.eq.u32 %p1, %r5, 0; @%p1 " + load + "\n@!%p1 " + store + "ret;", interp.NonCoherent},
		"later block":   {2, "mov.u32 %r5, %ctaid.x; setp.ne.u32 %p1, %r5, 0; @%p1 " + load + "\n@!%p1 " + store + "ret;", interp.NonCoherent},
		"elsewhere":     {2, "ld.global.nc.u32 %r4, [%d1+1024];\nadd.u64 %d2, %d2, 128;mov.u32 %r5, %ctaid.x; setp.eq.u32 %p1, %r5, 0; @%p1 " + store + "ret;", nil},
		"coherent":      {1, "ld.global.u32 %r4, [%d2];\n" + store + "ret;", nil},
	} {
		k := compile(t, prelude+c.text+"}")
		for _, ignore := range [][]interp.Kind{nil, {interp.GlobalRace}, {interp.NonCoherent}, {interp.GlobalRace, interp.NonCoherent}} {
			l := launch(c.blocks, 32, interp.Bytes{0x10000: make([]byte, 2048)}, uint64(0x10000))
			l.Ignore = ignore
			err := k.Run(l)
			if c.want == nil || slices.Contains(ignore, interp.NonCoherent) && (c.blocks == 1 || len(ignore) == 2) {
				require.NoError(t, err, "%s %v", name, ignore)
				continue
			}
			if slices.Contains(ignore, interp.NonCoherent) {
				require.ErrorIs(t, err, interp.GlobalRace, "%s %v", name, ignore)
				continue
			}
			f, ok := errors.AsType[*interp.Fault](err)
			require.True(t, ok, "%s %v: %v", name, ignore, err)
			require.Equal(t, interp.NonCoherent, f.Kind, "%s %v: %v", name, ignore, err)
			require.NotNil(t, f.Other)
			assert.NotEqual(t, f.Write, f.Other.Write, "%s: %v", name, f)
			assert.Equal(t, c.blocks > 1, f.Block != f.Other.Block, "%s: %v", name, f)
		}
	}
}

// A store races with the loads of a word that nothing orders before it, however many other loads came between: of the same thread of another
// block, of another warp, of threads that a barrier orders.
func TestAStoreRacesWithEachOfManyLoads(t *testing.T) {
	t.Parallel()
	loaders := map[string]struct {
		text string
		of   func(thread, block int) bool
	}{
		"all":                    {"setp.ge.u32 %p1, %r1, 0;", func(int, int) bool { return true }},
		"the first of each warp": {"and.b32 %r5, %r1, 31; setp.eq.u32 %p1, %r5, 0;", func(thread, _ int) bool { return thread%32 == 0 }},
		"thread 1":               {"setp.eq.u32 %p1, %r1, 1;", func(thread, _ int) bool { return thread == 1 }},
		"the first block":        {"setp.eq.u32 %p1, %r4, 0;", func(_, block int) bool { return block == 0 }},
		"the last warps":         {"setp.ge.u32 %p1, %r1, 32;", func(thread, _ int) bool { return thread >= 32 }},
	}
	found := map[bool]int{}
	for name, load := range loaders {
		for _, threads := range []int{2, 64, 96} {
			for _, blocks := range []int{1, 3} {
				for _, barrier := range []string{"", "bar.warp.sync %r7;", "bar.sync 0;"} {
					for _, before := range []string{"", "bar.sync 0;"} {
						for _, space := range []string{"global", "shared"} {
							for n, storer := range []int{0, 1, threads - 1, threads - 1} {
								at := (blocks - 1) * min(n, 1) // the block that stores
								k := compile(t, prelude+fmt.Sprintf(`mov.u32 %%r4, %%ctaid.x; activemask.b32 %%r7; mov.u32 %%r3, tile; mov.u32 %%r6, 9;
									setp.eq.u32 %%p2, %%r1, %[1]d; @%%p2 st.shared.u32 [%%r3], 5; bar.sync 0;
									%[2]s %[3]s
									@%%p1 ld.%[4]s.u32 %%r5, [%[5]s]; %[6]s
									setp.eq.and.u32 %%p2, %%r4, %[7]d, %%p2;
									@%%p2 st.%[4]s.u32 [%[5]s], %%r6; ret; }`, storer, load.text, before, space, map[string]string{"global": "%d1", "shared": "%r3"}[space], barrier, at))
								want := false
								for block := range blocks {
									for thread := range threads {
										ordered := block == at && (thread == storer || barrier == "bar.sync 0;" || barrier != "" && thread/32 == storer/32)
										ordered = ordered || space == "shared" && block != at // it is memory of its own
										want = want || load.of(thread, block) && !ordered
									}
								}
								err := k.Run(launch(uint32(blocks), uint32(threads), interp.Bytes{0x10000: make([]byte, 64)}, uint64(0x10000))) //nolint:gosec // few
								require.Equal(t, want, err != nil, "%s of %d threads in %d blocks load from .%s; %q; thread %d stores: %v", name, threads, blocks, space, barrier, storer, err)
								found[want]++
							}
						}
					}
				}
			}
		}
	}
	require.Greater(t, found[true], 300)
	require.Greater(t, found[false], 300)
}
