package matmul

import (
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
)

// launch submits the kernels of a product.
func (k *kernels) launch(c *cuda.Context, p Problem, e gemm.Extent, o Operands, l launch, work cuda.Range) error {
	if l.way == nothing {
		return k.sum(c, p, e, o, 0, l.flags, cuda.Range{})
	}
	f, err := k.function(l.variant, l.kernel)
	if err != nil {
		return err
	}
	if l.turnedBytes > 0 {
		if p, e, o, err = k.turn(c, p, o, l, work); err != nil {
			return err
		}
		work = from(work, l.turnedBytes)
	}
	g := cuda.Geometry{
		Grid:        cuda.Dim3{X: uint32(l.blocks), Y: uint32(l.parts), Z: uint32(p.Batch)}, //nolint:gosec // checked
		Block:       cuda.Dim3{X: uint32(l.threads), Y: 1, Z: 1},                            //nolint:gosec // of a variant
		SharedBytes: int64(l.shared),
	}
	args := make([]cuda.Arg, 0, 32)
	switch {
	case variants[l.variant].Bulk:
		g.Grid = cuda.Dim3{X: uint32(min(l.blocks*int64(l.parts)*p.Batch, k.device.multiprocessors)), Y: 1, Z: 1} //nolint:gosec // checked
		if args, err = k.bulkArguments(args, p, e, o, l); err != nil {
			return err
		}
	case l.way == tiles:
		args = append(args, in(o.A, e.A), in(o.B, e.B), size(p.M), size(p.N), size(p.K), size(l.partK), cuda.Value(p.LDA),
			cuda.Value(p.LDB), cuda.Value(p.StrideA), cuda.Value(p.StrideB), size(p.Batch))
	default:
		args = rowArguments(args, p, e, o, l)
	}
	if l.parts == 1 {
		return c.Launch(f, g, result(args, p, e, o, l.flags, none)...)
	}
	if err := c.Launch(f, g, partsOf(args, p, l.flags|partial, cuda.Out(work.Buffer).Of(work.Offset, l.workBytes))...); err != nil {
		return err
	}
	return k.sum(c, p, e, o, int64(l.parts), l.flags, cuda.Part(work.Buffer, work.Offset, l.workBytes))
}

// rowArguments are the first of a kernel for one row or column: the matrix, and the vector that each of its rows is multiplied with.
func rowArguments(args []cuda.Arg, p Problem, e gemm.Extent, o Operands, l launch) []cuda.Arg {
	matrix, vector := in(o.A, e.A), in(o.B, e.B)
	count, ld, strideMatrix, strideVector := p.M, p.LDA, p.StrideA, p.StrideB
	step := p.LDB
	if p.TransposeB {
		step = 1
	}
	stepC, stepAux, stepBias := p.LDC, p.LDAux, int64(0)
	if p.N != 1 {
		matrix, vector = vector, matrix
		count, ld, strideMatrix, strideVector = p.N, p.LDB, p.StrideB, p.StrideA
		step = 1
		if p.TransposeA {
			step = p.LDA
		}
		stepC, stepAux, stepBias = 1, 1, 1
	}
	return append(args, matrix, vector, size(count), size(p.K), size(l.partK), size(p.Batch), cuda.Value(ld), cuda.Value(step),
		cuda.Value(strideMatrix), cuda.Value(strideVector), cuda.Value(stepC), cuda.Value(stepAux), cuda.Value(stepBias))
}

// sum adds up parts, and finishes.
func (k *kernels) sum(c *cuda.Context, p Problem, e gemm.Extent, o Operands, parts int64, flags uint32, work cuda.Range) error {
	t := sumType(p.In)
	f, err := k.function(vectorOf(t), sumOf(t))
	if err != nil {
		return err
	}
	from := none
	if parts > 0 {
		from = cuda.In(work.Buffer).Of(work.Offset, work.Bytes)
	}
	args := append(make([]cuda.Arg, 0, 16), size(p.M), size(p.N), size(parts), size(p.Batch))
	// a thread has four elements, or several times one
	return c.Launch(f, elements((p.M*p.N+3)/4, p.Batch), result(args, p, e, o, flags, from)...)
}

// convert rounds A and B into the workspace, and returns the operands of the inner problem.
func (m *Multiplier) convert(c *cuda.Context, p, inner Problem, e gemm.Extent, o Operands, work cuda.Range, bytes [2]int64) (Operands, gemm.Extent, error) {
	f, err := m.kernels.function(vectorOf(gemm.Float32), "narrow")
	if err != nil {
		return o, e, err
	}
	a, b := cuda.Part(work.Buffer, work.Offset, bytes[0]), cuda.Part(work.Buffer, work.Offset+bytes[0], bytes[1])
	rowsA, columnsA := shapeA(p)
	rowsB, columnsB := shapeB(p)
	for _, x := range []struct {
		from, to                                         cuda.Range
		bytes, rows, columns, ld, to16, stride, strideTo int64
	}{
		{o.A, a, e.A, rowsA, columnsA, p.LDA, inner.LDA, p.StrideA, inner.StrideA},
		{o.B, b, e.B, rowsB, columnsB, p.LDB, inner.LDB, p.StrideB, inner.StrideB},
	} {
		batch := p.Batch
		if x.stride == 0 {
			batch = 1
		}
		err := c.Launch(f, elements(x.rows*x.columns, batch), in(x.from, x.bytes), cuda.Out(x.to.Buffer).Of(x.to.Offset, x.to.Bytes), size(x.rows),
			size(x.columns), cuda.Value(x.ld), cuda.Value(x.to16), cuda.Value(x.stride), cuda.Value(x.strideTo), cuda.Value(uint32(inner.In)))
		if err != nil {
			return o, e, err
		}
	}
	_, its, err := inner.Check()
	o.A, o.B = a, b
	return o, its, err
}

// elements is the geometry of kernels that take elements one by one, several each where there are many.
func elements(count, batch int64) cuda.Geometry {
	const threads, most = 256, 1 << 16
	blocks := min(max((count+threads-1)/threads, 1), most)
	return cuda.Geometry{Grid: cuda.Dim3{X: uint32(blocks), Y: 1, Z: uint32(batch)}, Block: cuda.Dim3{X: threads, Y: 1, Z: 1}} //nolint:gosec // at most
}

func size(n int64) cuda.Arg { return cuda.Value(uint32(n)) } //nolint:gosec // gemm.MaxSize at most

func in(r cuda.Range, bytes int64) cuda.Arg { return cuda.In(r.Buffer).Of(r.Offset, bytes) }

// none is the argument of a buffer that a kernel does not touch.
var none = cuda.Value(uint64(0)) //nolint:gochecknoglobals // a constant

// result appends the arguments that say where results go.
func result(args []cuda.Arg, p Problem, e gemm.Extent, o Operands, flags uint32, work cuda.Arg) []cuda.Arg {
	c := cuda.Out(o.C.Buffer)
	if o.Beta != 0 {
		c = cuda.InOut(o.C.Buffer)
	}
	bias, aux := none, none
	if p.Bias {
		bias = in(o.Bias, e.Bias)
	}
	switch {
	case p.Epilogue.ReadsAux():
		aux = in(o.Aux, e.Aux)
	case p.Epilogue.WritesAux():
		aux = cuda.Out(o.Aux.Buffer).Of(o.Aux.Offset, e.Aux)
	}
	return append(args, c.Of(o.C.Offset, e.C), bias, aux, work, cuda.Value(p.LDC), cuda.Value(p.LDAux), cuda.Value(p.StrideC),
		cuda.Value(p.StrideAux), cuda.Value(o.Alpha), cuda.Value(o.Beta), cuda.Value(uint32(p.Out)), cuda.Value(flags))
}

// partsOf appends the arguments of a kernel that stores parts of sums alone.
func partsOf(args []cuda.Arg, p Problem, flags uint32, work cuda.Arg) []cuda.Arg {
	return append(args, none, none, none, work, cuda.Value(p.LDC), cuda.Value(p.LDAux), cuda.Value(p.StrideC), cuda.Value(p.StrideAux),
		cuda.Value(float64(1)), cuda.Value(float64(0)), cuda.Value(uint32(p.Out)), cuda.Value(flags))
}
