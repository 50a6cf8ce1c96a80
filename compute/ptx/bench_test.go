package ptx_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
)

// moduleOf is a module of many entries, each with so many times four instructions.
func moduleOf(entries, steps int) string {
	var b strings.Builder
	b.WriteString(".version 7.8\n.target sm_80\n.address_size 64\n")
	for e := range entries {
		fmt.Fprintf(&b, ".visible .entry k%d(.param .u64 a, .param .u32 n)\n{\n\t.reg .b32 %%r<%d>;\n\t.reg .b64 %%rd<%d>;\n\t.reg .f32 %%f<%d>;\n",
			e, steps+1, 2*steps+2, steps+1)
		b.WriteString("\tmov.u32 %r0, %tid.x;\n\tld.param.u64 %rd1, [a];\n")
		for n := 1; n <= steps; n++ {
			fmt.Fprintf(&b, "\tadd.s32 \t%%r%d, %%r%d, %d;\n\tmul.wide.s32 \t%%rd%d, %%r%d, 4;\n\tadd.s64 \t%%rd%d, %%rd1, %%rd%d;\n\tld.global.f32 \t%%f%d, [%%rd%d+16];\n",
				n, n-1, n, 2*n, n, 2*n+1, 2*n, n, 2*n+1)
		}
		b.WriteString("\tret;\n}\n")
	}
	return b.String()
}

// A check of one kernel costs as much as that kernel: a module of many is checked an entry at a time.
func TestOneFunctionIsCheckedAlone(t *testing.T) {
	m, err := ptx.Parse(moduleOf(200, 50) + ".visible .entry wrong() { foo; ret; }\n")
	require.NoError(t, err)
	k := m.Function("k7")
	one := testing.AllocsPerRun(3, func() { require.NoError(t, ptx.CheckFunctions(m, k)) })
	all := testing.AllocsPerRun(3, func() { require.Error(t, ptx.Check(m)) })
	assert.Less(t, one, all/5, "allocations of a check")
	assert.EqualError(t, ptx.CheckFunctions(m, m.Function("wrong")), "ptx: "+fmt.Sprint(m.Function("wrong").Body.Statements[0].(*ptx.Instruction).Pos)+": wrong: foo: the instruction is not known")
}

func BenchmarkParse(b *testing.B) {
	text := moduleOf(243, 560)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := ptx.Parse(text)
		require.NoError(b, err)
	}
}

func BenchmarkCheck(b *testing.B) {
	text := moduleOf(243, 560)
	m, err := ptx.Parse(text)
	require.NoError(b, err)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, ptx.Check(m))
	}
}
