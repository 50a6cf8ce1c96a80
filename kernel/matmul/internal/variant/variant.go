// Package variant lists the compiled kernels of package matmul: what each is compiled from and how, and what a launch of it needs.
//
// # Concurrency properties
//
// Nothing here changes.
package variant

import (
	"fmt"
	"strconv"
)

// Variant is one compiled source.
type Variant struct {
	Name    string   // of the file, and of its kernel where it has one alone
	Source  string   // a file of kernel/matmul/source
	Defines []string // NAME=VALUE
	Kernels []string

	TileM, TileN, TileK int
	Threads             int
	SharedBytes         int // dynamic
	Capability          int // 80 is 8.0
}

// The kinds of products by the matrix units, as the sources number them.
const (
	TF32  = 1
	Three = 2
	BF16  = 3
	F16   = 4
)

// Compiler is the command that compiles the source to PTX for every GPU of the variant's compute capability and later.
func (v Variant) Compiler() []string {
	return []string{
		"clang-19", "-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_" + strconv.Itoa(v.Capability), "-nocudainc", "-nocudalib", "-O3", "-S", "-std=c++17",
		"-Xclang", "-target-feature", "-Xclang", "+ptx70", "-Wall", "-Wno-unused-function",
	}
}

// Sources are the files of which variants are compiled, headers too.
func Sources() []string {
	return []string{"device.h", "finish.h", "plain.cu", "tensor.cu", "vector.cu"}
}

// All are the variants.
func All() []Variant {
	all := []Variant{
		plain("f32", "float", 128, 128, 8, 8, 2),
		plain("f32", "float", 128, 64, 8, 8, 3),
		plain("f32", "float", 64, 64, 8, 4, 4),
		plain("f64", "double", 64, 64, 4, 4, 2),
		vector("f32", "float", "float", 0, "sum_f32", "narrow"),
		vector("f16", "u16", "float", 1),
		vector("bf16", "u16", "float", 2),
		vector("f64", "double", "double", 3, "sum_f64"),
	}
	for kind := TF32; kind <= F16; kind++ {
		for transposed := range 4 {
			a, b := transposed&1 != 0, transposed&2 != 0
			if kind == Three {
				all = append(all, tensor(kind, 128, 128, 64, 32, a, b))
			} else {
				all = append(all, tensor(kind, 128, 128, 64, 64, a, b))
			}
			all = append(all, tensor(kind, 128, 64, 64, 32, a, b), tensor(kind, 64, 64, 32, 32, a, b))
		}
	}
	return all
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
	const k = 8 // more would take registers for what is on its way
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

const stages = 4

func tensor(kind, m, n, warpM, warpN int, transposeA, transposeB bool) Variant {
	elementBytes, k := 2, 32
	if kind == TF32 || kind == Three {
		elementBytes, k = 4, 16
	}
	blocks := 4 // what 64 accumulators for each thread, or less, leave room for
	switch {
	case kind == Three && m*n == 128*128:
		blocks = 1
	case m*n == 128*128:
		blocks = 2
	case m*n == 128*64:
		blocks = 3
	}
	if kind == Three && m*n == 128*64 {
		blocks = 2
	}
	v := Variant{
		Name: TensorName(kind, m, n, transposeA, transposeB), Source: "tensor.cu", Capability: 80, TileM: m, TileN: n, TileK: k,
		Threads: 32 * (m / warpM) * (n / warpN),
		Defines: []string{
			define("KIND", kind), define("TILE_M", m), define("TILE_N", n), define("TILE_K", k), define("WARP_M", warpM),
			define("WARP_N", warpN), define("STAGES", stages), define("BLOCKS", blocks), define("TA", number(transposeA)), define("TB", number(transposeB)),
		},
	}
	v.Defines = append(v.Defines, "NAME="+v.Name)
	v.Kernels = []string{v.Name}
	a := stageElements(m, k, elementBytes, transposeA)
	b := stageElements(n, k, elementBytes, !transposeB)
	v.SharedBytes = stages * (a + b) * elementBytes
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
