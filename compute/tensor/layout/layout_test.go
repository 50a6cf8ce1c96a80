package layout_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/compute/tensor/internal/reference"
	"github.com/go-vram/vram/compute/tensor/layout"
)

func of(t require.TestingT, shape ...int) layout.Layout {
	l, err := layout.Of(shape...)
	require.NoError(t, err)
	return l
}

func TestALayoutIsRowMajor(t *testing.T) {
	l := of(t, 2, 3, 4)
	assert.Equal(t, 3, l.Rank())
	assert.Equal(t, 24, l.Len())
	assert.Equal(t, []int{2, 3, 4}, l.Shape())
	assert.Equal(t, []int{12, 4, 1}, l.Strides())
	assert.Equal(t, 4, l.Dim(-1))
	assert.Equal(t, 12, l.Stride(0))
	assert.Zero(t, l.Dim(3))
	assert.Zero(t, l.Stride(-4))
	assert.True(t, l.Contiguous())
	assert.Equal(t, "[2 3 4]", l.String())
	place, err := l.At(1, 2, 3)
	require.NoError(t, err)
	assert.Equal(t, 23, place)

	assert.Equal(t, layout.Layout{}, of(t), "a scalar is the zero value")
	assert.Equal(t, 1, layout.Layout{}.Len())
	assert.Equal(t, []int{0}, slices.Collect(layout.Layout{}.Places()))
	assert.True(t, of(t, 2, 0).Contiguous())
	assert.Empty(t, slices.Collect(of(t, 2, 0).Places()))

	columns, err := l.Transpose(0, -1)
	require.NoError(t, err)
	assert.Equal(t, "[4 3 2] strides [1 4 12] offset 0", columns.String())
	back, err := columns.Transpose(0, 2)
	require.NoError(t, err)
	assert.True(t, back == l, "layouts are compared by ==")
}

func TestShapesThatCannotBeAreRefused(t *testing.T) {
	l := of(t, 2, 3)
	twisted, err := l.Transpose(0, 1)
	require.NoError(t, err)
	refused := func(_ layout.Layout, err error) error { return err }
	for text, err := range map[string]error{
		"tensor: shape [2 -1]: a negative length":                                                          refused(layout.Of(2, -1)),
		"tensor: shape [1 1 1 1 1 1 1 1 1]: layout: more than 8 dimensions":                                refused(layout.Of(1, 1, 1, 1, 1, 1, 1, 1, 1)),
		"tensor: shape [4294967296 4294967296]: layout: too many elements":                                 refused(layout.Of(1<<32, 1<<32)),
		"tensor: shape [4294967296 0 4294967296]: layout: too many elements":                               refused(layout.Of(1<<32, 0, 1<<32)),
		"tensor: strides [2 3] and [1]: they differ in length":                                             refused(layout.New([]int{2, 3}, []int{1}, 0)),
		"tensor: strides [2 3] and [-1 1]: from the offset 0 on they lead to place -1":                     refused(layout.New([]int{2, 3}, []int{-1, 1}, 0)),
		"tensor: strides [2] and [9223372036854775807]: layout: too many elements":                         refused(layout.New([]int{2}, []int{math.MaxInt}, 0)),
		"tensor: strides [3] and [-9223372036854775808]: layout: too many elements":                        refused(layout.New([]int{3}, []int{math.MinInt}, 0)),
		"tensor: strides [0] and [1]: from the offset -1 on they lead to place -1":                         refused(layout.New([]int{0}, []int{1}, -1)),
		"tensor: strides [] and []: from the offset -1 on they lead to place -1":                           refused(layout.New(nil, nil, -1)),
		"tensor: reshape [2 3] and [4]: the numbers of elements differ":                                    refused(l.Reshape(4)),
		"tensor: reshape [2 3] and [4 -1]: no length fits in the place of -1":                              refused(l.Reshape(4, -1)),
		"tensor: reshape [2 3] and [-1 -1]: -1 is there more than once":                                    refused(l.Reshape(-1, -1)),
		"tensor: reshape [3 2] strides [1 3] offset 0 to [6]: no strides make this view, a copy is needed": refused(twisted.Reshape(6)),
		"tensor: broadcast [2 3] and [3 3]":                                                                refused(l.Broadcast(3, 3)),
		"tensor: broadcast [2 3] and [3]: fewer dimensions":                                                refused(l.Broadcast(3)),
		"tensor: squeeze [2 3]: dimension 1 has length 3":                                                  refused(l.Squeeze(1)),
		"tensor: permute [2 3]: dimension 1 is named twice":                                                refused(l.Permute(1, -1)),
		"tensor: permute [2 3]: 1 dimensions of 2 are named":                                               refused(l.Permute(1)),
		"tensor: transpose [2 3]: dimension 2 of 2":                                                        refused(l.Transpose(0, 2)),
		"tensor: unsqueeze [2 3]: dimension 3 of 2":                                                        refused(l.Unsqueeze(3)),
		"tensor: flatten [2 3]: dimension 1 is not before 0":                                               refused(l.Flatten(1, 0)),
		"tensor: index 3 of dimension 1, which has length 3":                                               refused(l.Index(1, 3)),
		"tensor: narrow: 1 to 4 of dimension 1, which has length 3":                                        refused(l.Narrow(1, 1, 3)),
		"tensor: slice: 2 to 0 by 2 of dimension 1, which has length 3":                                    refused(l.Slice(1, 2, 0, 2)),
		"tensor: slice: 0 to 2 by 0 of dimension 0, which has length 2":                                    refused(l.Slice(0, 0, 2, 0)),
		"tensor: squeeze [2 3]: dimension -3 of 2":                                                         refused(l.Squeeze(-3)),
		"tensor: permute [2 3]: dimension 2 of 2":                                                          refused(l.Permute(0, 2)),
		"tensor: transpose [2 3]: dimension -3 of 2":                                                       refused(l.Transpose(-3, 1)),
		"tensor: unsqueeze [2 3]: dimension -4 of 2":                                                       refused(l.Unsqueeze(-4)),
		"tensor: flatten [2 3]: dimension -3 of 2":                                                         refused(l.Flatten(-3, 1)),
		"tensor: flatten [2 3]: dimension 2 of 2":                                                          refused(l.Flatten(0, 2)),
		"tensor: index [2 3]: dimension 2 of 2":                                                            refused(l.Index(2, 0)),
		"tensor: narrow [2 3]: dimension -3 of 2":                                                          refused(l.Narrow(-3, 0, 1)),
		"tensor: slice [2 3]: dimension 2 of 2":                                                            refused(l.Slice(2, 0, 1, 1)),
		"tensor: index -4 of dimension 1, which has length 3":                                              refused(l.Index(1, -4)),
		"tensor: narrow: -1 to 1 of dimension 0, which has length 2":                                       refused(l.Narrow(0, -1, 2)),
		"tensor: narrow: 1 to 0 of dimension 0, which has length 2":                                        refused(l.Narrow(0, 1, -1)),
		"tensor: reshape [2 3] and [1 1 1 1 1 1 1 1 6]: layout: more than 8 dimensions":                    refused(l.Reshape(1, 1, 1, 1, 1, 1, 1, 1, 6)),
		"tensor: unsqueeze [1 1 1 1 1 1 1 1]: layout: more than 8 dimensions":                              refused(of(t, 1, 1, 1, 1, 1, 1, 1, 1).Unsqueeze(0)),
	} {
		require.EqualError(t, err, text)
		var shape *layout.ShapeError
		var index *layout.IndexError
		var strides *layout.LayoutError
		assert.True(t, asAny(err, &shape, &index, &strides), text)
	}
	_, err = layout.Of(math.MaxInt, 2)
	require.ErrorIs(t, err, layout.ErrTooLarge)
	_, err = layout.Of(make([]int, 9)...)
	require.ErrorIs(t, err, layout.ErrRank)
	_, err = l.At(1)
	require.Error(t, err)
	for i := -3; i < 6; i++ {
		for j := -3; j < 6; j++ {
			place, err := l.At(i, j)
			if i >= 0 && i < 2 && j >= 0 && j < 3 {
				require.NoError(t, err)
				require.Equal(t, 3*i+j, place)
				continue
			}
			var outside *layout.IndexError
			require.ErrorAs(t, err, &outside, "%d, %d", i, j)
		}
	}
	_, err = layout.BroadcastShape([]int{2, 3}, []int{2})
	require.EqualError(t, err, "tensor: broadcast [2 3] and [2]")
	_, err = layout.BroadcastShape([]int{1 << 40, 1}, []int{1 << 40})
	require.ErrorIs(t, err, layout.ErrTooLarge)
}

func asAny(err error, shape **layout.ShapeError, index **layout.IndexError, strides **layout.LayoutError) bool {
	switch e := err.(type) { //nolint:errorlint // the type itself
	case *layout.ShapeError:
		*shape = e
	case *layout.IndexError:
		*index = e
	case *layout.LayoutError:
		*strides = e
	default:
		return false
	}
	return true
}

// More elements than 31 bits count are no special case.
func TestLargeLayouts(t *testing.T) {
	l := of(t, 1<<20, 1<<20)
	assert.Equal(t, 1<<40, l.Len())
	assert.False(t, l.Fits32())
	last, err := l.Index(0, 1<<20-1)
	require.NoError(t, err)
	first, end := last.Bounds()
	assert.Equal(t, 1<<40-1<<20, first)
	assert.Equal(t, 1<<40, end)
	assert.False(t, last.Fits32(), "few elements, far away")
	assert.True(t, of(t, 1<<20).Fits32())
	assert.False(t, of(t, math.MaxInt32+1).Fits32())
	assert.True(t, of(t, math.MaxInt32).Fits32())
	wide, err := of(t, 1).Broadcast(1 << 40)
	require.NoError(t, err)
	assert.False(t, wide.Fits32(), "the index of the element needs more")
	_, err = layout.Of(math.MaxInt)
	require.NoError(t, err)
}

// pair is a layout and its meaning.
type pair struct {
	layout layout.Layout
	view   reference.View
}

func drawShape(t *rapid.T, maxRank int) []int {
	return rapid.SliceOfN(rapid.IntRange(0, 5), 0, maxRank).Draw(t, "shape")
}

// drawView makes a random view of a view, and says whether it repeats elements.
func (p pair) drawView(t *rapid.T) (next pair, broadcast bool) {
	l, v := p.layout, p.view
	rank := l.Rank()
	dim := func(name string) int { return rapid.IntRange(0, rank-1).Draw(t, name) }
	signed := func(d int) int {
		if rapid.Bool().Draw(t, "from the end") {
			return d - rank
		}
		return d
	}
	op := rapid.IntRange(0, 8).Draw(t, "op")
	if rank == 0 && op < 5 {
		op = 5
	}
	var err error
	switch op {
	case 0:
		d := dim("dim")
		n := v.Shape[d]
		from := rapid.IntRange(0, n).Draw(t, "from")
		length := rapid.IntRange(0, n-from).Draw(t, "length")
		l, err = l.Narrow(signed(d), from, length)
		v = v.Slice(d, indices(from, from+length, 1))
	case 1:
		d := dim("dim")
		n := v.Shape[d]
		step := rapid.IntRange(1, 7).Draw(t, "step")
		from := rapid.IntRange(0, n).Draw(t, "from")
		to := rapid.IntRange(from, n).Draw(t, "to")
		if rapid.Bool().Draw(t, "down") {
			step, from, to = -step, to-1, from-1
		}
		l, err = l.Slice(signed(d), from, to, step)
		v = v.Slice(d, indices(from, to, step))
	case 2:
		d := dim("dim")
		if v.Shape[d] == 0 {
			return p, false
		}
		at := rapid.IntRange(0, v.Shape[d]-1).Draw(t, "at")
		l, err = l.Index(signed(d), at)
		v = v.Index(d, at)
	case 3:
		dims := rapid.Permutation(indices(0, rank, 1)).Draw(t, "dims")
		l, err = l.Permute(dims...)
		v = v.Permute(dims)
	case 4:
		a, b := dim("a"), dim("b")
		dims := indices(0, rank, 1)
		dims[a], dims[b] = b, a
		l, err = l.Transpose(signed(a), signed(b))
		v = v.Permute(dims)
	case 5:
		shape := slices.Clone(v.Shape)
		for i, n := range shape {
			if n == 1 {
				shape[i] = rapid.IntRange(0, 3).Draw(t, "length")
				broadcast = broadcast || shape[i] > 1
			}
		}
		if len(shape) < 5 && rapid.Bool().Draw(t, "more") {
			shape = slices.Insert(shape, 0, rapid.IntRange(1, 3).Draw(t, "front"))
			broadcast = broadcast || shape[0] > 1
		}
		l, err = l.Broadcast(shape...)
		v = v.Broadcast(shape)
	case 6:
		if rank == 5 {
			return p, false
		}
		d := rapid.IntRange(0, rank).Draw(t, "dim")
		at := d
		if rapid.Bool().Draw(t, "from the end") {
			at = d - rank - 1
		}
		l, err = l.Unsqueeze(at)
		v = v.Reshape(slices.Insert(slices.Clone(v.Shape), d, 1))
	case 7:
		l, err = l.Squeeze()
		v = v.Reshape(slices.DeleteFunc(slices.Clone(v.Shape), func(n int) bool { return n == 1 }))
	default:
		shape := drawFactors(t, len(v.Places))
		want := slices.Clone(shape)
		if i := rapid.IntRange(-1, len(shape)-1).Draw(t, "open"); i >= 0 && !slices.Contains(shape, 0) {
			shape[i] = -1
		}
		to, failed := l.Reshape(shape...)
		if failed != nil { // no strides do it: the distances of the wanted view are not equal
			require.IsType(t, &layout.LayoutError{}, failed)
			require.False(t, strided(v.Reshape(want)), "%v to %v", l, want)
			return p, false
		}
		l, v = to, v.Reshape(want)
	}
	require.NoError(t, err)
	return pair{l, v}, broadcast
}

// strided reports whether strides make a view.
func strided(v reference.View) bool {
	strides := make([]int, len(v.Shape))
	for i, n := range v.Shape {
		if n > 1 {
			index := make([]int, len(v.Shape))
			index[i] = 1
			strides[i] = v.At(index) - v.Places[0]
		}
	}
	l, err := layout.New(v.Shape, strides, v.Places[0])
	return err == nil && slices.Equal(v.Places, slices.Collect(l.Places()))
}

// drawFactors is a shape of so many elements.
func drawFactors(t *rapid.T, count int) []int {
	if count == 0 {
		return []int{rapid.IntRange(0, 3).Draw(t, "beside"), 0}
	}
	var shape []int
	for count > 1 && len(shape) < 4 {
		n := rapid.IntRange(1, count).Draw(t, "factor")
		for count%n != 0 {
			n--
		}
		shape = append(shape, n)
		count /= n
	}
	return append(shape, count)
}

func indices(from, to, step int) (all []int) {
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		all = append(all, i)
	}
	return all
}

func (p pair) check(t *rapid.T, broadcast bool) {
	l, v := p.layout, p.view
	require.Equal(t, len(v.Places), l.Len(), "%v", l)
	require.True(t, slices.Equal(v.Shape, l.Shape()), "%v %v", l, v.Shape)
	require.True(t, slices.Equal(v.Places, slices.Collect(l.Places())), "%v %v", l, v.Places)
	if l.Len() > 0 {
		first, end := l.Bounds()
		require.Equal(t, slices.Min(v.Places), first, "%v", l)
		require.Equal(t, slices.Max(v.Places)+1, end, "%v", l)
		inRow := true
		for i, place := range v.Places {
			inRow = inRow && place == v.Places[0]+i
		}
		require.Equal(t, inRow, l.Contiguous(), "%v", l)
	}
	seen := slices.Compact(slices.Sorted(slices.Values(v.Places)))
	require.Equal(t, len(seen) < len(v.Places), l.MayOverlap(), "%v, broadcast %v", l, broadcast)
	again, err := layout.New(l.Shape(), l.Strides(), l.Offset())
	require.NoError(t, err)
	require.True(t, again == l, "%v %v", again, l)

	short := l.Coalesce()
	require.True(t, slices.Equal(v.Places, slices.Collect(short.Places())), "%v %v", l, short)
	for d := range short.Rank() {
		require.False(t, short.Len() > 0 && short.Dim(d) == 1)
		require.False(t, d > 0 && short.Stride(d-1) == short.Stride(d)*short.Dim(d), "%v", short)
	}
	flat, err := l.Flatten(0, -1)
	require.Equal(t, err == nil, l.Len() == 0 || l.Rank() == 0 || strided(v.Reshape([]int{len(v.Places)})), "%v: %v", l, err)
	if err == nil {
		require.True(t, slices.Equal(v.Places, slices.Collect(flat.Places())))
	}
}

// Chains of views mean the places that the reference has, element by element.
func TestViewsAreThoseOfTheReference(t *testing.T) {
	rapid.Check(t, checkViews)
}

func checkViews(t *rapid.T) {
	shape := drawShape(t, 4)
	p := pair{of(t, shape...), reference.Whole(shape...)}
	p.check(t, false)
	repeats := false
	for range rapid.IntRange(1, 8).Draw(t, "views") {
		next, broadcast := p.drawView(t)
		if len(next.view.Places) > 3000 {
			continue
		}
		p, repeats = next, repeats || broadcast
		p.check(t, repeats)
	}
}

func FuzzViews(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkViews)) }

// Any strides: the bounds are right, and no layout that overlaps itself is reported to be free of overlaps.
func TestAnyStrides(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := drawShape(t, 4)
		strides := rapid.SliceOfN(rapid.IntRange(-9, 9), len(shape), len(shape)).Draw(t, "strides")
		l, err := layout.New(shape, strides, rapid.IntRange(0, 60).Draw(t, "offset"))
		if err != nil {
			return
		}
		places := slices.Collect(l.Places())
		require.Len(t, places, l.Len())
		if len(places) > 0 {
			first, end := l.Bounds()
			require.Equal(t, slices.Min(places), first)
			require.Equal(t, slices.Max(places)+1, end)
			require.GreaterOrEqual(t, first, 0)
		}
		if distinct := slices.Compact(slices.Sorted(slices.Values(places))); len(distinct) < len(places) {
			require.True(t, l.MayOverlap(), "%v", l)
		}
		require.True(t, slices.Equal(places, slices.Collect(l.Coalesce().Places())))
	})
}

// Extreme numbers are refused or right: no place is lost to an overflow.
func FuzzExtremes(f *testing.F) {
	f.Add(3, 3, math.MaxInt, 1, 0)
	f.Add(2, 2, math.MinInt, math.MaxInt, math.MaxInt)
	f.Add(1<<32, 1<<31, 1, 1, 5)
	f.Fuzz(func(t *testing.T, m, n, a, b, offset int) {
		l, err := layout.New([]int{m, n}, []int{a, b}, offset)
		if err != nil {
			return
		}
		first, end := l.Bounds()
		require.GreaterOrEqual(t, first, 0)
		require.GreaterOrEqual(t, end, first)
		l.MayOverlap()
		l.Fits32()
		l.Coalesce()
		for _, step := range []int{1, a, b, -1} {
			if s, err := l.Slice(0, 0, m, step); err == nil && s.Len() > 0 {
				sFirst, sEnd := s.Bounds()
				require.True(t, sFirst >= first && sEnd <= end)
			}
		}
	})
}

func TestALayoutIsCoalesced(t *testing.T) {
	assert.Equal(t, "[60]", of(t, 4, 1, 3, 5).Coalesce().String())
	assert.Equal(t, "[0]", of(t, 3, 0, 2).Coalesce().String())
	assert.Equal(t, "[]", of(t, 1, 1).Coalesce().String())
}

func TestShapesAreBroadcastTogether(t *testing.T) {
	for _, tt := range []struct{ want, a, b, c []int }{
		{[]int{2, 3}, []int{2, 3}, []int{3}, nil},
		{[]int{4, 2, 3}, []int{2, 1}, []int{3}, []int{4, 1, 1}},
		{[]int{0}, []int{1}, []int{0}, nil},
		{[]int{}, nil, nil, nil},
	} {
		got, err := layout.BroadcastShape(tt.a, tt.b, tt.c)
		require.NoError(t, err)
		assert.Equal(t, tt.want, got)
	}
}

func TestLayoutsMeet(t *testing.T) {
	l := of(t, 4, 4)
	top, _ := l.Narrow(0, 0, 2)
	bottom, _ := l.Narrow(0, 2, 2)
	none, _ := l.Narrow(0, 2, 0)
	assert.True(t, layout.Meet(l, top))
	assert.True(t, layout.Meet(l, l))
	assert.False(t, layout.Meet(top, bottom))
	assert.False(t, layout.Meet(l, none))
	none, err := layout.New([]int{0}, []int{1}, 5) // its bounds are one place, among the places of l
	require.NoError(t, err)
	assert.False(t, layout.Meet(none, l))
	assert.False(t, layout.Meet(l, none))
}

// Errors keep the shapes that they were made with.
func TestErrorsHaveTheirOwnShapes(t *testing.T) {
	l := of(t, 2, 3)
	for name, f := range map[string]func(shape []int) error{
		"of":                 func(shape []int) error { _, err := layout.Of(append(shape, -1)...); return err },
		"count":              func(shape []int) error { _, err := layout.Count(append(shape, 1<<62)...); return err },
		"new":                func(shape []int) error { _, err := layout.New(shape, shape[:1], 0); return err },
		"new by its strides": func(shape []int) error { _, err := layout.New([]int{1, 2}, shape[:1], 0); return err },
		"reshape":            func(shape []int) error { _, err := l.Reshape(shape...); return err },
		"broadcast":          func(shape []int) error { _, err := l.Broadcast(shape...); return err },
		"broadcast shape":    func(shape []int) error { _, err := layout.BroadcastShape(shape, []int{3, 7}); return err },
		"at":                 func(shape []int) error { _, err := l.At(append(shape, 9)...); return err },
		"a reshape without strides": func(shape []int) error {
			turned, err := l.Transpose(0, 1)
			require.NoError(t, err)
			_, err = turned.Reshape(append(shape[:0], 6)...)
			return err
		},
	} {
		shape := append(make([]int, 0, 8), 4, 5) // with room, so that append writes there
		err := f(shape)
		require.Error(t, err, name)
		before := err.Error()
		for i := range shape[:cap(shape)] {
			shape[:cap(shape)][i] = 77
		}
		assert.Equal(t, before, err.Error(), name)
	}
}

func TestViewsAllocateNothing(t *testing.T) {
	l := of(t, 4, 6, 8)
	sink := 0
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		v, _ := l.Slice(1, 0, 6, 2)
		v, _ = v.Transpose(0, 1)
		v, _ = v.Permute(1, 0, 2)
		v, _ = v.Unsqueeze(0)
		v, _ = v.Squeeze(0)
		v, _ = v.Broadcast(2, 4, 3, 8)
		v, _ = v.Index(0, 1)
		w, _ := l.Reshape(-1, 8)
		w, _ = w.Flatten(0, 1)
		if v.MayOverlap() || w.Coalesce().MayOverlap() {
			sink++
		}
		sink += v.Len()
	}))
	assert.Positive(t, sink)
}

// A dimension of length 1 has the stride that row-major order gives it.
func TestStridesOfUnsqueezedDimensions(t *testing.T) {
	for _, c := range []struct{ shape, want []int }{
		{[]int{2, 3}, []int{6, 3, 1}}, {[]int{0}, []int{1, 1}}, {[]int{4}, []int{4, 1}}, {[]int{2, 0}, []int{2, 1, 1}}, {nil, []int{1}},
	} {
		l, err := of(t, c.shape...).Unsqueeze(0)
		require.NoError(t, err)
		assert.Equal(t, c.want[0], l.Strides()[0], "%v", c.shape)
		assert.True(t, l.Contiguous())
	}
	l, err := of(t, 2, 3).Unsqueeze(1)
	require.NoError(t, err)
	assert.Equal(t, []int{3, 3, 1}, l.Strides())
	l, err = of(t, 2, 3).Unsqueeze(-1)
	require.NoError(t, err)
	assert.Equal(t, []int{3, 1, 1}, l.Strides())
}

// Places are those of all elements in row-major order, for each rank.
func TestPlacesOfEachRank(t *testing.T) {
	for rank := range layout.MaxRank + 1 {
		l := of(t, slices.Repeat([]int{2}, rank)...)
		var places []int
		for place := range l.Places() {
			places = append(places, place)
		}
		assert.Len(t, places, 1<<rank)
		for i, place := range places {
			require.Equal(t, i, place)
		}
	}
	for range of(t, 2, 0).Places() {
		assert.Fail(t, "there is no element")
	}
}

// Single elements meet where they are one.
func TestSingleElementsMeet(t *testing.T) {
	at := func(place int) layout.Layout {
		l, err := layout.New([]int{1}, []int{1}, place)
		require.NoError(t, err)
		return l
	}
	pair, err := layout.New([]int{2}, []int{1}, 4)
	require.NoError(t, err)
	none, err := layout.New([]int{0}, []int{1}, 4)
	require.NoError(t, err)
	for place, want := range map[int]bool{3: false, 4: true, 5: true, 6: false} {
		assert.Equal(t, want, layout.Meet(at(place), pair), "%d", place)
		assert.Equal(t, want, layout.Meet(pair, at(place)), "%d", place)
		assert.False(t, layout.Meet(at(place), none))
		assert.False(t, layout.Meet(none, at(place)))
	}
	assert.True(t, layout.Meet(at(4), at(4)))
	assert.False(t, layout.Meet(at(4), at(5)))
}

// Squeeze removes the dimensions that are named, however they are named, and keeps the length and the stride of the others.
func TestSqueezeRemovesTheNamedDimensions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 3), 0, layout.MaxRank).Draw(t, "shape")
		strides := rapid.SliceOfN(rapid.IntRange(-9, 9), len(shape), len(shape)).Draw(t, "strides")
		l, err := layout.New(shape, strides, 100_000)
		require.NoError(t, err)
		var dims, keptShape, keptStrides []int
		all := rapid.Bool().Draw(t, "all")
		for d, n := range shape {
			named := n == 1 && (all || rapid.Bool().Draw(t, "named"))
			if !named {
				keptShape, keptStrides = append(keptShape, n), append(keptStrides, l.Stride(d))
				continue
			}
			for range rapid.IntRange(1, 2).Draw(t, "times") {
				dims = append(dims, d-len(shape)*rapid.IntRange(0, 1).Draw(t, "from the end"))
			}
		}
		if len(dims) == 0 && !all {
			return
		}
		if all {
			dims = nil
		}
		got, err := l.Squeeze(dims...)
		require.NoError(t, err)
		want, err := layout.New(keptShape, keptStrides, l.Offset())
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// A layout cannot be broadcast to a shape that no layout has; the error names the shape.
func TestBroadcastToAShapeThatCannotBe(t *testing.T) {
	for _, shape := range [][]int{{-1}, {2, -3}, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1 << 32, 1 << 32}} {
		_, want := layout.Of(shape...)
		require.Error(t, want)
		_, err := of(t).Broadcast(shape...)
		assert.Equal(t, want, err, "%v", shape)
	}
}
