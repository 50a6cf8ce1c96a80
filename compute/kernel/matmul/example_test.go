package matmul_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
)

// The page on products has this.
func TestTheProductOfThePage(t *testing.T) {
	r := newRig(t)
	c := r.c
	const m, n, k = 3, 2, 4
	var buffers []cuda.Buffer
	ones := func(count int64) cuda.Buffer {
		b, err := c.Alloc(4 * count)
		require.NoError(t, err)
		require.NoError(t, c.Fill32(cuda.Whole(b), 0x3f800000))
		buffers = append(buffers, b)
		return b
	}
	a, b, d, bias := ones(m*k), ones(k*n), ones(m*n), ones(n)
	p := matmul.Problem{M: m, N: n, K: k, Precision: gemm.TF32, Bias: true, Epilogue: gemm.GELU}
	products := matmul.New(c)
	way, err := products.Multiply(c, p, matmul.Operands{
		A: cuda.Whole(a), B: cuda.Whole(b), C: cuda.Whole(d), Bias: cuda.Whole(bias), Alpha: 1,
	}, matmul.Any)
	require.NoError(t, err)
	assert.NotEmpty(t, way.String())
	got := make([]float32, m*n)
	require.NoError(t, cuda.CopyOut(c, got, d))
	for _, x := range got {
		assert.InDelta(t, 5, x, 1e-4, "gelu(4+1)")
	}
	require.NoError(t, products.Close())
	for _, x := range buffers {
		require.NoError(t, x.Free())
	}
}
