package pool

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Sizes beyond the arena are one page more than it has, however large they are, and none wraps
// around.
func TestPagesForSizesAtTheEndsOfNumbers(t *testing.T) {
	t.Parallel()
	a := &arena{bytes: 64 << 20, pageBytes: 2 << 20}
	for bytes, want := range map[int64]uint32{
		math.MaxInt64: 33, math.MaxInt64 - 2<<20: 33, 1 << 53: 33, 64<<20 + 1: 33, 64 << 20: 32, 2<<20 + 1: 2, 1: 1, 0: 0, -1: 0, math.MinInt64: 0,
	} {
		assert.Equal(t, want, a.pagesFor(bytes), "%d", bytes)
	}
}
