package ops_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// halves makes a tensor of random numbers of 16 bits, with a layout that view chooses by number.
func (r *rig) halves(kind int, of tensor.Type, shape ...int) (*tensor.Tensor, array) {
	r.Helper()
	t := r.viewAs(kind, of, shape)
	values, err := tensor.New(r.s, tensor.Float32, shape...)
	require.NoError(r, err)
	r.write(values, newArray(shape, r.random.NormFloat64).values)
	require.NoError(r, r.o.CopyInto(r.s, t, values))
	return t, r.read(t)
}

// attentionOf computes attention and the gradients for a gradient of the output in float64, from the definition: of arrays of
// [batch, heads, rows, elements].
func attentionOf(q, k, v, grad array, causal bool) (out, lse, dq, dk, dv []float64) {
	batch, heads, queries, dim := q.shape[0], q.shape[1], q.shape[2], q.shape[3]
	keyHeads, keys := k.shape[1], k.shape[2]
	scale := 1 / math.Sqrt(float64(dim))
	out, dq = make([]float64, len(q.values)), make([]float64, len(q.values))
	dk, dv = make([]float64, len(k.values)), make([]float64, len(k.values))
	row := func(a []float64, b, h, heads, i, rows int) []float64 { return a[((b*heads+h)*rows+i)*dim:][:dim] }
	dot := func(x, y []float64) (sum float64) {
		for i := range x {
			sum += x[i] * y[i]
		}
		return sum
	}
	for b := range batch {
		for h := range heads {
			g := h / (heads / keyHeads)
			for i := range queries {
				seen := keys
				if causal {
					seen = min(keys, max(0, i+keys-queries+1))
				}
				p, sum := make([]float64, seen), 0.0
				for j := range p {
					p[j] = math.Exp(scale * dot(row(q.values, b, h, heads, i, queries), row(k.values, b, g, keyHeads, j, keys)))
					sum += p[j]
				}
				lse = append(lse, math.Log(sum))
				o, its := row(out, b, h, heads, i, queries), row(grad.values, b, h, heads, i, queries)
				for j := range p {
					p[j] /= sum
					for e := range o {
						o[e] += p[j] * row(v.values, b, g, keyHeads, j, keys)[e]
					}
				}
				delta := dot(o, its)
				for j := range p {
					ds := scale * p[j] * (dot(its, row(v.values, b, g, keyHeads, j, keys)) - delta)
					for e := range o {
						row(dq, b, h, heads, i, queries)[e] += ds * row(k.values, b, g, keyHeads, j, keys)[e]
						row(dk, b, g, keyHeads, j, keys)[e] += ds * row(q.values, b, h, heads, i, queries)[e]
						row(dv, b, g, keyHeads, j, keys)[e] += p[j] * its[e]
					}
				}
			}
		}
	}
	return out, lse, dq, dk, dv
}

// Outputs and gradients match the definition for operands of all layouts, of which the kernels take some as they are.
func TestAttention(t *testing.T) {
	r := newRig(t)
	for kind := range views {
		of, bound := tensor.BFloat16, 0x1p-7
		if kind%2 == 1 {
			of, bound = tensor.Float16, 0x1p-10
		}
		how := ops.AttentionConfig{Causal: kind%3 != 0}
		batch, heads, keyHeads := 2, 4, 2
		switch {
		case testing.Short() && kind%4 < 2: // in both types
			batch = 1
		case testing.Short():
			heads, keyHeads = 2, 1
		}
		q, a := r.halves(kind, of, batch, heads, 9, 64)
		k, b := r.halves((kind+1)%views, of, batch, keyHeads, 12, 64)
		v, c := r.halves((kind+2)%views, of, batch, keyHeads, 12, 64)
		grad, d := r.halves((kind+3)%views, of, batch, heads, 9, 64)
		out, lse, err := r.o.Attention(r.s, q, k, v, how)
		require.NoError(t, err)
		want, wantLSE, wantDQ, wantDK, wantDV := attentionOf(a, b, c, d, how.Causal)
		r.near(want, out, bound, 2, kind)
		r.near(wantLSE, lse, 1e-5, 1, kind)
		dq, dk, dv, err := r.o.AttentionBackward(r.s, grad, out, lse, q, k, v, how)
		require.NoError(t, err)
		for i, x := range []struct {
			want []float64
			got  *tensor.Tensor
		}{{wantDQ, dq}, {wantDK, dk}, {wantDV, dv}} {
			r.near(x.want, x.got, bound, 4, kind, i)
		}
		into := r.viewAs((kind+4)%views, of, q.Shape())
		require.NoError(t, r.o.AttentionInto(r.s, into, nil, q, k, v, how))
		assert.Equal(t, r.read(out), r.read(into), "the same bits in any layout")
	}
}

// The parts of one tensor for queries, keys and values, as a product makes them, are read as they are, and the gradients are
// written to the parts of another one.
func TestAttentionOfParts(t *testing.T) {
	r := newRig(t)
	const batch, rows, heads, dim = 2, 10, 2, 64
	parts := func(x *tensor.Tensor) (all [3]*tensor.Tensor) {
		for i := range all {
			part, err := x.Index(2, i)
			require.NoError(t, err)
			all[i], err = part.Permute(0, 2, 1, 3)
			require.NoError(t, err)
		}
		return all
	}
	packed, _ := r.halves(viewContiguous, tensor.BFloat16, batch, rows, 3, heads, dim)
	to, _ := r.halves(viewContiguous, tensor.BFloat16, batch, rows, 3, heads, dim)
	x, d := parts(packed), parts(to)
	grad, g := r.halves(viewContiguous, tensor.BFloat16, batch, heads, rows, dim)
	how := ops.AttentionConfig{Causal: true}
	out, lse, err := r.o.Attention(r.s, x[0], x[1], x[2], how)
	require.NoError(t, err)
	require.NoError(t, r.o.AttentionBackwardInto(r.s, d[0], d[1], d[2], grad, out, lse, x[0], x[1], x[2], how))
	want, _, dq, dk, dv := attentionOf(r.read(x[0]), r.read(x[1]), r.read(x[2]), g, true)
	r.near(want, out, 0x1p-7, 2)
	for i, want := range [][]float64{dq, dk, dv} {
		r.near(want, d[i], 0x1p-7, 4, i)
	}
	require.ErrorIs(t, r.o.AttentionBackwardInto(r.s, d[0], d[1], d[1], grad, out, lse, x[0], x[1], x[2], how), kernel.ErrOverlap)
	require.ErrorIs(t, r.o.AttentionBackwardInto(r.s, d[0], d[1], x[2], grad, out, lse, x[0], x[1], x[2], how), kernel.ErrOverlap)
	require.ErrorIs(t, r.o.AttentionInto(r.s, x[0], nil, x[0], x[1], x[2], how), kernel.ErrOverlap)
}

// Gradients that are nil are left out, and the others have the same bits: in each layout, and of sequences. Without any, nothing is launched.
func TestSomeGradientsOfAttention(t *testing.T) {
	r := newRig(t)
	offsets := r.made(tensor.Int32, 3)
	require.NoError(t, tensor.Write(offsets, []int32{2, 5, 7}))
	for name, c := range map[string]struct {
		batch []int
		how   ops.AttentionConfig
	}{
		"batches":   {[]int{1}, ops.AttentionConfig{Causal: true}},
		"sequences": {nil, ops.AttentionConfig{QueryOffsets: offsets, KeyOffsets: offsets}},
	} {
		shape := func(heads int) []int { return append(slices.Clone(c.batch), heads, 9, 64) }
		q, _ := r.halves(viewContiguous, tensor.Float16, shape(2)...)
		k, _ := r.halves(viewContiguous, tensor.Float16, shape(1)...)
		out, lse := r.laidRows(viewContiguous, tensor.Float16, shape(2)...), r.laidRows(viewContiguous, tensor.Float32, shape(2)[:len(shape(2))-1]...)
		require.NoError(t, r.o.AttentionInto(r.s, out, lse, q, k, k, c.how))
		gradients := func(kind, given int) (all [3]*tensor.Tensor) {
			for i, heads := range []int{2, 1, 1} {
				if given&(1<<i) != 0 {
					all[i] = r.laidRows(kind, tensor.Float16, shape(heads)...)
				}
			}
			return all
		}
		back := func(d [3]*tensor.Tensor, grad *tensor.Tensor) error {
			return r.o.AttentionBackwardInto(r.s, d[0], d[1], d[2], grad, out, lse, q, k, k, c.how)
		}
		want := gradients(viewContiguous, 7)
		require.NoError(t, back(want, q))
		for given := range 7 {
			got := gradients([]int{viewContiguous, viewStep}[given%2], given)
			require.NoError(t, back(got, q), "%s %b", name, given)
			for i, x := range got {
				if x != nil {
					r.near(r.read(want[i]).values, x, 0, 0, name, given, i)
				}
			}
		}
		require.ErrorIs(t, back([3]*tensor.Tensor{}, nil), tensor.ErrNoTensor)
		require.ErrorIs(t, back([3]*tensor.Tensor{nil, want[0]}, q), ops.ErrShape)
		require.ErrorIs(t, back([3]*tensor.Tensor{1: want[1], 2: want[1]}, q), kernel.ErrOverlap)
		profile, err := r.c.StartProfile()
		require.NoError(t, err)
		require.NoError(t, back([3]*tensor.Tensor{}, q))
		launched, err := profile.Stop()
		require.NoError(t, err)
		assert.Empty(t, launched)
	}
}

// Sequences by offsets, and caches in pages with lengths, have the results of each sequence alone.
func TestAttentionOfSequences(t *testing.T) {
	r := newRig(t)
	const heads, keyHeads, dim = 4, 2, 64
	how := ops.AttentionConfig{Causal: true}
	numbers := func(shape []int, all ...int32) *tensor.Tensor {
		x, err := tensor.From(r.s, all, shape...)
		require.NoError(t, err)
		return x
	}
	offsets := []int32{0, 5, 5, 20}
	q, a := r.halves(viewContiguous, tensor.Float16, heads, 20, dim)
	k, b := r.halves(viewContiguous, tensor.Float16, keyHeads, 20, dim)
	v, c := r.halves(viewContiguous, tensor.Float16, keyHeads, 20, dim)
	ragged := how
	ragged.QueryOffsets, ragged.KeyOffsets, ragged.MaxQueries, ragged.MaxKeys = numbers([]int{4}, offsets...), numbers([]int{4}, offsets...), 15, 15
	out, lse, err := r.o.Attention(r.s, q, k, v, ragged)
	require.NoError(t, err)
	dq, dk, dv, err := r.o.AttentionBackward(r.s, q, out, lse, q, k, v, ragged)
	require.NoError(t, err)
	rowsOf := func(x array, from, end int) array {
		part := array{shape: []int{1, x.shape[0], end - from, dim}}
		for h := range x.shape[0] {
			part.values = append(part.values, x.values[(h*20+from)*dim:(h*20+end)*dim]...)
		}
		return part
	}
	for s := range 3 {
		from, end := int(offsets[s]), int(offsets[s+1])
		part := rowsOf(a, from, end)
		want, _, wantDQ, wantDK, wantDV := attentionOf(part, rowsOf(b, from, end), rowsOf(c, from, end), part, true)
		for i, x := range []struct {
			want []float64
			of   *tensor.Tensor
		}{{want, out}, {wantDQ, dq}, {wantDK, dk}, {wantDV, dv}} {
			view, err := x.of.Narrow(1, from, end-from)
			require.NoError(t, err)
			r.near(x.want, view, 0x1p-10, 4, s, i)
		}
	}

	// Few queries of many keys, as of a part of a prompt, with bounds of both.
	few := []int32{0, 2, 2, 5}
	q, a = r.halves(viewContiguous, tensor.Float16, heads, 5, dim)
	fewer := how
	fewer.QueryOffsets, fewer.KeyOffsets, fewer.MaxQueries, fewer.MaxKeys = numbers([]int{4}, few...), numbers([]int{4}, offsets...), 3, 15
	out, lse, err = r.o.Attention(r.s, q, k, v, fewer)
	require.NoError(t, err)
	dq, dk, dv, err = r.o.AttentionBackward(r.s, q, out, lse, q, k, v, fewer)
	require.NoError(t, err)
	for s := range 3 {
		part := array{shape: []int{1, heads, int(few[s+1] - few[s]), dim}}
		for h := range heads {
			part.values = append(part.values, a.values[(h*5+int(few[s]))*dim:(h*5+int(few[s+1]))*dim]...)
		}
		from, end := int(offsets[s]), int(offsets[s+1])
		want, _, wantDQ, wantDK, wantDV := attentionOf(part, rowsOf(b, from, end), rowsOf(c, from, end), part, true)
		for i, x := range []struct {
			want      []float64
			of        *tensor.Tensor
			from, end int
		}{{want, out, int(few[s]), int(few[s+1])}, {wantDQ, dq, int(few[s]), int(few[s+1])}, {wantDK, dk, from, end}, {wantDV, dv, from, end}} {
			view, err := x.of.Narrow(1, x.from, x.end-x.from)
			require.NoError(t, err)
			r.near(x.want, view, 0x1p-10, 4, "few", s, i)
		}
	}

	pagesK, b := r.halves(viewContiguous, tensor.Float16, 6, keyHeads, 8, dim)
	pagesV, c := r.halves(viewContiguous, tensor.Float16, 6, keyHeads, 8, dim)
	table, lengths := []int32{5, 2, 0, 1, 4, 3}, []int{3, 20}
	cached := how
	cached.Table, cached.KeyLengths = numbers([]int{2, 3}, table...), numbers([]int{2}, 3, 20)
	q, a = r.halves(viewContiguous, tensor.Float16, 2, heads, 1, dim)
	out, _, err = r.o.Attention(r.s, q, pagesK, pagesV, cached)
	require.NoError(t, err)
	for s, n := range lengths {
		gathered := func(x array) array {
			part := array{shape: []int{1, keyHeads, n, dim}}
			for h := range keyHeads {
				for j := range n {
					page := int(table[s*3+j/8])
					part.values = append(part.values, x.values[((page*keyHeads+h)*8+j%8)*dim:][:dim]...)
				}
			}
			return part
		}
		query := array{[]int{1, heads, 1, dim}, a.values[s*heads*dim:][:heads*dim]}
		want, _, _, _, _ := attentionOf(query, gathered(b), gathered(c), query, true)
		view, err := out.Narrow(0, s, 1)
		require.NoError(t, err)
		r.near(want, view, 0x1p-10, 4, s)
	}
	_, _, _, err = r.o.AttentionBackward(r.s, q, out, lse, q, pagesK, pagesV, cached)
	require.Error(t, err)
}

// Tensors that cannot be operands are refused with the operation and the tensors.
func TestAttentionErrors(t *testing.T) {
	r := newRig(t)
	half := func(shape ...int) *tensor.Tensor {
		x, _ := r.halves(viewContiguous, tensor.BFloat16, shape...)
		return x
	}
	numbers := func(shape ...int) *tensor.Tensor {
		x, err := tensor.Zeros(r.s, tensor.Int32, shape...)
		require.NoError(t, err)
		return x
	}
	none := func(shape ...int) *tensor.Tensor { // without memory
		x, err := tensor.New(r.s, tensor.Int32, shape...)
		require.NoError(t, err)
		return x
	}
	freed := none(3)
	require.NoError(t, freed.Free())
	q, k := half(2, 4, 3, 64), half(2, 2, 5, 64)
	single, err := r.o.Cast(r.s, q, tensor.Float32)
	require.NoError(t, err)
	for name, x := range map[string]struct {
		q, k, v *tensor.Tensor
		how     ops.AttentionConfig
		err     error
	}{
		"ranks":               {q: half(4, 3, 64), k: k, v: k, err: ops.ErrShape},
		"batches":             {q: half(3, 4, 3, 64), k: k, v: k, err: ops.ErrShape},
		"heads":               {q: half(2, 3, 3, 64), k: k, v: k, err: ops.ErrShape},
		"no key head":         {q: q, k: half(2, 0, 5, 64), v: half(2, 0, 5, 64), err: ops.ErrShape},
		"elements":            {q: half(2, 4, 3, 32), k: half(2, 2, 5, 32), v: half(2, 2, 5, 32), err: ops.ErrShape},
		"keys and values":     {q: q, k: k, v: half(2, 2, 6, 64), err: ops.ErrShape},
		"scale":               {q: q, k: k, v: k, how: ops.AttentionConfig{Scale: -1}, err: ops.ErrNumber},
		"scale of NaN":        {q: q, k: k, v: k, how: ops.AttentionConfig{Scale: math.NaN()}, err: ops.ErrNumber},
		"few offsets":         {q: half(4, 3, 64), k: k, v: k, how: ops.AttentionConfig{QueryOffsets: numbers(2)}, err: ops.ErrShape},
		"lengths":             {q: q, k: k, v: k, how: ops.AttentionConfig{KeyLengths: numbers(3)}, err: ops.ErrShape},
		"no lengths":          {q: q, k: half(2, 2, 4, 64), v: half(2, 2, 4, 64), how: ops.AttentionConfig{Table: numbers(2, 2)}, err: ops.ErrShape},
		"pages of 5 rows":     {q: q, k: k, v: k, how: ops.AttentionConfig{Table: numbers(2, 2), KeyLengths: numbers(2)}, err: ops.ErrShape},
		"no tensor":           {q: q, k: k, v: nil, err: tensor.ErrNoTensor},
		"no lengths of pages": {q: q, k: half(2, 2, 4, 64), v: half(2, 2, 4, 64), how: ops.AttentionConfig{Table: numbers(2)}, err: ops.ErrShape},
		"a flat table": {
			q: q, k: half(2, 2, 4, 64), v: half(2, 2, 4, 64), how: ops.AttentionConfig{Table: numbers(4), KeyLengths: numbers(2)}, err: ops.ErrShape,
		},
		"a table of no pages": {
			q: q, k: half(2, 2, 4, 64), v: half(2, 2, 4, 64), how: ops.AttentionConfig{Table: numbers(2, 0), KeyLengths: numbers(2)}, err: ops.ErrShape,
		},
		"pages of no rows": {
			q: q, k: half(2, 2, 0, 64), v: half(2, 2, 0, 64), how: ops.AttentionConfig{Table: numbers(2, 2), KeyLengths: numbers(2)}, err: ops.ErrShape,
		},
		"many pages": {
			q: q, k: half(2, 2, 4, 64), v: half(2, 2, 4, 64), how: ops.AttentionConfig{Table: none(2, 1<<29), KeyLengths: numbers(2)}, err: ops.ErrShape,
		},
		"no query offsets": {q: half(4, 3, 64), k: k, v: k, how: ops.AttentionConfig{QueryOffsets: freed}, err: tensor.ErrFreed},
		"negative maximum": {q: half(4, 3, 64), k: k, v: k, how: ops.AttentionConfig{QueryOffsets: numbers(3), MaxQueries: -1}, err: ops.ErrShape},
	} {
		_, _, err := r.o.Attention(r.s, x.q, x.k, x.v, x.how)
		require.ErrorIs(t, err, x.err, name)
		require.ErrorContains(t, err, "ops: attention of ", name)
	}
	for name, how := range map[string]ops.AttentionConfig{
		"query offsets": {QueryOffsets: &tensor.Tensor{}}, "key offsets": {KeyOffsets: &tensor.Tensor{}}, "key lengths": {KeyLengths: &tensor.Tensor{}},
		"table": {Table: &tensor.Tensor{}, KeyLengths: numbers(2)},
	} {
		_, _, err := r.o.Attention(r.s, q, k, k, how)
		require.ErrorIs(t, err, tensor.ErrNoTensor, name)
	}
	var wrong *tensor.TypeError
	_, _, err = r.o.Attention(r.s, single, k, k, ops.AttentionConfig{})
	require.ErrorAs(t, err, &wrong)
	_, _, err = r.o.Attention(r.s, single, single, single, ops.AttentionConfig{})
	require.ErrorAs(t, err, &wrong)
	_, _, err = r.o.Attention(r.s, q, k, k, ops.AttentionConfig{KeyLengths: k})
	require.ErrorAs(t, err, &wrong)
	ends, err := numbers(6).Slice(0, 0, 6, 2)
	require.NoError(t, err)
	pages, err := numbers(2, 6).Slice(1, 0, 6, 3)
	require.NoError(t, err)
	for _, how := range []ops.AttentionConfig{
		{QueryOffsets: half(3)},
		{QueryOffsets: numbers(3), KeyOffsets: half(3)},
		{Table: half(2, 2), KeyLengths: numbers(2)},
	} {
		_, _, err = r.o.Attention(r.s, half(2, 4, 3, 64), half(2, 2, 4, 64), half(2, 2, 4, 64), how)
		require.ErrorAs(t, err, &wrong, "integers alone")
	}
	_, _, err = r.o.Attention(r.s, half(4, 3, 64), half(2, 2, 4, 64), half(2, 2, 4, 64), ops.AttentionConfig{QueryOffsets: ends})
	require.ErrorIs(t, err, ops.ErrShape, "offsets with gaps")
	_, _, err = r.o.Attention(r.s, q, half(2, 2, 4, 64), half(2, 2, 4, 64), ops.AttentionConfig{Table: pages, KeyLengths: numbers(2)})
	require.ErrorIs(t, err, ops.ErrShape, "a table with gaps")
	out, lse, err := r.o.Attention(r.s, q, k, k, ops.AttentionConfig{})
	require.NoError(t, err)
	_, _, _, err = r.o.AttentionBackward(r.s, q, out, nil, q, k, k, ops.AttentionConfig{})
	require.ErrorIs(t, err, tensor.ErrNoTensor)
	_, _, _, err = r.o.AttentionBackward(r.s, k, out, lse, q, k, k, ops.AttentionConfig{})
	require.ErrorIs(t, err, ops.ErrShape)
	_, _, err = ops.Attentions{}.Attention(r.s, q, k, k, ops.AttentionConfig{})
	require.ErrorIs(t, err, ops.ErrNotOpen)
}

// Rows of no sequence stay as they are, in any layout; so does all around the rows.
func TestRowsOfNoSequence(t *testing.T) {
	r := newRig(t)
	const heads, rows, dim = 2, 9, 64
	offsets := r.made(tensor.Int32, 3)
	require.NoError(t, tensor.Write(offsets, []int32{2, 5, 7}))
	how := ops.AttentionConfig{QueryOffsets: offsets, KeyOffsets: offsets}
	q, _ := r.halves(viewContiguous, tensor.Float16, heads, rows, dim)
	want, wantLSE := r.laidRows(viewContiguous, tensor.Float16, heads, rows, dim), r.laidRows(viewContiguous, tensor.Float32, heads, rows)
	require.NoError(t, r.o.AttentionInto(r.s, want, wantLSE, q, q, q, how))
	var gradients [3]*tensor.Tensor
	for i := range gradients {
		gradients[i] = r.laidRows(viewContiguous, tensor.Float16, heads, rows, dim)
	}
	backward := func(to [3]*tensor.Tensor) error {
		return r.o.AttentionBackwardInto(r.s, to[0], to[1], to[2], q, want, wantLSE, q, q, q, how)
	}
	require.NoError(t, backward(gradients))
	for _, x := range []*tensor.Tensor{want, gradients[0], gradients[1], gradients[2]} {
		for row, left := range []bool{true, true, false, false, false, false, false, true, true} {
			part, err := x.Narrow(1, row, 1)
			require.NoError(t, err)
			sevens := !slices.ContainsFunc(r.read(part).values, func(v float64) bool { return v != 7 })
			require.Equal(t, left, sevens, row)
		}
	}
	for _, kind := range []int{viewStep, viewMisaligned, viewBackwards} {
		out, lse := r.laidRows(kind, tensor.Float16, heads, rows, dim), r.laidRows(kind, tensor.Float32, heads, rows)
		require.NoError(t, r.o.AttentionInto(r.s, out, lse, q, q, q, how))
		r.near(r.read(want).values, out, 0, 0, kind)
		r.near(r.read(wantLSE).values, lse, 0, 0, kind)
		to := [3]*tensor.Tensor{}
		for i := range to {
			to[i] = r.laidRows(kind, tensor.Float16, heads, rows, dim)
		}
		require.NoError(t, backward(to))
		for i := range to {
			r.near(r.read(gradients[i]).values, to[i], 0, 0, kind, i)
		}
	}
}

// laidRows is a tensor in a layout whose elements are 7.
func (r *rig) laidRows(kind int, of tensor.Type, shape ...int) *tensor.Tensor {
	r.Helper()
	x := r.viewAs(kind, of, shape)
	require.NoError(r, r.o.FillInto(r.s, x, 7))
	return x
}
