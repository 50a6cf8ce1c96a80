package attention_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/attention"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
)

// NaN and Inf have the results of softmax in PyTorch: a NaN in a query, a NaN or an Inf in a key's product make rows NaN, an
// Inf in a value makes one element Inf, and a score of -Inf is a key that does not count.
func TestSpecialNumbers(t *testing.T) {
	r := newRig(t)
	inf, nan := math.Inf(1), math.NaN()
	plain := r.withoutGroups()
	for n, queries := range []int64{3, 70, 70} { // few, and many
		p := attention.Problem{Batch: 1, Heads: 1, Queries: queries, Keys: 70, Dim: 64, Type: gemm.BFloat16}
		x := r.forward(p, false)
		set := func(m *matrix, row, i int64, v float64) { m.put(m.at(0, 0, row, i), v) }
		for i := range p.Dim { // row 0 has scores of +1 or -1 with one element of keys alone
			set(x.q, 0, i, 0)
			set(x.q, 1, i, 0)
		}
		set(x.q, 0, 5, 1)
		set(x.q, 1, 5, -1)
		set(x.q, 2, 7, nan)
		set(x.k, 66, 5, inf)
		set(x.v, 3, 9, inf)
		for _, m := range []*matrix{x.q, x.k, x.v} {
			require.NoError(t, r.c.CopyInAt(m.At.Buffer, 0, m.host))
		}
		by := r
		if n == 2 {
			by = plain
		}
		require.NoError(t, by.a.Forward(r.c, x.Problem, x.Operands))
		o, lse := r.read(x.o), r.read(x.lse)
		at := func(row, i int64) float64 { return x.o.get(o, x.o.at(0, 0, row, i)) }
		for i := range p.Dim {
			assert.True(t, math.IsNaN(at(0, i)), "a score of Inf: element %d is %v", i, at(0, i))
			assert.True(t, math.IsNaN(at(2, i)), "a query of NaN: element %d is %v", i, at(2, i))
			if i == 9 {
				assert.Equal(t, inf, at(1, i), "a value of Inf")
			} else {
				assert.False(t, math.IsNaN(at(1, i)) || math.IsInf(at(1, i), 0), "a score of -Inf: element %d is %v", i, at(1, i))
			}
		}
		assert.True(t, math.IsNaN(x.lse.get(lse, x.lse.at(0, 0, 2, 0))))
	}
	assert.NoError(t, r.c.Synchronize(t.Context()))
}

// The same call has the same bits, in both passes.
func TestRepeatedRunsAreEqual(t *testing.T) {
	r := newRig(t)
	batch, runs, keys := int64(2), 3, int64(900)
	if testing.Short() {
		batch, runs, keys = 1, 2, 512 // of two parts
	}
	for _, p := range []attention.Problem{
		{Batch: batch, Heads: 2 * batch, KeyHeads: batch, Queries: 130, Keys: 130, Dim: 64, Type: gemm.BFloat16, Causal: true},
		{Batch: 1, Heads: 2, Queries: 1, Keys: keys, Dim: 128, Type: gemm.Float16},
	} {
		b := r.backward(r.forward(p, true), true)
		written := []*matrix{b.o, b.lse, b.dq, b.dk, b.dv}
		var first [][]byte
		for again := range runs {
			b.run(r)
			for i, m := range written {
				now := r.read(m)
				if again == 0 {
					first = append(first, now)
				}
				assert.Equal(t, first[i], now)
				require.NoError(t, r.c.CopyInAt(m.At.Buffer, 0, m.host))
			}
		}
	}
	assert.NoError(t, r.c.Synchronize(t.Context()))
}

// A forward pass without log-sum-exps, and rows of gradients that alternate in one range.
func TestSharedRanges(t *testing.T) {
	r := newRig(t)
	p := attention.Problem{Batch: 2, Heads: 2, Queries: 40, Keys: 40, Dim: 64, Type: gemm.Float16, Causal: true}
	b := r.backward(r.forward(p, false), false)
	b.run(r)
	want := [3][]byte{r.read(b.dq), r.read(b.dk), r.read(b.dv)}
	all := r.matrix(p.Type, p.Batch, p.Heads, p.Queries, 3*p.Dim, true, math.NaN) // a row has queries, keys and values
	for i, m := range []*attention.Matrix{&b.Gradients.Q, &b.Gradients.K, &b.Gradients.V} {
		*m = all.Matrix
		m.At = cuda.Part(all.At.Buffer, all.At.Offset+int64(i)*2*p.Dim, all.At.Bytes-int64(i)*2*p.Dim)
	}
	require.NoError(t, r.a.Backward(r.c, b.Problem, b.Operands, b.Gradients))
	now := r.read(all)
	for batch := range p.Batch {
		for h := range p.Heads {
			for row := range p.Queries {
				for i := range 3 * p.Dim {
					want := b.dq.get(want[i/p.Dim], b.dq.at(batch, h, row, i%p.Dim))
					require.Equal(t, want, all.get(now, all.at(batch, h, row, i)))
				}
			}
		}
	}
	before := r.read(b.o)
	require.NoError(t, r.c.CopyInAt(b.o.At.Buffer, 0, b.o.host))
	b.LSE = attention.Matrix{}
	require.NoError(t, r.a.Forward(r.c, b.Problem, b.Operands))
	assert.Equal(t, before, r.read(b.o))
	assert.NoError(t, r.c.Synchronize(t.Context()))
}
