package matmul

import (
	"fmt"
	"math"

	"github.com/go-vram/vram/compute/kernel/matmul/internal/variant"
	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv"
)

// alignment says which operands begin, with each of their rows and matrices, at multiples of 16 bytes, and C at multiples of
// four elements.
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

// launch describes a product by own kernels.
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

	workBytes   int64 // of parts
	turnedBytes int64 // of the operand that is transposed first, which turned names
}

type way uint8

const (
	tiles way = iota // of C
	rows             // one warp for each element of a result with one row or column
	columns
	nothing // no sum at all
)

// processor has the properties of a device that choose uses.
type processor struct {
	multiprocessors int64
	capability      int  // 80 is 8.0
	bulk            bool // kernels may copy tensors in bulk
}

// sharedBytes is how much shared memory a block may have. Kernels with more than the usual amount are for compute capability 8.0
// and later, which Variant.Capability says.
func (d processor) sharedBytes() int {
	const least = 99 << 10
	return max(routine.MaxSharedBytes(d.capability), least)
}

// microseconds of a product of two squares of 4096, by kind and tile as in variant.Tiles: measured on an H200, in a graph.
var microseconds = map[int][]float64{ //nolint:gochecknoglobals // a constant table
	variant.Three: {1950, 2150, 2210, 2270},
	variant.TF32:  {590, 980, 1170, 1840},
	variant.BF16:  {315, 567, 722, 1066},
	variant.F16:   {315, 567, 722, 1066},
}

const (
	// tabledSize is the size of the squares of the table above, and tabledProcessors the number of multiprocessors there.
	tabledSize, tabledProcessors = 4096, 132
	// tileMicroseconds is the time of a tile without its sums.
	tileMicroseconds = 0.6
)

// bulkMicroseconds are for products by bulk copies, by kind and tile as in variant.BulkTiles: of a step, which is
// variant.BulkRowBytes of the summed direction, and of a tile without its steps. 16 bits were measured on an H100, for
// squares, and on an H200 for the products of a transformer's layers, the others on an H200, for squares.
var bulkMicroseconds = map[int][]struct{ step, tile float64 }{ //nolint:gochecknoglobals // a constant table
	variant.TF32:  {{0.7, 2.6}, {0.57, 1.5}, {0.41, 1}, {0.31, 0.6}},
	variant.Three: {{1.1, 1.5}, {0.75, 1}},
	variant.BF16:  {{0.6, 3.2}, {0.5, 1.9}, {0.4, 1.1}, {0.33, 0.6}},
	variant.F16:   {{0.6, 3.2}, {0.5, 1.9}, {0.4, 1.1}, {0.33, 0.6}},
}

const (
	// sumMicroseconds is the time of the launch that adds up parts of no bytes, and sumBytes are the bytes of parts that
	// are stored and added up in a microsecond.
	sumMicroseconds = 2
	sumBytes        = 11 << 17
)

// tileOf chooses the tile of a product by the matrix units with the least estimated time: the time of a tile, or of a part of
// its sums, times the rounds in which the multiprocessors compute all of them.
func (d processor) tileOf(kind int, p Problem, a alignment) (name string, blocks int64, least float64) {
	bulks := d.bulks(kind, p, a)
	// A step is of so much of the summed direction.
	consider := func(of string, t variant.Tile, step, stepMicroseconds, moreMicroseconds float64) {
		if variants[of].SharedBytes > d.sharedBytes() {
			return
		}
		count := tiled(p, t)
		rounds := (count*p.Batch + d.multiprocessors - 1) / d.multiprocessors
		parts, partK := int64(1), p.K
		if bulks {
			parts, partK = divided(p, count, d.multiprocessors, minPartK)
		}
		cost := float64(rounds) * (float64(partK)/step*stepMicroseconds + moreMicroseconds)
		if parts > 1 {
			cost += sumMicroseconds + float64(parts*p.M*p.N*p.Batch*gemm.Float32.Bytes())/sumBytes
		}
		if name == "" || cost < least {
			name, blocks, least = of, count, cost
		}
	}
	tabled := func(of string, t variant.Tile, microseconds float64) {
		const tiles = tabledSize * tabledSize / tabledProcessors // so many elements of each multiprocessor
		consider(of, t, tabledSize, microseconds*float64(t.M*t.N)/tiles, tileMicroseconds)
	}
	for i, t := range variant.Tiles(kind) {
		tabled(variant.TensorName(kind, t.M, t.N, p.TransposeA, p.TransposeB), t, microseconds[kind][i])
	}
	if bulks {
		for i, t := range variant.BulkTiles(kind, p.TransposeA, p.TransposeB) {
			of := bulkMicroseconds[kind][i]
			consider(variant.BulkName(kind, t, p.TransposeA, p.TransposeB), t.Tile, float64(variant.BulkRowBytes/p.In.Bytes()), of.step, of.tile)
		}
	}
	return name, blocks, least
}

// bulks reports whether warpgroups can compute the product with bulk copies: tensor maps describe the operands, and the tiles,
// with their parts, have 32-bit numbers.
func (d processor) bulks(kind int, p Problem, a alignment) bool {
	tiles := variant.BulkTiles(kind, p.TransposeA, p.TransposeB)
	if len(tiles) == 0 {
		return false
	}
	far := cudadrv.MaxTensorStrideBytes / p.In.Bytes() // elements
	rowsA, _ := shapeA(p)
	rowsB, _ := shapeB(p)
	smallest := tiles[len(tiles)-1]
	return d.capability == 90 && d.bulk && a.a && a.b && max(rowsA*p.LDA, rowsB*p.LDB, p.StrideA, p.StrideB) < far &&
		tiled(p, smallest.Tile) <= math.MaxInt32/(p.Batch*maxParts)
}

// tiled returns how many tiles C has.
func tiled(p Problem, t variant.Tile) int64 {
	return (p.M + int64(t.M) - 1) / int64(t.M) * ((p.N + int64(t.N) - 1) / int64(t.N))
}

// older are the tiles of fp32 without asynchronous copies, and of fp64, the largest first: it loads the least. The first one
// with enough blocks for each multiprocessor is taken, else the last. Untuned.
var older = []struct { //nolint:gochecknoglobals // a constant table
	variant.Tile
	busy float64
}{{variant.Tile{M: 128, N: 128}, 0.9}, {variant.Tile{M: 128, N: 64}, 0.75}, {variant.Tile{M: 64, N: 64}, 0}}

// A product of fp32 is small if it has so few tiles of 64x64, and so short sums: one multiprocessor in many computes it then, and
// waits. Smaller tiles are on several. The interpreter of PTX computes the elements of a tile past the edges, too.
const (
	mostSmallTiles = 4
	mostSmallK     = 128
)

// plain chooses the tile of a product by the arithmetic of its type.
func (d processor) plain(p Problem) (name string, blocks int64) {
	if p.In == gemm.Float32 && tiled(p, variant.StagedTile) <= mostSmallTiles && p.K <= mostSmallK {
		return variant.PlainName(p.In.String(), variant.SmallTile.M, variant.SmallTile.N), tiled(p, variant.SmallTile)
	}
	if p.In == gemm.Float32 && d.capability >= 80 {
		return variant.StagedName(p.TransposeA, p.TransposeB), tiled(p, variant.StagedTile)
	}
	for _, t := range older {
		if p.In == gemm.Float64 && t.M != 64 {
			continue
		}
		name, blocks = variant.PlainName(p.In.String(), t.M, t.N), tiled(p, t.Tile)
		if float64(blocks)*float64(p.Batch) >= t.busy*float64(d.multiprocessors) {
			break
		}
	}
	return name, blocks
}

const (
	// minPartK is the least length of a part of a product by the matrix units: a shorter one is not worth storing.
	minPartK = 256
	// partStep divides the length of each part but the last.
	partStep = 128
	// maxParts bounds the partial sums that are added in the end.
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

// choose returns the launch of a problem on a device.
func choose(p Problem, a alignment, d processor) (launch, error) {
	d.multiprocessors = max(d.multiprocessors, 1)
	l := launch{parts: 1, partK: p.K, flags: flagsOf(p, a)}
	switch {
	case p.K == 0:
		l.way, l.variant, l.kernel = nothing, vectorOf(sumType(p.In)), sumOf(sumType(p.In))
		return l, nil
	case p.M == 1 || p.N == 1:
		l.rows(p, a)
	default:
		if err := l.tiles(p, a, d); err != nil {
			return launch{}, err
		}
	}
	if l.blocks > math.MaxInt32 {
		return launch{}, &gemm.ProblemError{Field: "M", Value: p.M, Want: "a matrix of fewer tiles than a grid has blocks"}
	}
	l.split(p, d.multiprocessors)
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
func (l *launch) tiles(p Problem, a alignment, d processor) error {
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
	if kind == 0 {
		l.variant, l.blocks = d.plain(p)
	} else {
		var cost float64
		l.variant, l.blocks, cost = d.tileOf(kind, p, a)
		l.turn(kind, p, a, d, cost)
	}
	v := variants[l.variant]
	l.kernel, l.threads, l.shared = l.variant, v.Threads, v.SharedBytes
	return nil
}

// split splits the sums where there are too few blocks to fill the device: one for each multiprocessor, two if blocks have few
// warps, and eight if the kernel only waits for memory.
func (l *launch) split(p Problem, processors int64) {
	wanted, least := processors, int64(minPartK)
	switch {
	case l.way != tiles:
		wanted, least = 8*processors, 1024
	case !variants[l.variant].MatrixUnits():
		wanted, least = 2*processors, 128
	}
	parts, partK := divided(p, l.blocks, wanted, least)
	if parts <= 1 {
		return
	}
	l.parts, l.partK, l.workBytes = int(parts), partK, parts*p.M*p.N*p.Batch*sumType(p.In).Bytes()
}

// divided returns how many parts the sums of so many blocks have where so many are wanted, and how long a part is: of at least
// so much of the summed direction. 1 is not split.
func divided(p Problem, blocks, wanted, least int64) (parts, partK int64) {
	one := p.M * p.N * p.Batch * sumType(p.In).Bytes() // fits: C has as many elements
	parts = min(wanted/max(blocks*p.Batch, 1), p.K/least, maxParts, maxPartBytes/max(one, 1))
	if parts <= 1 {
		return 1, p.K
	}
	partK = ((p.K+parts-1)/parts + partStep - 1) / partStep * partStep // a multiple of each load
	return (p.K + partK - 1) / partK, partK
}

// sumType returns the type of sums.
func sumType(t gemm.Type) gemm.Type {
	if t == gemm.Float64 {
		return t
	}
	return gemm.Float32
}

// vectorOf returns the file of the kernels for one row or column, for sums of parts, and for rounding.
func vectorOf(t gemm.Type) string {
	return [...]string{gemm.Float32: "vector_f32", gemm.Float16: "vector_f16", gemm.BFloat16: "vector_bf16", gemm.Float64: "vector_f64"}[t]
}

// sumOf returns the kernel that adds up parts, which are fp32 or fp64.
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
