package streams

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFragmentation(t *testing.T) {
	t.Parallel()
	assert.Zero(t, Stats{}.Fragmentation(), "nothing is cached")
	assert.Zero(t, Stats{CachedBytes: 4096, LargestFreeBytes: 4096}.Fragmentation(), "one range")
	assert.InDelta(t, 0.75, Stats{CachedBytes: 4096, LargestFreeBytes: 1024}.Fragmentation(), 1e-9)
	assert.InDelta(t, 1, Stats{CachedBytes: 4096}.Fragmentation(), 1e-9, "all in magazines")
}
