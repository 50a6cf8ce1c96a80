package interp_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/ptx/interp"
)

// runFile executes the kernel of a text in testdata.
func runFile(t *testing.T, name string, l interp.Launch) error {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return compile(t, string(text)).Run(l)
}

// An assertion that does not hold is a fault of its own kind, with the texts of the source.
func TestFailedAssertion(t *testing.T) {
	t.Parallel()
	out := make([]byte, 4)
	launch := interp.Launch{
		Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: 32, Y: 1, Z: 1}, Params: params(uint64(0x10000), uint32(3)),
		Memory: interp.Bytes{0x10000: out},
	}
	require.NoError(t, runFile(t, "assertfail.ptx", launch))
	assert.Equal(t, uint32(3), wordAt(out, 0))

	launch.Params = params(uint64(0x10000), uint32(0))
	err := runFile(t, "assertfail.ptx", launch)
	require.ErrorIs(t, err, interp.Assertion)
	var f *interp.Fault
	require.ErrorAs(t, err, &f)
	assert.Equal(t, &interp.FailedAssertion{Message: "n > 0", File: "n > 0", Line: 7, Function: "n > 0"}, f.Assertion)
	require.ErrorContains(t, err, `n > 0:7: n > 0: assertion "n > 0" failed`)
	assert.Equal(t, 23, f.Line)
}

// An assertion whose texts cannot be read is found all the same.
func TestFailedAssertionWithoutTexts(t *testing.T) {
	t.Parallel()
	const text = header + `
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 fn, .param .b64 sz);
.visible .entry k() {
	.param .b64 a; .param .b32 l; .param .b64 z;
	st.param.b64 [a], 64; st.param.b32 [l], 9; st.param.b64 [z], 1;
	call __assertfail, (a, a, l, a, z);
	ret;
}`
	err := compile(t, text).Run(interp.Launch{Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: 1, Y: 1, Z: 1}})
	var f *interp.Fault
	require.ErrorAs(t, err, &f)
	assert.Equal(t, interp.Assertion, f.Kind)
	assert.Equal(t, &interp.FailedAssertion{Line: 9}, f.Assertion)
}

// The text of printf goes to the launch's output, thread by thread, and nowhere where there is none.
func TestPrintf(t *testing.T) {
	t.Parallel()
	var printed bytes.Buffer
	launch := interp.Launch{
		Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: 3, Y: 1, Z: 1}, Params: params(uint64(0x10000)),
		Memory: interp.Bytes{0x10000: make([]byte, 4)}, Ignore: []interp.Kind{interp.GlobalRace},
	}
	require.NoError(t, runFile(t, "vprintf.ptx", launch))
	launch.Output = &printed
	require.NoError(t, runFile(t, "vprintf.ptx", launch))
	assert.Equal(t, "0\n1\n2\n", printed.String())
}

// errWriter fails.
type errWriter struct{}

func (errWriter) Write([]byte) (int, error) { return 0, errors.New("the pipe is closed") }

// printfOf is a kernel that prints with a format and arguments of 8 bytes each, and the result.
func printfOf(format string, arguments ...uint64) string {
	var text strings.Builder
	text.WriteString(header + ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n")
	codes := make([]string, 0, len(format)+1)
	for _, b := range append([]byte(format), 0) {
		codes = append(codes, fmt.Sprint(b))
	}
	fmt.Fprintf(&text, ".global .align 1 .b8 format[%d] = {%s};\n.global .align 1 .b8 word[3] = {104, 105, 0};\n", len(codes), strings.Join(codes, ","))
	text.WriteString(".visible .entry k(.param .u64 x) {\n.local .align 8 .b8 depot[64]; .reg .b64 %d<4>; .reg .b32 %r<3>; .param .b64 a; .param .b64 b; .param .b32 q;\n")
	text.WriteString("ld.param.u64 %d3, [x]; mov.u64 %d1, depot; cvta.local.u64 %d1, %d1; mov.u64 %d2, format; cvta.global.u64 %d2, %d2; st.param.b64 [a], %d2; st.param.b64 [b], %d1;\n")
	for n, v := range arguments {
		fmt.Fprintf(&text, "st.local.u64 [depot+%d], %d;\n", 8*n, v)
	}
	text.WriteString("call (q), vprintf, (a, b); ld.param.b32 %r1, [q]; st.global.u32 [%d3], %r1; ret;\n}")
	return text.String()
}

func runPrintf(t *testing.T, text string) (printed string, result uint32, err error) {
	t.Helper()
	var b bytes.Buffer
	out := make([]byte, 16)
	copy(out[8:], "on\x00forever")
	err = compile(t, text).Run(interp.Launch{
		Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: 1, Y: 1, Z: 1}, Params: params(uint64(0x10000)),
		Memory: interp.Bytes{0x10000: out}, Output: &b,
	})
	return b.String(), wordAt(out, 0), err
}

// Formats follow C.
func TestFormatsOfPrintf(t *testing.T) {
	t.Parallel()
	const minusOne = math.MaxUint64
	half, big := math.Float64bits(0.5), math.Float64bits(1e10)
	for _, c := range []struct {
		format    string
		arguments []uint64
		want      string
		result    uint32
	}{
		{"plain", nil, "plain", 0},
		{"100%%", nil, "100%", 0},
		{"%ld|%5ld|%-5ld|%05ld|%+ld", []uint64{7, 7, 7, 7, 7}, "7|    7|7    |00007|+7", 5},
		{"%d %lld", []uint64{minusOne, minusOne}, "-1 -1", 2},
		{"%lu %lx %#lx %lX %lo", []uint64{minusOne, 255, 255, 255, 8}, "18446744073709551615 ff 0xff FF 10", 5},
		{"%hd %hhd", []uint64{0x1_0001_ffff}, "-1 1", 2},
		{"%f %.2f %8.3f %e %g %g", []uint64{half, half, half, half, half, big}, "0.500000 0.50    0.500 5.000000e-01 0.5 1e+10", 6},
		{"%f %5f %F", []uint64{math.Float64bits(math.Inf(-1)), math.Float64bits(math.Inf(1)), math.Float64bits(math.NaN())}, "-inf   inf NAN", 3},
		{"%c%p", []uint64{'x', 0x1234}, "x0x1234", 2},
		{"%s.", []uint64{0x10008}, "on.", 1},
		{"%5s|%.1s|%s", []uint64{0x10008, 0x10008, 0}, "   on|o|(null)", 3},
		{"%*ld", []uint64{4, 7}, "   7", 2},
		{"%y %", nil, "%y %", 0},
	} {
		printed, result, err := runPrintf(t, printfOf(c.format, c.arguments...))
		require.NoError(t, err, c.format)
		assert.Equal(t, c.want, printed, c.format)
		assert.Equal(t, c.result, result, c.format)
	}
}

// Formats, arguments and texts that lie past the end of their memory are faults, and so are arguments that nobody wrote.
func TestMistakesOfPrintf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text   string
		kind   interp.Kind
		detail string
	}{
		"too few arguments":      {printfOf("%ld%ld%ld%ld%ld%ld%ld%ld%ld%ld%ld", 1, 2, 3, 4, 5, 6, 7, 8), interp.Uninitialised, "argument 11 of printf was not written"},
		"an argument not given":  {printfOf("%ld%ld", 1), interp.Uninitialised, "argument 2 of printf was not written"},
		"a text without an end":  {printfOf("%s", 0x1000b), interp.OutOfBounds, "the text of argument 1 of printf"},
		"a text that is nowhere": {printfOf("%s", 0x999), interp.OutOfBounds, "the text of argument 1 of printf"},
		"no format":              {strings.Replace(printfOf(""), "[a], %d2", "[a], 0", 1), interp.OutOfBounds, "the format of printf"},
		"a format not passed":    {strings.Replace(printfOf(""), "st.param.b64 [a], %d2;", "", 1), interp.Uninitialised, "argument 0 of vprintf was not written"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := runPrintf(t, c.text)
			require.ErrorIs(t, err, c.kind)
			require.ErrorContains(t, err, c.detail)
		})
	}
}

// The output of a launch has a limit, and the error of who takes it ends the run.
func TestOutputOfPrintf(t *testing.T) {
	t.Parallel()
	k := compile(t, printfOf("%4000ld\n", 1))
	var b bytes.Buffer
	launch := interp.Launch{
		Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: 512, Y: 1, Z: 1}, Params: params(uint64(0x10000)),
		Memory: interp.Bytes{0x10000: make([]byte, 16)}, Output: &b,
	}
	require.NoError(t, k.Run(launch))
	assert.Less(t, b.Len(), 1<<20+5000)
	assert.Equal(t, 1, strings.Count(b.String(), "the rest is dropped"))
	launch.Output = errWriter{}
	require.ErrorContains(t, k.Run(launch), "the pipe is closed")
}

// A function that only the driver could have, and one that is declared otherwise than the driver has it, cannot be called.
func TestUnknownSystemFunctions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		".extern .func malloc();\n.visible .entry k() { call malloc; ret; }":                                                         "malloc has no body",
		".extern .func vprintf(.param .b32 a);\n.visible .entry k() { .param .b32 a; st.param.b32 [a], 1; call vprintf, (a); ret; }": "not declared as the driver has it",
	} {
		m, err := ptx.Parse(header + text)
		require.NoError(t, err)
		_, err = interp.Compile(m, "k")
		require.ErrorContains(t, err, want)
	}
}
