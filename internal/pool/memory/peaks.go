package memory

// Peaks are maxima: of reserved bytes, including OutsideBytes, and of free bytes.
type Peaks struct{ ReservedBytes, FreeBytes int64 }

// Peaks returns the peaks since New or ResetPeak.
func (m *Memory) Peaks() Peaks {
	return Peaks{ReservedBytes: m.reservedPeak.Peak(), FreeBytes: m.freePeak.Peak() * m.PageBytes()}
}

// NoteFree ends a step: pages that a step made free and lent count as never free.
func (m *Memory) NoteFree() { m.freePeak.Raise(m.freePages()) }

func (m *Memory) freePages() int64 { return int64(m.counts[Free]) } //nolint:gosec // pages of one arena

// ResetPeak restarts the peaks at the present values.
func (m *Memory) ResetPeak() {
	m.reservedPeak.Reset(m.held())
	m.freePeak.Reset(m.freePages())
}

// BeginScope begins a scope of the peaks. No other scope has that number.
func (m *Memory) BeginScope(number uint64) {
	m.reservedPeak.Begin(number, m.held())
	m.freePeak.Begin(number, m.freePages())
}

// EndScope ends a scope, and returns the peaks inside it.
func (m *Memory) EndScope(number uint64) Peaks {
	return Peaks{ReservedBytes: m.reservedPeak.End(number), FreeBytes: m.freePeak.End(number) * m.PageBytes()}
}
