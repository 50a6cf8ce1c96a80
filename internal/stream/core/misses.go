package core

// Counts counts requests by the level that served them, except for the magazines.
type Counts struct {
	Turns  uint64 // requests that no magazine served
	Refill uint64 // of them with the pool's help; the others by the stream's own free ranges or a magazine after all
	Mapped uint64 // of Refill: requests for which the driver mapped pages; a batch counts once
}

// misses counts the requests that no magazine served.
type misses struct {
	Counts
	usage     *usage
	stability stability
	byPool    bool // of the request that Served counted last
}

// Served counts a request by the level that served it.
func (m *misses) Served(byPool bool) {
	if !byPool {
		m.ServedHere()
		return
	}
	m.Turns++
	m.byPool = true
	m.Refill++
	m.stability.restart(m.Turns)
}

// ServedHere is Served without the pool.
func (m *misses) ServedHere() {
	m.Turns++
	m.byPool = false
	if m.Turns >= m.stability.at { // inlined here, so that ServedHere is inlined
		m.begin()
	}
}

// begin is stability.begin, out of line so that ServedHere is inlined.
//
//go:noinline
func (m *misses) begin() { m.stability.begin(m.Turns) }

// ServedMapped counts that the driver mapped pages for a request. Served or ServedMany has counted the
// request as served by the pool, and it has its answer.
func (m *misses) ServedMapped() { m.Mapped++ }

// ServedMany is Served for that many requests of a granted batch.
func (m *misses) ServedMany(byRanges, byPool int) {
	m.usage.noteGiven()
	m.Turns += uint64(byRanges + byPool)
	m.Refill += uint64(byPool)
	switch {
	case byPool > 0:
		m.stability.restart(m.Turns)
	case m.Turns >= m.stability.at:
		m.stability.begin(m.Turns)
	}
}

// UnservedMany uncounts that many requests of ServedMany that the stream's ranges served: the
// turn that continues the batch counts them or puts their blocks back.
func (m *misses) UnservedMany(byRanges int) { m.Turns -= uint64(byRanges) }

// undo reverts the last Served.
func (m *misses) undo() {
	m.Turns--
	if m.byPool {
		m.Refill--
	}
}
