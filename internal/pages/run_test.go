package pages_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/internal/pages"
)

// Every predicate on two runs agrees with a comparison of their pages one by one.
func TestRunsAgreeWithTheirPages(t *testing.T) {
	t.Parallel()
	const top = 6
	set := func(r pages.Run) (in [top]bool) {
		for i := r.First; i < r.First+r.Pages; i++ {
			in[i] = true
		}
		return in
	}
	for first := range uint32(top) {
		for end := first + 1; end <= top; end++ {
			a := pages.Run{First: first, Pages: end - first}
			assert.Equal(t, end, a.End())
			for page := range uint32(top) {
				assert.Equal(t, set(a)[page], a.Contains(page))
			}
			for n := range a.Pages + 1 {
				front, rest := a.Front(n)
				assert.Equal(t, []uint32{a.First, n, a.First + n, end}, []uint32{front.First, front.Pages, rest.First, rest.End()})
			}
			for from := range uint32(top) {
				for to := from + 1; to <= top; to++ {
					b := pages.Run{First: from, Pages: to - from}
					overlaps, covers := false, true
					for i := range top {
						overlaps = overlaps || set(a)[i] && set(b)[i]
						covers = covers && (set(a)[i] || !set(b)[i])
					}
					assert.Equal(t, overlaps, a.Overlaps(b), "%v %v", a, b)
					assert.Equal(t, covers, a.Covers(b), "%v %v", a, b)
				}
			}
		}
	}
}
