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

// The copies of rows move each element to its place, and touch nothing else.
func TestCopiesMoveEachElement(t *testing.T) {
	rapid.Check(t, checkCopies)
}

func FuzzCopies(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkCopies)) }

func checkCopies(t *rapid.T) {
	view := func(shape []int) pair {
		p := pair{of(t, shape...), reference.Whole(shape...)}
		for range rapid.IntRange(0, 4).Draw(t, "views") {
			if next, _ := p.drawView(t); len(next.view.Places) < 500 {
				p = next
			}
		}
		return p
	}
	src := view(drawShape(t, 4))
	// A destination of the same shape, in a storage of any order, with gaps, and reversed.
	shape := src.layout.Shape()
	dims := rapid.Permutation(indices(0, len(shape), 1)).Draw(t, "order")
	strides, total := make([]int, len(shape)), 1
	offset := 0
	for _, d := range dims {
		strides[d] = total * rapid.IntRange(1, 2).Draw(t, "gap")
		total = strides[d] * max(shape[d], 1)
		if rapid.Bool().Draw(t, "reversed") {
			offset += strides[d] * max(shape[d]-1, 0)
			strides[d] = -strides[d]
		}
	}
	dst, err := layout.New(shape, strides, offset)
	require.NoError(t, err)
	require.False(t, dst.MayOverlap())

	from := make([]int, 4000)
	for i := range from {
		from[i] = i + 1
	}
	to, want := make([]int, total+1), make([]int, total+1)
	places := src.view.Places
	i := 0
	for place := range dst.Places() {
		want[place] = from[places[i]]
		i++
	}
	maxPitch := rapid.SampledFrom([]int{math.MaxInt, 8}).Draw(t, "pitch")
	for r := range layout.Copies(dst, src.layout, maxPitch) {
		require.Positive(t, r.Width)
		require.Positive(t, r.Count)
		if r.Count > 1 {
			require.GreaterOrEqual(t, r.DstPitch, r.Width)
			require.GreaterOrEqual(t, r.SrcPitch, r.Width)
			require.LessOrEqual(t, max(r.DstPitch, r.SrcPitch), maxPitch)
		}
		source := from
		if r.Again {
			source = slices.Clone(to)
		}
		for row := range r.Count {
			at := r.Dst + row*r.DstPitch
			for k, value := range source[r.Src+row*r.SrcPitch:][:r.Width] {
				require.Zero(t, to[at+k], "%+v writes a place twice", r)
				require.NotZero(t, value, "%+v reads a place that was not written", r)
				to[at+k] = value
			}
		}
	}
	require.True(t, slices.Equal(want, to), "%v to %v", src.layout, dst)
}

// How many copies some common ones need.
func TestCopiesAreFew(t *testing.T) {
	l := of(t, 64, 32, 16)
	view := func(l layout.Layout, err error) layout.Layout {
		require.NoError(t, err)
		return l
	}
	column := view(of(t, 64, 1).Broadcast(64, 1024))
	for name, tt := range map[string]struct {
		dst, src layout.Layout
		want     int
	}{
		"all":                          {l, l, 1},
		"part of each row":             {of(t, 64, 32, 8), view(l.Narrow(2, 4, 8)), 1},
		"part of each matrix":          {of(t, 64, 8, 16), view(l.Narrow(1, 4, 8)), 1},
		"both transposed":              {view(l.Transpose(0, 2)), view(l.Transpose(0, 2)), 1},
		"both reversed":                {view(l.Slice(0, 63, -1, -1)), view(l.Slice(0, 63, -1, -1)), 1},
		"every second row":             {of(t, 32, 32, 16), view(l.Slice(0, 0, 64, 2)), 1},
		"a matrix transposed":          {of(t, 16, 64), view(of(t, 64, 16).Transpose(0, 1)), 16},
		"reversed":                     {of(t, 64, 512), view(of(t, 64, 512).Slice(0, 63, -1, -1)), 64},
		"a scalar to 1024":             {of(t, 1024), view(of(t).Broadcast(1024)), 11},
		"a row to 64 rows":             {of(t, 64, 16), view(of(t, 16).Broadcast(64, 16)), 7},
		"a column to 1024 columns":     {of(t, 64, 1024), column, 11},
		"a scalar to a matrix in rows": {view(of(t, 64, 32).Narrow(1, 0, 16)), view(of(t).Broadcast(64, 16)), 11},
		"nothing":                      {of(t, 0, 3), of(t, 0, 3), 0},
		"other shapes":                 {of(t, 3), of(t, 4), 0},
	} {
		assert.Len(t, slices.Collect(layout.Copies(tt.dst, tt.src, math.MaxInt)), tt.want, name)
	}
	for mask := range 8 { // the same dimensions backwards in both
		backwards := of(t, 3, 4, 5)
		for d, n := range []int{3, 4, 5} {
			if mask>>d&1 != 0 {
				backwards = view(backwards.Slice(d, n-1, -1, -1))
			}
		}
		assert.Len(t, slices.Collect(layout.Copies(backwards, backwards, math.MaxInt)), 1, "%v", backwards)
	}
	part := view(of(t, 64, 16).Narrow(1, 0, 8))
	assert.Len(t, slices.Collect(layout.Copies(of(t, 64, 8), part, 16)), 1)
	assert.Len(t, slices.Collect(layout.Copies(of(t, 64, 8), part, 15)), 64, "rows too far apart are copied one by one")
	for range layout.Copies(of(t, 1024), view(of(t).Broadcast(1024)), 1) {
		break // a caller may have enough
	}
}

// permutations of the numbers below n.
func permutations(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, p := range permutations(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(p), at, n-1))
		}
	}
	return all
}

// Copies of five dimensions in every order of the source move each element.
func TestCopiesOfManyDimensions(t *testing.T) {
	shape := []int{2, 3, 2, 3, 2}
	for _, order := range permutations(len(shape)) {
		inverse, lengths := make([]int, len(order)), make([]int, len(order))
		for i, d := range order {
			lengths[i], inverse[d] = shape[d], i
		}
		src, err := of(t, lengths...).Permute(inverse...)
		require.NoError(t, err)
		dst := of(t, shape...)
		require.True(t, layout.SameShape(dst, src))
		want := slices.Collect(src.Places()) // the destination is in row-major order
		got := slices.Repeat([]int{-1}, len(want))
		for r := range layout.Copies(dst, src, math.MaxInt) {
			require.False(t, r.Again)
			for row := range r.Count {
				for k := range r.Width {
					at := r.Dst + row*r.DstPitch + k
					require.Equal(t, -1, got[at], "%v writes a place twice", order)
					got[at] = r.Src + row*r.SrcPitch + k
				}
			}
		}
		require.Equal(t, want, got, "%v", order)
	}
	copied := 0
	for range layout.Copies(of(t, 2, 2), must(of(t, 2, 2).Transpose(0, 1))(t), math.MaxInt) {
		copied++
		break // no more are made
	}
	assert.Equal(t, 1, copied)
}

func must(l layout.Layout, err error) func(t *testing.T) layout.Layout {
	return func(t *testing.T) layout.Layout {
		t.Helper()
		require.NoError(t, err)
		return l
	}
}

// Ranks at their bound, and strides of lengths of 1 that a reshape puts in front.
func TestBoundsOfShapes(t *testing.T) {
	most := slices.Repeat([]int{1}, layout.MaxRank)
	shape, err := layout.BroadcastShape(most, []int{3})
	require.NoError(t, err)
	assert.Equal(t, []int{1, 1, 1, 1, 1, 1, 1, 3}, shape)
	_, err = layout.BroadcastShape([]int{3}, append(most, 1))
	require.ErrorIs(t, err, layout.ErrRank)
	part := must(of(t, 4, 6).Narrow(1, 2, 3))(t)
	assert.Equal(t, []int{24, 24, 6, 1}, must(part.Reshape(1, 1, 4, 3))(t).Strides())
	assert.Equal(t, []int{24, 6, 1, 1}, must(part.Reshape(1, 4, 3, 1))(t).Strides())
	assert.Equal(t, []int{24, 12, 6, 1}, must(part.Reshape(1, 2, 2, 3))(t).Strides())
}
