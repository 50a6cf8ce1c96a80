package shared

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestScopesAndResetsAreApart(t *testing.T) {
	var m Mark
	m.Raise(10)
	a := m.Begin(4)
	m.Raise(6)
	m.Reset(2)
	assert.EqualValues(t, 2, m.Peak())
	b := m.Begin(2)
	m.Raise(3)
	assert.EqualValues(t, 6, a.End())
	m.Raise(5)
	assert.EqualValues(t, 5, b.End())
	assert.EqualValues(t, 5, m.Peak())
	assert.Nil(t, m.scopes.Load())
}

// Without a raise the maximum inside a scope is the value at its begin.
func TestAScopeHasItsFirstValue(t *testing.T) {
	var m Mark
	m.Raise(10)
	assert.EqualValues(t, 4, m.Begin(4).End())
}

// A raise that returns has taken effect, also if others raise at the same time.
func TestRaisesOfManyGoroutines(t *testing.T) {
	var signed atomic.Int64
	var unsigned atomic.Uint64
	var all sync.WaitGroup
	for _, step := range []int64{1, 2, 3, 5} {
		all.Go(func() {
			for range 200_000 { // each raises the present value, so that no raise is vain
				value, number := signed.Load()+step, unsigned.Load()+uint64(step)
				Raise(&signed, value)
				RaiseUint64(&unsigned, number)
				if a, b := signed.Load(), unsigned.Load(); a < value || b < number {
					assert.Fail(t, "a raise was lost", "%d and %d to %d and %d", a, b, value, number)
					return
				}
			}
		})
	}
	all.Wait()
	value, number := signed.Load(), unsigned.Load()
	Raise(&signed, 5)
	RaiseUint64(&unsigned, 5)
	assert.Equal(t, value, signed.Load(), "a lower value")
	assert.Equal(t, number, unsigned.Load(), "a lower value")
}

// Concurrent scopes each have at least the values of their own goroutine.
func TestScopesOfManyGoroutines(t *testing.T) {
	var m Mark
	var all sync.WaitGroup
	for n := range int64(8) {
		all.Go(func() {
			for round := range int64(500) {
				s := m.Begin(0)
				m.Raise(n*1000 + round)
				if peak := s.End(); peak < n*1000+round {
					assert.GreaterOrEqual(t, peak, n*1000+round)
				}
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, 7*1000+499, m.Peak())
	assert.Nil(t, m.scopes.Load())
}
