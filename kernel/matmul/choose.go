package matmul

import (
	"fmt"
	"math"

	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/kernel/matmul/internal/variant"
)

// alignment says which operands begin, with each of their rows and matrices, at multiples of 16 bytes, and C at multiples of four elements.
type alignment struct{ a, b, c, converted bool }

var aligned = alignment{a: true, b: true, c: true} //nolint:gochecknoglobals // a constant

// alignmentOf looks at the addresses. Converted operands lie in the workspace.
func alignmentOf(p Problem, o Operands, converted bool) alignment {
	at := func(address uint64, bytes, ld, stride, wideBytes int64) bool {
		wide := wideBytes / bytes
		return address%uint64(wideBytes) == 0 && ld%wide == 0 && stride%wide == 0 //nolint:gosec // 16 at most
	}
	in, out := p.In.Bytes(), p.Out.Bytes()
	a, b, c := uint64(o.A.Buffer.Ptr())+uint64(o.A.Offset), uint64(o.B.Buffer.Ptr())+uint64(o.B.Offset), uint64(o.C.Buffer.Ptr())+uint64(o.C.Offset) //nolint:gosec // addresses
	if converted {
		a, b = 0, 0
	}
	return alignment{
		at(a, in, p.LDA, p.StrideA, 16), at(b, in, p.LDB, p.StrideB, 16), at(c, out, p.LDC, p.StrideC, 4*out), converted,
	}
}

// launch is how a product is computed by own kernels.
type launch struct {
	way     way
	variant string // the file of the kernel
	kernel  string
	blocks  int64 // in the grid's first direction
	threads int
	shared  int

	parts int   // in the grid's second direction
	partK int64 // of the summed direction, in each
	flags uint32

	workBytes int64 // of parts
}

type way uint8

const (
	tiles way = iota // of C
	rows             // one warp for each element of a result with one row or column
	columns
	nothing // no sum at all
)

// tile is a size that kernels have.
type tile struct{ m, n int }

// sizes are the tiles of own kernels, the largest first: it does the least loads for its products. The first that keeps so much of the device
// busy is taken, counted in blocks for each multiprocessor; else the last. Untuned.
var sizes = []struct { //nolint:gochecknoglobals // a constant table
	tile
	busy float64
}{{tile{128, 128}, 0.9}, {tile{128, 64}, 0.75}, {tile{64, 64}, 0}}

const (
	// minPartK is how much a part sums up at least: less is not worth storing it.
	minPartK = 256
	// maxParts bounds what is added up in the end.
	maxParts = 32
	// maxPartBytes bounds the workspace of parts.
	maxPartBytes = 256 << 20
)

// The bits of flags, as finish.h has them.
const (
	transposeA uint32 = 1 << iota
	transposeB
	wideA
	wideB
	addBias
	gelu
	keep
	geluGradient
	partial
	wideC
)

// choose is how own kernels compute a problem on a device with so many multiprocessors.
func choose(p Problem, a alignment, multiprocessors int) (launch, error) {
	processors := int64(max(multiprocessors, 1))
	l := launch{parts: 1, partK: p.K, flags: flagsOf(p, a)}
	switch {
	case p.K == 0:
		l.way, l.variant, l.kernel = nothing, vectorOf(sumType(p.In)), sumOf(sumType(p.In))
		return l, nil
	case p.M == 1 || p.N == 1:
		l.rows(p, a)
	default:
		if err := l.tiles(p, processors); err != nil {
			return launch{}, err
		}
	}
	if l.blocks > math.MaxInt32 {
		return launch{}, &gemm.ProblemError{Field: "M", Value: p.M, Want: "a matrix of fewer tiles than a grid has blocks"}
	}
	l.split(p, processors)
	return l, nil
}

// rows chooses for a result with one row or column.
func (l *launch) rows(p Problem, a alignment) {
	count, along, wide := p.M, !p.TransposeA, a.a
	if p.N != 1 {
		count, along, wide = p.N, p.TransposeB, a.b
	}
	l.variant, l.threads = vectorOf(p.In), 256
	l.flags &^= wideA | wideB | wideC
	if along {
		l.way, l.kernel, l.blocks = rows, "dot_"+p.In.String(), (count+7)/8
		if wide {
			l.flags |= wideA
		}
		return
	}
	l.way, l.kernel, l.blocks = columns, "columns_"+p.In.String(), (count+31)/32
}

// tiles chooses the kernel and the tile.
func (l *launch) tiles(p Problem, processors int64) error {
	kind := 0
	switch {
	case p.In == gemm.BFloat16:
		kind = variant.BF16
	case p.In == gemm.Float16:
		kind = variant.F16
	case p.Precision == gemm.TF32:
		kind = variant.TF32
	case p.Precision == gemm.TF32x3:
		kind = variant.Three
	case p.Precision != gemm.IEEE:
		return fmt.Errorf("%w: %v", ErrUnsupported, p.Precision)
	}
	for _, size := range sizes {
		l.blocks = (p.M + int64(size.m) - 1) / int64(size.m) * ((p.N + int64(size.n) - 1) / int64(size.n))
		if p.In == gemm.Float64 && size.m != 64 {
			continue
		}
		l.variant = variant.PlainName(p.In.String(), size.m, size.n)
		if kind != 0 {
			l.variant = variant.TensorName(kind, size.m, size.n, p.TransposeA, p.TransposeB)
		}
		if float64(l.blocks)*float64(p.Batch) >= size.busy*float64(processors) {
			break
		}
	}
	v := variants[l.variant]
	l.kernel, l.threads, l.shared = l.variant, v.Threads, v.SharedBytes
	return nil
}

// split splits the sums where the blocks do not fill the device: one for each multiprocessor, two where those have few warps, and
// eight where all is waiting for memory.
func (l *launch) split(p Problem, processors int64) {
	wanted, least := processors, int64(minPartK)
	switch {
	case l.way != tiles:
		wanted, least = 8*processors, 1024
	case l.shared == 0: // no matrix units
		wanted = 2 * processors
	}
	parts := min(wanted/max(l.blocks*p.Batch, 1), p.K/least, maxParts)
	sum := sumType(p.In).Bytes()
	one := p.M * p.N * p.Batch // fits: C has as many elements
	if parts = min(parts, maxPartBytes/max(one*sum, 1)); parts <= 1 {
		return
	}
	partK := ((p.K+parts-1)/parts + minPartK - 1) / minPartK * minPartK // a multiple of all that is loaded at once
	parts = (p.K + partK - 1) / partK
	if parts <= 1 {
		return
	}
	l.parts, l.partK, l.workBytes = int(parts), partK, parts*one*sum
}

// sumType is the type of sums.
func sumType(t gemm.Type) gemm.Type {
	if t == gemm.Float64 {
		return t
	}
	return gemm.Float32
}

// vectorOf is the file of kernels for one row or column, for sums of parts, and for rounding.
func vectorOf(t gemm.Type) string {
	return [...]string{gemm.Float32: "vector_f32", gemm.Float16: "vector_f16", gemm.BFloat16: "vector_bf16", gemm.Float64: "vector_f64"}[t]
}

// sumOf is the kernel that adds up parts, which are fp32 or fp64.
func sumOf(t gemm.Type) string {
	if t == gemm.Float64 {
		return "sum_f64"
	}
	return "sum_f32"
}

func flagsOf(p Problem, a alignment) uint32 {
	flags := uint32(0)
	for _, f := range []struct {
		is  bool
		bit uint32
	}{
		{p.TransposeA, transposeA},
		{p.TransposeB, transposeB},
		{a.a, wideA},
		{a.b, wideB},
		{a.c, wideC},
		{p.Bias, addBias},
		{p.Epilogue == gemm.GELU || p.Epilogue == gemm.GELUAux, gelu},
		{p.Epilogue == gemm.GELUAux, keep},
		{p.Epilogue == gemm.GELUGradient, geluGradient},
	} {
		if f.is {
			flags |= f.bit
		}
	}
	return flags
}
