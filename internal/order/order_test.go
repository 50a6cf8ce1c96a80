package order

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

type pair struct{ key, value int }

func byKey(a, b *pair) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.value, b.value)) }

// A slice is in the order in which slices.SortFunc puts it, whatever its order was.
func TestByIsAsSlicesSort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pair {
			return pair{rapid.IntRange(0, 20).Draw(t, "key"), rapid.Int().Draw(t, "value")}
		}), 0, 200).Draw(t, "elements")
		want := slices.Clone(s)
		slices.SortFunc(want, func(a, b pair) int { return byKey(&a, &b) })
		assert.Equal(t, slices.EqualFunc(s, want, func(a, b pair) bool { return a == b }), Sorted(s, byKey))
		By(s, byKey)
		assert.Equal(t, want, s)
		assert.True(t, Sorted(s, byKey))
	})
}

// What is nearly in order takes few steps, what is in the opposite order no more than a heap takes, and nothing is allocated.
func TestStepsOfBy(t *testing.T) {
	const length = 1 << 10
	s := make([]pair, length)
	steps := 0
	counted := func(a, b *pair) int { steps++; return byKey(a, b) }
	for i := range s {
		s[i].key = i
	}
	s[10], s[12] = s[12], s[10]
	By(s, counted)
	assert.Less(t, steps, 2*length)
	steps = 0
	slices.Reverse(s)
	By(s, counted)
	assert.Less(t, steps, 30*length, "2 log n of a heap, and the steps before it")
	assert.True(t, Sorted(s, byKey))
	assert.Zero(t, testing.AllocsPerRun(10, func() { slices.Reverse(s); By(s, byKey) }))
}

func BenchmarkSort(b *testing.B) {
	for _, length := range []int{8, 64, 4096} {
		random := rand.New(rand.NewPCG(1, 2))
		from := make([]pair, length)
		for i := range from {
			from[i].key = random.Int()
		}
		s := make([]pair, length)
		b.Run("by=order/length="+strconv.Itoa(length), func(b *testing.B) {
			for b.Loop() {
				copy(s, from)
				By(s, byKey)
			}
		})
		b.Run("by=slices/length="+strconv.Itoa(length), func(b *testing.B) {
			for b.Loop() {
				copy(s, from)
				slices.SortFunc(s, func(x, y pair) int { return byKey(&x, &y) })
			}
		})
	}
}

func TestInsertAndDelete(t *testing.T) {
	s := []int{1, 2, 4}
	s = Insert(s, 2, 3)
	assert.Equal(t, []int{1, 2, 3, 4}, s)
	assert.Equal(t, []int{0, 1, 2, 3, 4, 5}, Insert(Insert(s, 0, 0), 5, 5))
	all := []*int{new(int), nil, new(int), nil}
	kept := Delete(all, func(p *int) bool { return p == nil })
	assert.Len(t, kept, 2)
	assert.Equal(t, []*int{nil, nil}, all[2:], "nothing is held that was taken out")
	assert.Empty(t, Delete([]int{1, 1}, func(int) bool { return true }))
	assert.Nil(t, Delete(nil, func(int) bool { return true }))
}

func TestSearchIsAsSortSearch(t *testing.T) {
	for n := range 20 {
		for first := range n + 1 {
			assert.Equal(t, first, Search(n, func(at int) bool { return at >= first }))
		}
	}
}
