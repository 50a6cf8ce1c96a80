package cuda_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
)

// Values go to a buffer and back, whole and at offsets of elements.
func TestElementsGoInAndOut(t *testing.T) {
	r, c := newRig(t)
	in := []int16{1, -2, 3, -4, 5}
	x, err := cuda.From(c, in)
	require.NoError(t, err)
	assert.EqualValues(t, 10, x.Bytes())
	in[0] = 99 // the copy has ended
	got, err := cuda.Load[int16](c, cuda.Whole(x), 5)
	require.NoError(t, err)
	assert.Equal(t, []int16{1, -2, 3, -4, 5}, got)

	require.NoError(t, cuda.Store(c, cuda.Elements[int16](x, 2, 2), []int16{7, 8}))
	got, err = cuda.Load[int16](c, cuda.Elements[int16](x, 1, 4), 3)
	require.NoError(t, err)
	assert.Equal(t, []int16{-2, 7, 8}, got)
	got, err = cuda.Load[int16](c, cuda.Elements[int16](x, 5, 0), 0)
	require.NoError(t, err)
	assert.Empty(t, got)
	assert.Equal(t, cuda.Part(x, 8, 16), cuda.Elements[float64](x, 1, 2))
	r.free(x)
}

// Ranges and counts that cannot be are refused, before memory is allocated for them.
func TestElementsThatAreNotThere(t *testing.T) {
	r, c := newRig(t)
	x := r.alloc(c, 64)
	var length *cuda.LengthError
	_, err := cuda.Load[float64](c, cuda.Whole(x), 9)
	require.ErrorAs(t, err, &length)
	assert.Equal(t, cuda.LengthError{DstBytes: 72, SrcBytes: 64}, *length)
	for _, count := range []int{-1, math.MaxInt, math.MaxInt/8 + 2, 1 << 61, 1<<61 + 1, 1<<62 + 8} { // the last ones are 0, 1 and 8 elements in 64 bits
		_, err = cuda.Load[float64](c, cuda.Whole(x), count)
		require.ErrorAs(t, err, &length, "%d", count)
	}
	require.ErrorAs(t, cuda.Store(c, cuda.Part(x, 0, 8), []float64{1, 2}), &length)
	var outside *cuda.RangeError
	for _, part := range []cuda.Range{
		cuda.Elements[float64](x, 1, 8), cuda.Elements[float64](x, -1, 1), cuda.Elements[float64](x, 1, -1),
		cuda.Elements[float64](x, math.MaxInt, 1), cuda.Elements[float64](x, math.MaxInt/4, math.MaxInt/4), cuda.Elements[float64](x, 0, math.MaxInt),
		cuda.Elements[float64](x, 1<<61, 1), cuda.Elements[float64](x, 0, 1<<61+1), cuda.Elements[float64](x, 1<<62, 1<<62),
	} {
		_, err = cuda.Load[float64](c, part, 0)
		require.ErrorAs(t, err, &outside, "%v", part)
		require.ErrorAs(t, cuda.Store(c, part, []float64{}), &outside, "%v", part)
	}
	r.free(x)
	_, err = cuda.Load[float64](c, cuda.Whole(x), 1)
	require.ErrorIs(t, err, cuda.ErrNotLive)
	require.ErrorContains(t, err, "Load")
	require.ErrorIs(t, cuda.Store(c, cuda.Whole(x), []float64{1}), cuda.ErrNotLive)
	empty, err := cuda.From(c, []float64{})
	require.NoError(t, err)
	assert.Zero(t, empty.Bytes())
	r.free(empty)
	_, err = cuda.Load[float64](nil, cuda.Whole(x), 1)
	require.ErrorIs(t, err, cuda.ErrNotOpen)
	require.ErrorIs(t, cuda.Store(nil, cuda.Whole(x), []float64{1}), cuda.ErrNotOpen)
	_, err = cuda.From(nil, []float64{1})
	require.ErrorIs(t, err, cuda.ErrNotOpen)
}

// From in a capture is refused, as a copy that waits is, and its buffer is freed.
func TestFromInACapture(t *testing.T) {
	_, c := newRig(t)
	_, err := c.Capture(func() error {
		_, err := cuda.From(c, []float64{1})
		return err
	})
	require.ErrorIs(t, err, cuda.ErrCapturing)
	require.False(t, errors.Is(err, cuda.ErrNotLive))
}
