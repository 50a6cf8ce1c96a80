package line_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/internal/fence/line"
)

// A number is owed until the fence of it, or of a higher one, was recorded, and has passed with that.
func TestLine(t *testing.T) {
	var l line.Line
	owner := new(int)
	l.Init(owner)
	assert.Same(t, owner, l.Owner())
	assert.True(t, l.Passed(0))
	assert.False(t, l.Owed(0))
	first := l.Next()
	assert.Positive(t, first, "0 has passed from the begin")
	assert.True(t, l.Owed(first))
	assert.Equal(t, first, l.Begin(), "the fence covers what was submitted before it")
	second := l.Begin()
	assert.Equal(t, second+1, l.Next())
	l.Took(second)
	assert.False(t, l.Owed(first))
	assert.False(t, l.Owed(second))
	assert.True(t, l.Owed(l.Next()))
	l.Took(first) // late: the higher one stands
	assert.False(t, l.Owed(second))
	assert.False(t, l.Passed(first))
	l.Pass(first)
	assert.True(t, l.Passed(first))
	assert.False(t, l.Passed(second))

	third := l.Begin()
	l.Took(third)
	l.Lose(second) // a higher fence was recorded
	assert.False(t, l.Owed(second))
	l.Lose(third)
	assert.True(t, l.Owed(third))
	assert.True(t, l.Owed(second), "all after the last that passed are owed")
	assert.False(t, l.Owed(first))
	l.Pass(third)
	l.Pass(second) // late
	assert.True(t, l.Passed(third))

	assert.False(t, l.Finished())
	l.Finish()
	assert.True(t, l.Finished())
	assert.False(t, l.Owed(l.Next()))
	assert.True(t, l.Passed(l.Next()+100))
}

// A line has one number until it is removed; all numbers can be in use, and each is used again.
func TestLines(t *testing.T) {
	var all line.Lines
	lines := make([]line.Line, line.Count+1)
	for i := range line.Count {
		number, ok := all.Add(&lines[i])
		assert.True(t, ok)
		assert.Equal(t, i, number)
		assert.Same(t, &lines[i], all.At(i))
	}
	_, ok := all.Add(&lines[line.Count])
	assert.False(t, ok, "all are in use")
	all.Remove(&lines[line.Count]) // has none
	all.Remove(&lines[7])
	for i := range line.Count {
		assert.Equal(t, i == 7, all.At(i) == nil, "%d", i)
	}
	number, ok := all.Add(&lines[line.Count])
	assert.True(t, ok)
	assert.Equal(t, 7, number)
	assert.Same(t, &lines[line.Count], all.At(7))
}

// Lines that goroutines add at once have a number each.
func TestNumbersAmongGoroutines(t *testing.T) {
	const goroutines, each = 3, line.Count / 3
	for range 300 {
		var l line.Lines
		var added [goroutines][each]line.Line
		var all sync.WaitGroup
		var ready atomic.Int64
		for g := range goroutines {
			all.Go(func() {
				for ready.Add(1); ready.Load() < goroutines; {
					runtime.Gosched()
				}
				for i := range added[g] {
					n := &added[g][i]
					number, ok := l.Add(n)
					if !assert.True(t, ok) || !assert.Same(t, n, l.At(number)) {
						return
					}
				}
			})
		}
		all.Wait()
		numbers := map[*line.Line]bool{}
		for number := range line.Count {
			numbers[l.At(number)] = true
		}
		if !assert.Len(t, numbers, goroutines*each) || t.Failed() {
			return
		}
	}
}
