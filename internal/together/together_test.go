package together_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/internal/together"
)

// Each number is called once, and no call begins before the goroutines of all others are there.
func TestRun(t *testing.T) {
	const count = 5
	var calls [count]atomic.Int64
	var begun atomic.Int64
	together.Run(count, func(number int) {
		calls[number].Add(1)
		for begun.Add(1); begun.Load() < count; { // ends if all run at the same time
		}
	})
	for n := range calls {
		assert.EqualValues(t, 1, calls[n].Load(), n)
	}
	together.Run(0, func(int) { assert.Fail(t, "there are none") })
}

func TestFuncs(t *testing.T) {
	var a, b atomic.Int64
	together.Funcs(func() { a.Add(1) }, func() { b.Add(2) })
	assert.Equal(t, []int64{1, 2}, []int64{a.Load(), b.Load()})
}
