package matmul

import (
	"github.com/go-vram/vram/compute/kernel/matmul/internal/variant"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv"
)

// bulkArguments are the first of a kernel that copies in bulk.
func (k *kernels) bulkArguments(args []cuda.Arg, p Problem, e gemm.Extent, o Operands, l launch) ([]cuda.Arg, error) {
	t := variants[l.variant]
	rowsA, columnsA := shapeA(p)
	rowsB, columnsB := shapeB(p)
	a := operandMap(p.In, o.A, rowsA, columnsA, p.LDA, p.StrideA, p.Batch, !p.TransposeA, t.TileM)
	b := operandMap(p.In, o.B, rowsB, columnsB, p.LDB, p.StrideB, p.Batch, p.TransposeB, t.TileN)
	if p.Precision == gemm.TF32x3 {
		a.Type, b.Type = cudadrv.TensorFloat32, cudadrv.TensorFloat32
	}
	if t.Crossed {
		a, b, p.M, p.N, o.A, o.B, e.A, e.B = b, a, p.N, p.M, o.B, o.A, e.B, e.A
	}
	mapA, err := k.maps.Arg(k.on, &a)
	if err != nil {
		return nil, err
	}
	mapB, err := k.maps.Arg(k.on, &b)
	if err != nil {
		return nil, err
	}
	return append(args, mapA, mapB, in(o.A, e.A), in(o.B, e.B), size(p.M), size(p.N), size(p.K), size(l.partK), size(int64(l.parts)), size(p.Batch),
		size(min(a.Dims[2]-1, 1)), size(min(b.Dims[2]-1, 1))), nil
}

// tensorTypes are the types of operands. Copies of fp32 round it.
var tensorTypes = [...]cudadrv.TensorType{ //nolint:gochecknoglobals // a constant table
	gemm.Float32: cudadrv.TensorTFloat32, gemm.Float16: cudadrv.TensorFloat16, gemm.BFloat16: cudadrv.TensorBFloat16,
}

// operandMap describes an operand with its rows as they lie in memory. along: they lie along the summed direction, so that a
// box has all of a tile's.
func operandMap(t gemm.Type, r cuda.Range, rows, columns, ld, stride, batch int64, along bool, tile int) cudadrv.TensorMap {
	step := int32(variant.BulkRowBytes / t.Bytes()) //nolint:gosec // 64 at most
	m := cudadrv.TensorMap{
		Ptr: r.Buffer.Ptr() + cudadrv.Ptr(r.Offset), Type: tensorTypes[t], Swizzle: cudadrv.Swizzle128, Rank: 3, //nolint:gosec // not negative
		Dims:    [cudadrv.MaxTensorRank]int64{columns, rows, 1},
		Strides: [cudadrv.MaxTensorRank - 1]int64{ld * t.Bytes(), stride * t.Bytes()},
		Box:     [cudadrv.MaxTensorRank]int32{step, step, 1},
	}
	if stride == 0 {
		m.Strides[1] = rows * ld * t.Bytes()
	} else {
		m.Dims[2] = batch
	}
	if along {
		m.Box[1] = int32(tile) //nolint:gosec // 256 at most
	}
	return m
}
