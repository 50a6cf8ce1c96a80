package pool

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A queue gives each effect once, oldest first, and keeps nothing of them when it is emptied but their room.
func TestAQueueKeepsNothing(t *testing.T) {
	t.Parallel()
	var q queue[*int]
	for round := range 3 {
		all := []*int{new(int), new(int), new(int)}
		for _, v := range all {
			q.push(v)
		}
		for _, v := range all[:round+1] {
			got, ok := q.pop()
			assert.True(t, ok)
			assert.Same(t, v, got)
		}
		_, ok := q.pop()
		assert.Equal(t, round < 2, ok)
		q.reset()
		_, ok = q.pop()
		assert.False(t, ok)
		for _, v := range q.all[:3] {
			assert.Nil(t, v, "it would never be collected")
		}
	}
}
