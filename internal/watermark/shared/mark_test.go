package shared

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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

// A mark agrees with one that remembers every value, for scopes that end in any order. Its lists of scopes are replaced and do not
// change: others may read them.
func TestMarkAgainstAllValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Mark
		value, resetAt := int64(0), 0
		all := []int64{0}
		scopes, begunAt := []*Scope{}, map[*Scope]int{}
		highest := func(from int) int64 { return slices.Max(all[from:]) }
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			var before []*Scope
			list := m.scopes.Load()
			if list != nil {
				before = slices.Clone(*list)
			}
			step := rapid.IntRange(0, 5).Draw(t, "step")
			if step > 3 {
				value = rapid.Int64Range(0, 20).Draw(t, "value")
			}
			all = append(all, value)
			switch step {
			case 0:
				m.Reset(value)
				resetAt = len(all) - 1
			case 1, 2:
				s := m.Begin(value)
				scopes = append(scopes, s)
				begunAt[s] = len(all) - 1
			case 3:
				if len(scopes) > 0 {
					i := rapid.IntRange(0, len(scopes)-1).Draw(t, "scope")
					require.Equal(t, highest(begunAt[scopes[i]]), scopes[i].End())
					scopes = slices.Delete(scopes, i, i+1)
				}
			default:
				m.Raise(value)
			}
			require.Equal(t, highest(resetAt), m.Peak())
			if list != nil {
				require.Equal(t, before, *list)
			}
		}
	})
}

// A change, or a raise, that meets another one is repeated: both take effect.
func TestWhatMeetsAnotherIsRepeated(t *testing.T) {
	var m Mark
	a, b := &Scope{mark: &m}, &Scope{mark: &m}
	m.change(func(all []*Scope) []*Scope {
		if len(all) == 0 {
			m.change(func(all []*Scope) []*Scope { return append(all, b) })
		}
		return append(all, a)
	})
	assert.Equal(t, []*Scope{b, a}, *m.scopes.Load())
	for _, value := range []int64{4, 5, 6, 7} {
		var signed atomic.Int64
		var unsigned atomic.Uint64
		signed.Store(5)
		unsigned.Store(5)
		raiseFrom(&signed, 3, value)
		raiseUint64From(&unsigned, 3, uint64(value)) //nolint:gosec // positive
		assert.Equal(t, max(5, value), signed.Load())
		assert.Equal(t, max(5, uint64(value)), unsigned.Load()) //nolint:gosec // positive
	}
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
