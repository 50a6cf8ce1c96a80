// Package variant lists the compiled kernels of package attention: the source and the options of each, and the numbers that a
// launch needs.
//
// # Concurrency properties
//
// The package has no state.
package variant

import (
	"fmt"

	"github.com/go-vram/vram/compute/kernel/internal/packed"
)

// Pass is what a kernel computes.
type Pass string

// The passes.
const (
	Forward  Pass = "forward"
	Decoding Pass = "decoding" // of few queries: the warps of a block divide the keys, and blocks do
	Queries  Pass = "queries"  // the gradient of queries
	Keys     Pass = "keys"     // the gradients of keys and values

	GroupForward Pass = "group_forward" // by warpgroups, as the next two
	GroupQueries Pass = "group_queries"
	GroupKeys    Pass = "group_keys"
)

// Key says which variant it is.
type Key struct {
	Pass Pass
	Type string // bf16 or f16
	Dim  int
}

// Variant is one compiled source.
type Variant struct {
	Key

	Name  string // of the text and of its kernel
	Other string // its second kernel: adds up parts, in the texts of Decoding, or row sums, in the texts of Queries and GroupQueries

	Rows        int // of a block
	Streamed    int // rows of a tile that a block goes over, where the copy engine brings them
	Threads     int
	SharedBytes int // dynamic
	source      packed.Source
}

// Capability is the least compute capability: 80 is 8.0. GroupCapability is the one with warpgroups: no other has them.
const (
	Capability      = 80
	GroupCapability = 90
)

// Kernels returns the names of all kernels of the text.
func (v Variant) Kernels() []string {
	if v.Other == "" {
		return []string{v.Name}
	}
	return []string{v.Name, v.Other}
}

// All returns the variants.
func All() []Variant {
	var all []Variant
	for _, of := range []string{"bf16", "f16"} {
		for _, dim := range []int{64, 128} {
			all = append(all,
				forward(of, dim), decoding(of, dim), backward(Queries, of, dim), backward(Keys, of, dim),
				groupForward(of, dim), groupBackward(GroupQueries, of, dim), groupBackward(GroupKeys, of, dim))
		}
	}
	return all
}

// Files returns the files that variants are compiled from, with headers: of compute/kernel.
func Files() []string {
	return []string{
		"attention/source/attend.h", "attention/source/backward.cu", "attention/source/forward.cu", "attention/source/group.h",
		"attention/source/group_backward.cu", "attention/source/group_forward.cu", "matmul/source/bulk.h", "matmul/source/device.h", "matmul/source/finish.h",
	}
}

// Sources returns the sources of all variants.
func Sources() []packed.Source {
	var all []packed.Source
	for _, v := range All() {
		all = append(all, v.source)
	}
	return all
}

// tileRows is the number of rows in a tile of keys and values, or of queries and output gradients, that a block reads at once.
// The gradients of keys and values take so many registers that larger tiles would spill.
func tileRows(p Pass) int {
	if p == Keys {
		return 32
	}
	return 64
}

// bytes returns the size of so many rows of 16-bit elements.
func bytes(rows, dim int) int { return 2 * rows * dim }

// forward has 32 rows for each of four warps where registers suffice, else 16 for each of eight: with 128 elements a row the
// sums of 32 rows would spill.
func forward(of string, dim int) Variant {
	warps, down, blocks := 4, 2, 2
	if dim == 128 {
		warps, down, blocks = 8, 1, 1
	}
	v := Variant{Key: Key{Forward, of, dim}, Rows: 16 * warps * down}
	v.SharedBytes = bytes(v.Rows, dim) + 2*2*bytes(tileRows(Forward), dim)
	return v.with("forward.cu", warps, define("DOWN", down), define("KEYS", tileRows(Forward)), define("BLOCKS", blocks), define("SPLIT", 0))
}

// decoding has 16 rows, and as many blocks on a multiprocessor as registers and shared memory have room for.
func decoding(of string, dim int) Variant {
	const warps = 4
	blocks := 4
	if dim == 128 {
		blocks = 3
	}
	v := Variant{Key: Key{Decoding, of, dim}, Rows: 16, Other: fmt.Sprintf("combine_%s_%d", of, dim)}
	v.SharedBytes = bytes(v.Rows, dim) + 2*2*bytes(tileRows(Decoding), dim)
	return v.with("forward.cu", warps, define("DOWN", 1), define("KEYS", tileRows(Decoding)), define("BLOCKS", blocks), define("SPLIT", 1), "COMBINE="+v.Other)
}

func backward(p Pass, of string, dim int) Variant {
	const warps, blocks = 4, 2
	v := Variant{Key: Key{p, of, dim}, Rows: 16 * warps}
	stage := 2 * bytes(tileRows(p), dim)
	byKeys := 0
	if p == Keys {
		byKeys = 1
		stage += 2 * 4 * tileRows(p) // a logarithm and a delta for each row
	} else {
		v.Other = fmt.Sprintf("delta_%s_%d", of, dim)
	}
	v.SharedBytes = 2*bytes(v.Rows, dim) + 2*stage
	return v.with("backward.cu", warps, define("BY_KEYS", byKeys), define("TILE_ROWS", tileRows(p)), define("BLOCKS", blocks), "DELTA="+v.Other)
}

// GroupRows is the number of rows of a warpgroup, and of a box of rows that a block owns.
const GroupRows = 64

// groupForward has two warpgroups that compute, and one that copies.
func groupForward(of string, dim int) Variant {
	const consumers = 2
	keys, slots := 128, 640/dim
	v := Variant{Key: Key{GroupForward, of, dim}, Rows: GroupRows * consumers, Streamed: keys}
	v.SharedBytes = 2*bytes(v.Rows, dim) + slots*bytes(keys, dim) + barrierBytes
	return v.group("group_forward.cu", consumers, define("KEYS", keys), define("SLOTS", slots), define("TURNS", 1))
}

// groupBackward has small tiles where sums take most of the registers: of keys and values, or of 128 elements. Consumers take
// turns where that was faster on an H100.
func groupBackward(p Pass, of string, dim int) Variant {
	const consumers, stages = 2, 4
	v := Variant{Key: Key{p, of, dim}, Rows: GroupRows * consumers, Streamed: 64}
	byKeys := 0
	if p == GroupKeys {
		byKeys = 1
	} else {
		v.Other = fmt.Sprintf("group_numbers_%s_%d", of, dim)
		if dim == 64 {
			v.Streamed = 128
		}
	}
	v.SharedBytes = 3*bytes(v.Rows, dim) + stages*(2*bytes(v.Streamed, dim)+byKeys*NumberBytes*v.Streamed) + barrierBytes
	return v.group("group_backward.cu", consumers,
		define("BY_KEYS", byKeys), define("TILE_ROWS", v.Streamed), define("STAGES", stages), define("TURNS", byKeys), "DELTA="+v.Other)
}

// NumberBytes is the size of the numbers of a query in a backward pass by warpgroups.
const NumberBytes = 8

// barrierBytes is room for the barriers of a block.
const barrierBytes = 256

// group returns the variant with its source, consumers, and the warpgroup that copies.
func (v Variant) group(file string, consumers int, defines ...string) Variant {
	v = v.with(file, 4*(consumers+1), append(defines, define("CONSUMERS", consumers))...)
	v.source.Command = packed.Compiler(GroupCapability, true)
	return v
}

// with returns the variant with its source and threads.
func (v Variant) with(file string, warps int, defines ...string) Variant {
	kind := map[string]string{"bf16": "BF16", "f16": "F16"}[v.Type]
	v.Name, v.Threads = fmt.Sprintf("%s_%s_%d", v.Pass, v.Type, v.Dim), 32*warps
	v.source = packed.Source{
		Name: v.Name, File: file, Command: packed.Compiler(Capability, false),
		Defines: append([]string{"NAME=" + v.Name, "KIND=" + kind, define("DIM", v.Dim), define("WARPS", warps)}, defines...),
	}
	return v
}

func define(name string, value int) string { return fmt.Sprintf("%s=%d", name, value) }
