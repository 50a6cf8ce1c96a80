package store_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/store"
)

// An eviction frees an eighth of the bound, so that the Puts that follow find room.
func TestAnEvictionMakesRoomForMore(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(store.Variable, "")
	const limit = 32_000
	s := store.Open(store.Config{Folder: folder, LimitBytes: limit})
	evictions, evicted := 0, int64(0)
	for i := range 100 {
		s.Put(keyOf(strconv.Itoa(i)), make([]byte, 500))
		stats := s.Stats()
		if stats.Evicted == evicted {
			continue
		}
		evictions++
		evicted = stats.Evicted
		require.LessOrEqual(t, stats.HeldBytes, int64(limit-limit/8))
	}
	assert.Positive(t, evictions)
	assert.Less(t, evictions, 100*1000/(limit/8)+1, "each makes room for several entries")
}
