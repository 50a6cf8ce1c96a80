package interp_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// wmmaCase is a product of matrices in fragments.
type wmmaCase struct {
	shape                   string
	element, addend, result string
	layouts                 [3]string // of A, B, and of C and D
}

func (c wmmaCase) sizes() (m, n, k int) {
	_, _ = fmt.Sscanf(c.shape, "m%dn%dk%d", &m, &n, &k)
	return m, n, k
}

// registers lists the registers of a fragment and their names.
func registers(element string, elements int, prefix string) (text string, count int) {
	count = elements / 32 * bits(element) / 32
	if element == "f16" && prefix != "c" && prefix != "d" {
		count = 8
	}
	var names []string
	for n := range count {
		names = append(names, fmt.Sprintf("%%%s%d", prefix, n))
	}
	return "{" + strings.Join(names, ", ") + "}", count
}

// text is a kernel that multiplies one matrix; lines of the matrices are pad elements longer than they need to be.
func (c wmmaCase) text(pad int) string {
	m, n, k := c.sizes()
	line := func(rows, columns int, layout string) int {
		if layout == "row" {
			return columns + pad
		}
		return rows + pad
	}
	a, _ := registers(c.element, m*k, "a")
	b, _ := registers(c.element, n*k, "b")
	e, _ := registers(c.addend, m*n, "c")
	d, _ := registers(c.result, m*n, "d")
	types := c.result + "." + c.addend
	if c.element != "f16" {
		types = fmt.Sprintf("%s.%s.%s.%s", c.result, c.element, c.element, c.addend)
	}
	kind := func(t string) string { return map[bool]string{true: "f32", false: "b32"}[t == "f32"] }
	lines := []string{
		fmt.Sprintf(".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) {\n"+
			".reg .b32 %%a<8>, %%b<8>; .reg .%s %%c<8>; .reg .%s %%d<8>; .reg .b64 %%pa, %%pb, %%pc, %%pd; .reg .b32 %%s;", kind(c.addend), kind(c.result)),
		"ld.param.u64 %pa, [a]; ld.param.u64 %pb, [b]; ld.param.u64 %pc, [c]; ld.param.u64 %pd, [d];",
		fmt.Sprintf("mov.u32 %%s, %d; wmma.load.a.sync.aligned.%s.%s.global.%s %s, [%%pa], %%s;", line(m, k, c.layouts[0]), c.layouts[0], c.shape, c.element, a),
		fmt.Sprintf("wmma.load.b.sync.aligned.%s.%s.global.%s %s, [%%pb], %d;", c.layouts[1], c.shape, c.element, b, line(k, n, c.layouts[1])),
		fmt.Sprintf("wmma.load.c.sync.aligned.%s.%s.global.%s %s, [%%pc], %d;", c.layouts[2], c.shape, c.addend, e, line(m, n, c.layouts[2])),
		fmt.Sprintf("wmma.mma.sync.aligned.%s.%s.%s.%s %s, %s, %s, %s;", c.layouts[0], c.layouts[1], c.shape, types, d, a, b, e),
		fmt.Sprintf("wmma.store.d.sync.aligned.%s.%s.global.%s [%%pd], %s, %d;", c.layouts[2], c.shape, c.result, d, line(m, n, c.layouts[2])),
		"ret; }",
	}
	return strings.Join(lines, "\n")
}

// fragmentMatrix is memory with small whole numbers, whose products are exact in every format.
func fragmentMatrix(rnd *rand.Rand, rows, columns, pad int, layout, element string) (memory []byte, at func(row, column int) int, values [][]float64) {
	line, lines := columns+pad, rows
	if layout == "col" {
		line, lines = rows+pad, columns
	}
	size := bits(element) / 8
	memory = make([]byte, line*lines*size)
	at = func(row, column int) int {
		if layout == "col" {
			row, column = column, row
		}
		return (row*line + column) * size
	}
	values = make([][]float64, rows)
	for r := range rows {
		for c := range columns {
			v := rnd.IntN(17) - 8
			if element[0] == 'u' {
				v += 8
			}
			values[r] = append(values[r], float64(v))
			var word [8]byte
			switch f, isFloat := formats[element]; {
			case element == "tf32":
				binary.LittleEndian.PutUint64(word[:], uint64(math.Float32bits(float32(v))))
			case element == "bf16":
				binary.LittleEndian.PutUint64(word[:], uint64(math.Float32bits(float32(v))>>16))
			case isFloat && v != 0:
				binary.LittleEndian.PutUint64(word[:], f.encode(big.NewFloat(float64(v)), "rn"))
			case !isFloat:
				binary.LittleEndian.PutUint64(word[:], uint64(int64(v)))
			}
			copy(memory[at(r, c):][:size], word[:size])
		}
	}
	return memory, at, values
}

// Products in fragments equal products of the matrices in memory, in all shapes, types and layouts, with lines of any length.
func TestProductsInFragments(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(21, 22))
	var cases []wmmaCase
	for _, shape := range []string{"m16n16k16", "m8n32k16", "m32n8k16"} {
		for _, types := range [][3]string{{"f16", "f32", "f32"}, {"f16", "f16", "f16"}, {"f16", "f16", "f32"}, {"f16", "f32", "f16"}, {"bf16", "f32", "f32"}, {"s8", "s32", "s32"}, {"u8", "s32", "s32"}} {
			cases = append(cases, wmmaCase{shape: shape, element: types[0], addend: types[1], result: types[2]})
		}
	}
	cases = append(cases, wmmaCase{shape: "m16n16k8", element: "tf32", addend: "f32", result: "f32"})
	for n, c := range cases {
		for layout := range 4 {
			names := [2]string{"row", "col"}
			c.layouts = [3]string{names[layout&1], names[layout>>1], names[(n+layout)&1]}
			checkWMMA(t, rnd, c, layout*3)
		}
	}
}

func checkWMMA(t *testing.T, rnd *rand.Rand, c wmmaCase, pad int) {
	t.Helper()
	rows, columns, depth := c.sizes()
	a, _, x := fragmentMatrix(rnd, rows, depth, pad, c.layouts[0], c.element)
	b, _, y := fragmentMatrix(rnd, depth, columns, pad, c.layouts[1], c.element)
	e, _, z := fragmentMatrix(rnd, rows, columns, pad, c.layouts[2], c.addend)
	d, at, _ := fragmentMatrix(rnd, rows, columns, pad, c.layouts[2], c.result)
	memory := interp.Bytes{0x10000: a, 0x20000: b, 0x30000: e, 0x40000: d}
	require.NoError(t, compile(t, c.text(pad)).Run(launch(1, 32, memory, uint64(0x10000), uint64(0x20000), uint64(0x30000), uint64(0x40000))), c)
	for row := range rows {
		for column := range columns {
			want := z[row][column]
			for k := range depth {
				want += x[row][k] * y[k][column]
			}
			var word [8]byte
			copy(word[:], d[at(row, column):][:bits(c.result)/8])
			v := binary.LittleEndian.Uint64(word[:])
			got := float64(int32(uint32(v)))
			if f, isFloat := formats[c.result]; isFloat {
				got = f.float(v)
			}
			if !assert.InDelta(t, want, got, 0, "%+v: row %d, column %d", c, row, column) {
				return
			}
		}
	}
}

// A fragment of shared memory that was not written is refused in either layout, and one that a fragment was stored to is not.
func TestFragmentsOfMemoryThatWasNotWritten(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"row", "col"} {
		load := "wmma.load.c.sync.aligned." + layout + ".m16n16k16.shared.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%r3], 16;\n"
		store := "wmma.store.d.sync.aligned." + layout + ".m16n16k16.shared.f32 [%r3], {%f0, %f0, %f0, %f0, %f0, %f0, %f0, %f0}, 16;\n"
		f := runFault(t, 1, 32, "mov.u32 %r3, tile;\n"+load+"ret;")
		require.NotNil(t, f, layout)
		assert.Equal(t, interp.Uninitialised.String(), f.Kind.String(), layout)
		require.Nil(t, runFault(t, 1, 32, "mov.u32 %r3, tile; mov.f32 %f0, 0f00000000;\n"+store+load+"ret;"), layout)
	}
}

// All threads of a warp name the same matrix, with the same stride: another one in any thread is a fault.
func TestThreadsThatNameDifferentMatrices(t *testing.T) {
	t.Parallel()
	for _, access := range []string{
		"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%d3], %r4;",
		"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%d3], {%f0, %f0, %f0, %f0, %f0, %f0, %f0, %f0}, %r4;",
	} {
		for _, other := range []string{"", "@%p1 add.u64 %d3, %d3, 4;", "@%p1 mov.u32 %r4, 8;"} {
			for _, lane := range []uint32{0, 1, 17, 31} {
				f := runFault(t, 1, 32, fmt.Sprintf("mov.u64 %%d3, %%d1; mov.u32 %%r4, 16; mov.f32 %%f0, 0f00000000; setp.eq.u32 %%p1, %%r1, %d;\n%s\n%s\nret;", lane, other, access))
				if other == "" {
					require.Nil(t, f, access)
					continue
				}
				require.NotNil(t, f, "%s %s", other, access)
				assert.Equal(t, interp.DivergentWarp.String(), f.Kind.String())
				assert.Equal(t, max(lane, 1-min(lane, 1)), f.Thread.X, f.Error()) // the first one that differs from thread 0
			}
		}
	}
}
