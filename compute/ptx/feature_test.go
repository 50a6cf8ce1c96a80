package ptx_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
)

// statement is the printed form of one statement in a kernel that has registers %r, a predicate p, a variable v and a label l.
func statement(t *testing.T, text string) *ptx.Instruction {
	t.Helper()
	m, err := ptx.Parse(header + ".global .u32 v;\n.func f() { ret; }\n.entry k() { .reg .b32 %r<12>, %r1<3>; .reg .pred p; l: " + text + " ret; }")
	require.NoError(t, err)
	return m.Function("k").Code().Instructions[0]
}

// Each way to write an operand is read, and printed in one form.
func TestOperands(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"x 0x1F, 017, 0b101, 7U, -8, +9;", "x 31, 15, 5, 7, -8, 9"},
		{"x 18446744073709551615;", "x -1"},
		{"x 0F3f800000, -0f3F800000, 0D3FF0000000000000, -1.0, 1.5e+3, 2E-1;", "x 0f3F800000, 0fBF800000, 0d3FF0000000000000, 0dBFF0000000000000, 0d4097700000000000, 0d3FC999999999999A"},
		{"x [%r1], [%r1+8], [%r1+-8], [v+4], [16], [unknown];", "x [%r1], [%r1+8], [%r1+-8], [v+4], [16], [unknown]"},
		{"x v, v+-4, generic(v)+4, f, l, unknown, %tid.x, %unknown.x, WARP_SZ, _;", "x v, v+-4, generic(v)+4, f, l, unknown, %tid.x, %unknown.x, WARP_SZ, _"},
		{"tex.2d.v4.f32.f32 {%r1, %r2}, [v, {%r3, %r4}];", "tex.2d.v4.f32.f32 {%r1, %r2}, [v, {%r3, %r4}]"},
		{"x [v, %r1, {%r2}], [%r1+8, %r2];", "x [v, %r1, {%r2}], [%r1+8, %r2]"},
		{"@!p x p|%r1, {%r1, {%r2}}, (), !p;", "@!p x p|%r1, {%r1, {%r2}}, (), !p"},
		{"x generic(f), generic(l), generic(%r1), generic(WARP_SZ), !f, !l, !v, f+4, l+4, %r1+4, v+0;", "x generic(f), generic(l), generic(%r1), generic(WARP_SZ), !f, !l, !v, f+4, l+4, %r1+4, v"},
		{"prmt.b32.f4e %r1, %r1, %r1, %r1;", "prmt.b32.f4e %r1, %r1, %r1, %r1"},
		{"add /* several\nlines */ .u32 %r1, // rest\n %r1, 1;", "add.u32 %r1, %r1, 1"},
	} {
		assert.Equal(t, c.want, statement(t, c.text).String())
	}
}

// Names are resolved to the objects that they stand for.
func TestNamesAreResolved(t *testing.T) {
	kinds := func(text string) (all []ptx.OperandKind) {
		for _, o := range statement(t, text).Operands {
			all = append(all, o.Kind)
		}
		return all
	}
	assert.Equal(t, []ptx.OperandKind{ptx.OperandVariable, ptx.OperandFunction, ptx.OperandLabel, ptx.OperandName},
		kinds("x v, f, l, nothing;"))
	assert.Equal(t, []ptx.OperandKind{ptx.OperandRegister, ptx.OperandName, ptx.OperandName, ptx.OperandRegister, ptx.OperandName},
		kinds("x %r0, %r00, %r99, %r12, %r;"), "%r12 is the third register of the range %r1, %r99 in no range")
	for _, o := range statement(t, "x generic(f), generic(l), generic(%r1), generic(WARP_SZ), !f, !l, !v, f+4, l+4, %r1+4;").Operands {
		assert.Equal(t, ptx.OperandName, o.Kind, "%v is more than a name of a function, a label or a register", o)
	}
	i := statement(t, "x %r3, %r3, [%r3], %r4;")
	assert.Same(t, i.Operands[0].Register, i.Operands[1].Register)
	assert.Same(t, i.Operands[0].Register, i.Operands[2].Register)
	assert.Equal(t, 0, i.Operands[0].Register.Index)
	assert.Equal(t, 1, i.Operands[3].Register.Index)
}

// A name in an inner scope hides the outer one, and a label may follow the branch.
func TestScopes(t *testing.T) {
	m, err := ptx.Parse(header + `.entry k()
{
	.reg .b32 a;
	.reg .pred p;
	mov.u32 a, 1;
	{
		.reg .f32 a;
		@p bra end;
		mov.f32 a, 0f00000000;
		@p bra done;
	end:
	}
	@p bra end;
	mov.u32 a, 2;
end:
done:
	ret;
}`)
	require.NoError(t, err)
	require.NoError(t, ptx.Check(m))
	code := m.Function("k").Code()
	first, inner, last := code.Instructions[0].Operands[0], code.Instructions[2].Operands[0], code.Instructions[5].Operands[0]
	assert.Same(t, first.Register, last.Register)
	assert.NotSame(t, first.Register, inner.Register)
	for branch, target := range map[int]int{1: 4, 3: 6, 4: 6} {
		assert.Equal(t, target, code.Targets[code.Instructions[branch].Operands[0].Label])
	}
}

// The parts of an instruction's name answer for an interpreter.
func TestPartsOfNames(t *testing.T) {
	i := statement(t, "ld.volatile.shared.v4.f32 {%r1, %r2, %r3, %r4}, [%r5];")
	assert.Equal(t, ptx.OpLd, i.Op)
	assert.Equal(t, ptx.Shared, i.Space())
	assert.Equal(t, 4, i.Vector())
	assert.Equal(t, ptx.F32, i.Type(0))
	assert.Equal(t, ptx.NoType, i.Type(1))
	assert.Equal(t, ptx.ModVolatile, i.Mod(ptx.KindOrder))
	assert.Equal(t, ptx.NoModifier, i.Mod(ptx.KindRound))
	i = statement(t, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 %r1;")
	assert.Equal(t, []ptx.Type{ptx.F32, ptx.BF16, ptx.BF16, ptx.F32}, i.Types)
	assert.Equal(t, ptx.ModM16n8k16, i.Mod(ptx.KindShape))
	i = statement(t, "cp.async.wait_group 0;")
	assert.Equal(t, ptx.OpCpAsyncWaitGroup, i.Op)
	i = statement(t, "x 0f3FC00000, 2.25;")
	assert.InDelta(t, 1.5, i.Operands[0].Float(), 0)
	assert.InDelta(t, 2.25, i.Operands[1].Float(), 0)
}

// Declarations answer for their sizes, and a module finds them by name.
func TestDeclarations(t *testing.T) {
	m, err := ptx.Parse(header + `.visible .global .align 16 .v4 .f32 a[2][3] = {{{1.0, 2.0, 3.0, 4.0}}, {}};
.extern .shared .b8 dynamic[];
.func g() .noreturn;
.global .u64 table[3] = {a, generic(a)+8, g};
.func g() .noreturn
{
	exit;
}
.weak .entry k(.param .align 8 .b8 p[24], .param .u64 .ptr .global .align 16 q) .reqntid 32, 2 .maxnreg 64 .pragma "nounroll";
{
	call g;
}`)
	require.NoError(t, err)
	require.NoError(t, ptx.Check(m))
	assert.Equal(t, 96, m.Variable("a").Bytes())
	assert.Equal(t, 16, m.Variable("a").Alignment())
	assert.Equal(t, 0, m.Variable("dynamic").Bytes())
	assert.Equal(t, 8, m.Variable("table").Alignment())
	assert.Nil(t, m.Variable("g"))
	assert.NotNil(t, m.Function("g").Body)
	assert.Nil(t, m.Function("a"))
	k := m.Function("k")
	assert.Equal(t, ptx.Weak, k.Linkage)
	assert.Equal(t, &ptx.Pointer{Space: ptx.Global, Align: 16}, k.Params[1].Pointer)
	assert.Equal(t, []int{32, 2}, k.Directives[0].Values)
	assert.Equal(t, "nounroll", k.Directives[2].Text)
	requireRoundTrip(t, m)
}

// An instruction knows its line in the source of another language.
func TestSources(t *testing.T) {
	m, err := ptx.Parse(corpus(t)["nvcc.ptx"])
	require.NoError(t, err)
	for _, i := range m.Function("_Z5scalePff").Code().Instructions {
		if i.Op == ptx.OpFma {
			assert.Equal(t, 41, i.Source.Line)
			assert.Equal(t, "math.h", m.File(i.Source.File))
			assert.Empty(t, m.File(3))
		}
	}
}
