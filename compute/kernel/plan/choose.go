package plan

import (
	"math"

	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/tensor/layout"
)

const (
	// narrowLimit is from where on indices have 64 bits: a thread adds at most a block's vectors to an index that is in range.
	narrowLimit = math.MaxInt32 - 1<<16
	// splitCols is from where on a row is long enough for several blocks: a block of 1024 goes over fewer in some microseconds.
	splitCols = 1 << 15
	// splitLanes are the threads of a block of a split row.
	splitLanes = 512
	// splitBlocks is two for each multiprocessor of the largest GPU: enough loads in flight, with up to 64 registers a thread.
	splitBlocks = 264
	// MaxSplitRows is how many rows are split at most, and so how many tickets there are.
	MaxSplitRows = splitBlocks / 2
	// minChunk is the least number of elements for a block of a split row.
	minChunk = 4096
)

// choose looks at the layouts, and takes the schedule of the rule.
func (p *Program) choose(g *Geometry, layouts []layout.Layout, addresses []uint64) {
	last := g.Inner - 1
	unit := true
	for k := range layouts {
		first, end := layouts[k].Bounds()
		g.Wide = g.Wide || end-first > narrowLimit
		switch stride := g.InnerStrides[k][last]; {
		case p.Operands[k].Row || stride == 0:
			g.Steps[k] = Fixed
		case stride == 1:
			g.Steps[k] = Unit
		default:
			g.Steps[k] = Any
			unit = false
			g.Strided = g.Strided || k < p.Inputs
		}
	}
	g.Wide = g.Wide || g.Cols > narrowLimit
	if p.depth > 0 && g.Strided {
		g.MaxBeside, g.RowShared = p.beside(g, addresses)
	}
	if unit && !p.indexed {
		g.Widest = 8
		for g.Widest > 1 && !p.aligned(g, int(g.Widest), addresses) {
			g.Widest /= 2
		}
	} else {
		p.layAcross(g)
	}
	g.Apply(p.rule(g))
}

// rule is the schedule of a geometry of which no measurement is known.
func (p *Program) rule(g *Geometry) Schedule {
	s := Schedule{Vector: 1, Repeat: 1, Tile: p.tile(g)}
	if p.depth > 0 {
		near := p.rowsNear(g)
		if near && g.Rows >= warpLanes && g.Cols >= 2*turnedLanes {
			p.turn(g, &s)
		} else {
			s.rowwise(g, near)
		}
	}
	s.Block = uint16(Variant{Lanes: s.Lanes, Turned: s.Turned}.BlockThreads()) //nolint:gosec // small
	size := 1
	for _, o := range p.Operands {
		size = max(size, o.Type.Size())
	}
	switch lanes := int(s.Lanes); {
	case g.Widest == 8 && (size <= 2 || lanes >= 256 && g.Cols >= 16*lanes*size/4):
		s.Vector = 8
	case g.Widest >= 4:
		s.Vector = 4
	}
	if near := s; size > 2 && s.Vector == 8 {
		near.Vector = 4 // of a row that is kept, threads with neighbouring vectors of 16 bytes are up to a seventh faster
		if p.keeps(g, &near) {
			return near
		}
	}
	p.keeps(g, &s)
	return s
}

// rowwise chooses the threads of a row: those that were the fastest on an H200, or within some percent of it.
func (s *Schedule) rowwise(g *Geometry, near bool) {
	switch {
	case g.Cols >= splitCols && g.Rows > 0 && g.Rows <= MaxSplitRows:
		s.Lanes, s.Blocks = splitLanes, splitBlocks
	case near && g.Rows >= 2048 || g.Cols <= 4:
		s.Lanes = 1
	case g.Cols <= 64:
		s.Lanes = 8
	case g.Cols <= 256:
		s.Lanes = 32
	case g.Cols <= 1024:
		s.Lanes = 128
	case g.Cols <= 8192:
		s.Lanes = 256
	default:
		s.Lanes = 1024
	}
}

// aligned reports whether all operands can be read and written in vectors.
func (p *Program) aligned(g *Geometry, vector int, addresses []uint64) bool {
	last := int(g.Inner) - 1
	if (g.Inner > 1 || g.Outer > 0) && g.InnerShape[last]%vector != 0 {
		return false
	}
	for k, o := range p.Operands {
		if g.Steps[k] != Unit {
			continue
		}
		piece := code.PieceLen(vector, o.Type.Size()) * o.Type.Size()
		if addresses[k]%uint64(piece) != 0 || g.Start[k]*o.Type.Size()%piece != 0 { //nolint:gosec // positive
			return false
		}
		for d := range g.Outer {
			if g.OuterStrides[k][d]*o.Type.Size()%piece != 0 {
				return false
			}
		}
		for d := range last {
			if g.InnerStrides[k][d]*o.Type.Size()%piece != 0 {
				return false
			}
		}
	}
	return true
}
