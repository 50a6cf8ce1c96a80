package attention_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/attention"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
)

// A problem that cannot be is refused with its field.
func TestProblems(t *testing.T) {
	good := attention.Problem{Batch: 2, Heads: 4, KeyHeads: 2, Queries: 5, Keys: 6, Dim: 64, Type: gemm.Float16}
	filled, err := good.Check()
	require.NoError(t, err)
	assert.InDelta(t, 0.125, filled.Scale, 0)
	for field, change := range map[string]func(p *attention.Problem){
		"Batch":            func(p *attention.Problem) { p.Batch = -1 },
		"Heads":            func(p *attention.Problem) { p.Heads = 0 },
		"KeyHeads":         func(p *attention.Problem) { p.KeyHeads = 3 },
		"Queries":          func(p *attention.Problem) { p.Queries = attention.MaxRows + 1 },
		"Keys":             func(p *attention.Problem) { p.Keys = -1 },
		"Dim":              func(p *attention.Problem) { p.Dim = 32 },
		"Type":             func(p *attention.Problem) { p.Type = gemm.Float32 },
		"Scale":            func(p *attention.Problem) { p.Scale = -1 },
		"PageRows":         func(p *attention.Problem) { p.PageRows = 24 },
		"PagesPerSequence": func(p *attention.Problem) { p.PageRows, p.PagesPerSequence = 2, 2 },
	} {
		p := good
		change(&p)
		_, err := p.Check()
		var wrong *attention.ProblemError
		require.ErrorAs(t, err, &wrong, field)
		assert.Equal(t, field, wrong.Field)
		assert.Contains(t, err.Error(), "attention: "+field+" is ")
	}
	for _, scale := range []float64{math.NaN(), math.Inf(1), 1e-300} {
		p := good
		p.Scale = scale
		_, err := p.Check()
		require.Error(t, err)
	}
	p := good
	p.Batch, p.Queries = 1<<20, attention.MaxRows
	_, err = p.Check()
	require.ErrorContains(t, err, "less work than a grid has blocks")
}

// Operands that cannot be are refused with their name, and nothing is submitted.
func TestOperands(t *testing.T) {
	r := newRig(t)
	p := attention.Problem{Batch: 2, Heads: 2, Queries: 5, Keys: 6, Dim: 64, Type: gemm.Float16}
	strides := map[string]int64{"Q.Head": 1<<61 - 64, "K.Row": 68, "V.Head": -64, "O.Batch": 1 << 62}
	for field, change := range map[string]func(b *backward){
		"Q":                func(b *backward) { b.Operands.Q.At.Bytes -= 2 },
		"Q.Head":           func(b *backward) { b.Operands.Q.Batch, b.Operands.Q.Head = 1<<61-64, 1<<61-64 }, // each fits, and not both
		"K.Row":            func(b *backward) { b.Operands.K.Row = 68 },
		"V.Head":           func(b *backward) { b.Operands.V.Head = -64 },
		"O":                func(b *backward) { b.Operands.O.At.Offset += 8 },
		"O.Batch":          func(b *backward) { b.Operands.O.Batch = 1 << 62 },
		"LSE":              func(b *backward) { b.LSE.At.Bytes = 4 },
		"QueryOffsets":     func(b *backward) { b.QueryOffsets = r.numbers(0, 1) },
		"KeyOffsets":       func(b *backward) { b.KeyOffsets, b.KeyLengths = r.numbers(0, 1, 2), r.numbers(1, 2) },
		"KeyLengths":       func(b *backward) { b.KeyLengths = cuda.Part(r.numbers(1, 2, 3).Buffer, 2, 8) },
		"PageRows":         func(b *backward) { b.Table = r.numbers(1, 2) },
		"gradient of K":    func(b *backward) { b.Gradients.K.At.Bytes-- },
		"gradient of O":    func(b *backward) { b.Gradients.O.At = cuda.Range{} },
		"PagesPerSequence": func(b *backward) { b.PageRows = 16 },
	} {
		b := r.backward(r.forward(p, false), false)
		change(b)
		err := r.a.Forward(r.c, b.Problem, b.Operands)
		if err == nil {
			err = r.a.Backward(r.c, b.Problem, b.Operands, b.Gradients)
		}
		var wrong *attention.ProblemError
		require.ErrorAs(t, err, &wrong, field)
		assert.Equal(t, field, wrong.Field)
		if value, ok := strides[field]; ok {
			assert.Equal(t, value, wrong.Value, field)
		}
	}
	b := r.backward(r.forward(p, false), false)
	b.PageRows, b.Pages, b.PagesPerSequence = 16, 2, 1
	require.ErrorContains(t, r.a.Forward(r.c, b.Problem, b.Operands), "PageRows is 16: want 0, for there is no table")
	b = r.backward(r.forward(p, false), false)
	b.KeyLengths = r.numbers(1, 1)
	require.ErrorContains(t, r.a.Backward(r.c, b.Problem, b.Operands, b.Gradients), "no lengths in a backward pass")
	var none *attention.Attention
	require.ErrorIs(t, none.Forward(r.c, p, b.Operands), cuda.ErrNotOpen)
	require.ErrorIs(t, none.Backward(r.c, p, b.Operands, b.Gradients), cuda.ErrNotOpen)
	require.ErrorIs(t, none.Prepare(p, true), cuda.ErrNotOpen)
	freed := r.forward(p, false)
	buffer, err := r.c.Alloc(freed.Q.At.Bytes)
	require.NoError(t, err)
	require.NoError(t, buffer.Free())
	freed.Q.At = cuda.Whole(buffer)
	require.Error(t, r.a.Forward(r.c, freed.Problem, freed.Operands), "a freed buffer")
	assert.NoError(t, r.c.Synchronize(t.Context()))
}

// sequences are problems whose operands together are all that there are: of offsets, and of lengths and a table.
func sequences() (offsets, pages attention.Problem) {
	return attention.Problem{Batch: 2, Heads: 2, Queries: 8, Keys: 8, AllQueries: 16, AllKeys: 16, Dim: 64, Type: gemm.Float16},
		attention.Problem{Batch: 2, Heads: 2, Queries: 8, Keys: 8, PageRows: 8, Pages: 2, PagesPerSequence: 1, Dim: 64, Type: gemm.Float16}
}

// sequences has the operands of such a problem.
func (r *rig) sequences(p attention.Problem) *backward {
	b := r.backward(r.forward(p, false), false)
	if p.Pages > 0 {
		b.KeyLengths, b.Table = r.numbers(8, 8), r.numbers(0, 1)
	} else {
		b.QueryOffsets, b.KeyOffsets = r.numbers(0, 8, 16), r.numbers(0, 8, 16)
	}
	return b
}

// ranges are the ranges of operands, by their names.
func ranges(b *backward) map[string]*cuda.Range {
	o, g := &b.Operands, &b.Gradients
	return map[string]*cuda.Range{
		"Q": &o.Q.At, "K": &o.K.At, "V": &o.V.At, "O": &o.O.At, "LSE": &o.LSE.At, "QueryOffsets": &o.QueryOffsets, "KeyOffsets": &o.KeyOffsets,
		"KeyLengths": &o.KeyLengths, "Table": &o.Table,
		"gradient of O": &g.O.At, "gradient of Q": &g.Q.At, "gradient of K": &g.K.At, "gradient of V": &g.V.At,
	}
}

// An output that shares memory with any other operand is refused, and with another output, too: only the rows of gradients may alternate.
func TestOutputsShareNoMemory(t *testing.T) {
	r := newRig(t)
	offsets, pages := sequences()
	tried := 0
	for _, c := range []struct {
		p       attention.Problem
		outputs []string
		pass    func(b *backward) error
	}{
		{offsets, []string{"O", "LSE"}, func(b *backward) error { return r.a.Forward(r.c, b.Problem, b.Operands) }},
		{pages, []string{"O", "LSE"}, func(b *backward) error { return r.a.Forward(r.c, b.Problem, b.Operands) }},
		{offsets, []string{"gradient of Q", "gradient of K", "gradient of V"}, func(b *backward) error { return r.a.Backward(r.c, b.Problem, b.Operands, b.Gradients) }},
	} {
		for _, output := range c.outputs {
			for other := range ranges(r.sequences(c.p)) {
				b := r.sequences(c.p)
				all := ranges(b)
				to, from := all[output], all[other]
				forward := strings.HasPrefix(other, "gradient") && c.outputs[0] == "O" // it has no gradients
				if from.Bytes == 0 || output == other || forward {
					continue
				}
				if to.Bytes < from.Bytes {
					*to = cuda.Part(from.Buffer, from.Offset, to.Bytes)
				} else {
					*from = cuda.Part(to.Buffer, to.Offset, from.Bytes)
				}
				written, shared := output, other
				if at := slices.Index(c.outputs, other); at > slices.Index(c.outputs, output) { // of two outputs the later one is named first
					written, shared = other, output
				}
				err := c.pass(b)
				require.ErrorIs(t, err, cuda.ErrOverlap, "%s and %s", output, other)
				require.ErrorContains(t, err, "attention: "+written+" is written and shares memory with "+shared+": ")
				tried++
			}
		}
	}
	assert.Equal(t, 2*6+2*6+3*10, tried)
	assert.NoError(t, r.c.Synchronize(t.Context()))
}

// Each operand is refused with its name where its range begins before its buffer or is too short, and with an error where it does not
// end in its buffer. Nothing is submitted.
func TestRangesOfEveryOperand(t *testing.T) {
	r := newRig(t)
	offsets, pages := sequences()
	wrong := map[string]func(at *cuda.Range){
		"before": func(at *cuda.Range) { at.Offset = -16 },
		"first":  func(at *cuda.Range) { at.Offset = math.MinInt64 + 64 },
		"short":  func(at *cuda.Range) { at.Bytes /= 2 },
		"none":   func(at *cuda.Range) { at.Bytes = -16 },
		"after":  func(at *cuda.Range) { at.Offset = at.Buffer.Bytes() },
		"last":   func(at *cuda.Range) { at.Offset = math.MaxInt64 - 63 },
	}
	tried := 0
	for _, p := range []attention.Problem{offsets, pages} {
		for name, first := range ranges(r.sequences(p)) {
			if first.Bytes == 0 || p.Pages > 0 && strings.HasPrefix(name, "gradient") {
				continue
			}
			for how, change := range wrong {
				b := r.sequences(p)
				change(ranges(b)[name])
				var err error
				if strings.HasPrefix(name, "gradient") {
					err = r.a.Backward(r.c, b.Problem, b.Operands, b.Gradients)
				} else {
					err = r.a.Forward(r.c, b.Problem, b.Operands)
				}
				require.Error(t, err, "%s: %s", name, how)
				if how != "after" && how != "last" {
					var refused *attention.ProblemError
					require.ErrorAs(t, err, &refused, "%s: %s", name, how)
					require.Equal(t, name, refused.Field, how)
				}
				tried++
			}
		}
	}
	assert.Equal(t, (11+7)*len(wrong), tried)
	for name, p := range map[string]attention.Problem{"QueryOffsets": offsets, "KeyOffsets": offsets, "KeyLengths": pages, "Table": pages} {
		b := r.sequences(p)
		ranges(b)[name].Bytes -= 4
		var refused *attention.ProblemError
		require.ErrorAs(t, r.a.Forward(r.c, b.Problem, b.Operands), &refused, "%s: one number less", name)
		require.Equal(t, name, refused.Field)
	}
	assert.NoError(t, r.c.Synchronize(t.Context()))
}

// With kernel.Prepared only prepared problems are computed: Prepare and the list of Needs have all kernels of both passes.
func TestPrepare(t *testing.T) {
	r := newRigOn(t, open(t), kernel.Prepared())
	split := attention.Problem{Batch: 1, Heads: 1, Queries: 1, Keys: 600, Dim: 64, Type: gemm.Float16}
	b := r.backward(r.forward(split, false), false)
	require.ErrorIs(t, r.a.Forward(r.c, b.Problem, b.Operands), kernel.ErrNotPrepared)
	require.ErrorIs(t, r.a.Backward(r.c, b.Problem, b.Operands, b.Gradients), kernel.ErrNotPrepared)
	needs, err := r.a.Needs(true, split, split)
	require.NoError(t, err)
	assert.Len(t, needs, 3)
	require.NoError(t, r.a.Prepare(split, true))
	b.run(r)
	b.check(r)
	whole := r.read(b.o)
	require.NoError(t, r.c.CopyInAt(b.o.At.Buffer, 0, b.o.host))
	b.LSE = attention.Matrix{}
	require.NoError(t, r.a.Forward(r.c, b.Problem, b.Operands))
	assert.Equal(t, whole, r.read(b.o), "parts are added up without log-sum-exps, too")
	_, err = r.a.Needs(false, attention.Problem{})
	require.Error(t, err)
	assert.NoError(t, r.c.Synchronize(t.Context()))
}
