package interp_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// gridSync is a barrier of the grid as cooperative groups have it, at the word [%d3]: the first block adds 0x80000000
// less the others, which add one each, and all wait until the sign changes. %p4 is the first thread of the block.
func gridSync(label string) string {
	return strings.ReplaceAll(`bar.sync 0;
	@!%p4 bra waitedN;
	mov.u32 %r10, 1; mov.u32 %r11, %ctaid.x; setp.ne.u32 %p5, %r11, 0;
	@%p5 bra arriveN;
	mov.u32 %r11, %nctaid.x; mov.u32 %r10, 0x80000001; sub.u32 %r10, %r10, %r11;
	arriveN: membar.gl;
	atom.global.add.u32 %r12, [%d3], %r10;
	spinN: ld.acquire.gpu.global.u32 %r13, [%d3];
	xor.b32 %r13, %r13, %r12; setp.ge.s32 %p5, %r13, 0;
	@%p5 bra spinN;
	waitedN: bar.sync 0;
`, "N", label)
}

// cooperative is a kernel in which each block writes a word for each thread, between the two texts reads the words of
// the next block, and writes them again.
func cooperative(between, after string) string {
	return header + `.visible .entry k(.param .u64 x, .param .u64 barrier) {
	.reg .pred %p<6>; .reg .b32 %r<16>; .reg .b64 %d<8>;
	ld.param.u64 %d1, [x]; ld.param.u64 %d3, [barrier];
	mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %nctaid.x;
	setp.eq.u32 %p4, %r1, 0;
	mad.lo.u32 %r5, %r2, %r3, %r1; mul.wide.u32 %d2, %r5, 4; add.u64 %d2, %d1, %d2;
	st.global.u32 [%d2], %r5;
	` + between + `
	add.u32 %r6, %r2, 1; rem.u32 %r6, %r6, %r4; mad.lo.u32 %r6, %r6, %r3, %r1; mul.wide.u32 %d4, %r6, 4; add.u64 %d4, %d1, %d4;
	ld.global.u32 %r7, [%d4];
	` + after + `
	st.global.u32 [%d2], %r7;
	ret;
}`
}

func runCooperative(t *testing.T, text string, blocks int, change func(l *interp.Launch)) ([]byte, error) {
	t.Helper()
	const threads = 40
	out := make([]byte, 4*threads*blocks)
	l := interp.Launch{
		Grid: interp.Dim3{X: uint32(blocks), Y: 1, Z: 1}, Block: interp.Dim3{X: threads, Y: 1, Z: 1}, //nolint:gosec // few
		Params: params(uint64(0x10000), uint64(0x80000)), Memory: interp.Bytes{0x10000: out, 0x80000: make([]byte, 4)},
		Cooperative: true, MaxInstructions: 200_000,
	}
	if change != nil {
		change(&l)
	}
	return out, compile(t, text).Run(l)
}

// The blocks of a cooperative launch wait for each other.
func TestBlocksOfACooperativeLaunchWait(t *testing.T) {
	t.Parallel()
	for _, blocks := range []int{1, 2, 7, 33} {
		out, err := runCooperative(t, cooperative(gridSync("1"), gridSync("2")), blocks, nil)
		require.NoError(t, err)
		for n := range len(out) / 4 {
			want := (n + 40) % (40 * blocks)
			require.Equal(t, uint32(want), wordAt(out, n)) //nolint:gosec // small
		}
	}
}

// A missing barrier of the grid is a race, also after another one.
func TestRacesOfACooperativeLaunch(t *testing.T) {
	t.Parallel()
	_, err := runCooperative(t, cooperative("", gridSync("1")), 4, nil)
	require.ErrorIs(t, err, interp.GlobalRace)
	require.ErrorContains(t, err, "ld.global.u32")
	for _, blocks := range []int{2, 4} { // of two blocks the last one at the barrier continues in the same turn
		_, err = runCooperative(t, cooperative(gridSync("1"), ""), blocks, nil)
		require.ErrorIs(t, err, interp.GlobalRace)
	}
	_, err = runCooperative(t, cooperative(strings.ReplaceAll(gridSync("1"), "membar.gl;", ""), gridSync("2")), 4, nil)
	require.ErrorIs(t, err, interp.GlobalRace)
	_, err = runCooperative(t, cooperative(gridSync("1"), strings.ReplaceAll(gridSync("2"), ".acquire", ".relaxed")), 4,
		func(l *interp.Launch) { l.Strict = true })
	require.ErrorIs(t, err, interp.GlobalRace)
}

// Blocks that wait for a block that never arrives end at the limit of instructions, also without Launch.Cooperative.
func TestBlocksThatWaitForever(t *testing.T) {
	t.Parallel()
	_, err := runCooperative(t, cooperative("setp.eq.u32 %p5, %r2, 2; @%p5 ret;\n"+gridSync("1"), ""), 4, nil)
	require.ErrorIs(t, err, interp.InstructionLimit)
	_, err = runCooperative(t, cooperative(gridSync("1"), gridSync("2")), 4, func(l *interp.Launch) { l.Cooperative = false })
	require.ErrorIs(t, err, interp.InstructionLimit)
}

// A cooperative launch is refused where its blocks do not run at once, and in parts.
func TestRefusedCooperativeLaunches(t *testing.T) {
	t.Parallel()
	text := cooperative(gridSync("1"), gridSync("2"))
	_, err := runCooperative(t, text, 1, func(l *interp.Launch) { l.Grid.X = 132*32 + 1 })
	require.ErrorIs(t, err, interp.ErrLaunch)
	_, err = runCooperative(t, text, 1, func(l *interp.Launch) { l.Grid.X, l.SharedBytes = 132*2+1, 100<<10 })
	require.ErrorIs(t, err, interp.ErrLaunch)
	_, err = runCooperative(t, text, 2, func(l *interp.Launch) { l.First = 1 })
	require.ErrorIs(t, err, interp.ErrLaunch)
	assert.ErrorContains(t, err, "cooperative")
}

// Mistakes that show when a block has ended are found in a cooperative launch, too.
func TestEndsOfBlocksOfACooperativeLaunch(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"ld.shared.u32 %r4, [%r3]; ret; }":                                interp.Uninitialised,
		"st.shared.u32 [%r3], %r1; ld.shared.u32 %r4, [%r3]; ret; }":      nil,
		"setp.eq.u32 %p1, %r1, 39; @%p1 ld.shared.u32 %r4, [%r3]; ret; }": interp.Uninitialised,
		`setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [tile], 1;
			bar.sync 0;
			atom.shared.cas.b32 %r4, [tile], 7, 8;
			ld.shared.u32 %r4, [tile];
			ret; }`: interp.SharedRace, // a guess that nobody confirms
	} {
		for _, cooperative := range []bool{false, true} {
			_, err := runCooperative(t, strings.Replace(prelude, ".param .u64 x", ".param .u64 x, .param .u64 barrier", 1)+text, 3, func(l *interp.Launch) { l.Cooperative = cooperative })
			require.ErrorIs(t, err, want, text)
		}
	}
}
