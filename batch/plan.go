package batch

import (
	"github.com/go-vram/vram/internal/sizeclass"
)

// Width is the number of requests that a plan holds. Not smaller: each group costs a shared access, and
// fewer requests share it. Not larger: the plan lies on the stack of every batch, and its table would
// leave the nearest cache.
const Width = 64

// tableSize is a power of two, twice Width: a search of the table ends after one or two steps.
const (
	tableBits = 7
	tableSize = 1 << tableBits
)

// Group is requests that blocks of one length serve.
type Group struct {
	Units uint32 // of a block, 512 bytes each
	Count int32  // of requests
	first uint8
	last  uint8
	slot  uint8 // where the table has it
}

// Plan groups requests by length. The zero value is empty. A request is named by its index, below Width.
type Plan struct {
	groups [Width]Group
	count  int
	next   [Width]uint8     // the following request of its group
	table  [tableSize]uint8 // group+1 by hash of its units
}

// All is the set of all requests of a plan.
const All = ^uint64(0)

// Make plans the sizes in bytes whose bits are set in wanted; bits past the last size mean nothing. It drops the previous plan.
// Precondition: at most Width sizes, none negative or longer than 32 bits of 512 bytes.
func (p *Plan) Make(bytes []int64, wanted uint64) {
	p.reset()
	bytes = bytes[:min(len(bytes), Width)]
	var g *Group // of the request before, most often of the next too
	before := int64(-1)
	for i, n := range bytes {
		if wanted>>i&1 == 0 {
			continue
		}
		if n != before {
			before = n
			if g = p.group(sizeclass.Units(n)); g.Count == 0 {
				g.first, g.last = uint8(i), uint8(i)
			}
		}
		p.next[g.last] = uint8(i)
		g.last = uint8(i)
		g.Count++
	}
}

// reset empties the plan.
func (p *Plan) reset() {
	for i := range p.count {
		p.table[p.groups[i].slot] = 0
	}
	p.count = 0
}

// group returns the group of requests of that many units, perhaps a new one.
func (p *Plan) group(units uint64) *Group {
	if units <= sizeclass.MaxUnits {
		units = uint64(sizeclass.BlockUnits(sizeclass.Of(units)))
	}
	const fibonacci = 0x9E3779B97F4A7C15
	at := (units * fibonacci) >> (64 - tableBits)
	for ; p.table[at] != 0; at = (at + 1) % tableSize {
		if g := &p.groups[p.table[at]-1]; g.Units == uint32(units) {
			return g
		}
	}
	g := &p.groups[p.count]
	*g = Group{Units: uint32(units), slot: uint8(at)}
	p.count++
	p.table[at] = uint8(p.count)
	return g
}

// Groups returns the groups of the plan in the order of their first requests, or as Order left them. The slice is the plan's
// and is valid until the next change.
func (p *Plan) Groups() []Group { return p.groups[:p.count] }

// First returns the index of a group's first request; Next gives the others.
func (g *Group) First() int { return int(g.first) }

// Next returns the request that follows one in its group. Precondition: it is not the group's last.
func (p *Plan) Next(index int) int { return int(p.next[index]) }

// Order puts the groups with the longest blocks first.
func (p *Plan) Order() {
	groups := p.groups[:p.count]
	for i := 1; i < len(groups); i++ {
		for k := i; k > 0 && groups[k].Units > groups[k-1].Units; k-- {
			groups[k], groups[k-1] = groups[k-1], groups[k]
		}
	}
}
