package layout_test

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/tensor/layout"
)

// extremes are ints at which arithmetic goes wrong.
var extremes = []int{
	0, 1, 2, 3, 5, 1 << 31, 1<<32 + 1, math.MaxInt / 2, math.MaxInt/2 + 1, math.MaxInt - 1, math.MaxInt,
	-1, -2, -1 << 31, math.MinInt / 2, math.MinInt + 1, math.MinInt,
}

// exact is a layout in integers without a bound.
type exact struct {
	shape, strides []*big.Int
	offset         *big.Int
}

func integer(n int) *big.Int            { return big.NewInt(int64(n)) }
func sum(a, b *big.Int) *big.Int        { return new(big.Int).Add(a, b) }
func difference(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }
func times(a, b *big.Int) *big.Int      { return new(big.Int).Mul(a, b) }
func integers(all []int) (to []*big.Int) {
	for _, n := range all {
		to = append(to, integer(n))
	}
	return to
}

var one = integer(1)

// span is the distance of the last index of a dimension from the first.
func (e exact) span(d int) *big.Int {
	if e.shape[d].Sign() == 0 {
		return new(big.Int)
	}
	return times(difference(e.shape[d], one), e.strides[d])
}

// reach returns the lowest and the highest place, as if a length of 0 were 1.
func (e exact) reach() (low, high *big.Int) {
	low, high = e.offset, e.offset
	for d := range e.shape {
		if span := e.span(d); span.Sign() < 0 {
			low = sum(low, span)
		} else {
			high = sum(high, span)
		}
	}
	return low, high
}

// count returns the number of elements, and whether an int could hold it if a length of 0 were 1.
func (e exact) count() (n *big.Int, fits bool) {
	n, none := one, false
	for _, length := range e.shape {
		if none = none || length.Sign() == 0; length.Sign() != 0 {
			n = times(n, length)
		}
	}
	if fits = n.IsInt64(); none {
		n = new(big.Int)
	}
	return n, fits
}

// valid reports whether New takes it.
func (e exact) valid() bool {
	low, high := e.reach()
	_, fits := e.count()
	for d, n := range e.shape {
		fits = fits && n.Sign() >= 0 && e.span(d).IsInt64()
	}
	return fits && low.Sign() >= 0 && high.Cmp(integer(math.MaxInt)) < 0
}

// sliced has so many indices of a dimension.
func (e exact) sliced(d int, from, step, length *big.Int) exact {
	to := exact{slices.Clone(e.shape), slices.Clone(e.strides), e.offset}
	if length.Sign() > 0 {
		to.offset = sum(e.offset, times(from, e.strides[d]))
	}
	to.shape[d], to.strides[d] = length, times(e.strides[d], step)
	return to
}

// requireRefused asserts that an error is one of this package's.
func requireRefused(t *testing.T, err error) {
	t.Helper()
	var shape *layout.ShapeError
	var index *layout.IndexError
	require.True(t, errors.As(err, &shape) || errors.As(err, &index), "%v", err)
}

// requireExact asserts that a layout has exactly these places, by its numbers, its bounds and its last element.
func requireExact(t *testing.T, e exact, l layout.Layout) {
	t.Helper()
	is := func(want *big.Int, got int) {
		if want.Cmp(integer(got)) != 0 {
			require.Equal(t, want.String(), integer(got).String(), "%v", l)
		}
	}
	require.Equal(t, len(e.shape), l.Rank())
	count, _ := e.count()
	is(count, l.Len())
	first, end := l.Bounds()
	corner, at := e.offset, make([]int, l.Rank())
	for d, n := range e.shape {
		if is(n, l.Dim(d)); l.Dim(d) > 1 && l.Len() > 0 {
			is(e.strides[d], l.Stride(d))
			corner, at[d] = sum(corner, e.span(d)), l.Dim(d)-1
		}
	}
	if l.Len() == 0 {
		require.Equal(t, first, end)
		return
	}
	low, high := e.reach()
	is(low, first)
	is(sum(high, one), end)
	place, err := l.At(at...)
	require.NoError(t, err)
	is(corner, place)
	if fits := high.Cmp(integer(math.MaxInt32)) < 0 && count.Cmp(integer(math.MaxInt32)) <= 0; fits != l.Fits32() {
		require.Equal(t, fits, l.Fits32(), "%v", l)
	}
	short := l.Coalesce()
	if f, s := short.Bounds(); f != first || s != end || short.Len() != l.Len() {
		require.Fail(t, "coalesced", "%v: %v", l, short)
	}
	if count.Cmp(difference(sum(high, one), low)) > 0 && !l.MayOverlap() {
		require.Fail(t, "overlap", "%v has more elements than places", l)
	}
}

// layouts yields all layouts of two dimensions of extreme numbers. It asserts that New takes those whose places are ints.
func layouts(t *testing.T, yield func(layout.Layout, exact)) {
	t.Helper()
	lengths := []int{0, 1, 2, 3, 1<<32 + 1, math.MaxInt/2 + 1, math.MaxInt, -1}
	strides := []int{0, 1, math.MaxInt / 2, math.MaxInt/2 + 1, -1, math.MinInt / 2, math.MinInt + 1, math.MinInt}
	for _, m := range lengths {
		for _, n := range lengths {
			for _, a := range strides {
				for _, b := range strides {
					for _, offset := range []int{0, 1, math.MaxInt / 2, math.MaxInt - 1, math.MaxInt, -1} {
						shape, steps := []int{m, n}, []int{a, b}
						e := exact{integers(shape), integers(steps), integer(offset)}
						l, err := layout.New(shape, steps, offset)
						if valid := e.valid(); valid != (err == nil) {
							require.Equal(t, valid, err == nil, "%v by %v from %d: %v", shape, steps, offset, err)
						}
						if err == nil {
							yield(l, e)
						} else {
							requireRefused(t, err)
						}
					}
				}
			}
		}
	}
}

// Layouts of extreme numbers are refused, or have the places that exact arithmetic has.
func TestLayoutsOfExtremeNumbers(t *testing.T) {
	count := 0
	layouts(t, func(l layout.Layout, e exact) {
		count++
		requireExact(t, e, l)
		if l.Dim(1) != 1 {
			return
		}
		for _, n := range extremes { // a dimension of 1 is repeated
			want := exact{[]*big.Int{e.shape[0], integer(n)}, []*big.Int{e.strides[0], new(big.Int)}, e.offset}
			_, fits := want.count()
			wide, err := l.Broadcast(l.Dim(0), n)
			require.Equal(t, n == 1 || n >= 0 && fits, err == nil, "%v to %d: %v", l, n, err)
			if err == nil {
				requireExact(t, want, wide)
			}
		}
	})
	require.Greater(t, count, 1000)
}

// Views by extreme numbers are refused, or have the places that exact arithmetic has: no overflow passes for an index.
func TestViewsByExtremeNumbers(t *testing.T) {
	for _, of := range []struct {
		shape, strides []int
		offset         int
	}{
		{[]int{3, 5}, []int{5, 1}, 0},
		{[]int{5}, []int{-1}, 4},
		{[]int{1}, []int{math.MinInt}, 7},
		{[]int{0, 3}, []int{3, 1}, 0},
		{[]int{3, 0}, []int{1, 1}, 1},
		{[]int{2, 1 << 31}, []int{1 << 31, 1}, 1},
		{[]int{math.MaxInt}, []int{1}, 0},
		{[]int{math.MaxInt}, []int{-1}, math.MaxInt - 1},
		{[]int{math.MaxInt}, []int{0}, 3},
		{[]int{math.MaxInt / 2}, []int{2}, 1},
		{[]int{3}, []int{math.MaxInt / 3}, 1},
	} {
		l, err := layout.New(of.shape, of.strides, of.offset)
		require.NoError(t, err)
		e := exact{integers(of.shape), integers(of.strides), integer(of.offset)}
		requireExact(t, e, l)
		d := l.Rank() - 1
		n := of.shape[d]
		is := func(valid bool, want exact, got layout.Layout, err error, numbers ...int) {
			if valid != (err == nil) {
				require.Equal(t, valid, err == nil, "%v: %v: %v, %v", l, numbers, got, err)
			}
			if err == nil {
				requireExact(t, want, got)
			} else {
				requireRefused(t, err)
			}
		}
		values := append([]int{n, n - 1, n / 2, -n}, extremes...)
		for _, from := range values {
			first := integer(from)
			view, err := l.Index(d, from)
			valid := from >= 0 && from < n
			want := e.sliced(d, first, one, one)
			want.shape, want.strides = want.shape[:d], want.strides[:d]
			is(valid, want, view, err, from)
			_, err = l.Index(from, 0)
			require.True(t, err != nil || from >= -d-1 && from <= d, "dimension %d of %v", from, l)
			for _, second := range values {
				last := integer(second)
				view, err := l.Narrow(d, from, second)
				valid := from >= 0 && second >= 0 && sum(first, last).Cmp(integer(n)) <= 0
				is(valid, e.sliced(d, first, one, last), view, err, from, second)
				for _, step := range values {
					by := integer(step)
					up := step > 0 && from >= 0 && from <= second && second <= n
					down := step < 0 && from < n && from >= second && second >= -1
					view, err := l.Slice(d, from, second, step)
					var want exact
					if up || down {
						size := new(big.Int).Abs(by) // the distance by the step, rounded up
						size.Div(sum(new(big.Int).Abs(difference(last, first)), difference(size, one)), size)
						want = e.sliced(d, first, by, size)
					}
					is(up || down, want, view, err, from, second, step)
				}
			}
		}
	}
}
