package attention_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/attention"
	"github.com/go-vram/vram/cuda/gemm"
)

// backward is a problem with its operands and gradients.
type backward struct {
	*forward
	attention.Gradients

	grad, dq, dk, dv *matrix
}

// backward computes the forward pass and makes the gradients.
func (r *rig) backward(x *forward, apart bool) *backward {
	r.Helper()
	b := &backward{forward: x}
	like := func(m *matrix, number func() float64) *matrix {
		all := m.At.Bytes / m.of.Bytes()
		batch := all / max(m.Batch, 1)
		heads, rows := x.Heads, x.Queries
		if m == x.k {
			heads, rows = x.KeyHeads, x.Keys
		}
		return r.matrix(x.Type, batch, heads, rows, x.Dim, apart, number)
	}
	b.grad, b.dq, b.dk, b.dv = like(x.q, r.random.NormFloat64), like(x.q, math.NaN), like(x.k, math.NaN), like(x.k, math.NaN)
	b.Gradients = attention.Gradients{O: b.grad.Matrix, Q: b.dq.Matrix, K: b.dk.Matrix, V: b.dv.Matrix}
	return b
}

// run computes both passes.
func (b *backward) run(r *rig) {
	r.Helper()
	require.NoError(r, r.a.Forward(r.c, b.Problem, b.Operands), fmt.Sprintf("%+v", b.Problem))
	require.NoError(r, r.a.Backward(r.c, b.Problem, b.Operands, b.Gradients), fmt.Sprintf("%+v", b.Problem))
}

// check compares all gradients with the definition.
func (b *backward) check(r *rig) {
	r.Helper()
	x := b.forward
	now := [3][]byte{r.read(b.dq), r.read(b.dk), r.read(b.dv)}
	group := x.Heads / x.KeyHeads
	for batch := range x.Batch {
		for keyHead := range x.KeyHeads {
			keys, values := x.rowsOf(x.k, batch, keyHead, x.Keys), x.rowsOf(x.v, batch, keyHead, x.Keys)
			dk, dv := zeros(x.Keys, x.Dim), zeros(x.Keys, x.Dim)
			for h := keyHead * group; h < (keyHead+1)*group; h++ {
				var dq [][]float64
				for i := range x.Queries {
					q := x.q.row(batch, h, i)
					row := attend(q, keys, values, seen(x.Causal, i, x.Queries, x.Keys), x.Scale, x.Dim)
					dq = append(dq, row.gradients(q, b.grad.row(batch, h, i), keys, values, dk, dv, x.Scale))
				}
				b.compare(r, "queries", now[0], b.dq, batch, h, dq)
			}
			b.compare(r, "keys", now[1], b.dk, batch, keyHead, dk)
			b.compare(r, "values", now[2], b.dv, batch, keyHead, dv)
		}
	}
}

func zeros(rows, columns int64) [][]float64 {
	all := make([][]float64, rows)
	for i := range all {
		all[i] = make([]float64, columns)
	}
	return all
}

// compare compares the gradients of a head: errors are relative to the greatest of them, or to 1.
func (b *backward) compare(r *rig, name string, now []byte, m *matrix, batch, head int64, want [][]float64) {
	r.Helper()
	greatest := 1.0
	for _, row := range want {
		for _, w := range row {
			greatest = max(greatest, math.Abs(w))
		}
	}
	for i, row := range want {
		for e, w := range row {
			if got := m.get(now, m.at(batch, head, int64(i), int64(e))); !(math.Abs(got-w) <= 2*tolerance(m.of)*greatest) {
				require.Fail(r, "gradient of "+name, "batch %d head %d row %d element %d: %v, want %v of %v; %+v", batch, head, i, e, got, w, greatest, b.Problem)
			}
		}
	}
}

// Gradients match the definition, for lengths around the sizes of tiles, heads that share keys, and rows in any order.
func TestBackward(t *testing.T) {
	r := newRig(t)
	plain := r.withoutGroups()
	for _, of := range types() {
		for _, dim := range []int64{64, 128} {
			for n, queries := range lengths {
				if testing.Short() && (n+int(of)+int(dim/64))%2 == 0 {
					continue
				}
				p := attention.Problem{
					Batch: 1 + int64(n)%2, Heads: []int64{1, 2, 4}[n%3], KeyHeads: []int64{1, 2, 2}[n%3], Queries: queries, Keys: lengths[(n*3+2)%len(lengths)],
					Dim: dim, Type: of, Causal: n%2 == 1,
				}
				if testing.Short() && queries > 100 { // a head is enough for further tiles
					p.Batch, p.Heads, p.KeyHeads = 1, 1, 1
				}
				if of == gemm.Float16 {
					p.Keys, p.Causal = p.Queries, !p.Causal
				}
				for way, by := range []*rig{r, plain} {
					if testing.Short() && way == n/2%2 {
						continue
					}
					b := by.backward(by.forward(p, n%2 == 0), n%3 == 0)
					b.run(by)
					b.check(by)
				}
			}
		}
	}
	assert.NoError(t, r.c.Synchronize(t.Context()))
}

// So they do where a block has several tiles of rows, each of which goes over more tiles than there is room for.
func TestBackwardOfManyTiles(t *testing.T) {
	r := newRig(t)
	attention.SetMultiprocessors(r.a, 2)
	for n, p := range []attention.Problem{
		{Batch: 1, Heads: 1, Queries: 330, Keys: 330, Dim: 64, Causal: true},
		{Batch: 1, Heads: 2, KeyHeads: 1, Queries: 200, Keys: 300, Dim: 64, Causal: true},
		{Batch: 1, Heads: 1, Queries: 270, Keys: 140, Dim: 128, Causal: true},
		{Batch: 2, Heads: 1, Queries: 70, Keys: 300, Dim: 128},
	} {
		if testing.Short() && n%2 == 0 {
			continue
		}
		p.Type = types()[n/2]
		b := r.backward(r.forward(p, n/2 == 0), n/2 == 1)
		b.run(r)
		b.check(r)
	}
	assert.NoError(t, r.c.Synchronize(t.Context()))
}
