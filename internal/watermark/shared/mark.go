// Package shared keeps the maximum of a value that many goroutines record, since a reset and inside scopes,
// as package watermark does for one goroutine.
//
// # Concurrency properties
//
// All methods may be called from any goroutine; none locks or waits. A value that is recorded during Begin or
// Reset may count before or after it.
package shared

import "sync/atomic"

// Mark is the maximum of a value. The zero value is ready.
type Mark struct {
	peak   atomic.Int64
	scopes atomic.Pointer[[]*Scope] // replaced, never changed
}

// Scope is a period of time.
type Scope struct {
	mark *Mark
	peak atomic.Int64
}

// Raise records a value.
func (m *Mark) Raise(value int64) {
	Raise(&m.peak, value)
	if m.scopes.Load() != nil {
		m.raiseScopes(value)
	}
}

func (m *Mark) raiseScopes(value int64) {
	if all := m.scopes.Load(); all != nil {
		for _, s := range *all {
			Raise(&s.peak, value)
		}
	}
}

// Peak returns the maximum since the last reset.
func (m *Mark) Peak() int64 { return m.peak.Load() }

// Reset restarts the maximum at the present value.
func (m *Mark) Reset(present int64) { m.peak.Store(present) }

// Begin begins a scope at the present value.
func (m *Mark) Begin(present int64) *Scope {
	s := &Scope{mark: m}
	s.peak.Store(present)
	m.change(func(all []*Scope) []*Scope { return append(all, s) })
	return s
}

// End ends the scope, and returns the maximum inside it.
func (s *Scope) End() int64 {
	s.mark.change(func(all []*Scope) []*Scope {
		for i := range all {
			if all[i] == s {
				return append(all[:i], all[i+1:]...)
			}
		}
		return all
	})
	return s.peak.Load()
}

// change replaces the list of scopes by a changed copy.
func (m *Mark) change(edit func([]*Scope) []*Scope) {
	for {
		old := m.scopes.Load()
		var all []*Scope
		if old != nil {
			all = append(all, *old...)
		}
		all = edit(all)
		next := &all
		if len(all) == 0 {
			next = nil
		}
		if m.scopes.CompareAndSwap(old, next) {
			return
		}
	}
}

// Raise stores a value if it is larger than the present one.
func Raise(word *atomic.Int64, value int64) { raiseFrom(word, word.Load(), value) }

// raiseFrom is Raise for a word that was old a moment ago.
func raiseFrom(word *atomic.Int64, old, value int64) {
	for ; value > old; old = word.Load() {
		if word.CompareAndSwap(old, value) {
			return
		}
	}
}

// RaiseUint64 stores a number if it is larger than the present one.
func RaiseUint64(word *atomic.Uint64, number uint64) { raiseUint64From(word, word.Load(), number) }

// raiseUint64From is RaiseUint64 for a word that was old a moment ago.
func raiseUint64From(word *atomic.Uint64, old, number uint64) {
	for ; number > old; old = word.Load() {
		if word.CompareAndSwap(old, number) {
			return
		}
	}
}
