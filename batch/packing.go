package batch

import "github.com/go-vram/vram/internal/sizeclass"

// packBytes is the longest run that holds several blocks. Not shorter: the pool searches once for each run.
// Not longer: where memory is short, short runs fit more holes.
const packBytes = 64 << 20

// Packing cuts missing blocks into runs of whole pages. Make one with NewPacking.
type Packing struct {
	pageUnits uint32
	mostUnits uint64
	open      uint64 // units of the run that blocks still go into
	runs      []uint32
}

// NewPacking makes a packing for pages of that many bytes. It appends to runs[:0].
func NewPacking(pageBytes int64, runs []uint32) Packing {
	return Packing{
		pageUnits: uint32(pageBytes >> sizeclass.UnitShift),
		mostUnits: packBytes >> sizeclass.UnitShift,
		runs:      runs[:0],
	}
}

// Add adds requests for blocks of so many units, counted as a group of a plan counts them: blocks of a class take whole spans.
func (p *Packing) Add(units uint32, count int) {
	if units <= sizeclass.MaxUnits {
		class := sizeclass.Of(uint64(units))
		blocks := int(sizeclass.SpanBlocks(class))
		units, count = sizeclass.SpanUnits(class), (count+blocks-1)/blocks
	}
	for range count {
		if p.open > 0 && p.open+uint64(units) > p.mostUnits {
			p.close()
		}
		p.open += uint64(units)
	}
}

func (p *Packing) close() {
	p.runs = append(p.runs, uint32((p.open+uint64(p.pageUnits)-1)/uint64(p.pageUnits)))
	p.open = 0
}

// Runs returns the lengths in pages, in the order in which blocks were added.
func (p *Packing) Runs() []uint32 {
	if p.open > 0 {
		p.close()
	}
	return p.runs
}
