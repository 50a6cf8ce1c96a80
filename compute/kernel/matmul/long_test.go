package matmul_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
)

// A long sum of float16 products is fp32: its halves are beyond float16, and cancel out. The library splits such a K, and so do own kernels.
func TestLongSumsOfFloat16(t *testing.T) {
	r := newRig(t)
	lengths := []int64{512}
	if onHardware {
		lengths = []int64{4096, 16384, 65536}
	}
	for _, k := range lengths {
		for _, choice := range []matmul.Choice{matmul.Library, matmul.Own} {
			const side = 8
			alloc := func(elements int64, values ...uint16) cuda.Range {
				b, err := r.c.Alloc(elements * 2)
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, b.Free()) })
				part := elements * 2 / int64(len(values))
				for i, v := range values {
					require.NoError(t, r.c.Fill16(cuda.Part(b, int64(i)*part, part), v))
				}
				return cuda.Whole(b)
			}
			o := gemm.Operands{A: alloc(k*side, 0x5c00, 0xdc00), B: alloc(k*side, 0x5c00), C: alloc(side*side, 0x7e00), Alpha: 1} // 256, -256 and NaN
			p := gemm.Problem{M: side, N: side, K: k, TransposeA: true, In: gemm.Float16, Out: gemm.Float16}
			_, err := r.m.Multiply(r.c, p, o, choice)
			if r.absent(err) {
				continue
			}
			require.NoError(t, err)
			got := make([]uint16, side*side)
			require.NoError(t, cuda.CopyOut(r.c, got, o.C.Buffer))
			assert.Equal(t, make([]uint16, side*side), got, "K %d, choice %v", k, choice)
		}
	}
}
