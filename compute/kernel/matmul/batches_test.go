package matmul

import (
	"errors"
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

// Kernels of elements have a thread for each in blocks of 256, up to 65,536 blocks, and one block at least.
func TestBlocksOfElements(t *testing.T) {
	for count, blocks := range map[int64]uint32{0: 1, 1: 1, 256: 1, 257: 2, 512: 2, 513: 3, 1 << 24: 1 << 16, 1<<24 + 1: 1 << 16} {
		assert.Equal(t, cuda.Geometry{Grid: cuda.Dim3{X: blocks, Y: 1, Z: 7}, Block: cuda.Dim3{X: 256, Y: 1, Z: 1}}, elements(count, 7), "%d", count)
	}
}

// The library is looked for once: later products get the same handle or the same reason why there is none.
func TestTheLibraryIsLookedForOnce(t *testing.T) {
	first := &answer{err: errors.New("absent")}
	var l library
	l.asked.Store(first)
	for range 2 {
		_, err := l.open()
		assert.Equal(t, first.err, err)
	}
	require.NoError(t, l.close())
	_, err := l.open()
	require.ErrorIs(t, err, cuda.ErrNotOpen)
}
