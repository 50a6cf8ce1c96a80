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

// forward is a problem with its operands.
type forward struct {
	attention.Problem
	attention.Operands

	q, k, v, o, lse *matrix
}

// forward makes operands of random numbers.
func (r *rig) forward(p attention.Problem, apart bool) *forward {
	r.Helper()
	p, err := p.Check()
	require.NoError(r, err)
	x := &forward{Problem: p}
	x.q = r.matrix(p.Type, p.Batch, p.Heads, p.Queries, p.Dim, apart, r.random.NormFloat64)
	x.k = r.matrix(p.Type, p.Batch, p.KeyHeads, p.Keys, p.Dim, apart, r.random.NormFloat64)
	x.v = r.matrix(p.Type, p.Batch, p.KeyHeads, p.Keys, p.Dim, apart, r.random.NormFloat64)
	x.outputs(r, apart)
	return x
}

// outputs makes the operands that are written.
func (x *forward) outputs(r *rig, apart bool) {
	r.Helper()
	nan := math.NaN
	x.o = r.matrix(x.Type, x.Batch, x.Heads, x.Queries, x.Dim, apart, nan)
	x.lse = r.matrix(gemm.Float32, x.Batch, x.Heads, x.Queries, 1, false, nan)
	x.Q, x.K, x.V, x.O, x.LSE = x.q.Matrix, x.k.Matrix, x.v.Matrix, x.o.Matrix, x.lse.Matrix
}

// seen is how many keys a query sees, of so many.
func seen(causal bool, query, queries, keys int64) int64 {
	if !causal {
		return keys
	}
	return min(max(query+keys-queries+1, 0), keys)
}

// tolerance is the relative error of results.
func tolerance(of gemm.Type) float64 {
	if of == gemm.BFloat16 {
		return 0x1p-7
	}
	return 0x1p-10
}

// check compares all results with the definition.
func (x *forward) check(r *rig) {
	r.Helper()
	o, lse := r.read(x.o), r.read(x.lse)
	group := x.Heads / x.KeyHeads
	for b := range x.Batch {
		for h := range x.Heads {
			keys, values := x.rowsOf(x.k, b, h/group, x.Keys), x.rowsOf(x.v, b, h/group, x.Keys)
			for i := range x.Queries {
				want := attend(x.q.row(b, h, i), keys, values, seen(x.Causal, i, x.Queries, x.Keys), x.Scale, x.Dim)
				x.checkRow(r, o, lse, want, b, h, i)
			}
		}
	}
}

func (x *forward) rowsOf(m *matrix, batch, head, count int64) [][]float64 {
	all := make([][]float64, count)
	for i := range count {
		all[i] = m.row(batch, head, i)
	}
	return all
}

// checkRow compares one row.
func (x *forward) checkRow(r *rig, o, lse []byte, want result, b, h, i int64) {
	r.Helper()
	got := x.lse.get(lse, x.lse.at(b, h, i, 0))
	if !(got == want.lse || math.Abs(got-want.lse) <= 1e-5*max(1, math.Abs(want.lse))) {
		require.Fail(r, "log-sum-exp", "batch %d head %d row %d: %v, want %v", b, h, i, got, want.lse)
	}
	const greatestValue = 5
	for e, w := range want.o {
		if got := x.o.get(o, x.o.at(b, h, i, int64(e))); !(math.Abs(got-w) <= tolerance(x.Type)*greatestValue) {
			require.Fail(r, "output", "batch %d head %d row %d element %d: %v, want %v", b, h, i, e, got, w)
		}
	}
}

var lengths = []int64{0, 1, 15, 16, 17, 63, 64, 65, 127, 129}

func types() []gemm.Type { return []gemm.Type{gemm.BFloat16, gemm.Float16} }

// Outputs and log-sum-exps match the definition, for lengths around the sizes of tiles, heads that share keys, and rows
// in any order.
func TestForward(t *testing.T) {
	r := newRig(t)
	plain := r.withoutGroups()
	for _, of := range types() {
		for _, dim := range []int64{64, 128} {
			for n, queries := range lengths {
				if testing.Short() && (n+int(of)+int(dim/64))%2 == 0 {
					continue
				}
				p := attention.Problem{
					Batch: 1 + int64(n)%2, Heads: []int64{1, 2, 4}[n%3], KeyHeads: []int64{1, 2, 2}[n%3], Queries: queries, Keys: lengths[(n*7+int64OfDim(dim))%len(lengths)],
					Dim: dim, Type: of, Causal: n%2 == 1,
				}
				if testing.Short() && queries > 100 { // a head is enough for further tiles
					p.Batch, p.Heads, p.KeyHeads = 1, 1, 1
				}
				for _, same := range []bool{false, true} {
					if testing.Short() && queries < 64 && same == (n/2%2 == 0) {
						continue
					}
					if same {
						p.Keys, p.Causal = p.Queries, !p.Causal
					}
					for way, by := range []*rig{r, plain} {
						if testing.Short() && (way == 0) == same {
							continue
						}
						x := by.forward(p, n%2 == 0)
						require.NoError(t, by.a.Forward(r.c, x.Problem, x.Operands), fmt.Sprintf("%+v", p))
						x.check(by)
					}
				}
			}
		}
	}
	assert.NoError(t, r.c.Synchronize(t.Context()))
}

func int64OfDim(dim int64) int { return int(dim) / 64 }

// So they do where a block has several tiles of rows, each of which goes over more tiles of keys than there is room for: with and
// without the causal mask, which leaves rows without keys where there are more queries.
func TestForwardOfManyTiles(t *testing.T) {
	r := newRig(t)
	attention.SetMultiprocessors(r.a, 2)
	for n, p := range []attention.Problem{
		{Batch: 1, Heads: 1, Queries: 330, Keys: 330, Dim: 64, Causal: true},
		{Batch: 2, Heads: 1, Queries: 70, Keys: 800, Dim: 64},
		{Batch: 1, Heads: 2, KeyHeads: 1, Queries: 200, Keys: 500, Dim: 128, Causal: true},
		{Batch: 1, Heads: 1, Queries: 300, Keys: 130, Dim: 128, Causal: true},
	} {
		if testing.Short() && n%2 == 0 {
			continue
		}
		p.Type = types()[n/2]
		x := r.forward(p, n/2 == 0)
		require.NoError(t, r.a.Forward(r.c, x.Problem, x.Operands), fmt.Sprintf("%+v", p))
		x.check(r)
	}
	assert.NoError(t, r.c.Synchronize(t.Context()))
}

// Sequences that share their keys and values, whose stride is 0, have results, too: the copy engine does not bring them.
func TestForwardOfSharedKeys(t *testing.T) {
	r := newRig(t)
	x := r.forward(attention.Problem{Batch: 2, Heads: 1, Queries: 66, Keys: 70, Dim: 64, Type: gemm.BFloat16}, false)
	x.k.Batch, x.v.Batch = 0, 0
	x.K, x.V = x.k.Matrix, x.v.Matrix
	require.NoError(t, r.a.Forward(r.c, x.Problem, x.Operands))
	x.check(r)
}
