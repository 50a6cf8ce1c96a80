package tape

// gramIndex finds the place in a step by the last sizes. Only grams that occur once are in it.
type gramIndex struct {
	slots []gramSlot // a power of two, at most half full
}

type gramSlot struct {
	hash  uint64
	index uint32 // of the request behind the gram, plus one; 0: empty
	many  bool
}

func (g *gramIndex) fill(p *Plan) {
	n := p.length()
	length := uint32(1)
	for length < 2*n {
		length *= 2
	}
	g.slots = make([]gramSlot, length)
	if n < gramLength {
		return
	}
	var hash uint64
	for i := range n + gramLength - 1 { // the last grams reach round the end
		hash = hash*hashFactor + uint64(p.entries[i%n].units)
		if i >= gramLength {
			hash -= uint64(p.entries[(i-gramLength)%n].units) * gramFactor
		}
		if i >= gramLength-1 {
			s := g.slot(hash)
			s.many = s.index != 0
			s.hash, s.index = hash, (i+1)%n+1
		}
	}
}

// slot is that of a hash, or the empty one where it belongs.
func (g *gramIndex) slot(hash uint64) *gramSlot {
	for at := hash >> 32; ; at++ {
		s := &g.slots[at&uint64(len(g.slots)-1)]
		if s.index == 0 || s.hash == hash {
			return s
		}
	}
}

// find is the index of the request behind the gram.
func (g *gramIndex) find(hash uint64) (index uint32, ok bool) {
	s := g.slot(hash)
	return s.index - 1, s.index != 0 && !s.many
}
