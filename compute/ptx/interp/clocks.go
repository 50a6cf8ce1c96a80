package interp

// maxWarps is the number of warps of a block.
const maxWarps = maxBlockThreads / warpThreads

// clocks are the times of the warps of a block up to which their accesses are seen.
type clocks [maxWarps]uint32

func (c *clocks) join(other *clocks) {
	for n := range c {
		c[n] = max(c[n], other[n])
	}
}

// bitset is a set of small numbers.
type bitset []uint64

func (s *bitset) add(n uint64) {
	for uint64(len(*s)) <= n>>6 {
		*s = append(*s, 0)
	}
	(*s)[n>>6] |= 1 << (n & 63)
}

func (s *bitset) addAll(other bitset) {
	for len(*s) < len(other) {
		*s = append(*s, 0)
	}
	for n, w := range other {
		(*s)[n] |= w
	}
}

func (s bitset) has(n uint64) bool { return n>>6 < uint64(len(s)) && s[n>>6]>>(n&63)&1 != 0 }

// order is the order that an atomic variable passes on between threads.
type order struct {
	block  uint64 // whose warps seen is about
	seen   clocks
	turns  bitset
	others map[uint64]clocks // of a cooperative launch: seen, of other blocks
}

// of switches seen to a block.
func (v *order) of(block uint64, cooperative bool) {
	if v.block == block {
		return
	}
	if !cooperative {
		v.block, v.seen = block, clocks{}
		return
	}
	if v.others == nil {
		v.others = map[uint64]clocks{}
	}
	v.others[v.block] = v.seen
	v.block, v.seen = block, v.others[block]
}

// mbarrierOrder is the clocks of the arrivals in this phase and in ended phases.
type mbarrierOrder struct{ arriving, done clocks }
