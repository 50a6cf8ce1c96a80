//go:build gpu

package ops_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/tensor"
)

// Operations on more elements than 31 bits count, which only a GPU has the memory for.
func TestMoreThan31Bits(t *testing.T) {
	const n = 1<<31 + 4099
	r := newRig(t)
	require.NoError(t, tensor.Scoped(r.c, func(s *tensor.Scope) error {
		x, err := r.o.Fill(s, tensor.Int8, 3, n)
		require.NoError(t, err)
		tail, err := x.Narrow(0, n-5, 5)
		require.NoError(t, err)
		require.NoError(t, r.o.FillInto(s, tail, 7))
		y, err := r.o.Add(s, x, x)
		require.NoError(t, err)
		total, err := r.o.Sum(s, y, false)
		require.NoError(t, err)
		assert.Equal(t, int64(6*(n-5)+14*5), must(tensor.Item[int64](total)))
		greatest, err := r.o.Max(s, y, false)
		require.NoError(t, err)
		assert.Equal(t, int8(14), must(tensor.Item[int8](greatest)))
		first, err := r.o.ArgMax(s, y, false)
		require.NoError(t, err)
		assert.Equal(t, int64(n-5), must(tensor.Item[int64](first)))
		end, err := y.Narrow(0, n-7, 7)
		require.NoError(t, err)
		assert.Equal(t, []int8{6, 6, 14, 14, 14, 14, 14}, must(tensor.Read[int8](end)))

		rows, err := x.Reshape(3, n/3)
		require.NoError(t, err)
		turned, err := rows.Transpose(0, 1)
		require.NoError(t, err)
		copied, err := r.o.Copy(s, turned) // neighbours lay two thirds of a GiB apart
		require.NoError(t, err)
		sums, err := r.o.Sum(s, copied, false, 0)
		require.NoError(t, err)
		assert.Equal(t, []int64{n, n, n + 4*5}, must(tensor.Read[int64](sums)))
		return nil
	}))
}
