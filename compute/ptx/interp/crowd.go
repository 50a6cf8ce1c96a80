package interp

// crowd is accesses to a cell that its last store, an atomic or ordered one, does not stand for: others that are atomic
// and that nothing orders before it, and plain ones, which race with every later access that is not ordered after them.
type crowd struct {
	members   [crowdSize]member
	count     int
	plain     bool   // some member is a plain access
	compacted uint64 // the turn in which it was last made smaller
}

// member is an access of a crowd.
type member struct {
	touch touch
	group crowdGroup
}

// crowdGroup is who has made an access, and its kind: its turn, its warp if that is the current turn, whether it was
// strong, and whether it wrote. Of several in a group one is kept.
type crowdGroup uint64

const (
	groupStrong crowdGroup = 1 << iota
	groupWrite
	warpShift = 2
	turnShift = 8
	warpsMask = (1<<turnShift - 1) &^ (groupStrong | groupWrite)
)

// crowdSize is how many accesses a crowd has. Not fewer: the threads of a block are up to 32 warps, but an order of one
// of them is often one of all. Not more: each access to the cell looks at all.
const crowdSize = 8

// crowds holds the crowds of a run, by cell.
type crowds struct {
	of     map[*cell]*crowd
	recent [1 << recentBits]struct { // the last that were looked for, by the lower bits of the words' addresses
		cell  *cell
		crowd *crowd
	}
}

const recentBits = 8

// at returns the crowd of a cell, or nil.
func (s *crowds) at(c *cell, address uint64) *crowd {
	r := &s.recent[address>>2&(1<<recentBits-1)]
	if r.cell != c {
		all := s.of[c]
		if all == nil {
			return nil
		}
		r.cell, r.crowd = c, all
	}
	return r.crowd
}

// add makes a crowd.
func (s *crowds) add(c *cell) *crowd {
	all := &crowd{}
	s.of[c] = all
	return all
}

// add keeps an access, unless one of its group is there.
func (c *crowd) add(m member, now uint64) {
	if c.has(m.group) {
		return
	}
	if c.count == len(c.members) && c.compacted != now {
		c.compact(now)
	}
	if c.count < len(c.members) && !c.has(m.group) {
		c.members[c.count] = m
		c.count++
		c.plain = c.plain || m.group&groupStrong == 0
	}
}

// has reports whether an access of a group is there.
func (c *crowd) has(g crowdGroup) bool {
	for n := range c.members[:c.count] {
		if c.members[n].group == g {
			return true
		}
	}
	return false
}

// compact leaves one access of each earlier turn.
func (c *crowd) compact(now uint64) {
	kept := crowd{compacted: now, plain: c.plain}
	for _, m := range c.members[:c.count] {
		if uint64(m.group>>turnShift) != now {
			m.group &^= warpsMask
		}
		if !kept.has(m.group) {
			kept.members[kept.count] = m
			kept.count++
		}
	}
	*c = kept
}
