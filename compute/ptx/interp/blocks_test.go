package interp_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// blockStep is a step of one thread of a block: a data access, an access to a flag that may order blocks, or a fence.
type blockStep struct {
	text          string // of the instruction; %s is the address
	read, write   bool
	strong, fence bool // fence: also of acquire and release
	releases      bool // the fence is in front of the access
	acquires      bool // the fence follows
}

var (
	dataSteps = []blockStep{
		{text: "ld.global.u32 %%r5, [%s]", read: true},
		{text: "st.global.u32 [%s], %d", write: true},
		{text: "ld.relaxed.gpu.global.u32 %%r5, [%s]", read: true, strong: true},
		{text: "st.relaxed.gpu.global.u32 [%s], %d", write: true, strong: true},
		{text: "red.global.add.u32 [%s], %d", read: true, write: true, strong: true},
	}
	flagSteps = []blockStep{
		{text: "ld.relaxed.gpu.global.u32 %%r5, [%s]", read: true, strong: true},
		{text: "st.relaxed.gpu.global.u32 [%s], %d", write: true, strong: true},
		{text: "atom.global.add.u32 %%r5, [%s], %d", read: true, write: true, strong: true},
		{text: "ld.acquire.gpu.global.u32 %%r5, [%s]", read: true, strong: true, fence: true, acquires: true},
		{text: "st.release.gpu.global.u32 [%s], %d", write: true, strong: true, fence: true, releases: true},
		{text: "membar.gl", fence: true},
		{text: "membar.gl", fence: true},
	}
)

// blockProgram is one acting thread for each block, and its steps in turn.
type blockProgram struct {
	threads int
	actors  []int
	steps   [][]blockStep
	words   [][]int // that each step touches; -1 none
}

// randomBlocks makes a program in which every data word is touched by up to four threads of different blocks.
func randomBlocks(rnd *rand.Rand) blockProgram {
	const flags = 2
	blocks := 2 + rnd.IntN(3)
	p := blockProgram{threads: 1 + rnd.IntN(96), steps: make([][]blockStep, blocks), words: make([][]int, blocks)}
	add := func(block int, s blockStep, word int) {
		p.steps[block], p.words[block] = append(p.steps[block], s), append(p.words[block], word)
	}
	pairs := 1 + rnd.IntN(2)
	type pending struct{ step, word int }
	data := make([][]pending, blocks)
	for n := range pairs {
		for _, block := range rnd.Perm(blocks)[:2+rnd.IntN(blocks-1)] {
			data[block] = append(data[block], pending{rnd.IntN(len(dataSteps)), flags + n})
		}
	}
	for block := range blocks {
		p.actors = append(p.actors, rnd.IntN(p.threads))
		for rest := data[block]; len(rest) > 0 || rnd.IntN(3) > 0; {
			if len(rest) > 0 && rnd.IntN(3) == 0 {
				add(block, dataSteps[rest[0].step], rest[0].word)
				rest = rest[1:]
				continue
			}
			add(block, flagSteps[rnd.IntN(len(flagSteps))], rnd.IntN(flags))
		}
	}
	return p
}

// text is the body of the kernel: each step under a predicate of its thread.
func (p blockProgram) text() string {
	var b strings.Builder
	b.WriteString("mov.u32 %r9, %ctaid.x;\n")
	value := 1
	for block, steps := range p.steps {
		fmt.Fprintf(&b, "setp.eq.u32 %%p1, %%r9, %d; setp.eq.and.u32 %%p1, %%r1, %d, %%p1;\n", block, p.actors[block])
		for n, s := range steps {
			text := s.text
			switch strings.Count(text, "%s") + strings.Count(text, "%d") {
			case 2: //nolint:mnd // an address and a value
				text = fmt.Sprintf(text, p.at(block, n), value)
				value = (5*value + 3) & 0xffffff // no sum of two is a third
			case 1:
				text = fmt.Sprintf(text, p.at(block, n))
			}
			fmt.Fprintf(&b, "@%%p1 %s;\n", text)
		}
	}
	b.WriteString("ret;")
	return b.String()
}

func (p blockProgram) at(block, step int) string {
	return fmt.Sprintf("%%d1+%d", 4*p.words[block][step])
}

// races compares every pair of accesses to a data word. A block that reads a variable, and then has a fence, sees the
// block that wrote the variable after a fence, as a whole.
func (p blockProgram) races() bool {
	seen := make([]map[int]bool, len(p.steps)) // by a block: at the step that is looked at
	passed := map[int]map[int]bool{}           // by a flag
	type was struct {
		block int
		blockStep
	}
	before := map[int][]was{}
	for block, steps := range p.steps {
		seen[block] = map[int]bool{}
		acquired, fenced := map[int]bool{}, false
		join := func(to, from map[int]bool) {
			for k := range from {
				to[k] = true
			}
		}
		for n, s := range steps {
			word := p.words[block][n]
			if s.text == "membar.gl" || s.releases {
				join(seen[block], acquired)
				fenced = true
			}
			if s.text == "membar.gl" {
				continue
			}
			if s.strong {
				if passed[word] == nil {
					passed[word] = map[int]bool{}
				}
				if s.read {
					join(acquired, passed[word])
				}
				if s.acquires {
					join(seen[block], acquired)
					fenced = true
				}
				if s.write && fenced {
					passed[word][block] = true
					join(passed[word], seen[block])
				}
			}
			for _, o := range before[word] {
				if o.block != block && (o.write || s.write) && (!o.strong || !s.strong) && !seen[block][o.block] {
					return true
				}
			}
			before[word] = append(before[word], was{block, s})
		}
	}
	return false
}

// Two accesses of different blocks to a word race exactly if nothing orders them, whichever threads and warps make them.
func TestRacesBetweenBlocksAgainstPairs(t *testing.T) {
	t.Parallel()
	found := map[bool]int{}
	for seed := range uint64(shorter(1500)) {
		p := randomBlocks(rand.New(rand.NewPCG(seed, 7))) //nolint:gosec // a test
		want := p.races()
		f := runFault(t, uint32(len(p.steps)), uint32(p.threads), p.text()) //nolint:gosec // few
		if f != nil {
			require.Equal(t, interp.GlobalRace.String(), f.Kind.String(), "seed %d: %v", seed, f)
			require.NotEqual(t, f.Block, f.Other.Block, "seed %d: %v", seed, f)
		}
		require.Equal(t, want, f != nil, "seed %d: %v\n%d threads\n%s", seed, f, p.threads, p.text())
		found[want]++
	}
	require.Greater(t, found[true], shorter(100))
	require.Greater(t, found[false], shorter(100))
}

// Blocks of one warp, without a barrier, race as larger ones do; the fault names both blocks.
func TestBlocksOfOneWarpRace(t *testing.T) {
	t.Parallel()
	for _, threads := range []uint32{1, 32, 33, 64} {
		f := runFault(t, 2, threads, "mov.u32 %r4, %ctaid.x;\nst.global.u32 [%d2], %r4;\nret;")
		require.NotNil(t, f, "%d threads", threads)
		require.Equal(t, interp.GlobalRace.String(), f.Kind.String())
		require.Equal(t, []interp.Dim3{{X: 1}, {X: 0}}, []interp.Dim3{f.Block, f.Other.Block})
		require.Equal(t, f.Thread, f.Other.Thread)
	}
	for _, threads := range []uint32{32, 64} { // in the last warp alone
		f := runFault(t, 3, threads, fmt.Sprintf(`mov.u32 %%r4, %%ctaid.x; setp.eq.u32 %%p1, %%r1, %d; setp.ne.and.u32 %%p1, %%r4, 1, %%p1;
			@%%p1 st.global.u32 [%%d2], %%r4;
			ret;`, threads-1))
		require.NotNil(t, f, "%d threads", threads)
		require.Equal(t, []interp.Dim3{{X: 2}, {X: 0}}, []interp.Dim3{f.Block, f.Other.Block})
	}
}
