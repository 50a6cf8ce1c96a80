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
			Push(&l, v)
		}
		for _, v := range all[:round+1] {
			got, ok := Pop(&l)
			assert.True(t, ok)
			assert.Same(t, v, got)
		}
		assert.Equal(t, all[round+1:], Left(&l))
		_, ok := Pop(&l)
		assert.Equal(t, round < 2, ok)
		Reset(&l)
		_, ok = Pop(&l)
		assert.False(t, ok)
		for _, v := range l.all[:3] {
			assert.Nil(t, v, "it would never be collected")
		}
	}
}

// Popped takes each effect before it is carried out: one that panics, or the last before a break, does not come again.
func TestPoppedTakesEachOnce(t *testing.T) {
	t.Parallel()
	var l List[int]
	for i := range 5 {
		Push(&l, i)
	}
	for v := range Popped(&l) {
		assert.Equal(t, []int{1, 2, 3, 4}, Left(&l), "it is taken already")
		assert.Zero(t, v)
		break
	}
	assert.Panics(t, func() {
		for range Popped(&l) {
			panic("an effect")
		}
	})
	var rest []int
	for v := range Popped(&l) {
		if rest = append(rest, v); v == 2 {
			Push(&l, 5) // effects of effects come in the same pass
		}
	}
	assert.Equal(t, []int{2, 3, 4, 5}, rest)
	for range Popped(&l) {
		assert.Fail(t, "nothing is left")
	}
	assert.Empty(t, Left(&l))
}
