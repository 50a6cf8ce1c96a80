package memory

// FreeBytes returns the bytes that are mapped and lent to no client.
func (m *Memory) FreeBytes() int64 { return int64(m.counts[Free]) * m.PageBytes() }

// BusyBytes returns the bytes of the job in flight.
func (m *Memory) BusyBytes() int64 { return int64(m.counts[Busy]) * m.PageBytes() }

// LentBytes returns the bytes that the clients hold.
func (m *Memory) LentBytes() int64 { return int64(m.counts[Lent]) * m.PageBytes() }

// MaxFreeBytes returns the length of the longest free run of any tag.
func (m *Memory) MaxFreeBytes() int64 {
	n := m.MaxCleanPages()
	for _, x := range m.tagged {
		n = max(n, x.bins.Largest(m.links))
	}
	return m.Bytes(n)
}

// PendingBytes returns the free bytes whose fence has not passed.
func (m *Memory) PendingBytes() int64 {
	return int64(m.counts[Free]-m.clean.pages) * m.PageBytes()
}

// TaggedBytes returns the free bytes under the tags of a client.
func (m *Memory) TaggedBytes(id Client) int64 {
	x := m.tagged[id]
	if x == nil {
		return 0
	}
	return int64(x.pages) * m.PageBytes() //nolint:gosec // pages of one arena
}
