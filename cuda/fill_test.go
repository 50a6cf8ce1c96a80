package cuda_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
)

// A fill with a wide value begins and ends at multiples of the value's size. Another one is refused with its range, and changes
// no byte.
func TestAFillWithAWideValueIsAligned(t *testing.T) {
	r, c := newRig(t)
	x := r.alloc(c, 4096)
	defer r.free(x)
	require.NoError(t, c.Fill8(cuda.Whole(x), 7))
	fills := map[int64]func(part cuda.Range) error{
		2: func(part cuda.Range) error { return c.Fill16(part, 0x1111) },
		4: func(part cuda.Range) error { return c.Fill32(part, 0x11111111) },
	}
	for size, fill := range fills {
		for offset := range 2 * size {
			for length := range 4 * size {
				if offset%size == 0 && length%size == 0 {
					continue
				}
				err := fill(cuda.Part(x, offset, length))
				var refused *cuda.RangeError
				require.ErrorAs(t, err, &refused, "%d bytes at %d, of values of %d", length, offset, size)
				assert.Equal(t, cuda.RangeError{Offset: offset, Bytes: length, BufferBytes: 4096}, *refused)
			}
		}
	}
	got := make([]byte, 64)
	require.NoError(t, c.CopyOutAt(got, x, 0))
	assert.Equal(t, bytes.Repeat([]byte{7}, 64), got)
}

// Rows whose end is beyond the largest offset are outside of the buffer, whichever of the two they are.
func TestRowsOfAnExtremePitchAreOutside(t *testing.T) {
	r, c := newRig(t)
	x, y := r.alloc(c, 4096), r.alloc(c, 4096)
	defer r.free(x, y)
	inside := cuda.Rows{Buffer: y, Pitch: 64}
	for _, size := range [][2]int64{{-8, 2}, {8, -2}, {-8, -2}, {-8, 0}, {0, -2}} {
		var outside *cuda.RangeError
		require.ErrorAs(t, c.Copy2D(cuda.Rows{Buffer: x, Offset: 16, Pitch: 64}, inside, size[0], size[1]), &outside, "%v", size)
		assert.Equal(t, cuda.RangeError{Offset: 16, Bytes: size[0], BufferBytes: 4096}, *outside, "%v", size)
	}
	for _, pitch := range []int64{1 << 60, 1 << 61, 1 << 62, math.MaxInt64} {
		for rows := int64(2); rows <= 33; rows++ {
			extreme := cuda.Rows{Buffer: x, Pitch: pitch}
			var outside *cuda.RangeError
			require.ErrorAs(t, c.Copy2D(extreme, inside, 8, rows), &outside, "%d rows, pitch %d", rows, pitch)
			require.ErrorAs(t, c.Copy2D(inside, extreme, 8, rows), &outside, "%d rows, pitch %d", rows, pitch)
		}
	}
}
