package matmul

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
)

// A large batch is computed in parts, each with its own part of every operand but the bias, which is one for all.
func TestPartsOfALargeBatch(t *testing.T) {
	p, e, err := Problem{
		M: 2, N: 3, K: 5, Batch: 2*maxBatch + 7, StrideA: 11, StrideB: 0, StrideC: 6, StrideAux: 8, In: gemm.Float16, Out: gemm.Float32,
		Bias: true, Epilogue: gemm.GELUAux,
	}.Check()
	require.NoError(t, err)
	const far = int64(1) << 30
	at := func(offset, bytes int64) cuda.Range { return cuda.Range{Offset: offset, Bytes: bytes} }
	o := Operands{A: at(far, e.A), B: at(2*far, e.B), C: at(3*far, e.C), Bias: at(4*far, e.Bias), Aux: at(5*far, e.Aux), Alpha: 2, Beta: 3}
	sum := int64(0)
	for first := int64(0); first < p.Batch; first += maxBatch {
		part, its := batchFrom(p, o, first)
		sum += part.Batch
		assert.LessOrEqual(t, part.Batch, int64(maxBatch))
		want := o
		want.A, want.B = at(far+2*11*first, e.A-2*11*first), o.B
		want.C, want.Aux = at(3*far+4*6*first, e.C-4*6*first), at(5*far+4*8*first, e.Aux-4*8*first)
		assert.Equal(t, want, its)
		_, its2, err := part.Check()
		require.NoError(t, err)
		require.NoError(t, part.CheckOperands(its2, its), "each part has enough")
	}
	assert.Equal(t, p.Batch, sum)
}
