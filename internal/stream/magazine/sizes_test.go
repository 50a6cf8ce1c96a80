package magazine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// Two lengths have one size if their powers of two are the same.
func TestSameSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint32Range(1, 1<<31).Draw(t, "a"), rapid.Uint32Range(1, 1<<31).Draw(t, "b")
		if rapid.Bool().Draw(t, "near") {
			b = max(1, a+rapid.Uint32Range(0, 2).Draw(t, "off")-1)
		}
		if SameSize(a, b) != (SizeOf(a) == SizeOf(b)) {
			t.Fatalf("%d and %d", a, b)
		}
	})
	near := []uint32{1 << 31, 1<<31 + 1, 1<<32 - 1}
	for u := range uint32(70) {
		near = append(near, u+1)
	}
	for _, a := range near {
		for _, b := range near {
			assert.Equal(t, SizeOf(a) == SizeOf(b), SameSize(a, b), "%d and %d", a, b)
		}
	}
	assert.Equal(t, []int{0, 1, 2, 2, 3, 3, 3, 3, 4}, []int{SizeOf(1), SizeOf(2), SizeOf(3), SizeOf(4), SizeOf(5), SizeOf(6), SizeOf(7), SizeOf(8), SizeOf(9)})
}
