package plan

import (
	"math"

	"github.com/go-vram/vram/tensor/layout"
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

// choose chooses the variant.
func (p *Program) choose(g *Geometry, layouts []layout.Layout, addresses []uint64) {
	last := g.Inner - 1
	unit, strided := true, false // strided: an input is
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
			strided = strided || k < p.Inputs
		}
	}
	g.Wide = g.Wide || g.Cols > narrowLimit
	if p.depth > 0 {
		p.chooseLanes(g, strided)
	}
	g.Vector = 1
	if !unit || p.indexed {
		p.chooseTile(g)
		return
	}
	size := 1
	for _, o := range p.Operands {
		size = max(size, o.Type.Size())
	}
	if (size <= 2 || g.Lanes >= 256 && g.Cols >= 16*int(g.Lanes)*size/4) && p.aligned(g, 8, addresses) {
		g.Vector = 8
	} else if p.aligned(g, 4, addresses) {
		g.Vector = 4
	}
	if g.Split {
		each := int(g.Vector) * splitLanes
		g.Chunk = (g.Chunk + each - 1) / each * each
		g.Splits = max((g.Cols+g.Chunk-1)/g.Chunk, 1)
	}
}

func (p *Program) chooseLanes(g *Geometry, strided bool) {
	switch {
	case g.Cols >= splitCols && g.Rows > 0 && g.Rows <= MaxSplitRows:
		g.Lanes, g.Split = splitLanes, true
		g.Splits = min(splitBlocks/g.Rows, (g.Cols+minChunk-1)/minChunk)
		g.Chunk = (g.Cols + g.Splits - 1) / g.Splits
	case strided && g.Rows >= turnedRows && g.Cols >= 2*warpLanes:
		g.Lanes, g.Turned = warpLanes, true
	case strided && g.Rows >= 2048 || g.Cols <= 4:
		g.Lanes = 1
	case g.Cols <= 64:
		g.Lanes = 8
	case g.Cols <= 1024:
		g.Lanes = 32
	case g.Cols <= 8192:
		g.Lanes = 256
	default:
		g.Lanes = 1024
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
		piece := pieceOf(vector, o.Type.Size()) * o.Type.Size()
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

// pieceOf is how many elements of a vector one instruction loads: at most four, and 16 bytes.
func pieceOf(vector, size int) int { return min(vector, 4, 16/size) }
