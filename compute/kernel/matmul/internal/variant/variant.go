// Package variant lists the compiled kernels of package matmul: the source and the options of each, and the numbers that a
// launch needs.
//
// # Concurrency properties
//
// The package has no state.
package variant

import (
	"fmt"
	"strconv"

	"github.com/go-vram/vram/compute/kernel/internal/packed"
)

// Variant is one compiled source.
type Variant struct {
	Name    string   // of the file, and of its kernel where it has one alone
	Source  string   // a file of compute/kernel/matmul/source
	Defines []string // NAME=VALUE
	Kernels []string

	TileM, TileN, TileK int
	Threads             int
	SharedBytes         int  // dynamic
	Capability          int  // 80 is 8.0
	Only                bool // not for later ones
	Bulk                bool // its operands are described by tensor maps, and its blocks compute one tile after the other
	Crossed             bool // it computes the result's transpose, of B's and A's
}

// The kinds of products by the matrix units, as the sources number them.
const (
	TF32  = 1
	Three = 2
	BF16  = 3
	F16   = 4
)

// MatrixUnits reports whether the variant multiplies by them.
func (v Variant) MatrixUnits() bool {
	return v.Source == "tensor.cu" || v.Bulk
}

// Files returns the files that variants are compiled from, with headers.
func Files() []string {
	return []string{"bulk.cu", "bulk.h", "device.h", "finish.h", "plain.cu", "staged.cu", "tensor.cu", "vector.cu"}
}

// Sources returns the sources of all variants.
func Sources() []packed.Source {
	var all []packed.Source
	for _, v := range All() {
		all = append(all, packed.Source{Name: v.Name, File: v.Source, Defines: v.Defines, Command: packed.Compiler(v.Capability, v.Only)})
	}
	return all
}

// All returns the variants.
func All() []Variant {
	all := []Variant{
		plain("f32", "float", 128, 128, 8, 8, 2),
		plain("f32", "float", 128, 64, 8, 8, 3),
		plain("f32", "float", 64, 64, 8, 4, 4),
		plain("f32", "float", SmallTile.M, SmallTile.N, 4, 4, 8),
		plain("f64", "double", 64, 64, 4, 4, 2),
		vector("f32", "float", "float", 0, "sum_f32", "narrow", "turn"),
		vector("f16", "u16", "float", 1),
		vector("bf16", "u16", "float", 2),
		vector("f64", "double", "double", 3, "sum_f64"),
	}
	for transposed := range 4 {
		a, b := transposed&1 != 0, transposed&2 != 0
		all = append(all, staged(a, b))
		for kind := TF32; kind <= F16; kind++ {
			for _, t := range Tiles(kind) {
				all = append(all, tensor(kind, t, a, b))
			}
		}
	}
	for _, kind := range []int{TF32, Three, BF16, F16} {
		for transposed := range 4 {
			a, b := transposed&1 != 0, transposed&2 != 0
			for _, t := range BulkTiles(kind, a, b) {
				all = append(all, bulk(kind, t, a, b))
			}
		}
	}
	return all
}

// Tile is a size of blocks that a kernel has.
type Tile struct {
	M, N, k      int
	warpM, warpN int
	stages       int
	slices       int // groups of warps that divide the summed direction of a stage
	blocks       int // that a multiprocessor is to run at once, which bounds the registers
	ahead        int // 1: fragments are prepared one instruction ahead
}

// Tiles are the tiles of a kind of products by the matrix units, the largest first. These were the fastest of some sixty of
// each kind, for squares of 512 to 4096 on an H200.
func Tiles(kind int) []Tile {
	switch kind {
	case Three:
		return []Tile{
			{128, 128, 32, 64, 32, 3, 1, 1, 1},
			{128, 64, 32, 32, 32, 3, 1, 1, 1},
			{64, 64, 32, 32, 32, 4, 1, 3, 0},
			{64, 32, 32, 32, 32, 4, 2, 3, 0},
		}
	case TF32:
		return []Tile{
			{128, 256, 32, 64, 64, 3, 1, 1, 1},
			{128, 64, 32, 32, 32, 3, 1, 2, 1},
			{64, 64, 32, 32, 32, 4, 2, 2, 1},
			{64, 32, 32, 32, 32, 4, 2, 3, 1},
		}
	}
	return []Tile{
		{128, 256, 64, 64, 64, 3, 1, 1, 1},
		{128, 64, 64, 32, 32, 3, 1, 2, 1},
		{64, 64, 64, 32, 32, 4, 2, 2, 1},
		{64, 32, 64, 32, 16, 4, 2, 2, 1},
	}
}

// BulkTile is a size of tiles of products by warpgroups and bulk copies.
type BulkTile struct {
	Tile

	moves   bool // producers give registers to consumers
	ahead   bool // products of two steps are on their way, or an operand is read ahead
	crossed bool // the result's transpose is computed
}

// BulkTiles are the tiles of a kind of products by warpgroups and bulk copies, the largest first: the fastest of some thirty, for
// squares of 1024 to 8192, and of 16 bits for the products of a transformer's layers, too. There are none of fp32 of operands that
// both lie across the summed direction.
func BulkTiles(kind int, transposeA, transposeB bool) []BulkTile {
	var all []BulkTile
	switch kind {
	case TF32:
		all = []BulkTile{
			{Tile: Tile{M: 128, N: 256, k: 32, stages: 4}, moves: true},
			{Tile: Tile{M: 128, N: 192, k: 32, stages: 4}, moves: true, ahead: true},
			{Tile: Tile{M: 128, N: 128, k: 32, stages: 6}, moves: true},
			{Tile: Tile{M: 128, N: 64, k: 32, stages: 8}, moves: true, ahead: true},
		}
	case Three:
		all = []BulkTile{
			{Tile: Tile{M: 128, N: 128, k: 32, stages: 4}, moves: true, ahead: true},
			{Tile: Tile{M: 128, N: 64, k: 32, stages: 6}, moves: true, ahead: true},
		}
	default:
		return []BulkTile{
			{Tile: Tile{M: 128, N: 256, k: 64, stages: 4}, moves: true},
			{Tile: Tile{M: 128, N: 192, k: 64, stages: 4}, moves: true},
			{Tile: Tile{M: 128, N: 128, k: 64, stages: 6}, moves: true},
			{Tile: Tile{M: 128, N: 64, k: 64, stages: 8}, ahead: true},
		}
	}
	switch {
	case transposeA && !transposeB:
		return nil
	case !transposeA && !transposeB: // an instruction takes the right operand along the summed direction alone
		for i, t := range all {
			all[i].M, all[i].N, all[i].crossed = t.N, t.M, true
		}
	}
	return all
}

// BulkRowBytes is the length of the rows of boxes that bulk copies bring. Of the summed direction a step has as many elements.
const BulkRowBytes = 128

// BulkName is the name of the variant of products by bulk copies, for compute capability 9.0 alone.
func BulkName(kind int, t BulkTile, transposeA, transposeB bool) string {
	name := []string{TF32: "tf32", Three: "three", BF16: "bf16", F16: "f16"}[kind]
	return fmt.Sprintf("bulk_%s_%dx%d_%s%s", name, t.M, t.N, letter(transposeA), letter(transposeB))
}

// StagedTile is the tile of products of fp32 where asynchronous copies are.
var StagedTile = Tile{M: 64, N: 64, k: 32, stages: 3, blocks: 4} //nolint:gochecknoglobals // a constant

// SmallTile is the tile of small products of fp32: more blocks compute at once, and fewer elements past the edges.
var SmallTile = Tile{M: 16, N: 16} //nolint:gochecknoglobals // a constant

// StagedName is the name of the variant of fp32 with those transpositions, for compute capability 8.0 and later.
func StagedName(transposeA, transposeB bool) string {
	return fmt.Sprintf("staged_f32_%dx%d_%s%s", StagedTile.M, StagedTile.N, letter(transposeA), letter(transposeB))
}

// PlainName is the name of the variant with that element and tile.
func PlainName(element string, tileM, tileN int) string {
	return fmt.Sprintf("plain_%s_%dx%d", element, tileM, tileN)
}

// TensorName is the name of the variant of that kind, tile and transpositions.
func TensorName(kind, tileM, tileN int, transposeA, transposeB bool) string {
	name := []string{TF32: "tf32", Three: "three", BF16: "bf16", F16: "f16"}[kind]
	return fmt.Sprintf("tensor_%s_%dx%d_%s%s", name, tileM, tileN, letter(transposeA), letter(transposeB))
}

func letter(transposed bool) string {
	if transposed {
		return "t"
	}
	return "n"
}

func plain(name, element string, m, n, threadM, threadN, blocks int) Variant {
	const k = 8 // more would take registers for loads in flight
	v := Variant{
		Name: PlainName(name, m, n), Source: "plain.cu", Capability: 70, TileM: m, TileN: n, TileK: k, Threads: m / threadM * (n / threadN),
		Defines: []string{
			"ELEMENT=" + element, define("TILE_M", m), define("TILE_N", n), define("TILE_K", k),
			define("THREAD_M", threadM), define("THREAD_N", threadN), define("BLOCKS", blocks),
		},
	}
	v.Defines = append(v.Defines, "NAME="+v.Name)
	v.Kernels = []string{v.Name}
	return v
}

func vector(suffix, element, sum string, number int, more ...string) Variant {
	return Variant{
		Name: "vector_" + suffix, Source: "vector.cu", Capability: 70, Threads: 256, TileK: 1,
		Defines: []string{"SUFFIX=" + suffix, "ELEMENT=" + element, "SUM=" + sum, define("TYPE", number)},
		Kernels: append([]string{"dot_" + suffix, "columns_" + suffix}, more...),
	}
}

func staged(transposeA, transposeB bool) Variant {
	const threadM, threadN = 8, 4
	t := StagedTile
	v := Variant{
		Name: StagedName(transposeA, transposeB), Source: "staged.cu", Capability: 80, TileM: t.M, TileN: t.N, TileK: t.k,
		Threads: t.M / threadM * (t.N / threadN),
		Defines: []string{
			define("TILE_M", t.M), define("TILE_N", t.N), define("TILE_K", t.k), define("THREAD_M", threadM), define("THREAD_N", threadN),
			define("STAGES", t.stages), define("BLOCKS", t.blocks), define("TA", number(transposeA)), define("TB", number(transposeB)),
		},
	}
	v.Defines = append(v.Defines, "NAME="+v.Name)
	v.Kernels = []string{v.Name}
	const vector = 4
	elements := func(outer int, across bool) int {
		if across {
			return t.k * (outer + vector)
		}
		return outer * (t.k + vector)
	}
	v.SharedBytes = 4 * t.stages * (elements(t.M, transposeA) + elements(t.N, !transposeB))
	return v
}

func bulk(kind int, t BulkTile, transposeA, transposeB bool) Variant {
	const consumers, chunk, barrierBytes = 256, 64, 256 // as bulk.cu has them
	rows, columns, acrossA, alongB := t.M, t.N, transposeA, transposeB
	if t.crossed {
		rows, columns, acrossA, alongB = t.N, t.M, !transposeB, !transposeA
	}
	v := Variant{
		Name: BulkName(kind, t, transposeA, transposeB), Source: "bulk.cu", Capability: 90, Only: true, Bulk: true, Crossed: t.crossed,
		TileM: t.M, TileN: t.N, TileK: t.k, Threads: consumers + 32, //nolint:mnd // a warp
		SharedBytes: t.stages*(t.M+t.N)*BulkRowBytes + barrierBytes + consumers/2*chunk*4, //nolint:mnd // rows of a thread, bytes of sums
		Defines: []string{
			"KIND=" + []string{TF32: "FLOAT32", Three: "FLOAT32", BF16: "BFLOAT16", F16: "FLOAT16"}[kind], define("TILE_M", rows), define("TILE_N", columns), define("STAGES", t.stages),
			define("MOVES", number(t.moves)), define("AHEAD", number(t.ahead)), define("CHUNK", chunk),
			define("TA", number(acrossA)), define("TB", number(alongB)), define("CROSSED", number(t.crossed)), define("THREE", number(kind == Three)),
		},
	}
	if kind == Three {
		v.SharedBytes += t.stages * columns * BulkRowBytes
	}
	if t.moves {
		v.Threads = consumers + 128 //nolint:mnd // a warpgroup
	}
	v.Defines = append(v.Defines, "NAME="+v.Name)
	v.Kernels = []string{v.Name}
	return v
}

func tensor(kind int, t Tile, transposeA, transposeB bool) Variant {
	elementBytes := 2
	if kind == TF32 || kind == Three {
		elementBytes = 4
	}
	v := Variant{
		Name: TensorName(kind, t.M, t.N, transposeA, transposeB), Source: "tensor.cu", Capability: 80, TileM: t.M, TileN: t.N, TileK: t.k,
		Threads: 32 * (t.M / t.warpM) * (t.N / t.warpN) * t.slices,
		Defines: []string{
			define("KIND", kind), define("TILE_M", t.M), define("TILE_N", t.N), define("TILE_K", t.k), define("WARP_M", t.warpM),
			define("WARP_N", t.warpN), define("STAGES", t.stages), define("SLICES", t.slices), define("BLOCKS", t.blocks),
			define("AHEAD", t.ahead), define("TA", number(transposeA)), define("TB", number(transposeB)),
		},
	}
	v.Defines = append(v.Defines, "NAME="+v.Name)
	v.Kernels = []string{v.Name}
	a := stageElements(t.M, t.k, elementBytes, transposeA)
	b := stageElements(t.N, t.k, elementBytes, !transposeB)
	v.SharedBytes = t.stages * (a + b) * elementBytes
	return v
}

// stageElements is the size of an operand in a stage, as tensor.cu has it: rows of k, or k rows where it lies across.
func stageElements(outer, k, elementBytes int, across bool) int {
	vector := 16 / elementBytes
	if !across {
		return outer * (k + vector)
	}
	if elementBytes == 4 {
		return k * (outer + 8)
	}
	return k * (outer + vector)
}

func define(name string, value int) string { return name + "=" + strconv.Itoa(value) }

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
