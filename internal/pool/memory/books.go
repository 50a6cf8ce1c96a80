package memory

// FreeBytes are mapped, and lent to no client.
func (m *Memory) FreeBytes() int64 { return int64(m.counts[Free]) * m.PageBytes() }

// BusyBytes are part of the job in flight.
func (m *Memory) BusyBytes() int64 { return int64(m.counts[Busy]) * m.PageBytes() }

// LentBytes are held by the clients.
func (m *Memory) LentBytes() int64 { return int64(m.counts[Lent]) * m.PageBytes() }

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
