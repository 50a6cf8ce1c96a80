package effect

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A list returns each effect once, oldest first. After Reset it keeps only its capacity.
func TestAListKeepsNothing(t *testing.T) {
	t.Parallel()
	var l List[*int]
	for round := range 3 {
		all := []*int{new(int), new(int), new(int)}
		for _, v := range all {
			l.Push(v)
		}
		for _, v := range all[:round+1] {
			got, ok := l.Pop()
			assert.True(t, ok)
			assert.Same(t, v, got)
		}
		assert.Equal(t, all[round+1:], l.Left())
		_, ok := l.Pop()
		assert.Equal(t, round < 2, ok)
		l.Reset()
		_, ok = l.Pop()
		assert.False(t, ok)
		for _, v := range l.all[:3] {
			assert.Nil(t, v, "it would never be collected")
		}
	}
}
