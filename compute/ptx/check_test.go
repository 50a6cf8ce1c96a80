package ptx_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
)

// Compilers write modules without findings.
func TestTextsOfCompilersAreRight(t *testing.T) {
	for name, text := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			m, err := ptx.Parse(text)
			require.NoError(t, err)
			assert.NoError(t, ptx.Check(m))
		})
	}
}

// body is a module with one kernel, which has registers of each kind: %h %r %rd of 16, 32, 64 bits, %f %d %p.
func body(statements string) string {
	return header + `.global .align 4 .b8 table[64];
.visible .entry k(.param .u64 a, .param .u32 n)
{
	.reg .pred %p<4>;
	.reg .b16 %h<4>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	.reg .f32 %f<4>;
	.reg .f64 %d<4>;
	.shared .align 16 .b8 tile[256];
` + statements + `
}`
}

// findings are the messages of Check without the places.
func findings(t *testing.T, text string) (messages []string) {
	t.Helper()
	m, err := ptx.Parse(text)
	require.NoError(t, err)
	err = ptx.Check(m)
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	for _, e := range joined.Unwrap() {
		var finding *ptx.CheckError
		require.True(t, errors.As(e, &finding), "%v", e)
		messages = append(messages, finding.Message)
	}
	return messages
}

// Memory that is too much is reported once, whichever of several variables exceeds it, and one kind does not count for the other.
func TestTooMuchMemory(t *testing.T) {
	three := func(space string, bytes int) string {
		return fmt.Sprintf(".%s .b8 %[1]s0[%[2]d]; .%[1]s .b8 %[1]s1[%[2]d]; .%[1]s .b8 %[1]s2[%[2]d];\n", space, bytes)
	}
	for name, c := range map[string]struct {
		shared, local int // bytes of each of three variables
		want          []string
	}{
		"little":                     {1000, 1000, nil},
		"all three are too much":     {1000, 200_000, []string{"local"}},
		"two are too much":           {1000, 300_000, []string{"local"}},
		"each is too much":           {1000, 600_000, []string{"local"}},
		"three of shared memory":     {100_000, 1000, []string{"shared"}},
		"each of shared memory":      {600_000, 1000, []string{"shared"}},
		"too much of both":           {600_000, 600_000, []string{"shared", "local"}},
		"local memory fills a block": {1000, 170_000, nil},
	} {
		all := findings(t, body(three("shared", c.shared)+three("local", c.local)+"ret;"))
		require.Len(t, all, len(c.want), "%s: %v", name, all)
		for n, kind := range c.want {
			assert.Contains(t, all[n], "the "+kind+" memory has more than the ", name)
		}
	}
}

// A nil module is a mistake, as any other.
func TestNoModule(t *testing.T) {
	for _, err := range []error{ptx.Check(nil), ptx.CheckFunctions(nil), ptx.CheckFunctions(nil, nil, &ptx.Function{})} {
		var mistake *ptx.CheckError
		require.ErrorAs(t, err, &mistake)
		assert.Equal(t, "the module is nil", mistake.Message)
	}
}

// A program may write any number into an instruction.
func TestANumberThatIsNoOpcode(t *testing.T) {
	m, err := ptx.Parse(body("ret;"))
	require.NoError(t, err)
	statements := m.Function("k").Body.Statements
	last, ok := statements[len(statements)-1].(*ptx.Instruction)
	require.True(t, ok)
	last.Op = math.MaxUint8
	require.Error(t, ptx.Check(m))
}

// Each mistake in an instruction is found, once, and named.
func TestMistakesInInstructions(t *testing.T) {
	for _, c := range []struct{ instruction, want string }{
		{"add.u32 %r1, %r2, %r3;", ""},
		{"foo.bar %r1;", "the instruction is not known"},
		{"add.f32.rn %f1, %f2, %f3;", ""},
		{"add.wide.u32 %r1, %r2, %r3;", "add has no form with these modifiers and types"},
		{"add.u32 %r1, %r2;", "2 operands, and 3 are expected"},
		{"bar.sync 0, 32, 1;", "3 operands, and 1 to 2 are expected"},
		{"add.f32 %f1, %r2, %f3;", ""},
		{"add.f32 %f1, %d2, %f3;", "operand 2, %d2, is a register of .f64, which is no .f32"},
		{"add.u32 %r1, %f1, 1;", "operand 2, %f1, is a register of .f32, which is no .u32"},
		{"add.u64 %rd1, %rd2, %r1;", "operand 3, %r1, is a register of .b32, which is no .u64"},
		{"add.u32 7, %r2, %r3;", "operand 1, 7, is no register, and a result needs one"},
		{"add.u32 %r9, %r2, %r3;", "operand 1, %r9, is not declared"},
		{"add.u32 %r1, %tid.x, 1;", "operand 2, %tid.x, is a special register, which only mov and cvt to an integer read"},
		{"add.u32 %r1, %r1, WARP_SZ;", ""},
		{"add.u16 %h1, %h2, 65536;", "operand 3, 65536, is more than .u16 holds"},
		{"add.u16 %h1, %h2, -32768;", ""},
		{"add.f32 %f1, %f2, 1;", "operand 3, 1, is an integer: floating-point numbers have a point, or the prefix 0f or 0d"},
		{"add.f32 %f1, %f2, 1.0;", ""},
		{"add.f64 %d1, %d2, 0f3F800000;", ""},
		{"mul.wide.s32 %rd1, %r1, 4;", ""},
		{"mul.wide.s32 %r1, %r1, 4;", "operand 1, %r1, is a register of .b32, which is no .s64"},
		{"mov.u32 %r1, %tid.x;", ""},
		{"mov.u64 %rd1, %tid.x;", "operand 2, %tid.x, is a special register of .u32, which is no .u64"},
		{"mov.u32 %r1, tile;", ""},
		{"mov.u64 %rd1, table;", ""},
		{"mov.u32 %r1, table;", "operand 2, table, is an address, which is no .u32"},
		{"mov.b32 %r1, {%h1, %h2};", ""},
		{"mov.b64 {%r1, %r2}, %rd1;", ""},
		{"mov.b64 {%r1, %h2}, %rd1;", "operand 1, {%r1, %h2}, has registers of different widths"},
		{"mov.pred %p1, -1;", ""},
		{"xor.pred %p1, %p1, -1;", ""},
		{"selp.b32 %r1, %r2, %r3, 1;", ""},
		{"setp.lt.and.u32 %p1, %r1, 5, 0;", ""},
		{"setp.lt.and.u32 %p1, %r1, 5, 0f3F800000;", "operand 4, 0f3F800000, is no .pred"},
		{"not.pred %p1, !%p2;", "operand 2, !%p2, is negated"},
		{"@%r1 bra done;", "guard %r1 is no predicate"},
		{"@!%p9 bra done;", "guard !%p9 is not declared"},
		{"bra nowhere;", "operand 1, nowhere, is no label of this scope"},
		{"setp.lt.and.u32 %p1|%p2, %r1, 5, !%p3;", ""},
		{"setp.lt.and.u32 %p1|%r2, %r1, 5, !%p3;", "operand 1, %p1|%r2, is a register of .b32, which is no .pred"},
		{"setp.lo.s32 %p1, %r1, 5;", "setp has no form with these modifiers and types"},
		{"setp.ltu.f32 %p1, %f1, %f2;", ""},
		{"selp.f32 %f1, %f1, 0f00000000, %p1;", ""},
		{"cvt.f32.f16 %f1, %h1;", ""},
		{"cvt.rn.f16.f32 %r1, %f1;", ""},
		{"cvt.u8.u32 %r1, %r2;", ""},
		{"cvt.rn.bf16.f32 %h1, %f1;", "needs PTX 7.0 and sm_80, the module has 7.0 and sm_70"},
		{"cvt.f32.u32 %f1, %r1;", "cvt has no form with these modifiers and types"},
		{"cvt.rn.bf16.u16 %h1, %h2;", "needs PTX 7.8 and sm_90, the module has 7.0 and sm_70"},
		{"cvt.rn.bf16.u8 %h1, %h2;", "cvt has no form with these modifiers and types"},
		{"cvt.rni.s8.bf16 %h1, %h2;", "cvt has no form with these modifiers and types"},
		{"cvt.sat.s64.u64 %rd1, %rd2;", ""},
		{"cvt.sat.s64.u32 %rd1, %r2;", "cvt has no form with these modifiers and types"}, // all values of the one are values of the other
		{"cvt.sat.u8.s8 %r1, %r2;", ""},
		{"cvt.sat.u8.u8 %r1, %r2;", "cvt has no form with these modifiers and types"},
		{"ld.weak.global.f32 %f1, [%rd1];", ""},
		{"ld.global.nc.f32 %f1, [%rd1];", ""},
		{"ld.weak.global.nc.f32 %f1, [%rd1];", "ld has no form with these modifiers and types"},
		{"min.NaN.f32 %f1, %f2, %f3;", "needs PTX 7.0 and sm_80, the module has 7.0 and sm_70"},
		{"ld.global.f32 %f1, [%rd1+4];", ""},
		{"ld.global.f32 %f1, %rd1;", "operand 2, %rd1, is no address: brackets are missing"},
		{"ld.global.f32 %f1, [%r1];", "operand 2, [%r1], has a base of .b32, which is no address in the space .global"},
		{"ld.shared.f32 %f1, [%r1];", ""},
		{"ld.global.v2.f32 {%f1, %f2}, [%rd1];", ""},
		{"ld.global.v4.f32 {%f1, %f2}, [%rd1];", "operand 1, {%f1, %f2}, is no vector of 4"},
		{"ld.global.v4.f64 {%d0, %d1, %d2, %d3}, [%rd1];", "a vector of 32 bytes, at most 16"},
		{"ld.global.u8 %h1, [table+63];", ""},
		{"ld.global.u8 %h1, [table+64];", "operand 2, [table+64], reaches past the 64 bytes of table"},
		{"ld.global.u32 %r1, [table+2];", "operand 2, [table+2], is not aligned to 4 bytes"},
		{"ld.global.u32 %r1, [table+-4];", "operand 2, [table+-4], reaches past the 64 bytes of table"},
		{"ld.shared.u32 %r1, [table];", "operand 2, [table], is in the space .global"},
		{"ld.param.u32 %r1, [n];", ""},
		{"ld.param.u64 %rd1, [n];", "operand 2, [n], reaches past the 4 bytes of n"},
		{"ld.param.u64 %rd1, [m];", "operand 2, [m], is not declared"},
		{"st.param.u32 [n], %r1;", "operand 1, [n], is a parameter, which is read only"},
		{"st.const.u32 [%rd1], %r1;", "st has no form with these modifiers and types"},
		{"ld.global.L1::no_allocate.u32 %r1, [%rd1];", "needs PTX 7.4 and sm_70, the module has 7.0 and sm_70"},
		{"ld.acquire.gpu.global.u32 %r1, [%rd1];", ""},
		{"atom.global.add.f32 %f1, [%rd1], %f2;", ""},
		{"atom.global.add.s64 %rd1, [%rd1], %rd2;", "atom has no form with these modifiers and types"},
		{"atom.shared.cas.b32 %r1, [tile+4], %r2, %r3;", ""},
		{"red.global.max.f32 [%rd1], %f2;", "red has no form with these modifiers and types"},
		{"lop3.b32 %r1, %r2, %r3, 7, 256;", "operand 5, 256, is not in 0..255"},
		{"lop3.b32 %r1, %r2, %r3, 7, %r1;", "operand 5, %r1, is no constant"},
		{"prmt.b32.f4e %r1, %r2, %r3, %r1;", ""},
		{"shfl.sync.bfly.b32 %f1|%p1, %f2, 16, 31, -1;", ""},
		{"shfl.bfly.b32 %f1, %f2, 16, 31;", "PTX 6.4 and later has it only for architectures before sm_70: use shfl.sync"},
		{"vote.sync.ballot.b32 %r1, !%p1, -1;", ""},
		{"redux.sync.add.u32 %r1, %r2, -1;", "needs PTX 7.0 and sm_80, the module has 7.0 and sm_70"},
		{"cp.async.ca.shared.global [%r1], [%rd1], 5;", "operand 3, 5, is none of [4 8 16]"},
		{"cp.async.cg.shared.global [tile], [%rd1], 16;", "needs PTX 7.0 and sm_80, the module has 7.0 and sm_70"},
		{"cvta.shared.u64 %rd1, tile;", ""},
		{"cvta.global.u64 %rd1, table;", ""},
		{"cvta.global.u64 %rd1, tile;", "operand 2, tile, is in the space .shared"},
		{"cvta.shared.u64 %rd1, table;", "operand 2, table, is in the space .global"},
		{"cvta.shared.u64 %rd1, %rd2;", ""},
		{"call f;", "function f is not declared"},
		{"call (%r1), %rd1, (%r2);", "calls through a register are not supported"},
	} {
		t.Run(c.instruction, func(t *testing.T) {
			messages := findings(t, body(c.instruction+" done: ret;"))
			if c.want == "" {
				assert.Empty(t, messages)
				return
			}
			assert.Equal(t, []string{c.want}, messages)
		})
	}
}

// The instructions of a warpgroup, and those that later architectures lack, and their mistakes, in text for their
// architecture and for others.
func TestMistakesInInstructionsOfArchitectures(t *testing.T) {
	const d4, a4 = "{%f0, %f1, %f2, %f3}", "{%r0, %r1, %r2, %r3}"
	const tf32, bf16 = "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 ", "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
	for _, c := range []struct{ version, target, instruction, want string }{
		{"6.0", "sm_60", "shfl.bfly.b32 %f1|%p1, %f2, 16, 31;", ""},
		{"6.3", "sm_70", "vote.ballot.b32 %r1, %p1;", ""},
		{"8.0", "sm_62", "vote.all.pred %p1, !%p2;", ""},
		{"6.4", "sm_70", "vote.ballot.b32 %r1, %p1;", "PTX 6.4 and later has it only for architectures before sm_70: use vote.sync"},
		{"8.0", "sm_80", "foo.bar %r1 - %r2, {x y};", "the instruction is not known"},
		{"8.0", "sm_90a", "wgmma.fence.sync.aligned;", ""},
		{"8.0", "sm_90", "wgmma.fence.sync.aligned;", "needs PTX 8.0 and sm_90a, the module has 8.0 and sm_90"},
		{"8.6", "sm_100a", "wgmma.fence.sync.aligned;", "needs PTX 8.0 and sm_90a, the module has 8.6 and sm_100a"},
		{"8.0", "sm_90a", "wgmma.fence;", "wgmma.fence has no form with these modifiers and types"},
		{"8.0", "sm_90a", "wgmma.commit_group.sync.aligned;", ""},
		{"8.0", "sm_90a", "wgmma.wait_group.sync.aligned 1;", ""},
		{"8.0", "sm_90a", "wgmma.wait_group.sync.aligned;", "0 operands, and 1 are expected"},
		{"8.0", "sm_90a", "wgmma.wait_group.sync.aligned %r1;", "operand 1, %r1, is no constant"},
		{"8.0", "sm_90", "fence.proxy.async;", ""},
		{"8.0", "sm_90", "fence.proxy.async.shared::cta;", ""},
		{"8.0", "sm_90", "fence.proxy.async.shared::cluster;", ""},
		{"8.0", "sm_90", "fence.proxy.async.global;", ""},
		{"8.0", "sm_90", "fence.proxy.async.local;", "fence.proxy has no form with these modifiers and types"},
		{"8.0", "sm_80", "fence.proxy.async;", "needs PTX 8.0 and sm_90, the module has 8.0 and sm_80"},
		{"8.0", "sm_90a", tf32 + d4 + ", %rd0, %rd1, %p1, 1, -1;", ""},
		{"8.0", "sm_90a", tf32 + d4 + ", " + a4 + ", %rd1, 1, 1, 1;", ""},
		{"8.0", "sm_90a", tf32 + d4 + ", %rd0, %rd1, !%p1, 1, 1;", ""},
		{"8.0", "sm_90a", tf32 + d4 + ", {%f0, %f1, %f2, %f3}, %rd1, 1, 1, 1;", "operand 2, {%f0, %f1, %f2, %f3}, element 1, %f0, is a register of .f32, which is no .u32"},
		{"8.0", "sm_90", tf32 + d4 + ", %rd0, %rd1, %p1, 1, 1;", "needs PTX 8.0 and sm_90a, the module has 8.0 and sm_90"},
		{"8.0", "sm_90a", tf32 + d4 + ", %rd0, %rd1, %p1, 1, 1, 0;", "7 operands, and 6 are expected"},
		{"8.0", "sm_90a", tf32 + d4 + ", %rd0, %rd1, %p1, 1, 0;", "operand 6, 0, is none of [-1 1]"},
		{"8.0", "sm_90a", tf32 + d4 + ", %rd0, %rd1, %r1, 1, 1;", "operand 4, %r1, is a register of .b32, which is no .pred"},
		{"8.0", "sm_90a", tf32 + d4 + ", %r0, %rd1, %p1, 1, 1;", "operand 2, %r0, is a register of .b32, which is no .u64"},
		{"8.0", "sm_90a", tf32 + "{%f0, %f1}, %rd0, %rd1, %p1, 1, 1;", "operand 1, {%f0, %f1}, is no vector of 4"},
		{"8.0", "sm_90a", tf32 + "{%f0, %f1, %f2, _}, %rd0, %rd1, %p1, 1, 1;", "operand 1, {%f0, %f1, %f2, _}, element 4, _, is no register, and matrices stand in registers"},
		{"8.0", "sm_90a", tf32 + a4 + ", %rd0, %rd1, %p1, 1, 1;", ""},
		{"8.0", "sm_90a", bf16 + d4 + ", %rd0, %rd1, %p1, 1, 1, 0, 1;", ""},
		{"8.0", "sm_90a", bf16 + d4 + ", " + a4 + ", %rd1, %p1, 1, 1, 1;", ""},
		{"8.0", "sm_90a", bf16 + d4 + ", %rd0, %rd1, %p1, 1, 1, 0, 2;", "operand 8, 2, is none of [0 1]"},
		{"8.0", "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k16.f32.tf32.tf32 " + d4 + ", %rd0, %rd1, %p1, 1, 1;", "wgmma.mma_async has no form with these modifiers and types"},
		{"8.0", "sm_90a", "wgmma.mma_async.sync.aligned.m64n12k8.f32.tf32.tf32 " + d4 + ", %rd0, %rd1, %p1, 1, 1;", "the instruction is not known"},
		{"8.0", "sm_90a", "wgmma.mma_async.sync.aligned.m64n264k8.f32.tf32.tf32 " + d4 + ", %rd0, %rd1, %p1, 1, 1;", "the instruction is not known"},
	} {
		t.Run(c.target+" "+c.instruction, func(t *testing.T) {
			text := strings.Replace(body(c.instruction+" done: ret;"), header, ".version "+c.version+"\n.target "+c.target+"\n.address_size 64\n", 1)
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			assert.Equal(t, want, findings(t, text))
			m, err := ptx.Parse(text)
			require.NoError(t, err)
			requireRoundTrip(t, m)
		})
	}
}

// The shapes of a warpgroup are numbered by their columns.
func TestShapes(t *testing.T) {
	for _, c := range []struct {
		shape                ptx.Modifier
		name                 string
		rows, columns, depth int
	}{
		{ptx.ModM64n8k8, "m64n8k8", 64, 8, 8},
		{ptx.ModM64n8k8 + 1, "m64n16k8", 64, 16, 8},
		{ptx.ModM64n256k8, "m64n256k8", 64, 256, 8},
		{ptx.ModM64n8k16, "m64n8k16", 64, 8, 16},
		{ptx.ModM64n256k16, "m64n256k16", 64, 256, 16},
		{ptx.ModM16n8k4, "m16n8k4", 16, 8, 4},
		{ptx.ModM8n8, "m8n8", 8, 8, 0},
		{ptx.ModGlobal, "global", 0, 0, 0},
	} {
		assert.Equal(t, c.name, c.shape.String())
		rows, columns, depth := c.shape.Shape()
		assert.Equal(t, []int{c.rows, c.columns, c.depth}, []int{rows, columns, depth}, c.name)
	}
}

// Mistakes in .version and .target have their line.
func TestLinesOfVersionAndTarget(t *testing.T) {
	m, err := ptx.Parse("// a comment\n.version 9.9\n\n.target sm_60\n")
	require.NoError(t, err)
	var lines []int
	for _, one := range ptx.Check(m).(interface{ Unwrap() []error }).Unwrap() {
		found, ok := errors.AsType[*ptx.CheckError](one)
		require.True(t, ok)
		lines = append(lines, found.Pos.Line)
	}
	require.Equal(t, []int{2, 4}, lines)
}

// Each mistake in declarations is found.
func TestMistakesInDeclarations(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{".version 6.0\n.target sm_80\n", []string{"architecture sm_80 needs PTX 7.0, the module has 6.0"}},
		{".version 7.0\n.target sm_71\n", []string{"architecture sm_71 is not known"}},
		{".version 6.0\n.target sm_70\n", nil},
		{".version 9.0\n.target sm_90a\n", nil},
		{".version 7.8\n.target sm_90a\n", []string{"architecture sm_90a needs PTX 8.0, the module has 7.8"}},
		{".version 8.6\n.target sm_100a\n", nil},
		{".version 8.6\n.target sm_100f\n", []string{"architecture sm_100f needs PTX 8.8, the module has 8.6"}},
		{".version 9.0\n.target sm_110f\n", nil},
		{".version 8.0\n.target sm_80a\n", []string{"architecture sm_80a is not known"}},
		{".version 9.0\n.target sm_90f\n", []string{"architecture sm_90f is not known"}},
		{".version 9.9\n.target sm_90\n", []string{"PTX 9.9 is not known"}},
		{".version 6.9\n.target sm_70\n", []string{"PTX 6.9 is not known"}},
		{".version 7.0\n.target sm_60\n", nil},
		{".version 2.0\n.target sm_20\n", nil},
		{".version 1.4\n.target sm_60\n", []string{
			"PTX 1.4 is older than 2.0, with which the table of instructions begins",
			"architecture sm_60 needs PTX 5.0, the module has 1.4",
			"architecture sm_60 is older than sm_70, with which the table of instructions begins: compile with -arch=sm_70 or later",
		}},
		{".version 7.0\n.target sm_70\n.address_size 32\n", []string{"addresses of 32 bits are not supported"}},
		{header + ".global .u32 a;\n.global .u32 a;", []string{"a is declared twice"}},
		{header + ".global .align 3 .u32 a;", []string{"variable a: an alignment of 3 bytes is no power of two"}},
		{header + ".global .bf16 a;", []string{"variable a: no memory has the type .bf16"}},
		{header + ".shared .b8 a[];", []string{"variable a: only an .extern array has no length"}},
		{header + ".extern .shared .b8 a[];", nil},
		{header + ".global .u8 a[2] = {1, 256};", []string{"variable a: initial value 256 is more than .u8 holds"}},
		{header + ".global .u8 a[2] = {1, 2, 3};", []string{"variable a: the initial value has more values than the variable has elements"}},
		{header + ".global .u64 a = b;", []string{"variable a: initial value b is not declared"}},
		{header + ".shared .u32 a = 1;", []string{"variable a: only .global and .const variables that the module defines have an initial value"}},
		{header + ".entry k() { }", []string{"the body does not end in ret, exit, trap or bra"}},
		{header + ".entry k() { .reg .pred p; @p ret; }", []string{"the body does not end in ret, exit, trap or bra"}},
		{header + ".entry k() { ret; end: }", nil},
		{header + ".entry k() { .reg .pred p; @p bra end; ret; end: }", []string{"the body does not end in ret, exit, trap or bra"}},
		{header + ".entry k() { l: { l: bra l; } bra l; }", nil},
		{header + ".entry k() { l: l: ret; }", []string{"l is declared twice"}},
		{header + ".entry k() { { in: ret; } bra in; }", []string{"operand 1, in, is no label of this scope"}},
		{header + ".entry k() { .reg .b32 %r<5>, %r3; ret; }", []string{"%r3 is declared twice"}},
		{header + ".entry k() { .reg .b32 %r3; .reg .b32 %r<5>; ret; }", []string{"registers %r<5> are declared twice"}},
		{header + ".entry k() { .reg .b32 %r4; .reg .b32 %r<5>; ret; }", []string{"registers %r<5> are declared twice"}},
		{header + ".entry k() { .reg .b32 %r5; .reg .b32 %r<5>; ret; }", nil},
		{header + ".entry k() { .reg .b32 %r<5>, %r4; ret; }", []string{"%r4 is declared twice"}},
		{header + ".entry k() { .reg .b32 %r<5>, %r5; ret; }", nil},
		{header + ".extern .global .u32 a;\n.global .u32 a;\n", []string{"a is declared before as .extern, and defined for this module alone"}},
		{header + ".extern .global .u32 a;\n.visible .global .u32 a;\n.extern .global .u32 a;", nil},
		{header + ".extern .global .u32 a;\n.visible .global .u32 a;\n.visible .global .u32 a;", []string{"a is declared twice"}},
		{header + ".extern .global .u32 a[];\n.visible .global .u32 a[3];", nil},
		{header + ".extern .global .u32 a[3];\n.extern .global .u32 a[];", nil},
		{header + ".extern .global .u32 a[3];\n.visible .global .u32 a[4];", []string{"a is declared before as .u32, with 12 bytes"}},
		{header + ".const .b8 a[65536];", nil},
		{header + ".const .b8 a[65537];", []string{"variable a: the .const variables have more than 65536 bytes"}},
		{header + ".const .b8 a[65535];\n.const .u16 b;", []string{"variable b: the .const variables have more than 65536 bytes"}},
		{
			header + ".entry k() { .reg .b32 r; .shared .b8 a[60000]; ld.shared.u32 r, [a]; ld.shared.u32 r, [a+4]; ret; }",
			nil, // a variable that is named twice is there once
		},
		{".version 8.1\n.target sm_60\n.address_size 64\n.entry k(.param .b8 a[5000]) { ret; }", []string{
			"the parameters have 5000 bytes, at most 4352",
			"architecture sm_60 is older than sm_70, with which the table of instructions begins: compile with -arch=sm_70 or later",
		}},
		{".version 8.1\n.target sm_70\n.address_size 64\n.entry k(.param .b8 a[32764]) { ret; }", nil},
		{".version 8.1\n.target sm_70\n.address_size 64\n.entry k(.param .b8 a[32765]) { ret; }", []string{"the parameters have 32765 bytes, at most 32764"}},
		{header + ".entry k() { .reg .tf32 a; ret; }", []string{"no register has the type .tf32"}},
		{header + ".entry k(.param .u32 a, .param .u32 a) { ret; }", []string{"a is declared twice"}},
		{header + ".entry k(.param .b8 a[5000]) { ret; }", []string{"the parameters have 5000 bytes, at most 4352"}},
		{header + ".entry k() { ret; }\n.entry k() { ret; }", []string{"k is declared twice"}},
		{header + ".func f();\n.func f() { ret; }", nil},
		{header + ".entry k() .maxntid 32, 64, 1 { ret; }", []string{"directive .maxntid asks for more than 1024 threads"}},
		{header + ".func f() .maxnreg 0 { ret; }", []string{"directive .maxnreg belongs to an .entry", "directive .maxnreg has the value 0"}},
		{
			header + ".func (.param .b32 r) f(.param .b64 a) { ret; }\n.entry k() { { .param .b32 x; .param .b32 y; call (x), f, (y); } ret; }",
			[]string{"argument 1, y, is no .param of 8 bytes"},
		},
		{
			header + ".func f(.param .b64 a) { ret; }\n.entry k() { .param .b32 x; call (x), f; ret; }",
			[]string{"0 arguments, and the function has 1"},
		},
		{header + ".entry k() { call k; ret; }", []string{"k is an .entry, which only a launch starts"}},
	} {
		t.Run(strings.TrimPrefix(c.text, header), func(t *testing.T) {
			assert.Equal(t, c.want, findings(t, c.text))
		})
	}
}

// Two declarations of a variable fit if they have one type, one vector and one shape; an array without a length fits each length.
func TestDeclarationsOfOneVariable(t *testing.T) {
	shapes := []string{
		".u32 a", ".s32 a", ".u64 a", ".v2 .u32 a", ".v4 .u32 a", ".u32 a[2]", ".u32 a[3]", ".u32 a[]", ".v2 .u32 a[2]", ".u32 a[2][2]", ".u32 a[2][3]",
	}
	for _, first := range shapes {
		for _, second := range shapes {
			one := func(shape string) string {
				return strings.Replace(strings.Replace(shape, "[2]", "[3]", 1), "[]", "[3]", 1)
			}
			want := first == second || strings.Contains(first+second, "[]") && one(first) == one(second)
			found := findings(t, header+".extern .global "+first+";\n.extern .global "+second+";")
			if want {
				assert.Empty(t, found, "%s, %s", first, second)
				continue
			}
			require.Len(t, found, 1, "%s, %s", first, second)
			assert.Contains(t, found[0], "a is declared before as ")
		}
	}
}

// A finding names the line of PTX, the line of the source, the kernel and the instruction.
func TestFindingsNameTheirPlace(t *testing.T) {
	m, err := ptx.Parse(header + ".file 1 \"add.cu\"\n.entry k()\n{\n\t.reg .f32 %f<2>;\n\t.loc 1 17 3\n\tadd.f32 %f1, %f0, %f2;\n\tret;\n}\n")
	require.NoError(t, err)
	assert.EqualError(t, ptx.Check(m), "ptx: 9:2: add.cu:17: k: add.f32 %f1, %f0, %f2: operand 3, %f2, is not declared")
}

// A tree by hand with holes is reported and not a panic.
func TestHolesInATree(t *testing.T) {
	f := &ptx.Function{Entry: true, Name: "k", Body: &ptx.Block{Statements: []ptx.Statement{
		&ptx.Instruction{Op: ptx.OpAdd, Types: []ptx.Type{ptx.U32}, Operands: []ptx.Operand{ptx.Reg(nil), ptx.Integer(1), ptx.Integer(2)}},
		&ptx.Instruction{Op: ptx.OpBra, Operands: []ptx.Operand{{Kind: ptx.OperandLabel}}},
		&ptx.Instruction{Op: ptx.OpRet},
	}}}
	m := &ptx.Module{Version: ptx.Version{Major: 7}, Target: ptx.Target{SM: 70}, Functions: []*ptx.Function{f}}
	assert.ErrorContains(t, ptx.Check(m), "operand 1, (no register), is no register of the function")
	assert.ErrorContains(t, ptx.Check(m), "operand 1, (no label), is no label of this body")
}
