package tape

const (
	// historyLimit is how many requests are remembered. Not larger: a request costs 24 bytes of every stream that
	// uses all of it. Not smaller: the longest step that can be found is half of it, and an epoch of a real
	// program that repeats only as a whole has thirty thousand.
	historyLimit = 1 << 16
	// historyStart is how many are remembered at first; the rest comes by doubling.
	historyStart = 1 << 10
)

// request is what is remembered of a request.
type request struct {
	units     uint32
	life      uint32 // requests until its memory was free again; 0: it lives, or nobody said when it ended
	liveUnits uint32 // of all requests since the restart, behind this one
	before    uint32 // position of the last one that ended the same phrase; 0: none
	entry     uint32 // of the plan that was followed, plus one; 0: none
}

// history is the last requests of a stream, by position. Positions rise by one with each request; 0 names none.
type history struct {
	ring      []request // a power of two
	first     uint32    // position of the first one since the last restart
	next      uint32    // position of the next request
	liveUnits uint32
}

// note appends a request.
func (h *history) note(units uint32) (position uint32) {
	if h.next == 0 { // at first, and after four thousand million requests
		h.first, h.next, h.liveUnits = 1, 1, 0
	}
	if count := h.next - h.first; int(count) >= len(h.ring) && len(h.ring) < historyLimit {
		h.grow()
	}
	position = h.next
	h.next++
	h.liveUnits += units
	h.ring[int(position)&(len(h.ring)-1)] = request{units: units, liveUnits: h.liveUnits}
	return position
}

func (h *history) grow() {
	ring := make([]request, max(historyStart, 2*len(h.ring)))
	for back := uint32(1); back <= uint32(len(h.ring)); back++ { //nolint:gosec // bounded by historyLimit
		p := h.next - back
		ring[int(p)&(len(ring)-1)] = h.ring[int(p)&(len(h.ring)-1)]
	}
	h.ring = ring
}

// ended notes that the memory of a request is free for the next one.
func (h *history) ended(position, units uint32) {
	if h.next-position > h.next-h.first {
		return // before the restart
	}
	h.liveUnits -= units
	if h.has(position) {
		if r := h.at(position); r.units == units {
			r.life = h.next - position
		}
	}
}

// has reports whether a request is remembered.
func (h *history) has(position uint32) bool {
	age := h.next - position
	return age-1 < uint32(len(h.ring)) && age <= h.next-h.first //nolint:gosec // bounded by historyLimit
}

// at is a remembered request.
func (h *history) at(position uint32) *request { return &h.ring[int(position)&(len(h.ring)-1)] }

// restart forgets what was noted. Positions go on.
func (h *history) restart() { h.first, h.liveUnits = h.next, 0 }

// repeats is how many of the last requests are those that came lag earlier, counted no further than limit.
func (h *history) repeats(lag, limit uint32) (count uint32) {
	last := h.next - 1
	for count < limit && h.has(last-lag-count) && h.at(last-count).units == h.at(last-lag-count).units {
		count++
	}
	return count
}
