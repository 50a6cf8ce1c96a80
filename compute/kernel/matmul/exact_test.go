package matmul_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/cuda/gemm"
)

// Numbers of 11 bits are multiplied as they are, also where operands are rounded to as many, and NaN stays NaN.
func TestExactNumbers(t *testing.T) {
	r := newRig(t)
	random := newRandom(11)
	for _, precision := range []gemm.Precision{gemm.TF32, gemm.TF32x3} {
		p := gemm.Problem{M: 40, N: 36, K: 24, Precision: precision}
		x := r.product(random, p, 1, 0, 0)
		for i := range p.M * p.K {
			put(x.a.host[x.a.Offset+4*i:], gemm.Float32, float64(random.IntN(4095)-2047))
		}
		for i := range p.K * p.N {
			put(x.b.host[x.b.Offset+4*i:], gemm.Float32, float64(random.IntN(3)-1))
		}
		none, infinite := int64(3), int64(20) // rows
		put(x.a.host[x.a.Offset+4*none*p.K:], gemm.Float32, float64(math.Float32frombits(0x7fffffff)))
		put(x.a.host[x.a.Offset+4*infinite*p.K:], gemm.Float32, math.Inf(1))
		for j := range p.N {
			put(x.b.host[x.b.Offset+4*j:], gemm.Float32, 1)
		}
		require.NoError(t, r.c.CopyInAt(x.a.Buffer, 0, x.a.host))
		require.NoError(t, r.c.CopyInAt(x.b.Buffer, 0, x.b.host))
		_, err := r.m.Multiply(r.c, p, x.operands(), matmul.Own)
		require.NoError(t, err)
		got := make([]byte, len(x.c.host))
		require.NoError(t, r.c.CopyOutAt(got, x.c.Buffer, 0))
		x.compute()
		for i := range p.M {
			for j := range p.N {
				g, want := get(got[x.c.Offset+4*(i*p.N+j):], gemm.Float32), x.want[i*p.N+j]
				switch {
				case i == none:
					assert.True(t, math.IsNaN(g), "%v: %g", precision, g)
				case i == infinite && precision == gemm.TF32:
					assert.True(t, math.IsInf(g, 1), "%v: %g", precision, g)
				case i == infinite:
					assert.False(t, math.Abs(g) <= math.MaxFloat32, "%v: %g", precision, g)
				default:
					require.InDelta(t, want, g, 0, "%v: row %d, column %d", precision, i, j)
				}
			}
		}
		r.free(x)
	}
}
