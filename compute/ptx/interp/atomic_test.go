package interp_test

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// Atomic operations are held against references, in all their forms and spaces, on operands with many edges: the old value that atom
// returns, the new one in memory, and the bytes next to it, which keep theirs.
func TestAtomicsAgainstReferences(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(17, 18))
	count := 0
	for _, row := range table(t) {
		if !strings.HasPrefix(row.name, "atom[") && !strings.HasPrefix(row.name, "red[") {
			continue
		}
		for _, name := range row.names(rnd, shorter(80)) {
			checkAtomic(t, rnd, row, name)
			count++
		}
	}
	require.Greater(t, count, 150)
}

// checkAtomic executes an operation in the threads of two blocks, each on a value of its own.
func checkAtomic(t *testing.T, rnd *rand.Rand, row tableRow, name string) {
	t.Helper()
	const threads, blocks, each = 32, 2, 16
	i := split(name)
	typ := i.types[0]
	width := max(bits(typ), 16)
	shared := strings.Contains(name, ".shared")
	operands, registers := "[%d]", ""
	if i.op == "atom" {
		operands = fmt.Sprintf("%%b%d_0, [%%d]", width)
	}
	count := strings.Count(row.operands, ", T")
	for n := range count {
		operands += fmt.Sprintf(", %%b%d_%d", width, n+1)
		registers += fmt.Sprintf("ld.global.b%d %%b%d_%d, [%%in+%d];\n", width, width, n+1, 8*n)
	}
	text := fmt.Sprintf(`.version 8.6
.target sm_100
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 cells, .param .u64 out) {
	.reg .b16 %%b16_<4>; .reg .b32 %%b32_<4>, %%t, %%c; .reg .b64 %%b64_<4>, %%in, %%cells, %%out, %%d, %%o, %%w; .shared .align 16 .b8 tile[%[2]d];
	ld.param.u64 %%in, [in]; ld.param.u64 %%cells, [cells]; ld.param.u64 %%out, [out]; mov.u32 %%t, %%tid.x; mov.u32 %%c, %%ctaid.x;
	mad.lo.u32 %%c, %%c, %[1]d, %%t; mul.wide.u32 %%o, %%c, %[3]d; add.u64 %%in, %%in, %%o; add.u64 %%cells, %%cells, %%o; add.u64 %%out, %%out, %%o; mov.u64 %%d, %%cells;
	%[4]s`, threads, threads*each, each, registers)
	copied := "ld.%s.u64 %%w, [%s]; st.%s.u64 [%s], %%w; ld.%s.u64 %%w, [%s+8]; st.%s.u64 [%s+8], %%w;\n"
	if shared {
		text += fmt.Sprintf("mul.wide.u32 %%o, %%t, %d; mov.u64 %%d, tile; add.u64 %%d, %%d, %%o;\n", each)
		text += fmt.Sprintf(copied, "global", "%cells", "shared", "%d", "global", "%cells", "shared", "%d")
	}
	text += name + " " + operands + ";\n"
	if shared {
		text += fmt.Sprintf(copied, "shared", "%d", "global", "%cells", "shared", "%d", "global", "%cells")
	}
	if i.op == "atom" {
		text += fmt.Sprintf("st.global.b%d [%%out], %%b%d_0;\n", width, width)
	}
	k := compile(t, text+"ret; }\n")
	in, cells, out := make([]byte, threads*blocks*each), make([]byte, threads*blocks*each), make([]byte, threads*blocks*each)
	want, wantOut := make([]byte, len(cells)), make([]byte, len(out))
	ones := ^uint64(0) >> (64 - width)
	for n := range threads * blocks {
		old, beside := operandsOf(rnd, typ), rnd.Uint64()
		var v [2]uint64
		for k := range v {
			if v[k] = operandsOf(rnd, typ); rnd.IntN(3) == 0 {
				v[k] = (old + uint64(rnd.IntN(3)) - 1) & ones
			}
			binary.LittleEndian.PutUint64(in[each*n+8*k:], v[k])
		}
		cell := old | beside&^ones
		binary.LittleEndian.PutUint64(cells[each*n:], cell)
		binary.LittleEndian.PutUint64(cells[each*n+8:], beside)
		binary.LittleEndian.PutUint64(want[each*n:], atomicReference(i, old, v)&ones|cell&^ones)
		binary.LittleEndian.PutUint64(want[each*n+8:], beside)
		if i.op == "atom" {
			binary.LittleEndian.PutUint64(wantOut[each*n:], old)
		}
	}
	for _, goroutines := range []int{1, 2} {
		memory := interp.Bytes{0x10000: in, 0x20000: append([]byte{}, cells...), 0x30000: append([]byte{}, out...)}
		l := launch(blocks, threads, memory, uint64(0x10000), uint64(0x20000), uint64(0x30000))
		l.Goroutines = goroutines
		require.NoError(t, k.Run(l), name)
		require.Equal(t, wantOut, memory[0x30000], "%s returns the old values", name)
		for n := range threads * blocks {
			got, right := binary.LittleEndian.Uint64(memory[0x20000][each*n:]), binary.LittleEndian.Uint64(want[each*n:])
			require.True(t, got&^ones == right&^ones && same(typ, got&ones, right&ones), "%s of %#x by %#x gives %#x, want %#x", name,
				binary.LittleEndian.Uint64(cells[each*n:])&ones, in[each*n:each*n+8], got, right)
			require.Equal(t, want[each*n+8:][:8], memory[0x20000][each*n+8:][:8], "%s: the bytes after it", name)
		}
	}
}

// atomicReference returns the new value: the pseudocode of the manual.
func atomicReference(i instruction, old uint64, v [2]uint64) uint64 {
	t := i.types[0]
	a, b := signed(old, t), signed(v[0], t)
	switch {
	case i.mods["add"] && strings.HasSuffix(t, "x2"):
		f := formats[strings.TrimSuffix(t, "x2")]
		return f.sum(old&0xffff, v[0]&0xffff, "rn") | f.sum(old>>16, v[0]>>16, "rn")<<16
	case i.mods["add"] && formats[t].bits > 0:
		return formats[t].sum(old, v[0], "rn")
	case i.mods["add"]:
		return wrap(new(big.Int).Add(a, b), bits(t))
	case i.mods["min"] && b.Cmp(a) < 0, i.mods["max"] && b.Cmp(a) > 0, i.mods["exch"]:
		return v[0]
	case i.mods["inc"] && old >= v[0]:
		return 0
	case i.mods["inc"]:
		return old + 1
	case i.mods["dec"] && (old == 0 || old > v[0]):
		return v[0]
	case i.mods["dec"]:
		return old - 1
	case i.mods["and"]:
		return old & v[0]
	case i.mods["or"]:
		return old | v[0]
	case i.mods["xor"]:
		return old ^ v[0]
	case i.mods["cas"] && old == v[0]:
		return v[1]
	}
	return old
}
