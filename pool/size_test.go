package pool

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSizesForPeople(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64][2]string{
		0: {"0 bytes", "0 bytes"}, 1: {"1 byte", "1 byte"}, 1023: {"1023 bytes", "1023 bytes"}, 1024: {"1 KiB", "1 KiB"},
		1000 << 20: {"1000 MiB", "1000 MiB"}, 1500 << 20: {"1.46 GiB", "1.47 GiB"}, 3 << 30: {"3 GiB", "3 GiB"},
		1<<20 + 1: {"1 MiB", "1.01 MiB"}, 5 << 39: {"2.5 TiB", "2.5 TiB"}, math.MaxInt64: {"8 EiB", "8 EiB"},
	} {
		assert.Equal(t, want, [2]string{sizeText(bytes), leastText(bytes)}, "%d", bytes)
	}
	assert.Equal(t, "-5 bytes", sizeText(-5))
}

// Sizes beyond the arena are one page more than it has, however large they are, and none wraps around.
func TestPagesForSizesAtTheEndsOfNumbers(t *testing.T) {
	t.Parallel()
	a := &arena{bytes: 64 << 20, pageBytes: 2 << 20}
	for bytes, want := range map[int64]uint32{
		math.MaxInt64: 33, math.MaxInt64 - 2<<20: 33, 1 << 53: 33, 64<<20 + 1: 33, 64 << 20: 32, 2<<20 + 1: 2, 1: 1, 0: 0, -1: 0, math.MinInt64: 0,
	} {
		assert.Equal(t, want, a.pagesFor(bytes), "%d", bytes)
	}
}
