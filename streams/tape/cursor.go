package tape

const (
	// trustFull and trustMiss: four requests that were expected make good for one that was not, and a cursor that was
	// right for long is lost after as many wrong ones as driftLimit. Not fewer: a swap and a drop side by side are
	// four. Not more: a stream that does something else waits for nothing.
	trustFull = 4 * driftLimit
	trustMiss = 4
	// trustBack is the trust in a place that was found by its gram.
	trustBack = trustFull / 2
	// aheadReach is how many requests a step may be longer or shorter at one place before the gram must find it again.
	aheadReach = driftReach
)

// cursor says which request of a plan comes next.
type cursor struct {
	plan   *Plan
	at     uint32 // the request that is expected
	trust  int8   // 0 or less: lost
	missed bool   // the last request was not the expected one
	recent [gramLength]uint32
	count  uint32 // of requests seen
	hash   uint64
}

// follow moves on by a request. It reports whether it is one of the plan, and which.
func (c *cursor) follow(units uint32) (index uint32, ok bool) {
	old := &c.recent[c.count%gramLength]
	c.hash = c.hash*hashFactor + uint64(units) - uint64(*old)*gramFactor
	*old = units
	before := c.recent[(c.count+gramLength-1)%gramLength]
	c.count++
	if c.trust > 0 {
		index = c.at
		if c.plan.entries[index].units == units {
			c.step(index)
			return index, true
		}
		c.trust -= trustMiss
		if c.missed {
			if index, ok = c.aside(before, units); ok {
				c.step(index)
				return index, true
			}
		}
		c.missed = true
		c.at = c.behind(c.at, 1) // as if the length of the expected one had changed
		return 0, false
	}
	if index, ok = c.plan.grams.find(c.hash); ok {
		c.at, c.trust, c.missed = index, trustBack, true
	}
	return 0, false
}

func (c *cursor) step(index uint32) {
	c.at = c.behind(index, 1)
	c.trust = min(c.trust+1, trustFull)
	c.missed = false
}

// behind is the index so many requests later.
func (c *cursor) behind(index, by uint32) uint32 {
	if index += by; index >= c.plan.length() {
		index -= c.plan.length()
	}
	return index
}

// aside looks near the expected request for the last two.
func (c *cursor) aside(before, units uint32) (index uint32, ok bool) {
	n := c.plan.length()
	at := func(i uint32) bool {
		return c.plan.entries[i].units == units && c.plan.entries[c.behind(i, n-1)].units == before
	}
	for d := uint32(1); d <= aheadReach; d++ {
		if i := c.behind(c.at, d); at(i) {
			return i, true
		}
		if i := c.behind(c.at, n-d); at(i) {
			return i, true
		}
	}
	return 0, false
}

func (c *cursor) lost() bool { return c.trust <= 0 }
