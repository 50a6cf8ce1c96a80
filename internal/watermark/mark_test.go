package watermark

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestScopesAndResetsAreApart(t *testing.T) {
	var m Mark
	m.Raise(10)
	m.Raise(4)
	m.Begin(1, 4)
	m.Raise(6)
	m.Reset(2)
	assert.EqualValues(t, 2, m.Peak(), "the scope is no part of it")
	m.Begin(2, 2)
	m.Raise(3)
	assert.EqualValues(t, 6, m.End(1), "the reset is no part of the scope")
	assert.EqualValues(t, 3, m.End(2))
	assert.EqualValues(t, 3, m.Peak())
	assert.Empty(t, m.scopes, "a scope that has ended")
	m.Raise(1)
	assert.EqualValues(t, 3, m.End(7), "a scope that began before the mark")
}

// A mark agrees with one that remembers every value.
func TestMarkAgainstAllValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Mark
		value := int64(0)
		all := []int64{0}
		resetAt, begunAt := 0, map[uint64]int{}
		last := uint64(0)
		highest := func(from int) (peak int64) {
			for _, v := range all[from:] {
				peak = max(peak, v)
			}
			return peak
		}
		note := func() int {
			all = append(all, value)
			return len(all) - 1
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			default:
				value = rapid.Int64Range(0, 20).Draw(t, "value")
				note()
				m.Raise(value)
			case 0:
				resetAt = note()
				m.Reset(value)
			case 1:
				last++
				begunAt[last] = note()
				m.Begin(last, value)
			case 2:
				number := rapid.Uint64Range(1, 5).Draw(t, "scope")
				if from, ok := begunAt[number]; ok {
					delete(begunAt, number)
					if got := m.End(number); got != highest(from) {
						t.Fatalf("scope %d ended at %d, want %d", number, got, highest(from))
					}
				}
			}
			if m.Peak() != highest(resetAt) {
				t.Fatalf("the peak is %d, want %d", m.Peak(), highest(resetAt))
			}
		}
	})
}
