package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The smallest blocks of a pool are a page of page-locked memory, the unit of a stream, and a cache line of the Go heap.
func TestTheSmallestBlocksOfAKind(t *testing.T) {
	for kind, want := range map[Kind]int64{PageLocked: 4096, Device: 512, Pageable: 64} {
		assert.Equal(t, want, leastBytes(kind), kind)
		text, err := kind.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, kind.String(), string(text))
	}
	require.Error(t, unopened{}.Free(Block{}))
}
