package memory

import "github.com/go-vram/vram/cudadrv"

// FreeBytes are mapped and nobody's.
func (m *Memory) FreeBytes() int64 { return int64(m.counts[Free]) * m.PageBytes() }

// BusyBytes are part of the job in flight.
func (m *Memory) BusyBytes() int64 { return int64(m.counts[Busy]) * m.PageBytes() }

// LentPages are held by the clients.
func (m *Memory) LentPages() uint64 { return m.counts[Lent] }

// LentBytes are held by the clients.
func (m *Memory) LentBytes() int64 { return int64(m.counts[Lent]) * m.PageBytes() }

// FreeRuns is the number of free runs.
func (m *Memory) FreeRuns() int {
	n := m.CleanRuns()
	for _, x := range m.tagged {
		n += x.bins.Count()
	}
	return n
}

// CleanRuns is the number of free runs that no work uses.
func (m *Memory) CleanRuns() int { return m.clean.bins.Count() }

// MaxCleanPages is the length of the longest free run that no work uses.
func (m *Memory) MaxCleanPages() uint32 { return m.clean.bins.Largest(m.links) }

// MaxFreeBytes is the longest free run of any tag.
func (m *Memory) MaxFreeBytes() int64 {
	n := m.MaxCleanPages()
	for _, x := range m.tagged {
		n = max(n, x.bins.Largest(m.links))
	}
	return m.Bytes(n)
}

// PendingBytes are free with a fence that has not passed.
func (m *Memory) PendingBytes() int64 {
	return int64(m.counts[Free]-m.clean.pages) * m.PageBytes()
}

// TaggedBytes are free under the tags of a client.
func (m *Memory) TaggedBytes(id Client) int64 {
	x := m.tagged[id]
	if x == nil {
		return 0
	}
	return int64(x.pages) * m.PageBytes() //nolint:gosec // pages of one arena
}

// ReservedBytes are those of all handles, mapped or not.
func (m *Memory) ReservedBytes() int64 { return m.handles.reservedBytes }

// ReservedPages are those of all handles.
func (m *Memory) ReservedPages() uint64 { return uint64(m.handles.reservedBytes / m.PageBytes()) } //nolint:gosec // not negative

// PeakReservedBytes is the most that was reserved since New or ResetPeak.
func (m *Memory) PeakReservedBytes() int64 { return m.handles.peakReservedBytes }

// ResetPeak restarts the peak at what is reserved now.
func (m *Memory) ResetPeak() { m.handles.peakReservedBytes = m.handles.reservedBytes }

// LostBytes are those of handles that the driver refused to take back.
func (m *Memory) LostBytes() int64 { return m.handles.lostBytes }

// Inserts rises with each free run that comes, or changes.
func (m *Memory) Inserts() uint64 { return m.inserts }

// Searches is how often a free run was looked for.
func (m *Memory) Searches() uint64 { return m.searches }

// Page is what the books say of a page.
type Page struct {
	State  State
	Holder Client // of a lent page
	// Of the first page of a free run: its length and its tag.
	RunPages uint32
	Tag      Tag
	Handle   int32 // -1: none
}

// Top is the number of pages that were ever used: those from there on are holes.
func (m *Memory) Top() uint32 { return m.top() }

// Page is what the books say of a page below Top.
func (m *Memory) Page(at uint32) Page {
	p := &m.pages[at]
	out := Page{State: p.state, Handle: p.handle}
	switch p.state {
	case Lent:
		out.Holder = p.client
	case Free:
		out.RunPages, out.Tag = p.run, p.tag()
	case Hole, Busy:
	}
	return out
}

// Handle is what the books say of a handle or a plain segment.
type Handle struct {
	ID      cudadrv.Handle
	Address cudadrv.Ptr // of a plain segment
	Run     Run         // where it is mapped, if it is
}

// Handle is what the books say of the handle with that number.
func (m *Memory) Handle(number int32) Handle {
	h := &m.handles.all[number]
	return Handle{h.id, h.at, h.run}
}
