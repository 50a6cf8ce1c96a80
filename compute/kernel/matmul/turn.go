package matmul

import (
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
)

// A product of fp32 of operands that both lie across the summed direction has no kernel with bulk copies. The smaller one is
// transposed into the workspace first, where that is faster than other kernels.

// turnedMicroseconds is the time of the launch that transposes no bytes, and turnedBytes are the bytes that it reads and writes in
// a microsecond: measured on an H200.
const (
	turnedMicroseconds = 2
	turnedBytes        = 4 << 20
)

// turned returns the problem with the transposed operand, and its bytes.
func turned(p Problem) (inner Problem, bytes int64) {
	const wide = 4 // elements of 16 bytes
	inner = p
	ld, stride, rows := &inner.LDB, &inner.StrideB, p.N
	if p.M < p.N {
		ld, stride, rows = &inner.LDA, &inner.StrideA, p.M
		inner.TransposeA = false
	} else {
		inner.TransposeB = true
	}
	*ld = (p.K + wide - 1) &^ (wide - 1)
	bytes = rows * *ld * p.In.Bytes()
	if *stride != 0 && p.Batch > 1 {
		*stride = rows * *ld
		bytes *= p.Batch
	}
	return inner, (bytes + workAlign - 1) &^ (workAlign - 1)
}

// turn chooses the kernel of the problem with the transposed operand if that takes less than so many microseconds.
func (l *launch) turn(kind int, p Problem, a alignment, d processor, microseconds float64) {
	if p.In != gemm.Float32 || !p.TransposeA || p.TransposeB {
		return
	}
	inner, bytes := turned(p)
	a.a, a.b = a.a || !inner.TransposeA, a.b || inner.TransposeB
	if !d.bulks(kind, inner, a) {
		return
	}
	name, blocks, cost := d.tileOf(kind, inner, a)
	if cost+turnedMicroseconds+float64(2*bytes)/turnedBytes < microseconds {
		l.variant, l.blocks, l.turnedBytes = name, blocks, bytes
	}
}

// turn transposes an operand into the workspace, and returns the problem that is left.
func (k *kernels) turn(c *cuda.Context, p Problem, o Operands, l launch, work cuda.Range) (Problem, gemm.Extent, Operands, error) {
	inner, _ := turned(p)
	_, e, err := p.Check()
	if err != nil {
		return inner, e, o, err
	}
	f, err := k.function(vectorOf(gemm.Float32), "turn")
	if err != nil {
		return inner, e, o, err
	}
	to := cuda.Part(work.Buffer, work.Offset, l.turnedBytes)
	of, bytes, columns, ld, stride := &o.B, e.B, p.N, [2]int64{p.LDB, inner.LDB}, [2]int64{p.StrideB, inner.StrideB} // before, after
	if !inner.TransposeA {
		of, bytes, columns, ld, stride = &o.A, e.A, p.M, [2]int64{p.LDA, inner.LDA}, [2]int64{p.StrideA, inner.StrideA}
	}
	batch := p.Batch
	if stride[0] == 0 {
		batch = 1
	}
	const side, threads = 64, 256 // of a tile, which a block transposes
	g := elements((p.K+side-1)/side*((columns+side-1)/side)*threads, batch)
	if err := c.Launch(f, g, in(*of, bytes), cuda.Out(to.Buffer).Of(to.Offset, to.Bytes), size(p.K), size(columns), cuda.Value(ld[0]),
		cuda.Value(ld[1]), cuda.Value(stride[0]), cuda.Value(stride[1])); err != nil {
		return inner, e, o, err
	}
	*of = to
	_, e, err = inner.Check()
	return inner, e, o, err
}
