package watermark

import "slices"

// Mark is the maximum of a value that is never negative. The zero value is ready.
type Mark struct {
	epoch  int64 // maximum of the present epoch
	older  int64 // of earlier epochs, since the last reset
	scopes []scope
}

// scope is a period of time, with its number.
type scope struct {
	number uint64
	peak   int64 // of the closed epochs
}

// Raise records a value.
func (m *Mark) Raise(value int64) {
	m.epoch = max(m.epoch, value)
}

// Peak returns the maximum since the last reset.
func (m *Mark) Peak() int64 { return max(m.epoch, m.older) }

// Reset restarts the maximum at the present value.
func (m *Mark) Reset(present int64) {
	m.closeEpoch(present)
	m.older = 0
}

// Begin begins a scope at the present value. The number must be unique in the mark.
func (m *Mark) Begin(number uint64, present int64) {
	m.closeEpoch(present)
	m.scopes = append(m.scopes, scope{number, present})
}

// End ends a scope, and returns the maximum inside it. A mark without that scope was created after the scope
// began: then End returns the maximum since the last reset.
func (m *Mark) End(number uint64) int64 {
	peak := m.Inside(number)
	m.scopes = slices.DeleteFunc(m.scopes, func(s scope) bool { return s.number == number })
	return peak
}

// Inside returns the maximum inside a scope so far, like End.
func (m *Mark) Inside(number uint64) int64 {
	for _, s := range m.scopes {
		if s.number == number {
			return max(s.peak, m.epoch)
		}
	}
	return m.Peak()
}

// closeEpoch adds the maximum of the present epoch to the reset's and the scopes' maxima, and begins the next
// at the present value.
func (m *Mark) closeEpoch(present int64) {
	m.older = max(m.older, m.epoch)
	for i := range m.scopes {
		m.scopes[i].peak = max(m.scopes[i].peak, m.epoch)
	}
	m.epoch = present
}
