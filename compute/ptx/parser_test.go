package ptx_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
)

// corpus are the texts of testdata by file name.
func corpus(tb testing.TB) map[string]string {
	tb.Helper()
	names, err := filepath.Glob("testdata/*.ptx")
	require.NoError(tb, err)
	require.NotEmpty(tb, names)
	texts := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(tb, err)
		texts[filepath.Base(name)] = string(text)
	}
	return texts
}

// Texts of compilers are understood, and the printed text parses to the same tree.
func TestTextsOfCompilersComeBack(t *testing.T) {
	for name, text := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			m, err := ptx.Parse(text)
			require.NoError(t, err)
			require.NotEmpty(t, m.Functions)
			for _, i := range instructions(m) {
				assert.NotEqual(t, ptx.UnknownOp, i.Op, "%v: %v", i.Pos, i)
			}
			requireRoundTrip(t, m)
		})
	}
}

// requireRoundTrip demands that the printed text is read as the same tree, places aside, and printed the same again.
func requireRoundTrip(t *testing.T, m *ptx.Module) {
	t.Helper()
	text := m.String()
	again, err := ptx.Parse(text)
	require.NoError(t, err, text)
	require.Equal(t, text, again.String())
	withoutPlaces(reflect.ValueOf(m), map[any]bool{})
	withoutPlaces(reflect.ValueOf(again), map[any]bool{})
	require.True(t, reflect.DeepEqual(m, again), "the trees differ:\n%s", text)
}

// withoutPlaces clears each Pos that can be reached.
func withoutPlaces(v reflect.Value, seen map[any]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Interface()] {
			return
		}
		seen[v.Interface()] = true
		withoutPlaces(v.Elem(), seen)
	case reflect.Interface:
		withoutPlaces(v.Elem(), seen)
	case reflect.Slice:
		for n := range v.Len() {
			withoutPlaces(v.Index(n), seen)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[ptx.Pos]() {
			v.SetZero()
			return
		}
		for _, field := range v.Fields() {
			withoutPlaces(field, seen)
		}
	}
}

// instructions returns the instructions of all bodies.
func instructions(m *ptx.Module) (all []*ptx.Instruction) {
	for _, f := range m.Functions {
		all = append(all, f.Code().Instructions...)
	}
	return all
}

const header = ".version 7.0\n.target sm_70\n.address_size 64\n"

// Each mistake is named at its place.
func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `ptx: 1:1: the text ends where ".version" is expected`},
		{".version x", `ptx: 1:10: "x" where a version such as 7.0 is expected`},
		{".version 7.0\n.target sm_", `ptx: 2:9: "sm_" where an architecture such as sm_70 is expected`},
		{".version 7.0\n.target sm_a", `ptx: 2:9: "sm_a" where an architecture such as sm_70 is expected`},
		{".version 7.0\n.target sm_7_0", `ptx: 2:9: "sm_7_0" where an architecture such as sm_70 is expected`},
		{".version 7.0\n.target sm_99999999999999999999", `ptx: 2:9: "sm_99999999999999999999" where an architecture such as sm_70 is expected`},
		{".version 7.0\n.target \"sm_70\"", `ptx: 2:9: "sm_70" where an architecture such as sm_70 is expected`},
		{".version 7.0\n.target gpu", `ptx: 2:9: "gpu" where an architecture such as sm_70 is expected`},
		{header + ".entry k() {", `ptx: 4:13: the text ends where "}" is expected`},
		{header + ".entry k() { /* ", `ptx: 4:14: unexpected comment without an end`},
		{header + ".entry k() { add.u32 %r1 %r2; }", `ptx: 4:26: "%r2" where ";" is expected`},
		{header + ".entry k() { ~ }", `ptx: 4:14: unexpected character "~"`},
		{header + ".entry k() { ; }", `ptx: 4:14: ";" where a statement is expected`},
		{header + ".entry k() { @p ; }", `ptx: 4:17: ";" where an instruction is expected`},
		{header + ".entry k() { @p }", `ptx: 4:17: "}" where an instruction is expected`},
		{header + ".entry k() { @p { ret; } }", `ptx: 4:17: "{" where an instruction is expected`},
		{header + ".entry k() { foo a - b }", `ptx: 4:24: "}" where ";" is expected`},
		{header + ".entry k() { foo a - {b c} }", `ptx: 4:28: "}" where ";" is expected`},
		{header + ".entry k() { foo a - {b {c}} {d} }\n.entry l() { ret; }", `ptx: 4:34: "}" where ";" is expected`},
		{header + ".entry k() { foo a ~ b; }", `ptx: 4:20: unexpected character "~"`},
		{header + ".entry k() { foo a - b /* ; }", `ptx: 4:24: unexpected comment without an end`},
		{header + ".file 1 \"a;", `ptx: 4:9: unexpected string without an end`},
		{header + ".file 1 \"a\n\"", `ptx: 4:9: unexpected string without an end`},
		{header + ".entry k() { ret;; }", `ptx: 4:18: ";" where a statement is expected`},
		{header + ".entry k() { ret; };", `ptx: 4:20: ";" where a directive is expected`},
		{header + ".entry k() { ld.global.u32 %r1, [%rd1-4]; }", `ptx: 4:38: an address has no difference: a negative offset is written +-8`},
		{header + ".entry k() { .extern .shared .b8 a[]; }", `ptx: 4:14: directive .extern is not supported here`},
		{header + ".global .align 0 .b8 a;", `ptx: 4:16: an alignment of 0 bytes`},
		{header + ".entry k() { .branchtargets a; }", `ptx: 4:14: directive .branchtargets is not supported here`},
		{header + ".func f(.reg .b32 a);", `ptx: 4:9: parameters in registers are not supported`},
		{header + ".entry k() { .reg .b32 %r<0>; }", `ptx: 4:28: a range of no registers`},
		{header + ".entry k() { .reg .c32 %r; }", `ptx: 4:19: ".c32" where a type of registers is expected`},
		{header + ".entry k() .maxntid 1, 2, 3, 4 {}", `ptx: 4:12: directive .maxntid has 4 values, at most 3`},
		{header + ".global .u32 x = 0f12;", `ptx: 4:18: "0f12" where a number is expected`},
		{header + ".entry k() " + strings.Repeat("{", 300), `ptx: 4:213: more than 200 braces are open`},
	} {
		_, err := ptx.Parse(c.text)
		var syntax *ptx.SyntaxError
		require.ErrorAs(t, err, &syntax, c.text)
		assert.Equal(t, c.want, err.Error())
	}
}

// No text makes the parser panic, and the printed text of a module is that module's.
func FuzzParse(f *testing.F) {
	for _, text := range corpus(f) {
		f.Add(text[:min(len(text), 1000)]) // the fuzzer makes long texts shorter byte by byte
	}
	f.Add(header + ".extern .shared .align 16 .b8 s[];\n.global .u64 p[2] = {generic(s)+4, s};\n.entry k(.param .u64 .ptr .global .align 4 a) .reqntid 32\n" +
		"{ .reg .pred p<2>; l: @!p1 bra.uni l; { .reg .f32 x; mov.f32 x, 0f3F800000; l: bra l; } foo.bar 1.5, {a, -b}, [7], c|_; }")
	f.Add(header + ".func (.param .b32 r) f(.param .b64 a) { .param .b32 x; call (x), f, (a); mov.b64 {%r1, _}, a; ret; }")
	f.Add(header + ".global .texref t;\n.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n.entry k() .maxntid 32 .reqnctapercluster 1 { .reg .b32 %r<9>; " +
		"ts: .branchtargets a, /* ; */ b; p: .callprototype (.param .b32 _) _ (); brx.idx %r1, ts; tex.2d.v4.f32.f32 {%r1, _}, [t, s, {%r3}]; }")
	f.Add(header + ".entry k() { .reg .b32 %r<9>; atom.b32.cas.sys.relaxed.global %r1, [%r2], %r3, WARP_SZ; shfl.b32.sync.idx {%r1}, %r2, 0x1f, 31, -1; set.f16.eq.f16 %r1, %r2, 1; }")
	f.Add(header + ".func g(.param .b64 a) { .reg .b64 x; ld.param.b64 x, [a]; st.u32 [x], 1; ret; }\n.entry k(.param .u64 a, .param .b8 s[16]) { .reg .b64 %a<5>; " +
		".local .b64 l; ld.param.v2.u64 {%a1, %a2}, [s]; L: mov.b64 %a3, l; st.u64 [%a3], %a1; sub.s64 %a4, %a1, %a2; @%p1 bra L; call g, (%a4); }")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ptx.Parse(text)
		if err != nil {
			var syntax *ptx.SyntaxError
			require.ErrorAs(t, err, &syntax)
			return
		}
		_ = ptx.Check(m) // any finding, and no panic
		for _, f := range m.Functions {
			_ = ptx.Uses(m, f) // likewise
		}
		requireRoundTrip(t, m)
	})
}

// Each blank character separates words, and only the end of a line begins another one.
func TestBlanks(t *testing.T) {
	for _, blank := range []string{" ", "\t", "\r", "\f", "\v", "/* */", "\n", "//\n"} {
		text := strings.ReplaceAll(".version 7.0 .target sm_70 .address_size 64 .entry k ( ) { ret ; } ", " ", blank)
		m, err := ptx.Parse(text)
		require.NoError(t, err, "%q", blank)
		require.NoError(t, ptx.Check(m), "%q", blank)
		_, err = ptx.Parse(text + "oops")
		place := fmt.Sprintf("1:%d", len(text)+1)
		if lines := strings.Count(text, "\n"); lines > 0 {
			place = fmt.Sprintf("%d:1", lines+1)
		}
		assert.EqualError(t, err, "ptx: "+place+`: "oops" where a directive is expected`, "%q", blank)
	}
}

// A text in the canonical form is printed as it is.
func TestCanonicalForm(t *testing.T) {
	const text = `.version 7.0
.target sm_70, debug
.address_size 64
.file 1 "a.cu"

.extern .shared .align 16 .b8 dynamic[];
.visible .global .align 4 .v2 .u32 pair[2][3];
.const .f32 one = 0f3F800000;

.extern .func outside()
;

.func (.param .b32 r) one()
.noreturn
{
	st.param.b32 [r], 1;
	ret;
}

.visible .entry empty()
.maxntid 32, 2, 1
.pragma "nounroll";
{
	ret;
}

.weak .entry k(
	.param .u64 .ptr .global .align 16 a,
	.param .align 8 .b8 s[24]
)
{
	.reg .pred %p<2>;
	.reg .b32 %r<3>, x;
	.loc 1 7 3
	@!%p1 bra $L1;
	{
		.pragma "nounroll";
		.local .align 4 .b8 depot[16];
		mov.u32 %r1, {%h1, _};
	$L2:
		foo.bar a - { b c };
	}
$L1:
	ret;
}
`
	m, err := ptx.Parse(text)
	require.NoError(t, err)
	assert.Equal(t, text, m.String())
}

// Places count the lines of comments.
func TestPlacesBehindComments(t *testing.T) {
	_, err := ptx.Parse(header + "/* one\ntwo\n*/ // three\n\n oops")
	assert.EqualError(t, err, `ptx: 8:2: "oops" where a directive is expected`)
}

// A variable has the alignment that it declares, or that of an element or vector; a size counts all of its elements.
func TestSizesOfVariables(t *testing.T) {
	for _, c := range []struct {
		v                *ptx.Variable
		alignment, bytes int
	}{
		{nil, 1, 0},
		{&ptx.Variable{}, 1, 0},
		{&ptx.Variable{Type: ptx.B8}, 1, 1},
		{&ptx.Variable{Type: ptx.F64}, 8, 8},
		{&ptx.Variable{Type: ptx.F32, Vector: 4}, 16, 16},
		{&ptx.Variable{Type: ptx.F32, Align: 1}, 1, 4},
		{&ptx.Variable{Type: ptx.B8, Align: 16, Dims: []int{3, 5}}, 16, 15},
		{&ptx.Variable{Type: ptx.U16, Vector: 2, Dims: []int{7}}, 4, 28},
		{&ptx.Variable{Type: ptx.U16, Dims: []int{ptx.Unsized}}, 2, 0},
		{&ptx.Variable{Type: ptx.U16, Dims: []int{math.MaxInt / 2, 2}}, 2, math.MaxInt},
		{&ptx.Variable{Type: ptx.B8, Dims: []int{math.MaxInt}}, 1, math.MaxInt},
	} {
		assert.Equal(t, c.alignment, c.v.Alignment(), "%+v", c.v)
		assert.Equal(t, c.bytes, c.v.Bytes(), "%+v", c.v)
	}
}
