package plan

import (
	"fmt"

	"github.com/go-vram/vram/compute/tensor/layout"
)

// Step is how far apart neighbours in the last dimension are.
type Step uint8

// The steps.
const (
	Fixed Step = iota // the same element
	Unit              // the next one
	Any
	Across // read by tiles: neighbours in the last dimension but one are next to each other
)

// Variant is all that the text of a kernel depends on but its program. It can be the key of a map.
type Variant struct {
	Lanes  uint16 // threads of a row; 0 in an element-wise kernel
	Split  bool   // a row is reduced by several blocks
	Turned bool   // the threads of a warp have neighbouring rows: see columns.go
	Beside uint8  // neighbouring rows that a thread has, of a turned kernel; 0 of others
	Shared uint32 // operands that are the same for these, a bit each
	Tile   uint8  // elements of a side of a tile, in the last two dimensions of an element-wise kernel; 0: without tiles
	Vector uint8  // elements that a thread takes at once
	Repeat uint8  // vectors that a thread takes at once, of an element-wise kernel, of a row that is kept or of a turned kernel; 0: 1
	Kept   bool   // a thread loads its elements of a row once
	Block  uint16 // threads of a block; 0: those that Lanes need, at least 256
	Outer  uint8  // dimensions of the rows
	Inner  uint8  // dimensions of a row, or of all elements of an element-wise kernel
	Wide   bool   // indices have 64 bits
	Steps  [MaxOperands]Step
}

// BlockThreads is the number of threads of a block.
func (v Variant) BlockThreads() int {
	if v.Block > 0 {
		return int(v.Block)
	}
	if v.Turned {
		return warpLanes * int(v.Lanes)
	}
	if v.Lanes > warpLanes {
		return int(v.Lanes) // a row each
	}
	return 256
}

// index is the bytes of an index.
func (v Variant) index() int {
	if v.Wide {
		return 8
	}
	return 4
}

// ParamKind is the meaning of a kernel's parameter.
type ParamKind uint8

// The kinds of parameters.
const (
	Pointer     ParamKind = iota // of the lowest place of an operand
	Start                        // the place of the first element above the lowest one
	OuterStride                  // of an operand and a dimension
	InnerStride
	OuterShape // of a dimension
	InnerShape
	Rows    // how many
	Cols    // elements of a row, or all
	Splits  // blocks of a row
	Chunk   // elements of such a block
	Scratch // for partial results
	Tickets // one of 32 bits for each row, 0 between launches
)

// Param is a parameter of a kernel.
type Param struct {
	Kind    ParamKind
	Operand uint8
	Dim     uint8
}

// Bytes is the size of the parameter.
func (p Param) Bytes(v Variant) int {
	switch p.Kind { //nolint:exhaustive // the others are indices
	case Pointer, Scratch, Tickets:
		return 8
	case Rows, Splits:
		return 4
	}
	return v.index()
}

// Params are the parameters of a variant, in order.
func (p *Program) Params(v Variant) []Param {
	if p == nil {
		return nil
	}
	var all []Param
	count := uint8(len(p.Operands)) //nolint:gosec // at most MaxOperands
	for k := range count {
		all = append(all, Param{Kind: Pointer, Operand: k})
	}
	all = append(all, Param{Kind: Cols})
	if v.Lanes > 0 {
		all = append(all, Param{Kind: Rows})
	}
	for d := uint8(1); d < v.Outer; d++ {
		all = append(all, Param{Kind: OuterShape, Dim: d})
	}
	for d := range v.Inner {
		if d > 0 || v.Tile > 0 && v.Inner == 2 { // the first index is the rest of the others; the index of a tile is bounded
			all = append(all, Param{Kind: InnerShape, Dim: d})
		}
	}
	for k := range count {
		if v.flat(k) {
			continue
		}
		all = append(all, Param{Kind: Start, Operand: k})
		for d := range v.Outer {
			all = append(all, Param{Kind: OuterStride, Operand: k, Dim: d})
		}
		if p.Operands[k].Row {
			continue
		}
		for d := range v.Inner {
			if v.strided(k, d) {
				all = append(all, Param{Kind: InnerStride, Operand: k, Dim: d})
			}
		}
	}
	if v.Split {
		all = append(all, Param{Kind: Splits}, Param{Kind: Chunk}, Param{Kind: Scratch}, Param{Kind: Tickets})
	}
	return all
}

// strided reports whether an operand has a stride in a dimension that is not known.
func (v Variant) strided(operand, d uint8) bool {
	if v.Steps[operand] == Across {
		return d+2 != v.Inner
	}
	return d+1 < v.Inner || v.Steps[operand] == Any
}

// flat reports whether the place of an element is its index, or always the first one.
func (v Variant) flat(operand uint8) bool {
	return v.Outer == 0 && v.Inner == 1 && v.Steps[operand] != Any
}

// Passes are the names of the kernels of a variant, in the order of their launches.
func (p *Program) Passes(v Variant) []string {
	if p == nil {
		return nil
	}
	return p.passes(v, p.name, p.name+"_")
}

// passes returns the names of the kernels: with their number if there are several.
func (p *Program) passes(v Variant, single, prefix string) []string {
	if !v.Split {
		return []string{single}
	}
	count := p.depth + 1
	if p.ticketed() {
		count = 1
	}
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprintf("%spass%d", prefix, i)
	}
	return all
}

// ticketed reports whether the last block of a split row makes the row values.
func (p *Program) ticketed() bool { return !p.elements && p.depth == 1 }

// Geometry is a variant with the sizes of one launch.
type Geometry struct {
	Variant

	Widest       uint8  // vector that the operands allow; 0 where neighbours are not neighbours in memory
	Strided      bool   // an input is
	MaxBeside    uint8  // neighbouring rows that the operands allow a thread; 0 where neighbouring rows are not neighbours in memory
	RowShared    uint32 // operands that are the same for neighbouring rows, a bit each
	Blocks       uint16 // of a split launch, about: see Schedule
	Rows, Cols   int
	Splits       int // blocks of a row
	Chunk        int // elements of such a block
	OuterShape   [layout.MaxRank]int
	InnerShape   [layout.MaxRank]int
	Start        [MaxOperands]int
	OuterStrides [MaxOperands][layout.MaxRank]int
	InnerStrides [MaxOperands][layout.MaxRank]int
}

// Value is a parameter that is neither a pointer nor scratch memory.
func (g *Geometry) Value(p Param) int {
	if g == nil {
		return 0
	}
	switch p.Kind {
	case Start:
		return g.Start[p.Operand]
	case OuterStride:
		return g.OuterStrides[p.Operand][p.Dim]
	case InnerStride:
		return g.InnerStrides[p.Operand][p.Dim]
	case OuterShape:
		return g.OuterShape[p.Dim]
	case InnerShape:
		return g.InnerShape[p.Dim]
	case Rows:
		return g.Rows
	case Cols:
		return g.Cols
	case Splits:
		return g.Splits
	case Chunk:
		return g.Chunk
	case Pointer, Scratch, Tickets:
	}
	return 0
}

// Empty reports whether there is nothing to compute, and nothing is to be launched.
func (g *Geometry) Empty() bool { return g == nil || g.Rows == 0 || g.Cols == 0 && g.Lanes == 0 }

// Grid is the number of blocks in two directions.
func (g *Geometry) Grid() (x, y int) {
	if g == nil {
		return 0, 0
	}
	threads := g.BlockThreads()
	switch {
	case g.Tile > 0:
		return g.tileGrid(int(g.Tile)), 1
	case g.Lanes == 0:
		each := threads * max(int(g.Vector), 1) * max(int(g.Repeat), 1)
		return (g.Cols + each - 1) / each, 1
	case g.Turned:
		return g.groups(), g.Splits
	case g.Split:
		return g.Splits, g.Rows
	}
	each := threads / int(g.Lanes)
	return (g.Rows + each - 1) / each, 1
}

// ScratchBytes returns the size of the partial results. TicketBytes returns the size of the tickets.
func (p *Program) ScratchBytes(g *Geometry) int64 {
	if p == nil || g == nil {
		return 0
	}
	return int64(len(p.reductions)) * stateBytes * int64(g.Rows) * int64(g.Splits)
}

// TicketBytes is the size of the tickets: one for each row, or group of rows, that several blocks reduce.
func (g *Geometry) TicketBytes() int64 {
	if g == nil {
		return 0
	}
	if g.Turned {
		return int64(g.groups()) * 4
	}
	return int64(g.Rows) * 4
}

// stateBytes is the size of a state: two values of up to 8 bytes.
const stateBytes = 16
