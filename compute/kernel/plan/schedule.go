package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/tensor"
)

// Schedule is the part of a variant that the layouts leave open: each schedule that Schedules lists computes the same.
type Schedule struct {
	Lanes  uint16 // threads of a row; 0 in an element-wise kernel
	Block  uint16 // threads of a block
	Blocks uint16 // of a split launch, about: for all rows together
	Vector uint8  // elements that a thread takes at once
	Repeat uint8  // vectors that a thread takes at once, of an element-wise kernel, of a row that is kept or of a turned kernel
	Kept   bool   // a thread loads its elements of a row once
	Tile   uint8  // elements of a side of a tile; 0 without tiles, which is so unless an input lies across the outputs
	Turned bool   // the threads of a warp have neighbouring rows
	Beside uint8  // neighbouring rows that a thread has, of a turned kernel; 0 of others
}

// String has all of it, as "lanes=256 block=256 vector=4". It is the name of the schedule in tables.
func (s Schedule) String() string {
	var b strings.Builder
	if s.Lanes > 0 {
		fmt.Fprintf(&b, "lanes=%d ", s.Lanes)
	}
	fmt.Fprintf(&b, "block=%d vector=%d", s.Block, s.Vector)
	if s.Repeat > 1 {
		fmt.Fprintf(&b, " repeat=%d", s.Repeat)
	}
	if s.Tile > 0 {
		fmt.Fprintf(&b, " tile=%d", s.Tile)
	}
	if s.Turned {
		b.WriteString(" turned")
	}
	if s.Beside > 1 {
		fmt.Fprintf(&b, " beside=%d", s.Beside)
	}
	if s.Kept {
		b.WriteString(" kept")
	}
	if s.Blocks > 0 {
		fmt.Fprintf(&b, " split=%d", s.Blocks)
	}
	return b.String()
}

// Kind is the part of a variant that the layouts decide. It can be the key of a map.
type Kind struct {
	Outer, Inner uint8
	Widest       uint8 // vector that the operands allow; 0 where neighbours are not neighbours in memory
	Wide         bool
	Strided      bool // an input is
	MaxBeside    uint8
	Shared       uint32
	Steps        [MaxOperands]Step
}

// Kind returns the kind of the geometry.
func (g *Geometry) Kind() Kind {
	if g == nil {
		return Kind{}
	}
	return Kind{g.Outer, g.Inner, g.Widest, g.Wide, g.Strided, g.MaxBeside, g.RowShared, g.Steps}
}

// Describe is the kind of operands of this program, as "outer=1 inner=1 steps=unit,fixed,unit widest=4".
func (p *Program) Describe(k Kind) string {
	if p == nil {
		return ""
	}
	steps := make([]string, len(p.Operands))
	for i := range steps {
		steps[i] = [...]string{Fixed: "fixed", Unit: "unit", Any: "any", Across: "across"}[k.Steps[i]]
	}
	text := fmt.Sprintf("outer=%d inner=%d steps=%s widest=%d", k.Outer, k.Inner, strings.Join(steps, ","), k.Widest)
	if k.Strided {
		text += " strided"
	}
	if k.MaxBeside > 0 {
		text += fmt.Sprintf(" beside=%d", k.MaxBeside)
	}
	if k.Shared > 0 {
		text += fmt.Sprintf(" shared=%#x", k.Shared)
	}
	if k.Wide {
		text += " wide"
	}
	return text
}

// String is the whole computation: outputs, types of operands, and axes. Where the text of an output is longer than
// expr.MaxText, it is cut, and a hash of all operations follows.
func (p *Program) String() string {
	if p == nil {
		return ""
	}
	var b []byte
	whole := true
	for i, n := range p.outputs {
		if i > 0 {
			b = append(b, "; "...)
		}
		text := expr.Expr{Node: n}.String()
		b = append(append(append(b, p.Operands[p.Inputs+i].Type.String()...), " = "...), text...)
		whole = whole && len(text) < expr.MaxText
	}
	switch {
	case p.depth == 0:
	case p.axes == nil:
		b = append(b, " over all axes"...)
	default:
		b = fmt.Appendf(b, " over axes %v", p.axes)
	}
	if !whole {
		b = fmt.Appendf(b, " #%016x", p.hash)
	}
	return string(b)
}

// Exact reports whether all schedules have the same results, bit for bit: no sum or product of floating-point numbers depends
// on an order.
func (p *Program) Exact() bool {
	if p == nil {
		return true
	}
	return !slices.ContainsFunc(p.reductions, func(r *reduction) bool {
		switch r.op { //nolint:exhaustive // the others have an order-free result
		case expr.OpSum, expr.OpProd, expr.OpRunningMax, expr.OpSample:
			return r.kind.Kind() == tensor.Floating
		}
		return false
	})
}

// Schedule returns the schedule of the geometry.
func (g *Geometry) Schedule() Schedule {
	if g == nil {
		return Schedule{}
	}
	return Schedule{
		Lanes: g.Lanes, Block: uint16(g.BlockThreads()), Blocks: g.Blocks, Vector: g.Vector, Repeat: max(g.Repeat, 1),
		Kept: g.Kept, Tile: g.Tile, Turned: g.Turned, Beside: g.Beside, //nolint:gosec // small
	}
}

// Allows reports whether a schedule of the geometry's kind fits its sizes, too.
func (g *Geometry) Allows(s Schedule) bool {
	if g == nil {
		return false
	}
	if s.Kept && g.Cols > int(s.Lanes)*int(s.Vector)*int(s.Repeat) {
		return false
	}
	rows := g.Rows
	if s.Turned {
		rows = groups(g.Rows, s.Beside)
	}
	return s.Blocks == 0 || rows > 0 && rows <= MaxSplitRows
}

// Apply gives the geometry a schedule, one of Schedules of a geometry of its kind, that it Allows.
func (g *Geometry) Apply(s Schedule) {
	if g == nil {
		return
	}
	g.Lanes, g.Block, g.Blocks, g.Vector = s.Lanes, s.Block, s.Blocks, s.Vector
	g.Repeat, g.Kept, g.Tile, g.Turned = s.Repeat, s.Kept, s.Tile, s.Turned
	g.Beside, g.Shared = s.Beside, 0
	if s.Beside > 1 {
		g.Shared = g.RowShared
	}
	g.Split, g.Splits, g.Chunk = s.Blocks > 0, 1, 0
	if !g.Split {
		return
	}
	if g.Turned {
		g.splitTurned()
		return
	}
	g.Splits = max(min(int(s.Blocks)/g.Rows, (g.Cols+minChunk-1)/minChunk), 1)
	g.Chunk = (g.Cols + g.Splits - 1) / g.Splits
	if g.Widest > 0 {
		each := int(s.Vector) * int(s.Lanes)
		g.Chunk = (g.Chunk + each - 1) / each * each
		g.Splits = max((g.Cols+g.Chunk-1)/g.Chunk, 1)
	}
}

const (
	// maxTaken bounds the elements that a thread of an element-wise kernel takes: more need more registers than help.
	maxTaken = 16
	// maxKept bounds the elements of a row that a thread keeps: so many registers, and as many for values that are computed of
	// them.
	maxKept = 32
	// maxCols bounds the elements of a row for each of its threads: with more, time would be lost on schedules that cannot be
	// the fastest.
	maxCols = 1024
)

// Schedules are those that are worth measuring for a geometry that Fit has made. The first one is the geometry's own, which a
// rule has chosen.
func (p *Program) Schedules(g *Geometry) []Schedule {
	if p == nil || g == nil {
		return nil
	}
	all := []Schedule{g.Schedule()}
	add := func(s Schedule) {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	if g.Empty() {
		return all
	}
	switch {
	case g.Tile > 0:
		for _, side := range []uint8{smallTile, largeTile} {
			if p.tileBytes(g, int(side)) <= maxTileBytes {
				add(Schedule{Block: tileWarps * warpLanes, Vector: 1, Repeat: 1, Tile: side})
			}
		}
		return all
	case p.depth == 0:
		g.elementwise(add)
		return all
	}
	g.split(add)
	if g.Strided {
		p.turned(g, add)
	}
	g.rowwise(func(s Schedule) {
		add(s)
		if p.keeps(g, &s) {
			add(s)
		}
	})
	return all
}

// keeps makes a schedule one whose threads keep their elements, where the row fits and something goes over it again.
func (p *Program) keeps(g *Geometry, s *Schedule) bool {
	each := int(s.Lanes) * int(s.Vector)
	if p.depth == 0 || s.Turned || s.Blocks > 0 || s.Vector == 1 && g.Widest > 1 || p.depth == 1 && !p.elements || g.Cols > each*maxKept/int(s.Vector) {
		return false
	}
	s.Kept = true
	for int(s.Repeat)*each < g.Cols {
		s.Repeat *= 2
	}
	return true
}

// vectors are the lengths of vectors that are worth measuring.
func (g *Geometry) vectors() []uint8 {
	switch g.Widest {
	case 8:
		return []uint8{8, 4, 1}
	case 4:
		return []uint8{4, 1}
	case 2:
		return []uint8{2, 1}
	}
	return []uint8{1}
}

func (g *Geometry) elementwise(add func(Schedule)) {
	for _, vector := range g.vectors() {
		for _, repeat := range []uint8{1, 2, 4} {
			for _, block := range []uint16{128, 256, 512} {
				if vector*repeat <= maxTaken {
					add(Schedule{Block: block, Vector: vector, Repeat: repeat})
				}
			}
		}
	}
}

// split adds schedules that reduce a row by several blocks.
func (g *Geometry) split(add func(Schedule)) {
	if g.Rows == 0 || g.Rows > MaxSplitRows || g.Cols < 2*minChunk {
		return
	}
	for _, vector := range g.vectors()[:min(2, len(g.vectors()))] {
		for _, lanes := range []uint16{256, 512, 1024} {
			for _, blocks := range []uint16{splitBlocks / 2, splitBlocks, 2 * splitBlocks} {
				if int(blocks)/g.Rows > 1 {
					add(Schedule{Lanes: lanes, Block: lanes, Blocks: blocks, Vector: vector, Repeat: 1})
				}
			}
		}
	}
}

// rowwise adds schedules with a block, a warp or less for each row.
func (g *Geometry) rowwise(add func(Schedule)) {
	for _, lanes := range []uint16{1, 8, 32, 128, 256, 512, 1024} {
		for _, vector := range g.vectors() {
			each := int(lanes) * int(vector)
			if g.Cols > int(lanes)*maxCols || each > 2*max(g.Cols, 4) {
				continue
			}
			if lanes > warpLanes {
				add(Schedule{Lanes: lanes, Block: lanes, Vector: vector, Repeat: 1})
				continue
			}
			for _, block := range []uint16{128, 256} {
				add(Schedule{Lanes: lanes, Block: block, Vector: vector, Repeat: 1})
			}
		}
	}
}
