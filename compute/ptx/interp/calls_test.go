package interp_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// called are functions for the kernels of these tests: sum adds the lower half of its second argument and the third one, half and byte write a
// part of their result.
const called = `
.func (.param .b32 r) sum(.param .b16 a, .param .b64 b, .param .b32 c) {
	.reg .b32 %x<4>; ld.param.u32 %x1, [b]; ld.param.u32 %x2, [c]; add.u32 %x3, %x1, %x2; st.param.b32 [r], %x3; ret;
}
.func (.param .b64 r) half(.param .b32 a) { .reg .b32 %x; ld.param.u32 %x, [a]; st.param.b32 [r], %x; ret; }
.func (.param .b32 r) byte(.param .b32 a) { .reg .b32 %x; ld.param.u32 %x, [a]; st.param.b8 [r], %x; ret; }
`

// Registers are arguments and results as variables are: each thread's own, with the bits that are defined.
func TestRegistersOfCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body   string // %r7 is stored, and is the thread, %r1
		thread int    // of the fault; -1: none
	}{
		"values":                       {"mov.b64 %d4, {%r1, %r1}; cvt.u16.u32 %h1, %r1; mov.u32 %r4, 9; call (%r7), sum, (%h1, %d4, %r4); sub.u32 %r7, %r7, 9;", -1},
		"arguments that nobody uses":   {"mov.b64 %d4, {%r1, %r9}; mov.u32 %r4, 0; call (%r7), sum, (%h1, %d4, %r4);", -1},
		"an argument nobody wrote":     {"mov.b64 %d4, {%r1, %r1}; call (%r7), sum, (%h1, %d4, %r9);", 0},
		"a half that nobody wrote":     {"mov.b64 %d4, {%r9, %r1}; call (%r7), sum, (%h1, %d4, %r1);", 0},
		"some threads, selected away":  {"setp.lt.u32 %p1, %r1, 16; @%p1 mov.u32 %r4, 0; cvt.u64.u32 %d4, %r1; call (%r5), sum, (%h1, %d4, %r4); selp.b32 %r7, %r5, %r1, %p1;", -1},
		"some threads":                 {"setp.lt.u32 %p1, %r1, 16; @%p1 mov.u32 %r4, 0; cvt.u64.u32 %d4, %r1; call (%r7), sum, (%h1, %d4, %r4);", 16},
		"a half of a result":           {"call (%d4), half, (%r1); cvt.u32.u64 %r7, %d4;", -1},
		"the other half of a result":   {"call (%d4), half, (%r1); shr.u64 %d4, %d4, 32; cvt.u32.u64 %r7, %d4;", 0},
		"a byte of the first register": {"call (%first), byte, (%r1); and.b32 %r7, %first, 255;", -1},
		"all of the first register":    {"call (%first), byte, (%r1); mov.b32 %r7, %first;", 0},
		"all of another register":      {"call (%r3), byte, (%r1); mov.b32 %r7, %r3;", 0},
	} {
		out := make([]byte, 4*32)
		text := strings.NewReplacer(header, header+called, ".reg .pred", ".reg .b32 %first; mov.u32 %first, %tid.x; .reg .pred").Replace(prelude) + c.body + " st.global.u32 [%d2], %r7; ret; }"
		err := compile(t, text).Run(launch(1, 32, interp.Bytes{0x10000: out}, uint64(0x10000)))
		if c.thread < 0 {
			require.NoError(t, err, name)
			for n := range 32 {
				require.Equal(t, uint32(n), wordAt(out, n), name) //nolint:gosec // few
			}
			continue
		}
		var f *interp.Fault
		require.ErrorAs(t, err, &f, name)
		assert.Equal(t, interp.Uninitialised, f.Kind, name)
		assert.Equal(t, uint32(c.thread), f.Thread.X, name) //nolint:gosec // few
		assert.Contains(t, f.Instruction, "st.global", name)
	}
}

// Calls nest 127 deep and no deeper.
func TestDepthOfCalls(t *testing.T) {
	t.Parallel()
	k := compile(t, header+`
.func (.param .b32 r) deep(.param .b32 n) {
	.reg .b32 %x<3>; .reg .pred %p;
	ld.param.u32 %x1, [n]; setp.eq.u32 %p, %x1, 1;
	@%p bra end;
	sub.u32 %x2, %x1, 1; call (%x1), deep, (%x2); add.u32 %x1, %x1, 1;
	end: st.param.b32 [r], %x1; ret;
}
.visible .entry k(.param .u64 x, .param .u32 n) {
	.reg .b32 %r<3>; .reg .b64 %d; ld.param.u64 %d, [x]; ld.param.u32 %r1, [n]; call (%r2), deep, (%r1); st.global.u32 [%d], %r2; ret;
}`)
	out := make([]byte, 4)
	require.NoError(t, k.Run(launch(1, 1, interp.Bytes{0x10000: out}, uint64(0x10000), uint32(127))))
	assert.Equal(t, uint32(127), wordAt(out, 0))
	require.ErrorIs(t, k.Run(launch(1, 1, interp.Bytes{0x10000: out}, uint64(0x10000), uint32(128))), interp.CallDepth)
}

// Functions of the driver have their arguments in registers, too, and need all their bits.
func TestRegistersOfSystemCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before  string // %a and %b are the first registers, %d1 and %d2 the format and its arguments
		call    string
		printed string
		missing string
	}{
		"both":                    {"mov.b64 %a, %d1; mov.b64 %b, %d2;", "(%a, %b)", "7\n", ""},
		"the second nobody wrote": {"mov.b64 %a, %d1;", "(%a, %b)", "", "%b"},
		"the first nobody wrote":  {"mov.b64 %b, %d2;", "(%a, %b)", "", "%a"},
		"an upper half":           {"mov.b64 %a, %d1; cvt.u32.u64 %r1, %d2; mov.b64 %b, {%r1, %r2};", "(%a, %b)", "", "%b"},
		"a lower half":            {"mov.b64 %b, %d2; cvt.u32.u64 %r1, %d1; mov.b64 %a, {%r2, %r1};", "(%a, %b)", "", "%a"},
		"variables":               {"st.param.b64 [f], %d1; st.param.b64 [v], %d2;", "(f, v)", "7\n", ""},
	} {
		var printed bytes.Buffer
		k := compile(t, header+fmt.Sprintf(`.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 format[4] = {37, 100, 10, 0};
.visible .entry k() {
	.reg .b64 %%a, %%b, %%d<3>; .reg .b32 %%r<4>; .local .align 8 .b8 depot[8]; .param .b64 f; .param .b64 v;
	st.local.u32 [depot], 7; mov.u64 %%d2, depot; cvta.local.u64 %%d2, %%d2; mov.u64 %%d1, format; cvta.global.u64 %%d1, %%d1;
	%s call (%%r3), vprintf, %s; ret;
}`, c.before, c.call))
		l := launch(1, 1, nil)
		l.Output = &printed
		err := k.Run(l)
		assert.Equal(t, c.printed, printed.String(), name)
		if c.missing == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, interp.Uninitialised, name)
		require.ErrorContains(t, err, "register "+c.missing+" ", name)
	}
}
