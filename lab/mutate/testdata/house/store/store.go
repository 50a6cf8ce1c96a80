// Package store has a place for each operator. ../../outcomes.txt says what its tests find.
package store

import (
	"errors"
	"sync/atomic"
)

var errFull = errors.New("full")

// steps is a table.
var steps = []int{2, 4, 8}

// Store has a place for each operator.
type Store struct {
	items  map[string]int
	order  []string
	count  int
	opened int
	state  atomic.Int32
	ready  atomic.Bool
	total  atomic.Int64
}

// Put stores an item.
func (s *Store) Put(key string, value int) error {
	if len(s.items) >= steps[0] {
		return errFull
	}
	if s.items == nil {
		s.items = map[string]int{}
	}
	s.items[key] = value
	s.order = append(s.order, key)
	s.count++
	return nil
}

// Move puts an item under another key.
func (s *Store) Move(from, to string) error {
	if err := s.Put(to, s.items[from]); err != nil {
		return err
	}
	delete(s.items, from)
	s.log(from, to)
	return nil
}

func (s *Store) log(from, to string) { s.order = append(s.order, from+">"+to) }

// Use opens and releases the store.
func (s *Store) Use(f func()) {
	s.opened++
	defer s.Release()
	f()
}

// Release gives it back.
func (s *Store) Release() { s.opened-- }

// Twice uses it twice.
func (s *Store) Twice() {
	s.opened += 2
	s.Release()
	s.Release()
}

// Publish sets the state before ready.
func (s *Store) Publish(v int32, seen func()) {
	s.state.Store(v)
	s.ready.Store(s.state.Load() == v)
	seen()
}

// Enter reports whether nobody had entered.
func (s *Store) Enter() bool { return s.ready.CompareAndSwap(false, true) }

// Within reports whether a part is within a whole.
func Within(offset, bytes, whole int8) bool {
	return offset >= 0 && bytes >= 0 && bytes <= whole && offset <= whole-bytes
}

// Wait runs down.
func (s *Store) Wait(n int) {
	for n > 0 {
		n -= 1
	}
}

// Positive sums up the positive ones.
func (s *Store) Positive(all []int) (sum int) {
	for _, x := range all {
		if x <= 0 {
			continue
		}
		sum += x
	}
	return sum
}

// Total adds what f returns, which may change the total itself.
func (s *Store) Total(f func() int64) {
	s.total.Add(f())
}

// Rest returns the number of items that fit.
func (s *Store) Rest() int { return steps[0] - len(s.items) }

// Sum is held by one value only.
func Sum(a, b int) int { return a + b }

// String is a text.
func (s *Store) String() string {
	if s.count > 7 {
		return "many"
	}
	return "few"
}

// idle is reached by no test.
func idle(a, b int) bool { return a < b }
