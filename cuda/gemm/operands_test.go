package gemm_test

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv/sim"
)

// matrices is where an operand has its elements.
type matrices struct {
	name                      string
	at                        *cuda.Range
	bytes                     int64 // of the extent
	rows, columns, ld, stride int64
	size                      int64
	written                   bool
}

// operandsOf returns the operands of a problem as its documentation defines them: first the ones that are written.
func operandsOf(p gemm.Problem, e gemm.Extent, o *gemm.Operands) []matrices {
	turned := func(t bool, rows, columns int64) (int64, int64) {
		if t {
			return columns, rows
		}
		return rows, columns
	}
	rowsA, columnsA := turned(p.TransposeA, p.M, p.K)
	rowsB, columnsB := turned(p.TransposeB, p.K, p.N)
	return []matrices{
		{"C", &o.C, e.C, p.M, p.N, p.LDC, p.StrideC, p.Out.Bytes(), true},
		{"Aux", &o.Aux, e.Aux, p.M, p.N, p.LDAux, p.StrideAux, p.Out.Bytes(), p.Epilogue == gemm.GELUAux},
		{"A", &o.A, e.A, rowsA, columnsA, p.LDA, p.StrideA, p.In.Bytes(), false},
		{"B", &o.B, e.B, rowsB, columnsB, p.LDB, p.StrideB, p.In.Bytes(), false},
		{"Bias", &o.Bias, e.Bias, 1, p.N, p.N, 0, p.Out.Bytes(), false},
	}
}

// touched returns the bytes of the elements, from the begin of the buffer; none of an operand that the problem does not have.
func (m *matrices) touched(batch int64) map[int64]bool {
	all := map[int64]bool{}
	for b := int64(0); b < batch && m.bytes > 0; b++ {
		for r := range m.rows {
			for c := range m.columns {
				for i := range m.size {
					all[m.at.Offset+(b*m.stride+r*m.ld+c)*m.size+i] = true
				}
			}
		}
	}
	return all
}

// width returns the part of the distance of rows that the matrices occupy without a gap: of one, and of several whose rows lie side
// by side, or one after the other. 0: it is none.
func (m *matrices) width(batch int64) int64 {
	switch {
	case batch == 1 || m.stride == m.rows*m.ld:
		return m.columns * m.size
	case m.stride == m.columns:
		return batch * m.columns * m.size
	}
	return 0
}

func problems(t *rapid.T) gemm.Problem {
	small := func(name string, least int) int64 { return int64(rapid.IntRange(least, 4).Draw(t, name)) }
	p := gemm.Problem{
		M: small("m", 0), N: small("n", 0), K: small("k", 0), Batch: small("batch", 1), TransposeA: rapid.Bool().Draw(t, "ta"),
		TransposeB: rapid.Bool().Draw(t, "tb"), In: rapid.SampledFrom([]gemm.Type{gemm.Float32, gemm.BFloat16}).Draw(t, "in"),
		Epilogue: rapid.SampledFrom([]gemm.Epilogue{gemm.None, gemm.GELU, gemm.GELUAux, gemm.GELUGradient}).Draw(t, "epilogue"),
		Bias:     rapid.Bool().Draw(t, "bias"),
	}
	if rapid.Bool().Draw(t, "wide") { // rows of one length: operands can lie side by side
		p.LDA, p.LDB, p.LDC, p.LDAux = 12, 12, 12, 12
	}
	if p.Batch > 1 {
		stride := rapid.OneOf(rapid.Int64Range(0, 24), rapid.SampledFrom([]int64{12, 24, p.M, p.N, p.K}))
		p.StrideA, p.StrideB = stride.Draw(t, "stride a"), stride.Draw(t, "stride b")
	}
	return p
}

// The extent of each operand ends with its last element. Operands that share an element with one that is written are refused, and
// ones in other parts of the memory, or side by side, are not.
func TestOperandsThatShareMemory(t *testing.T) {
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	s, err := dev.NewStream()
	require.NoError(t, err)
	var buffers [2]cuda.Buffer
	for i := range buffers {
		buffers[i], err = s.Alloc(1 << 20)
		require.NoError(t, err)
		t.Cleanup(func() { _ = buffers[i].Free() }) // before the device is closed
	}
	rapid.Check(t, func(t *rapid.T) {
		p, e, err := problems(t).Check()
		require.NoError(t, err)
		var o gemm.Operands
		all := operandsOf(p, e, &o)
		for i := range all {
			m := &all[i]
			at := int64(rapid.IntRange(0, 60).Draw(t, m.name)) * m.size
			if i > 0 && rapid.Bool().Draw(t, "next to the last one") {
				last := &all[i-1]
				if at = last.at.Offset + last.bytes; rapid.Bool().Draw(t, "before it") && last.at.Offset >= m.bytes {
					at = last.at.Offset - m.bytes
				}
				at -= at % m.size
			}
			buffer := buffers[rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "buffer")]
			*m.at = cuda.Part(buffer, at, m.bytes)
			end := int64(-1)
			for b := range m.touched(p.Batch) {
				end = max(end, b)
			}
			require.True(t, m.bytes == 0 && end == -1 || end+1 == at+m.bytes, "%s ends at %d, not at %d", m.name, end+1, at+m.bytes)
		}
		err = p.CheckOperands(e, o)
		var refused *gemm.OverlapError
		require.True(t, err == nil || errors.As(err, &refused) && errors.Is(err, cuda.ErrOverlap), "%v", err)
		for i := range all {
			for j := range all {
				a, b := &all[i], &all[j]
				if i == j || !a.written {
					continue
				}
				named := refused != nil && refused.Written == a.name && refused.Other == b.name
				near := a.at.Buffer == b.at.Buffer && a.bytes > 0 && b.bytes > 0 && a.at.Offset < b.at.Offset+b.bytes && b.at.Offset < a.at.Offset+a.bytes
				if !near {
					require.False(t, named, "%s and %s are apart", a.name, b.name)
					continue
				}
				shares := false
				of := b.touched(p.Batch)
				for at := range a.touched(p.Batch) {
					shares = shares || of[at]
				}
				require.True(t, !shares || err != nil, "%s and %s share an element", a.name, b.name)
				pitch, width, other := a.ld*a.size, a.width(p.Batch), b.width(p.Batch)
				if b.ld*b.size != pitch || width == 0 || other == 0 || a.at.Offset%pitch+width > pitch || b.at.Offset%pitch+other > pitch {
					continue // it may be refused as well
				}
				require.True(t, shares || !named, "%s and %s are side by side", a.name, b.name)
			}
		}
	})
}

// Matrices of a batch that lie side by side in the same rows all count, wherever C is in these rows.
func TestMatricesSideBySide(t *testing.T) {
	const pitch = 12
	for batch := int64(1); batch <= 4; batch++ {
		for _, stride := range []int64{2, 3} { // with and without a gap
			p, e, err := gemm.Problem{
				M: 3, N: 2, K: 3, Batch: batch, LDA: pitch, LDB: pitch, LDC: pitch, StrideA: 3 * pitch, StrideB: stride, StrideC: 3 * pitch,
			}.Check()
			require.NoError(t, err)
			for at := int64(0); at <= pitch-p.N; at++ {
				var o gemm.Operands
				all := operandsOf(p, e, &o)
				c, b := &all[0], &all[3]
				o.A = cuda.Range{Offset: 1 << 16, Bytes: e.A}
				o.B = cuda.Range{Bytes: e.B}
				o.C = cuda.Range{Offset: at * c.size, Bytes: e.C}
				shares := false
				of := b.touched(batch)
				for i := range c.touched(batch) {
					shares = shares || of[i]
				}
				name := fmt.Sprintf("%d matrices %d apart, C at %d", batch, stride, at)
				var refused *gemm.OverlapError
				if err := p.CheckOperands(e, o); shares {
					require.ErrorAs(t, err, &refused, name)
					assert.Equal(t, gemm.OverlapError{Written: "C", Other: "B"}, *refused, name)
				} else if stride == p.N {
					require.NoError(t, err, name)
				}
			}
		}
	}
}

// A range that is one byte too short is refused, and one between two elements.
func TestRangesOfOperands(t *testing.T) {
	p, e, err := gemm.Problem{M: 3, N: 4, K: 5, In: gemm.Float16, Out: gemm.Float32, Epilogue: gemm.GELUAux, Bias: true}.Check()
	require.NoError(t, err)
	fresh := func() (o gemm.Operands) {
		for i, m := range operandsOf(p, e, &o) {
			*m.at = cuda.Range{Offset: int64(i) << 10, Bytes: m.bytes}
		}
		return o
	}
	require.NoError(t, p.CheckOperands(e, fresh()))
	for i := range 5 {
		o := fresh()
		short := operandsOf(p, e, &o)[i]
		short.at.Bytes--
		want := &gemm.ProblemError{}
		require.ErrorAs(t, p.CheckOperands(e, o), &want)
		assert.Equal(t, []any{short.name, short.bytes - 1}, []any{want.Field, want.Value})

		o = fresh()
		odd := operandsOf(p, e, &o)[i]
		odd.at.Offset += odd.size / 2
		require.ErrorAs(t, p.CheckOperands(e, o), &want)
		assert.Equal(t, []any{odd.name, odd.at.Offset}, []any{want.Field, want.Value})
	}
	_, none, err := gemm.Problem{N: 4, K: 5}.Check()
	require.NoError(t, err)
	require.NoError(t, gemm.Problem{N: 4, K: 5}.CheckOperands(none, gemm.Operands{}), "nothing is touched")
}

// Each field has bounds, which are allowed themselves.
func TestBoundsOfFields(t *testing.T) {
	type change = func(p *gemm.Problem)
	for _, c := range []struct {
		field   string
		refused []change
		allowed []change
	}{
		{"M", []change{
			func(p *gemm.Problem) { p.M = -1 },
			func(p *gemm.Problem) { p.M = gemm.MaxSize + 1 },
		}, []change{
			func(p *gemm.Problem) { p.M = 0 },
			func(p *gemm.Problem) { p.M = gemm.MaxSize },
		}},
		{"N", []change{
			func(p *gemm.Problem) { p.N = -1 },
			func(p *gemm.Problem) { p.N = gemm.MaxSize + 1 },
		}, []change{
			func(p *gemm.Problem) { p.N = 0 },
			func(p *gemm.Problem) { p.N = gemm.MaxSize },
		}},
		{"K", []change{
			func(p *gemm.Problem) { p.K = -1 },
			func(p *gemm.Problem) { p.K = gemm.MaxSize + 1 },
		}, []change{
			func(p *gemm.Problem) { p.K = 0 },
			func(p *gemm.Problem) { p.K = gemm.MaxSize },
		}},
		{"Batch", []change{
			func(p *gemm.Problem) { p.Batch = -1 },
			func(p *gemm.Problem) { p.Batch = gemm.MaxSize + 1 },
		}, []change{
			func(p *gemm.Problem) { p.Batch = 0 },
			func(p *gemm.Problem) { p.Batch = gemm.MaxSize },
		}},
		{"In", []change{
			func(p *gemm.Problem) { p.In = gemm.Float64 + 1 },
		}, []change{
			func(p *gemm.Problem) { p.In, p.Out = gemm.Float64, gemm.Float64 },
		}},
		{"Out", []change{
			func(p *gemm.Problem) { p.Out = gemm.Float64 + 1 }, func(p *gemm.Problem) { p.Out = gemm.Float16 },
			func(p *gemm.Problem) { p.Out = gemm.Float64 }, func(p *gemm.Problem) { p.In = gemm.Float64 },
		}, []change{func(p *gemm.Problem) { p.In = gemm.Float16 }, func(p *gemm.Problem) { p.In, p.Out = gemm.BFloat16, gemm.BFloat16 }}},
		{
			"Precision",
			[]change{
				func(p *gemm.Problem) { p.Precision = gemm.RoundedF16 + 1 },
				func(p *gemm.Problem) { p.In, p.Precision = gemm.BFloat16, gemm.TF32 },
			},
			[]change{func(p *gemm.Problem) { p.Precision = gemm.RoundedF16 }},
		},
		{
			"Epilogue",
			[]change{
				func(p *gemm.Problem) { p.Epilogue = gemm.GELUGradient + 1 },
				func(p *gemm.Problem) { p.In, p.Out, p.Epilogue = gemm.Float64, gemm.Float64, gemm.GELU },
			},
			[]change{func(p *gemm.Problem) { p.Epilogue = gemm.GELUGradient }},
		},
		{"LDA", []change{
			func(p *gemm.Problem) { p.LDA = 4 },
			func(p *gemm.Problem) { p.LDA, p.TransposeA = 2, true },
		}, []change{
			func(p *gemm.Problem) { p.LDA = 5 },
			func(p *gemm.Problem) { p.LDA, p.TransposeA = 3, true },
		}},
		{"LDB", []change{
			func(p *gemm.Problem) { p.LDB = 3 },
			func(p *gemm.Problem) { p.LDB, p.TransposeB = 4, true },
		}, []change{
			func(p *gemm.Problem) { p.LDB = 4 },
			func(p *gemm.Problem) { p.LDB, p.TransposeB = 5, true },
		}},
		{"LDC", []change{func(p *gemm.Problem) { p.LDC = 3 }}, []change{func(p *gemm.Problem) { p.LDC = 4 }}},
		{"LDAux", []change{func(p *gemm.Problem) { p.LDAux = 3 }}, []change{func(p *gemm.Problem) { p.LDAux = 4 }}},
		{"StrideA", []change{func(p *gemm.Problem) { p.StrideA = -1 }}, nil},
		{"StrideB", []change{func(p *gemm.Problem) { p.StrideB = -1 }}, nil},
		{
			"StrideC",
			[]change{func(p *gemm.Problem) { p.StrideC = -1 }, func(p *gemm.Problem) { p.Batch, p.StrideC = 2, 11 }},
			[]change{func(p *gemm.Problem) { p.Batch, p.StrideC = 2, 12 }, func(p *gemm.Problem) { p.StrideC = 1 }},
		},
		{
			"StrideAux",
			[]change{
				func(p *gemm.Problem) { p.StrideAux = -1 },
				func(p *gemm.Problem) { p.Batch, p.StrideAux, p.Epilogue = 2, 11, gemm.GELUAux },
			},
			[]change{
				func(p *gemm.Problem) { p.Batch, p.StrideAux, p.Epilogue = 2, 12, gemm.GELUAux },
				func(p *gemm.Problem) { p.Batch, p.StrideAux, p.Epilogue = 2, 1, gemm.GELUGradient },
			},
		},
	} {
		for i, do := range c.refused {
			p := gemm.Problem{M: 3, N: 4, K: 5}
			do(&p)
			var refused *gemm.ProblemError
			_, e, err := p.Check()
			if assert.ErrorAs(t, err, &refused, "%s, %d", c.field, i) {
				assert.Equal(t, c.field, refused.Field, fmt.Sprint(i))
				value := reflect.ValueOf(p).FieldByName(c.field).Convert(reflect.TypeFor[int64]()).Int()
				assert.Equal(t, value, refused.Value, "%s, %d", c.field, i)
				assert.Zero(t, e)
			}
		}
		for i, do := range c.allowed {
			p := gemm.Problem{M: 3, N: 4, K: 5}
			do(&p)
			_, _, err := p.Check()
			assert.NoError(t, err, "%s, %d", c.field, i)
		}
	}
}

// A 0 stands for rows, and matrices, without a gap.
func TestFilled(t *testing.T) {
	p := gemm.Problem{M: 3, N: 4, K: 5}.Filled()
	assert.Equal(t, []int64{5, 4, 4, 4, 1, 12, 12, 0, 0}, []int64{p.LDA, p.LDB, p.LDC, p.LDAux, p.Batch, p.StrideC, p.StrideAux, p.StrideA, p.StrideB})
	p = gemm.Problem{M: 3, N: 4, LDC: 6, LDAux: 7, StrideC: 40, StrideAux: 50, Batch: 2, TransposeA: true, TransposeB: true}.Filled()
	assert.Equal(t, []int64{3, 1, 6, 7, 2, 40, 50}, []int64{p.LDA, p.LDB, p.LDC, p.LDAux, p.Batch, p.StrideC, p.StrideAux})
	p = gemm.Problem{M: 3, LDC: 6, LDAux: 7}.Filled()
	assert.Equal(t, []int64{18, 21}, []int64{p.StrideC, p.StrideAux})
	p = gemm.Problem{M: gemm.MaxSize, LDC: 2, LDAux: 3}.Filled()
	assert.Equal(t, []int64{2 * gemm.MaxSize, 3 * gemm.MaxSize}, []int64{p.StrideC, p.StrideAux})
	p = gemm.Problem{M: gemm.MaxSize + 1, LDC: 2, LDAux: 3}.Filled()
	assert.Equal(t, []int64{0, 0}, []int64{p.StrideC, p.StrideAux}, "it is not checked")
	p = gemm.Problem{M: 3, N: -1, LDC: 2, LDAux: 3}.Filled()
	assert.Equal(t, []int64{6, 9}, []int64{p.StrideC, p.StrideAux}, "rows and their distance alone matter")
	p = gemm.Problem{M: -1, N: 4}.Filled()
	assert.Equal(t, []int64{0, 0}, []int64{p.StrideC, p.StrideAux}, "nor is it with too few rows")
	p = gemm.Problem{M: 0, N: 4}.Filled()
	assert.Equal(t, []int64{0, 0}, []int64{p.StrideC, p.StrideAux})
}

// A written Aux must not share memory with an operand that is read; operands that are only read may share all of it. Columns side by
// side in rows of one length share none.
func TestEachPairOfOperands(t *testing.T) {
	p, e, err := gemm.Problem{M: 4, N: 4, K: 4, LDA: 12, LDB: 12, LDC: 12, LDAux: 12, Epilogue: gemm.GELUAux, Bias: true}.Check()
	require.NoError(t, err)
	place := func(at [5]int64) (o gemm.Operands) { // of A, B, C, Bias and Aux, in elements
		for i, to := range []struct {
			r     *cuda.Range
			bytes int64
		}{{&o.A, e.A}, {&o.B, e.B}, {&o.C, e.C}, {&o.Bias, e.Bias}, {&o.Aux, e.Aux}} {
			*to.r = cuda.Range{Offset: 4 * at[i], Bytes: to.bytes}
		}
		return o
	}
	for _, c := range []struct {
		at             [5]int64
		written, other string
	}{
		{[5]int64{0, 100, 200, 300, 400}, "", ""},
		{[5]int64{0, 0, 200, 300, 400}, "", ""},
		{[5]int64{0, 0, 200, 0, 400}, "", ""},
		{[5]int64{0, 4, 8, 300, 400}, "", ""},
		{[5]int64{8, 4, 0, 300, 400}, "", ""},
		{[5]int64{0, 100, 4, 300, 8}, "", ""},
		{[5]int64{0, 100, 3, 300, 400}, "C", "A"},
		{[5]int64{0, 100, 103, 300, 400}, "C", "B"},
		{[5]int64{0, 100, 200, 203, 400}, "C", "Bias"},
		{[5]int64{0, 100, 200, 300, 203}, "C", "Aux"},
		{[5]int64{3, 100, 200, 300, 0}, "Aux", "A"},
		{[5]int64{0, 100, 200, 300, 103}, "Aux", "B"},
		{[5]int64{0, 100, 200, 300, 300}, "Aux", "Bias"},
	} {
		err := p.CheckOperands(e, place(c.at))
		if c.written == "" {
			assert.NoError(t, err, "%v", c.at)
			continue
		}
		var refused *gemm.OverlapError
		if assert.ErrorAs(t, err, &refused, "%v", c.at) {
			assert.Equal(t, gemm.OverlapError{Written: c.written, Other: c.other}, *refused, "%v", c.at)
		}
	}
	read := p
	read.Epilogue = gemm.GELUGradient
	require.NoError(t, read.CheckOperands(e, place([5]int64{3, 100, 200, 300, 0})), "Aux is read")
	for epilogue, uses := range map[gemm.Epilogue][2]bool{gemm.None: {}, gemm.GELU: {}, gemm.GELUAux: {false, true}, gemm.GELUGradient: {true, false}} {
		assert.Equal(t, uses, [2]bool{epilogue.ReadsAux(), epilogue.WritesAux()}, "%v", epilogue)
	}

	// Operands whose rows differ in length may meet at either end, also as they are before a 0 is filled in.
	plain := gemm.Problem{M: 4, N: 5, K: 6}
	_, e, err = plain.Check()
	require.NoError(t, err)
	for c, fine := range map[int64]bool{4*24 - 4: false, 4 * 24: true, 1000 - 4*20: true, 1000 - 4*20 + 4: false} { // from A to B
		o := gemm.Operands{A: cuda.Range{Bytes: e.A}, B: cuda.Range{Offset: 1000, Bytes: e.B}, C: cuda.Range{Offset: c, Bytes: e.C}}
		assert.Equal(t, fine, plain.CheckOperands(e, o) == nil, "C from %d on", c)
	}
}

// Rows of two operands that are different lengths apart meet somewhere: an operand that is written among the other's rows is refused,
// wherever it begins.
func TestOperandsOfTwoPitches(t *testing.T) {
	type pair struct{ written, other string }
	for _, of := range []pair{{"C", "A"}, {"C", "B"}, {"C", "Aux"}, {"Aux", "A"}, {"Aux", "B"}} {
		for _, pitches := range [][2]int64{{16, 24}, {24, 16}, {16, 17}, {16, 32}, {32, 16}} {
			p := gemm.Problem{M: 8, N: 4, K: 4, Epilogue: gemm.GELUAux}
			for name, ld := range map[string]*int64{"A": &p.LDA, "B": &p.LDB, "C": &p.LDC, "Aux": &p.LDAux} {
				if *ld = pitches[0]; name == of.other { // and the written one has the distance of all the others
					*ld = pitches[1]
				}
			}
			p, e, err := p.Check()
			require.NoError(t, err)
			for at := range int64(200) {
				var o gemm.Operands
				end := int64(0)
				for i, m := range operandsOf(p, e, &o) {
					*m.at = cuda.Range{Offset: int64(i+1) << 16, Bytes: m.bytes}
					switch m.name {
					case of.written:
						m.at.Offset = 4 * at
					case of.other:
						m.at.Offset, end = 0, m.bytes
					}
				}
				var refused *gemm.OverlapError
				if err := p.CheckOperands(e, o); 4*at >= end {
					assert.NoError(t, err, "%v, %v, the first at %d", of, pitches, at)
				} else if assert.ErrorAs(t, err, &refused, "%v, %v, the first at %d", of, pitches, at) {
					assert.Equal(t, gemm.OverlapError{Written: of.written, Other: of.other}, *refused)
				}
			}
		}
	}
}

// Extents that an int64 does not count are refused, and the longest that it does is taken.
func TestTheLongestExtents(t *testing.T) {
	const most = math.MaxInt64 / 4
	for i, c := range []struct {
		p       gemm.Problem
		refused string
	}{
		{gemm.Problem{M: 1, N: 1, K: 1}, ""},
		{gemm.Problem{M: 2, N: 1, K: 1, LDA: most - 1}, ""},
		{gemm.Problem{M: 2, N: 1, K: 1, LDA: most}, "A"},
		{gemm.Problem{M: 3, N: 1, K: 1, LDA: math.MaxInt64/2 + 1}, "A"},
		{gemm.Problem{M: 1, N: 1, K: 1, Batch: 2, StrideB: most - 1}, ""},
		{gemm.Problem{M: 1, N: 1, K: 1, Batch: 2, StrideB: most}, "B"},
		{gemm.Problem{M: 1, N: 1, K: 2, LDB: most / 2, Batch: 2, StrideB: most/2 + 1}, "B"},
		{gemm.Problem{M: 1, N: 1, K: 1, Batch: 3, StrideB: math.MaxInt64/2 + 1}, "B"},
	} {
		_, e, err := c.p.Check()
		if c.refused == "" {
			require.NoError(t, err, i)
			assert.Positive(t, e.B, i)
			continue
		}
		var refused *gemm.ProblemError
		require.ErrorAs(t, err, &refused, i)
		assert.Equal(t, c.refused, refused.Field, i)
	}
	const limit = math.MaxInt64 >> 32
	for ld, strides := range map[int64]int64{limit: 3 * limit, limit + 1: 0} {
		p := gemm.Problem{M: 3, N: 1, LDC: ld, LDAux: ld}.Filled()
		assert.Equal(t, [2]int64{strides, strides}, [2]int64{p.StrideC, p.StrideAux})
	}
}

// Sizes and texts of the types and precisions.
func TestSizesAndTexts(t *testing.T) {
	for of, want := range map[gemm.Type]int64{gemm.Float32: 4, gemm.Float16: 2, gemm.BFloat16: 2, gemm.Float64: 8} {
		assert.Equal(t, want, of.Bytes(), "%v", of)
	}
	for want, value := range map[string]encoding.TextMarshaler{
		"f64": gemm.Float64, "type 9": gemm.Type(9), "3xTF32": gemm.TF32x3, "precision 9": gemm.Precision(9), "GELU aux": gemm.GELUAux, "epilogue 9": gemm.Epilogue(9),
	} {
		text, err := value.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}
