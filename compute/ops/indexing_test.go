package ops_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// whole are numbers that small integer types have.
func (r *rig) whole() float64 { return float64(r.random.IntN(100)) }

// of is a tensor of a type and a random layout with the values of an array, which are rounded to it.
func (r *rig) of(kind tensor.Type, a array) *tensor.Tensor {
	r.Helper()
	t := r.view(kind, a.shape)
	require.NoError(r, r.o.CopyInto(r.s, t, r.tensor(a)))
	copy(a.values, r.read(t).values)
	return t
}

// indexType is one of the two.
func (r *rig) indexType() tensor.Type {
	return []tensor.Type{tensor.Int32, tensor.Int64}[r.random.IntN(2)]
}

// indices are as many as the shape has, below a length; sometimes they are broadcast along the last dimensions.
func (r *rig) indices(shape []int, length int) (array, *tensor.Tensor) {
	r.Helper()
	few := slices.Clone(shape)
	if len(few) > 0 && r.random.IntN(3) == 0 {
		for d := 1 + r.random.IntN(len(few)); d < len(few); d++ {
			few[d] = 1
		}
		if count(shape) == 0 {
			few = shape
		}
	}
	a := newArray(few, func() float64 { return float64(r.random.IntN(max(length, 1))) })
	t := r.of(r.indexType(), a)
	wide, err := t.Broadcast(shape...)
	require.NoError(r, err)
	all := array{shape: shape}
	each(shape, func(index []int) { all.values = append(all.values, a.values[a.index(index)]) })
	return all, wide
}

// indexShape is the shape of indices of a tensor: no longer but along the axis.
func (r *rig) indexShape(shape []int, axis int) []int {
	of := slices.Clone(shape)
	for d := range of {
		if d == axis {
			of[d] = r.length()
		} else if r.random.IntN(4) == 0 {
			of[d] = r.random.IntN(of[d] + 1)
		}
	}
	return of
}

// led is the index to which an index of indices leads.
func led(index []int, axis int, a array) []int {
	to := slices.Clone(index)
	to[axis] = int(a.values[a.index(index)])
	return to
}

// valueTypes are the types of elements to add.
var valueTypes = []tensor.Type{
	tensor.Float32, tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Float16, tensor.BFloat16, tensor.Float64,
}

func TestGather(t *testing.T) {
	r := newRig(t)
	for i := range 60 {
		if i == 40 {
			ops.Widen(r.o)
		}
		shape := r.shape(1 + i%4)
		axis := r.random.IntN(len(shape))
		if shape[axis] == 0 {
			shape[axis] = 1
		}
		kind := append([]tensor.Type{tensor.Bool}, valueTypes...)[i%10]
		a := newArray(shape, r.whole)
		x := r.of(kind, a)
		of := r.indexShape(shape, axis)
		index, indices := r.indices(of, shape[axis])
		var want []float64
		each(of, func(at []int) { want = append(want, a.values[a.index(led(at, axis, index))]) })
		y, err := r.o.Gather(r.s, x, indices, axis-len(shape))
		require.NoError(t, err)
		r.near(want, y, 0, 0, kind, shape, of, axis)
		out := r.view(kind, of)
		require.NoError(t, r.o.GatherInto(r.s, out, x, indices, axis))
		r.near(want, out, 0, 0, kind, shape, of, axis)
	}
}

// added is the sum at indices as it is documented: one after the other, in float32 for types of 16 bits, and rounded to the
// type once.
func (r *rig) added(kind tensor.Type, a array, index array, axis int, source array) []float64 {
	total := slices.Clone(a.values)
	each(index.shape, func(at []int) {
		to := &total[a.index(led(at, axis, index))]
		*to += source.values[source.index(at)]
		if kind == tensor.Float32 || kind.Kind() == tensor.Floating && kind.Size() == 2 {
			*to = float64(float32(*to))
		}
	})
	if kind == tensor.Int8 || kind == tensor.Uint8 {
		for i := range total {
			if total[i] = float64(uint8(int(total[i]))); kind == tensor.Int8 {
				total[i] = float64(int8(uint8(total[i])))
			}
		}
	}
	if kind.Kind() != tensor.Floating || kind.Size() != 2 {
		return total
	}
	rounded, err := r.o.Cast(r.s, r.tensor(array{a.shape, total}), kind)
	require.NoError(r, err)
	return r.read(rounded).values
}

// The sum has the documented order: its bits equal the host's.
func TestScatterAdd(t *testing.T) {
	r := newRig(t)
	for i := range 36 {
		if i == 27 {
			ops.Widen(r.o)
		}
		shape := r.shape(1 + i%4)
		axis := r.random.IntN(len(shape))
		if shape[axis] == 0 {
			shape[axis] = 1
		}
		kind := valueTypes[i%len(valueTypes)]
		number := r.random.NormFloat64
		if kind.Kind() != tensor.Floating {
			number = r.whole
		}
		a := newArray(shape, number)
		out := r.of(kind, a)
		of := r.indexShape(shape, axis)
		if count(of) > 500 && i%9 > 0 {
			of[axis] = 1
		}
		index, indices := r.indices(of, shape[axis])
		s := newArray(of, number)
		source := r.of(kind, s)
		want := r.added(kind, a, index, axis, s)
		y, err := r.o.ScatterAdd(r.s, out, indices, source, axis-len(shape))
		require.NoError(t, err)
		r.near(want, y, 0, 0, kind, shape, of, axis)
		require.NoError(t, r.o.ScatterAddInto(r.s, out, indices, source, axis))
		r.near(want, out, 0, 0, kind, shape, of, axis)
	}
}

// Sums of more indices than a tile has, with keys of several digits, and with few keys.
func TestScatterAddOfManyIndices(t *testing.T) {
	r := newRig(t)
	for _, n := range []int{1, 256, 70000} {
		a := newArray([]int{n}, r.random.NormFloat64)
		out := r.tensor(a)
		const many = 2*routine.TileLen + 1
		index := newArray([]int{many}, func() float64 { return float64(r.random.IntN(n)) })
		s := newArray([]int{many}, r.random.NormFloat64)
		source := r.tensor(s)
		require.NoError(t, r.o.ScatterAddInto(r.s, out, r.of(tensor.Int64, index), source, 0))
		r.near(r.added(tensor.Float32, a, index, 0, s), out, 0, 0, n)
	}
}

func TestGatherBackward(t *testing.T) {
	r := newRig(t)
	shape := []int{3, 5, 4}
	x := r.tensor(newArray(shape, r.random.NormFloat64))
	index, indices := r.indices([]int{3, 9, 2}, 5)
	g := newArray(index.shape, r.random.NormFloat64)
	grad := r.tensor(g)
	dx, err := r.o.GatherBackward(r.s, grad, x, indices, 1)
	require.NoError(t, err)
	r.near(r.added(tensor.Float32, newArray(shape, func() float64 { return 0 }), index, 1, g), dx, 0, 0)
}

// A sum at indices in a graph reads its indices at each launch, in temporary memory of the graph.
func TestIndexingInAGraph(t *testing.T) {
	r := newRig(t)
	a := newArray([]int{6, 3}, r.random.NormFloat64)
	table, dtable := r.tensor(a), r.tensor(newArray([]int{6, 3}, r.random.NormFloat64))
	rows := r.view(tensor.Float32, []int{4, 3})
	require.NoError(t, rows.Allocate())
	indices := r.of(tensor.Int32, newArray([]int{4}, func() float64 { return 0 }))
	work := func() error {
		if err := r.o.EmbeddingInto(r.c, rows, table, indices); err != nil {
			return err
		}
		return r.o.EmbeddingBackwardInto(r.c, dtable, rows, indices)
	}
	require.NoError(t, work())
	g, err := r.c.Capture(work)
	require.NoError(t, err)
	for range 3 {
		index := newArray([]int{4}, func() float64 { return float64(r.random.IntN(6)) })
		require.NoError(t, r.o.CopyInto(r.s, indices, r.of(tensor.Int32, index)))
		require.NoError(t, g.Launch(r.c))
		want, sums := []float64(nil), make([]float64, len(a.values))
		each([]int{4, 3}, func(at []int) {
			place := int(index.values[at[0]])*3 + at[1]
			want = append(want, a.values[place])
			sums[place] = float64(float32(sums[place] + a.values[place]))
		})
		r.near(want, rows, 0, 0)
		r.near(sums, dtable, 0, 0)
	}
	require.NoError(t, g.Close())
}

func TestEmbedding(t *testing.T) {
	r := newRig(t)
	for i := range 40 {
		if i == 30 {
			ops.Widen(r.o)
		}
		table := r.shape(1 + i%3)
		if i%5 == 0 {
			table = []int{7, 48}
		}
		if table[0] == 0 {
			table[0] = 3
		}
		kind := valueTypes[(i+i/len(valueTypes))%len(valueTypes)] // each with indices of each rank
		number := r.random.NormFloat64
		if kind.Kind() != tensor.Floating {
			number = r.whole
		}
		a := newArray(table, number)
		x := r.of(kind, a)
		index, indices := r.indices(r.shape(i % 3)[:i%3], table[0])
		if count(index.shape) > 600 || count(index.shape)*count(table[1:]) > 5000 {
			continue
		}
		shape := append(slices.Clone(index.shape), table[1:]...)
		to := func(at []int) []int {
			return append([]int{int(index.values[index.index(at[:len(index.shape)])])}, at[len(index.shape):]...)
		}
		var want []float64
		each(shape, func(at []int) { want = append(want, a.values[a.index(to(at))]) })
		y, err := r.o.Embedding(r.s, x, indices)
		require.NoError(t, err)
		r.near(want, y, 0, 0, kind, table, index.shape)
		out := r.view(kind, shape)
		require.NoError(t, r.o.EmbeddingInto(r.s, out, x, indices))
		r.near(want, out, 0, 0, kind, table, index.shape)

		// The gradient equals a sum at indices that are broadcast along rows.
		g := newArray(shape, number)
		grad := r.of(kind, g)
		back, err := r.o.EmbeddingBackward(r.s, grad, x, indices)
		require.NoError(t, err)
		flat := array{[]int{count(index.shape)}, index.values}
		wide := array{shape: append([]int{len(index.values)}, table[1:]...)}
		each(wide.shape, func(at []int) { wide.values = append(wide.values, flat.values[at[0]]) })
		zeros := newArray(table, func() float64 { return 0 })
		r.near(r.added(kind, zeros, wide, 0, array{wide.shape, g.values}), back, 0, 0, kind, table, index.shape)
		require.NoError(t, r.o.EmbeddingBackwardAdd(r.s, x, grad, indices))
		r.near(r.added(kind, a, wide, 0, array{wide.shape, g.values}), x, 0, 0, kind, table, index.shape)
		require.NoError(t, r.o.EmbeddingBackwardInto(r.s, x, grad, indices))
		r.near(r.added(kind, zeros, wide, 0, array{wide.shape, g.values}), x, 0, 0, kind, table, index.shape)
	}
}

// columns is some columns of a wider tensor, with an array's values.
func (r *rig) columns(a array, from, stored int) *tensor.Tensor {
	r.Helper()
	t, err := tensor.New(r.s, tensor.Float32, a.shape[0], stored)
	require.NoError(r, err)
	t, err = t.Slice(1, from, from+a.shape[1], 1)
	require.NoError(r, err)
	require.NoError(r, r.o.CopyInto(r.s, t, r.tensor(a)))
	return t
}

// Rows whose elements are neighbours may begin anywhere, and be any distance apart.
func TestEmbeddingOfColumns(t *testing.T) {
	r := newRig(t)
	const rows, width, count = 5, 8, 7
	for _, from := range []int{0, 1, 2, 4} {
		for _, more := range []int{4, 5, 6, 8} {
			a := newArray([]int{rows, width}, r.whole)
			index, indices := r.indices([]int{count}, rows)
			var want []float64
			each([]int{count, width}, func(at []int) { want = append(want, a.values[int(index.values[at[0]])*width+at[1]]) })
			zeros := func() array { return newArray([]int{count, width}, func() float64 { return 0 }) }
			for _, out := range []*tensor.Tensor{r.columns(zeros(), 0, width), r.columns(zeros(), from, width+more)} {
				for _, table := range []*tensor.Tensor{r.columns(a, 0, width), r.columns(a, from, width+more)} {
					require.NoError(t, r.o.EmbeddingInto(r.s, out, table, indices))
					r.near(want, out, 0, 0, from, more)
				}
			}
		}
	}
}

func TestMistakesOfIndexing(t *testing.T) {
	r := newRig(t)
	x := r.tensor(newArray([]int{4, 3}, r.random.NormFloat64))
	_, indices := r.indices([]int{2, 3}, 3)
	_, err := r.o.Gather(r.s, x, indices, 2)
	require.ErrorIs(t, err, ops.ErrAxes)
	var failed *ops.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "gather", failed.Op)
	_, long := r.indices([]int{2, 4}, 3)
	_, err = r.o.Gather(r.s, x, long, 0)
	require.ErrorIs(t, err, ops.ErrShape)
	for _, shape := range [][]int{{2, 2}, {1, 3}, {3, 3}, {2, 4}, {6}, {2, 3, 1}, {}} {
		other := r.zeros(shape...)
		_, err = r.o.ScatterAdd(r.s, x, indices, other, 0)
		require.ErrorIs(t, err, ops.ErrShape, "indices of [2 3], a source of %v", shape)
		require.ErrorIs(t, r.o.ScatterAddInto(r.s, x, indices, other, 0), ops.ErrShape, shape)
		require.ErrorIs(t, r.o.GatherInto(r.s, other, x, indices, 0), ops.ErrShape, shape)
		require.ErrorIs(t, r.o.GatherBackwardInto(r.s, x, other, indices, 0), ops.ErrShape, shape)
	}
	_, err = r.o.ScatterAdd(r.s, x, long, long, 0)
	var types *tensor.TypeError
	require.ErrorAs(t, err, &types)
	_, err = r.o.Gather(r.s, x, x, 0)
	require.ErrorAs(t, err, &types)
	require.ErrorAs(t, r.o.GatherInto(r.s, r.view(tensor.Float64, []int{2, 3}), x, indices, 0), &types)
	bools := r.view(tensor.Bool, []int{2, 3})
	require.ErrorAs(t, r.o.ScatterAddInto(r.s, bools, indices, bools, 0), &types)
	_, err = r.o.Gather(r.s, nil, indices, 0)
	require.ErrorIs(t, err, tensor.ErrNoTensor)
	_, err = r.o.Embedding(r.s, x, nil)
	require.ErrorIs(t, err, tensor.ErrNoTensor)
	_, err = r.o.Embedding(r.s, r.view(tensor.Float32, nil), indices)
	require.ErrorIs(t, err, ops.ErrShape)
	none := r.view(tensor.Float32, []int{0, 3})
	_, err = r.o.Embedding(r.s, none, indices)
	require.ErrorIs(t, err, ops.ErrEmpty)
	require.ErrorIs(t, r.o.EmbeddingBackwardInto(r.s, none, r.view(tensor.Float32, []int{2, 3, 3}), indices), ops.ErrEmpty)
	require.ErrorIs(t, r.o.EmbeddingBackwardInto(r.s, x, x, indices), ops.ErrShape)

	part, err := x.Slice(0, 0, 2, 1)
	require.NoError(t, err)
	require.ErrorIs(t, r.o.GatherInto(r.s, part, x, indices, 0), kernel.ErrOverlap)
	require.ErrorIs(t, r.o.ScatterAddInto(r.s, x, indices, part, 0), kernel.ErrOverlap)
	repeated, err := r.view(tensor.Float32, []int{1, 3}).Broadcast(2, 3)
	require.NoError(t, err)
	require.ErrorIs(t, r.o.GatherInto(r.s, repeated, x, indices, 0), kernel.ErrRepeats)
	// A call that is refused has written nothing.
	before := r.read(x).values
	both, err := x.Unsqueeze(0)
	require.NoError(t, err)
	require.ErrorIs(t, r.o.EmbeddingBackwardInto(r.s, x, both, r.view(tensor.Int64, []int{1, 4})), kernel.ErrOverlap)
	require.ErrorIs(t, r.o.GatherBackwardInto(r.s, x, part, indices, 0), kernel.ErrOverlap)
	r.near(before, x, 0, 0)
	empty, err := r.o.EmbeddingBackward(r.s, r.view(tensor.Float32, []int{0, 3}), x, r.view(tensor.Int64, []int{0}))
	require.NoError(t, err)
	r.near(make([]float64, 12), empty, 0, 0)
	var closed ops.Ops
	_, err = closed.Embedding(r.s, x, indices)
	require.ErrorIs(t, err, ops.ErrNotOpen)
	assert.ErrorIs(t, closed.ScatterAddInto(r.s, x, indices, r.view(tensor.Float32, []int{2, 3}), 0), ops.ErrNotOpen)
}

// A sum at indices whose keys do not fit in 32 bits is refused; one whose last key just fits is right.
func TestKeysOfSumsThatDoNotFit(t *testing.T) {
	r := newRig(t)
	const columns, most = 16, 1 << 28
	source, err := tensor.Full(r.s, int8(1), 1, columns)
	require.NoError(t, err)
	for _, c := range []struct {
		rows, at int32
		want     error
	}{{most, 0, tensor.ErrTooLarge}, {most + 5, 5, tensor.ErrTooLarge}, {most - 1, most - 2, nil}} {
		out, err := tensor.New(r.s, tensor.Int8, int(c.rows), columns)
		require.NoError(t, err)
		row, err := out.Narrow(0, int(c.at), 1)
		require.NoError(t, err)
		require.NoError(t, tensor.Fill(r.s, row, int8(3)))
		indices, err := tensor.Full(r.s, c.at, 1, columns)
		require.NoError(t, err)
		want := int8(4)
		if err := r.o.ScatterAddInto(r.s, out, indices, source, 0); c.want != nil {
			require.ErrorIs(t, err, c.want, "%d rows", c.rows)
			want = 3
		} else {
			require.NoError(t, err)
		}
		values, err := tensor.Read[int8](row)
		require.NoError(t, err)
		require.Equal(t, slices.Repeat([]int8{want}, columns), values)
		require.NoError(t, out.Free())
	}
}

// The row of the padding has no gradient, also where it is added to another one, and the other rows have theirs, repeated once to
// many times; the sums have the same bits each time.
func TestEmbeddingBackwardLeavesPaddingOut(t *testing.T) {
	r := newRig(t)
	for _, of := range []tensor.Type{tensor.BFloat16, tensor.Float32} {
		const rows, width = 19, 5
		var all []int64
		for row := range rows {
			for range row { // 0 to 18 times: around those that a thread loads at once
				all = append(all, int64(row))
			}
		}
		r.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		grad := newArray([]int{len(all), width}, r.random.NormFloat64)
		start := newArray([]int{rows, width}, r.random.NormFloat64)
		g, table, indices := r.of(of, grad), r.of(of, start), r.indicesOf(tensor.Int64, all, len(all))
		for _, padding := range []int64{-1, 0, 9, rows - 1} {
			var options []ops.EmbeddingOption
			if padding >= 0 {
				options = append(options, ops.Padding(padding))
			}
			want, added := make([]float64, rows*width), slices.Clone(start.values)
			for i, row := range all {
				for j := range width {
					if row != padding {
						want[int(row)*width+j] += grad.values[i*width+j]
						added[int(row)*width+j] += grad.values[i*width+j]
					}
				}
			}
			back, err := r.o.EmbeddingBackward(r.s, g, table, indices, options...)
			require.NoError(t, err)
			r.near(want, back, tolerance(of), 1, padding)
			again, err := r.o.EmbeddingBackward(r.s, g, table, indices, options...)
			require.NoError(t, err)
			require.Equal(t, r.read(back).values, r.read(again).values)
			sum := r.of(of, array{start.shape, slices.Clone(start.values)})
			require.NoError(t, r.o.EmbeddingBackwardAdd(r.s, sum, g, indices, options...))
			r.near(added, sum, tolerance(of), 1, padding)
		}
		for _, none := range []int64{-1, rows} {
			require.ErrorIs(t, r.o.EmbeddingBackwardInto(r.s, table, g, indices, ops.Padding(none)), ops.ErrNumber)
		}
	}
}
