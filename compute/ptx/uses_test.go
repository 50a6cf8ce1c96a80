package ptx_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
)

// usesText returns the uses as lines: the parameter, the access, and whether it is unknown.
func usesText(m *ptx.Module, f *ptx.Function) string {
	var words []string
	for _, u := range ptx.Uses(m, f) {
		word := f.Params[u.Param].Name
		if u.Offset > 0 {
			word += fmt.Sprintf("+%d", u.Offset)
		}
		switch {
		case u.Unknown != "":
			word += ":?"
		case u.Reads && u.Writes:
			word += ":rw"
		case u.Reads:
			word += ":r"
		case u.Writes:
			word += ":w"
		default:
			word += ":-"
		}
		if u.Tested {
			word += "0"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// usesOf returns the uses of a kernel with the parameters a, b, c of 64 bits, n of 64 bits and s, an array of 32 bytes.
func usesOf(t *testing.T, statements string) string {
	t.Helper()
	m, err := ptx.Parse(`.version 8.6
.target sm_90a
.address_size 64
.global .align 8 .b8 table[64];
.extern .func outside(.param .b64 x);
.extern .func (.param .b64 r) malloc(.param .b64 x);
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);
.func (.param .b64 r) same(.param .b64 x) { .reg .b64 %x; ld.param.b64 %x, [x]; st.param.b64 [r], %x; ret; }
.func (.param .b64 r) eight() { st.param.b64 [r], 8; ret; }
.func put(.param .b64 x) { .reg .b64 %x; ld.param.b64 %x, [x]; st.u32 [%x], 1; ret; }
.func again(.param .b64 x)
{
	.reg .b64 %x; .reg .b32 %y; .reg .pred %p;
	ld.param.b64 %x, [x]; ld.u32 %y, [%x]; setp.eq.u32 %p, %y, 0; @%p ret;
	{ .param .b64 z; st.param.b64 [z], %x; call again, (z); }
	ret;
}
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 n, .param .align 8 .b8 s[32], .param .u32 i, .param .f64 f)
{
	.local .align 8 .b8 depot[32];
	.shared .align 16 .b8 tile[64];
	.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>, %a, %b, %c, %n; .reg .f64 %fd<3>; .reg .b128 %q<2>;
	ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u64 %c, [c]; ld.param.u64 %n, [n]; ld.param.u32 %r1, [i];
` + statements + "\n\tret;\n}\n")
	require.NoError(t, err)
	return usesText(m, m.Function("k"))
}

// Each use has the reads and writes of the text, and no less; a number is no pointer.
func TestUses(t *testing.T) {
	for statements, want := range map[string]string{
		"": "",
		"ld.global.u32 %r2, [%a]; st.global.u32 [%b], %r2;":                                                                                               "a:r b:w",
		"ld.global.nc.u32 %r2, [%a]; atom.global.add.u32 %r2, [%b], 1; red.global.add.u32 [%c], 1;":                                                       "a:r b:rw c:rw",
		"ld.volatile.u32 %r2, [%a]; st.release.gpu.u32 [%a+4], %r2;":                                                                                      "a:rw",
		"cvta.to.global.u64 %rd1, %a;":                                                                                                                    "a:-",
		"setp.eq.s64 %p1, %a, 0; @%p1 ret; ld.u32 %r2, [%a]; setp.ne.s64 %p1, %b, %c; @%p1 st.u32 [%b], %r2;":                                             "a:r0 b:w",
		"cvta.to.global.u64 %rd1, %a; setp.ne.and.u64 %p1, 0, %rd1, %p2; @%p1 st.global.u32 [%rd1], 1;":                                                   "a:w0",
		"mov.u64 %rd1, 0; cvta.to.global.u64 %rd2, %rd1; cvta.to.global.u64 %rd3, %a; setp.eq.s64 %p1, %rd2, %rd3; @!%p1 st.u32 [%a], 1;":                 "a:w0",
		"mov.u64 %rd1, 0; @%p2 mov.u64 %rd1, 8; setp.eq.s64 %p1, %a, %rd1; @!%p1 st.u32 [%a], 1;":                                                         "a:w",
		"mov.u64 %rd1, %rd1; setp.eq.s64 %p1, %a, %rd1; @!%p1 st.u32 [%a], 1;":                                                                            "a:w",
		"setp.ne.s64 %p1, %n, 0; @!%p1 bra L; shl.b64 %rd1, %n, 2; add.s64 %rd2, %rd1, %a; st.u32 [%rd2], 1; L:":                                          "a:w",
		"setp.gt.u64 %p1, %a, 0; setp.eq.u64 %p2, %a, 16; @%p1 st.u32 [%a], 1;":                                                                           "a:w",
		"cvt.u32.u64 %r2, %a; setp.eq.u32 %p1, %r2, 0; @%p1 st.u32 [%a], 1;":                                                                              "a:w",
		"set.eq.u32.u64 %r2, %a, 0; st.u32 [%a], %r2;":                                                                                                    "a:w0",
		"{ .param .b64 z; .param .b64 r; st.param.b64 [z], %a; call (r), same, (z); ld.param.b64 %rd1, [r]; }\nsetp.eq.s64 %p1, %rd1, 0; st.u32 [%a], 1;": "a:w0",
		"prefetch.global.L2 [%a];": "",
		"mov.u64 %rd1, tile; cvta.shared.u64 %rd1, %rd1; add.s64 %rd1, %rd1, %n; ldmatrix.sync.aligned.m8n8.x1.b16 {%r2}, [%rd1]; st.u32 [%n], 1;": "n:w",
		"cp.async.cg.shared.global [tile], [%a], 16;":                                                                                                         "a:r",
		"mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], 1;":                                                                         "a:w",
		"shl.b64 %rd1, %n, 2; add.s64 %rd2, %rd1, %a; st.global.u32 [%rd2], 1;":                                                                               "a:w",
		"mad.lo.s64 %rd1, %n, 8, %a; ld.global.u64 %rd2, [%rd1];":                                                                                             "a:r",
		"cvta.to.global.u64 %a, %a; add.s64 %rd1, %a, %n; ld.global.u8 %h1, [%rd1];":                                                                          "a:r",
		"add.s64 %rd1, %a, %n; ld.global.u8 %h1, [%rd1];":                                                                                                     "a:? n:?",
		"ld.global.u8 %h1, [%a]; add.s64 %rd1, %a, %n; st.global.u8 [%rd1], %h1;":                                                                             "a:rw",
		"setp.eq.u32 %p1, %r1, 0; selp.b64 %rd1, %a, %b, %p1; st.global.u32 [%rd1], 1;":                                                                       "a:w b:w",
		"setp.eq.u32 %p1, %r1, 0; mov.b64 %rd1, %a; @%p1 mov.b64 %rd1, %b; ld.global.u32 %r2, [%rd1];":                                                        "a:r b:r",
		"mov.b64 %rd1, %a; st.global.u32 [%rd1], 1; mov.b64 %rd1, %b; ld.global.u32 %r2, [%rd1];":                                                             "a:w b:r",
		"mov.b64 %rd1, 8; add.s64 %rd2, %b, %rd1; mov.b64 %rd1, %a; ld.u32 %r2, [%rd1]; ld.u32 %r2, [%rd2];":                                                  "a:r b:r",
		"mov.b64 %rd1, %a; L: ld.u32 %r2, [%rd1]; add.s64 %rd1, %rd1, 4; setp.ne.u32 %p1, %r2, 0; @%p1 bra L;":                                                "a:r",
		"mov.b64 %rd1, %a; L: ld.u32 %r2, [%rd1]; mov.b64 %rd1, %b; setp.ne.u32 %p1, %r2, 0; @%p1 bra L;":                                                     "a:r b:r",
		"st.local.u64 [depot+8], %a; ld.local.u64 %rd1, [depot+8]; st.u32 [%rd1], 1; ld.local.u64 %rd2, [depot]; ":                                            "a:w",
		"st.local.v2.u64 [depot], {%a, %b}; ld.local.u64 %rd1, [depot+8]; st.u32 [%rd1], 1;":                                                                  "b:w",
		"mov.u64 %rd1, depot; cvta.local.u64 %rd1, %rd1; mad.wide.u32 %rd2, %r1, 8, %rd1; st.u64 [%rd2], %a; ld.local.u64 %rd3, [depot]; ld.u32 %r2, [%rd3];": "a:r",
		"st.shared.u64 [tile], %a; ld.shared.u64 %rd1, [tile+8]; st.u32 [%rd1], 1;":                                                                           "a:w",
		"mov.b64 {%r2, %r3}, %a; mov.b64 %rd1, {%r2, %r3}; st.u32 [%rd1], 1;":                                                                                 "a:w",
		"mov.b64 {%r2, %r3}, %a; add.cc.u32 %r2, %r2, 4; addc.u32 %r3, %r3, 0; mov.b64 %rd1, {%r2, %r3}; st.u32 [%rd1], 1;":                                   "a:w",
		"shr.u64 %rd1, %a, 32; cvt.u32.u64 %r2, %rd1; cvt.u32.u64 %r3, %a; mov.b64 %rd2, {%r3, %r2}; st.u32 [%rd2], 1;":                                       "a:w",
		"mov.b128 %q1, {%a, %b}; mov.b128 {%rd1, %rd2}, %q1; st.u32 [%rd1], 1;":                                                                               "a:w b:w",
		"and.b64 %rd1, %a, -16; ld.u32 %r2, [%rd1];":                                                                                                          "a:r",
		"sub.s64 %rd1, %b, %a; add.s64 %rd2, %a, 4; add.s64 %rd3, %rd2, %rd1; st.global.u32 [%rd3], 1; ld.global.u32 %r2, [%rd2];":                            "a:rw b:w",
		"ld.param.u64 %rd1, [s+8]; ld.param.v2.u64 {%rd2, %rd3}, [s+16]; ld.u32 %r2, [%rd1]; st.u32 [%rd3], %r2;":                                             "s+8:r s+24:w",
		"mov.b64 %rd1, s; ld.param.u64 %rd2, [%rd1+24]; st.u32 [%rd2], 1;":                                                                                    "s+24:w",
		"mov.b64 %rd1, s; mad.wide.u32 %rd1, %r1, 8, %rd1; ld.param.u64 %rd2, [%rd1]; st.u32 [%rd2], 1;":                                                      "s:w s+8:w s+16:w s+24:w",
		"{ .param .b64 x; .param .b64 y; st.param.b64 [x], %a; call (y), same, (x); ld.param.b64 %rd1, [y]; } st.u32 [%rd1], 1; ld.u32 %r2, [%b];":            "a:w b:r",
		"{ .param .b64 x; st.param.b64 [x], %a; call put, (x); } ld.u32 %r2, [%b];":                                                                           "a:w b:r",
		"{ .param .b64 x; st.param.b64 [x], %a; call again, (x); }":                                                                                           "a:r",
		"ld.global.f64 %fd1, [%a]; st.global.f64 [%b], %fd1;":                                                                                                 "a:r b:w",
		"ld.global.u64 %rd1, [%a]; shl.b64 %rd1, %rd1, 2; add.s64 %rd2, %b, %rd1; st.global.u32 [%rd2], 1;":                                                   "a:r b:w",
		"not.b64 %rd1, %a; neg.s64 %rd1, %rd1; st.u32 [%rd1+-1], 1; ld.u32 %r2, [%b];":                                                                        "a:w b:r",
		"st.global.u64 [%a], %n;": "a:w",
		"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%a]; wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%b], {%r1,%r2,%r3,%r4};":                              "a:r b:w",
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%a], 16, [%r3]; cp.async.bulk.global.shared::cta.bulk_group [%b], [%r2], 16;":                                              "a:r b:w",
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%a], [%r2], 16;":                                                                                                                         "a:rw",
		"ld.global.v8.b32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%a]; discard.global.L2 [%b], 128;":                                                                                                              "a:r b:w",
		"mov.u32 %r2, %envreg1; mov.u32 %r3, %envreg2; cvt.u64.u32 %rd1, %r2; cvt.u64.u32 %rd2, %r3; bfi.b64 %rd1, %rd1, %rd2, 32, 32; add.s64 %rd1, %rd1, 4; atom.add.u32 %r2, [%rd1], 1; ld.u32 %r2, [%a];": "a:r",
		"mov.u64 %rd1, table; ld.u32 %r2, [%rd1]; st.u32 [%a], %r2;":                                                                                                                                          "a:w",
		"{ .param .b64 x; .param .b64 y; st.param.b64 [x], 64; call (y), malloc, (x); ld.param.b64 %rd1, [y]; } st.u32 [%rd1], 1; ld.u32 %r2, [%a];":                                                          "a:r",
	} {
		assert.Equal(t, want, usesOf(t, statements), statements)
	}
}

// Each word of a parameter that is an array is told apart, however its address is computed.
func TestUsesOfWordsOfAParameter(t *testing.T) {
	for word := range 4 {
		offset := 8 * word
		want := fmt.Sprintf("s+%d:w", offset)
		if word == 0 {
			want = "s:w"
		}
		for _, load := range []string{
			"ld.param.u64 %%rd2, [s+%d];",
			"mov.b64 %%rd1, s+%d; ld.param.u64 %%rd2, [%%rd1];",
			"mov.b64 %%rd1, s; ld.param.u64 %%rd2, [%%rd1+%d];",
			"mov.b64 %%rd1, s; add.s64 %%rd1, %%rd1, %d; ld.param.u64 %%rd2, [%%rd1];",
			"mov.b64 %%rd1, s; add.s64 %%rd1, %d, %%rd1; ld.param.u64 %%rd2, [%%rd1];",
			"mov.b64 %%rd1, s; sub.s64 %%rd1, %%rd1, -%d; ld.param.u64 %%rd2, [%%rd1];",
			"mov.b64 %%rd1, s; cvta.param.u64 %%rd1, %%rd1; add.s64 %%rd1, %%rd1, %d; ld.u64 %%rd2, [%%rd1];",
		} {
			text := fmt.Sprintf(load, offset) + " st.u32 [%rd2], 1;"
			assert.Equal(t, want, usesOf(t, text), text)
		}
	}
}

// A pointer is followed through local and shared memory, by the name of the space and by generic addresses.
func TestUsesThroughMemory(t *testing.T) {
	for space, name := range map[string]string{"local": "depot", "shared": "tile"} {
		addresses := [...]string{"." + space + ".u64 [" + name + "+8]", ".u64 [%rd1+8]"}
		for _, stored := range addresses {
			for _, loaded := range addresses {
				text := fmt.Sprintf("mov.u64 %%rd1, %s; cvta.%s.u64 %%rd1, %%rd1; st%s, %%a; ld%s; st.u32 [%%rd2], 1; ld.u32 %%r2, [%%b];",
					name, space, stored, strings.Replace(loaded, ".u64 ", ".u64 %rd2, ", 1))
				assert.Equal(t, "a:w b:r", usesOf(t, text), text)
			}
		}
	}
}

// A pointer that a loop stores at a place which moves may be at each later place.
func TestUsesThroughMovingPlaces(t *testing.T) {
	for space, name := range map[string]string{"local": "depot", "shared": "tile"} {
		for place := range 3 {
			text := fmt.Sprintf("mov.u64 %%rd1, %[2]s; again: st.%[1]s.u64 [%%rd1], %%a; @%%p2 mov.b64 %%rd1, %%rd3; add.s64 %%rd3, %%rd1, 8; @%%p1 bra again; "+
				"ld.%[1]s.u64 %%rd2, [%[2]s+%[3]d]; st.u32 [%%rd2], 1; ld.u32 %%r2, [%%b];", space, name, 8*place)
			assert.Equal(t, "a:w b:r", usesOf(t, text), text)
		}
	}
}

// The result of floating-point arithmetic is an index, even if its operand is from memory; an integer may be a pointer.
func TestUsesOfFloatingPointNumbers(t *testing.T) {
	for _, op := range []string{"add.T R, R, C;", "sub.T R, R, C;", "min.T R, R, C;", "max.T R, R, C;", "neg.T R, R;"} {
		text := "ld.global.T R, [%a]; " + op + " mov.b64 %rd1, R; add.s64 %rd2, %b, %rd1; st.u32 [%rd2], 1;"
		float := strings.NewReplacer("T", "f64", "R", "%fd1", "C", "0d4338000000000000").Replace(text)
		assert.Equal(t, "a:r b:w", usesOf(t, float), float)
		whole := strings.NewReplacer("T", "s64", "R", "%rd1", "C", "8").Replace(text)
		assert.Equal(t, "a:? b:?", usesOf(t, whole), whole)
	}
}

// An index is scaled by as much as the largest elements have; a number that is shifted further may be a pointer without its upper bits.
func TestUsesOfScaledNumbers(t *testing.T) {
	for amount := 1; amount < 32; amount++ {
		want := "a:w b:r"
		if amount > 8 {
			want = "a:w b:? n:?"
		}
		text := fmt.Sprintf("cvta.to.global.u64 %%rd1, %%a; selp.b64 %%rd1, %%rd1, 0, %%p1; shl.b64 %%rd2, %%n, %d; add.s64 %%rd1, %%rd1, %%rd2; st.u32 [%%rd1], 1; ld.u32 %%r2, [%%b];", amount)
		assert.Equal(t, want, usesOf(t, text), text)
	}
}

// Of two parameters whose bits are joined, either may be the pointer. Two halves of one are the pointer again, and one half is a number.
func TestUsesOfJoinedBits(t *testing.T) {
	halves := "shr.u64 %rd1, %a, 32; shl.b64 %rd1, %rd1, 32; cvt.u32.u64 %r2, %a; cvt.u64.u32 %rd2, %r2; "
	for _, join := range []string{"and.b64 %%rd3, %s, %s;", "or.b64 %%rd3, %s, %s;", "xor.b64 %%rd3, %s, %s;", "lop3.b64 %%rd3, %s, %s, 0, 252;", "bfi.b64 %%rd3, %s, %s, 32, 32;"} {
		text := fmt.Sprintf(join, "%a", "%n") + " st.u32 [%rd3], 1;"
		assert.Equal(t, "a:? n:?", usesOf(t, text), text)
		text = halves + fmt.Sprintf(join, "%rd1", "%rd2") + " st.u32 [%rd3], 1;"
		assert.Equal(t, "a:w", usesOf(t, text), text)
		text = halves + fmt.Sprintf(join, "%rd2", "1") + " add.s64 %rd3, %b, %rd3; st.u32 [%rd3], 1;"
		assert.Equal(t, "b:w", usesOf(t, text), text)
	}
}

// The driver's registers with addresses are known to be no parameters.
func TestUsesOfDriversAddresses(t *testing.T) {
	for n := range 32 {
		text := fmt.Sprintf("mov.u32 %%r2, %%envreg%d; mov.b64 %%rd1, {%%r2, %%r2}; atom.add.u32 %%r2, [%%rd1], 1; ld.u32 %%r2, [%%a];", n)
		assert.Equal(t, "a:r", usesOf(t, text), text)
	}
}

// A pointer is followed into functions and back, also where blocks do not stand in the order in which they run.
func TestUsesOfCalls(t *testing.T) {
	printed := "{ .param .b64 v; .param .b32 q; st.param.b64 [v], %rd1; call (q), vprintf, (v, v); }"
	for statements, want := range map[string]string{
		"call (%rd1), same, (%a); st.u32 [%rd1], 1;": "a:w",
		"bra L2; L1: add.s64 %rd3, %rd2, 4; st.u32 [%rd3], 1; ret; L2: call (%rd1), eight, (); add.s64 %rd2, %a, %rd1; bra L1;":              "a:w",
		"{ .param .b64 x; .param .b64 y; st.param.b64 [x], %a; call (y, y, y), same, (x, x, x); ld.param.b64 %rd1, [y]; } st.u32 [%rd1], 1;": "a:w",
		"call (%rd1, %rd2, %rd3), same, (%a, %b, %c); st.u32 [%rd1], 1;":                                                                     "a:w",
		"mov.b64 %rd1, %a; st.u32 [%b], 1; " + printed + " ld.u32 %r2, [%a]; ":                                                               "a:r b:w",
		"st.u32 [%a], 1; mov.b64 %rd1, %a; " + printed:                                                                                       "a:rw",
		"st.u32 [%a], 1; st.local.u64 [depot], %a; mov.u64 %rd1, depot; cvta.local.u64 %rd1, %rd1; " + printed:                               "a:rw",
		"ld.u32 %r2, [%a]; shl.b64 %rd1, %a, 2; " + printed:                                                                                  "a:r",
		"st.u32 [%a], 1; shl.b64 %rd1, %a, 2; " + printed:                                                                                    "a:w",
		"ld.global.u64 %rd1, [%a]; st.u32 [%b], 1; " + printed:                                                                               "a:r b:?",
	} {
		assert.Equal(t, want, usesOf(t, statements), statements)
	}
}

// An instruction that is not known may touch the memory of each of its operands.
func TestUsesOfOperandsThatAnyInstructionHas(t *testing.T) {
	for _, operands := range []string{
		"%a", "%a, 1", "%rd1, %a", "%rd1, %a, 1", "%rd1, 1, %a", "%rd1, {1, %a}", "%rd1, [%a]", "%rd1, [1, %a]", "[%rd1], %a", "[%rd1], [1], %a", "[%rd1, {%a, %r1}], 1",
	} {
		got := usesOf(t, "strange.new.u64 "+operands+";")
		assert.Contains(t, []string{"a:?", "a:rw"}, got, operands)
	}
}

// A load or a store of a kind that is not known may be of more than a word.
func TestUsesOfLongAccesses(t *testing.T) {
	for statements, want := range map[string]string{
		"st.local.u64 [depot+%d], %%a; ld.v8.b32 {%%r1,%%r2,%%r3,%%r4,%%r5,%%r6,%%r7,%%r8}, [%%rd1]; mov.b64 %%rd2, {%%r7, %%r8}; st.u32 [%%rd2], 1;": "a:?",
		"mov.b64 {%%r2, %%r3}, %%a; st.v8.b32 [%%rd1], {%%r2,%%r3,%%r2,%%r3,%%r2,%%r3,%%r2,%%r3}; ld.local.u64 %%rd2, [depot+%d]; st.u32 [%%rd2], 1;": "a:w",
	} {
		for offset := 0; offset < 32; offset += 8 {
			text := "mov.u64 %rd1, depot; cvta.local.u64 %rd1, %rd1; " + fmt.Sprintf(statements, offset)
			assert.Equal(t, want, usesOf(t, text), text)
		}
	}
}

// An instruction without a result leaves the halves of a pointer in the registers that it reads.
func TestUsesOfRegistersThatAreOnlyRead(t *testing.T) {
	for _, reads := range []string{
		"bar.sync %s, 64;", "bar.sync 0, %s;", "bar.arrive %s, 64;", "barrier.sync %s, 64;", "barrier.arrive %s, 64;", "barrier.arrive 0, %s;",
		"bar.warp.sync %s;", "nanosleep.u32 %s;", "bar.red.popc.u32 %%r4, 0, %s, %%p1;", "barrier.red.popc.u32 %%r4, 0, %s, %%p1;", "st.shared.u32 [tile], %s;",
		"red.shared.add.u32 [tile], %s;", "prefetchu.L1 [%s];", "shfl.sync.idx.b32 %%r4, %s, 0, 31, -1;",
	} {
		text := "mov.b64 {%r2, %r3}, %a; " + fmt.Sprintf(reads+" "+reads, "%r2", "%r3") + " mov.b64 %rd1, {%r2, %r3}; st.u32 [%rd1], 1;"
		assert.Equal(t, "a:w", usesOf(t, text), text)
	}
	for _, reads := range []string{"bar.strange %s, 64;", "stackrestore.u32 %s;", "pmevent.strange %s;"} { // these may have a result
		text := "mov.b64 {%r2, %r3}, %a; " + fmt.Sprintf(reads+" "+reads, "%r2", "%r3") + " mov.b64 %rd1, {%r2, %r3}; st.u32 [%rd1], 1;"
		assert.Equal(t, "a:?", usesOf(t, text), text)
	}
}

// A pointer that may be touched in a way that the text does not tell is unknown, and others keep their uses.
func TestUnknownUses(t *testing.T) {
	for statements, want := range map[string]string{
		"ld.global.u64 %rd1, [%a]; ld.global.u32 %r2, [%rd1]; ld.u32 %r2, [%b]; st.u32 [%c], 1;":                                                                                      "a:r b:r c:?",
		"ld.global.u64 %rd1, [%a]; st.global.u32 [%rd1], 1; ld.u32 %r2, [%b]; st.u32 [%c], 1;":                                                                                        "a:? b:? c:w",
		"ld.global.u64 %rd1, [%a]; atom.global.add.u32 %r2, [%rd1], 1; atom.add.u32 %r2, [%b], 1;":                                                                                    "a:? b:rw",
		"ld.global.v2.u32 {%r2, %r3}, [%a]; mov.b64 %rd1, {%r2, %r3}; st.global.u32 [%rd1], 1;":                                                                                       "a:?",
		"ld.global.u64 %rd1, [%a]; setp.eq.u32 %p1, %r1, 0; selp.b64 %rd2, %b, %rd1, %p1; st.u32 [%rd2], 1; ld.u32 %r2, [%c];":                                                        "a:? b:? c:?",
		"st.global.u64 [%a], %b; ld.global.u64 %rd1, [%a]; st.global.u32 [%rd1], 1;":                                                                                                  "a:rw b:?",
		"tex.1d.v4.f32.f32 {%r2, %r3, %r4, %r5}, [%n, {%r6}]; st.u32 [%a], %r2; ld.u32 %r2, [%b];":                                                                                    "a:? b:r",
		"sust.b.1d.b32.trap [%n, {%r6}], {%r2}; st.u32 [%a], %r2; ld.u32 %r2, [%b];":                                                                                                  "a:w b:?",
		"strange.new.u32 %r2, [%b]; ld.u32 %r2, [%a];":                                                                                                                                "a:? b:rw",
		"cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%b, {%r3}], [%r4]; st.u32 [%a], 1; ld.u32 %r2, [%c];":                               "a:? b:r c:r",
		"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%b, {%r3}], [%r4]; st.u32 [%a], 1; ld.u32 %r2, [%c];":                                    "a:? b:r c:r",
		"mov.b64 %rd1, s; cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1, {%r3}], [%r4]; st.u32 [%a], 1;":                                   "a:? s:?",
		"mov.b64 %rd1, s; cvta.param.u64 %rd2, %rd1; cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd2, {%r3, %r5}], [%r4]; ld.u32 %r2, [%b];": "b:r s:?",
		"mov.b64 %rd1, s; cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd1, {%r3}], [%r2]; st.u32 [%a], 1; ld.u32 %r2, [%b];":                                         "a:w b:? s:?",
		"mov.b64 %rd1, s; cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%rd1, {%r3}], [%r2]; st.u32 [%a], 1; ld.u32 %r2, [%b];":                              "a:? b:? s:?",
		"{ .param .b64 x; st.param.b64 [x], %a; call outside, (x); } ld.u32 %r2, [%b];":                                                                                               "a:rw b:?",
		"{ .param .b64 x; st.param.b64 [x], 5; call outside, (x); } ld.u32 %r2, [%b];":                                                                                                "b:?",
		"call %rd1, (%a); ld.u32 %r2, [%b];":                                              "a:rw b:?",
		"shr.u64 %rd1, %a, 4; shl.b64 %rd1, %rd1, 4; ld.u32 %r2, [%rd1]; st.u32 [%b], 1;": "a:? b:?",
		"shr.u64 %rd1, %a, 4; shl.b64 %rd1, %rd1, 4; { .param .b64 x; st.param.b64 [x], %rd1; call put, (x); } { .param .b64 x; st.param.b64 [x], %b; call put, (x); } ld.u32 %r2, [%c];": "a:? b:? c:?",
		"st.u32 [4096], 1; ld.u32 %r2, [%b];":                                                                                                                          "b:?",
		"mov.u64 %rd1, table; ld.u64 %rd2, [%rd1]; st.u32 [%rd2], 1; ld.u32 %r2, [%b];":                                                                                "b:?",
		"ld.global.u64 %rd1, [%a]; sub.s64 %rd2, %rd1, %b; add.s64 %rd3, %b, %rd2; st.u32 [%rd3], 1; ld.u32 %r2, [%b]; ld.u32 %r2, [%c];":                              "a:? b:rw c:?",
		"st.local.u64 [depot], %a; mov.u64 %rd1, depot; cvta.local.u64 %rd1, %rd1; { .param .b64 x; st.param.b64 [x], %rd1; call outside, (x); } ld.u32 %r2, [%b];":    "a:? b:?",
		"mov.u64 %rd1, depot; cvta.local.u64 %rd1, %rd1; st.global.u64 [%a], %rd1; st.local.u64 [depot], %b; ld.global.u64 %rd2, [%a]; ld.u64 %rd3, [%rd2];":           "a:rw b:?",
		"st.u64 [%a], %b; ld.u64 %rd1, [%a]; st.u32 [%rd1], 1;":                                                                                                        "a:rw b:?",
		"mov.u64 %rd1, table; st.u64 [%rd1], %b; ld.u64 %rd1, [%rd1]; st.u32 [%rd1], 1;":                                                                               "b:?",
		"ld.global.u64 %rd1, [%a]; sub.s64 %rd2, %rd1, %b; div.s64 %rd2, %rd2, 4; mad.lo.s64 %rd3, %rd2, 4, %b; st.u32 [%rd3], 1; ld.u32 %r2, [%b]; ld.u32 %r2, [%c];": "a:? b:rw c:?",
		"cvta.to.global.u64 %rd1, %b; strange.new.u64 %rd1, %rd1; st.u32 [%a], 1; ld.u32 %r2, [%c];":                                                                   "a:? b:rw c:?",
		"strange.new.u64 %rd1, %r2; st.u32 [%a], 1; ld.u32 %r2, [%b];":                                                                                                 "a:? b:?",
		"st.local.u64 [depot], %a; mov.u64 %rd1, depot; cvta.local.u64 %rd1, %rd1; strange.new.u64 %rd2, %rd1; setp.eq.u64 %p1, %rd2, 0;":                              "a:?0",
		"mov.u64 %rd1, depot; cvta.local.u64 %rd1, %rd1; st.local.u64 [depot], %rd1; { .param .b64 x; st.param.b64 [x], %rd1; call outside, (x); } ld.u32 %r2, [%b];":  "b:?",
	} {
		assert.Equal(t, want, usesOf(t, statements), statements)
	}
}

// Each element of a vector load has the value of its own place, whichever of the others are dropped.
func TestUsesOfVectorsWithDroppedElements(t *testing.T) {
	const count = 4
	for mask := 1; mask < 1<<count; mask++ {
		var elements, stores, params, want []string
		for n := range count {
			if mask&(1<<n) == 0 {
				elements = append(elements, "_")
				continue
			}
			elements = append(elements, fmt.Sprintf("%%rd%d", n+1))
			stores = append(stores, fmt.Sprintf("st.u32 [%%rd%d], 1;", n+1))
			params = append(params, []string{"a:w", "b:w", "c:w", "n:w"}[n])
			want = append(want, fmt.Sprintf("s+%d:w", 8*n))
		}
		want[0] = strings.Replace(want[0], "s+0", "s", 1)
		load := "{" + strings.Join(elements, ", ") + "}"
		use := strings.Join(stores, " ")
		assert.Equal(t, strings.Join(want, " "), usesOf(t, "ld.param.v4.u64 "+load+", [s]; "+use), load)
		assert.Equal(t, strings.Join(params, " "), usesOf(t, "st.local.v4.u64 [depot], {%a, %b, %c, %n}; ld.local.v4.u64 "+load+", [depot]; "+use), load)
	}
}
