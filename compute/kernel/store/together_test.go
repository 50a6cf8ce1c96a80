package store_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/store"
	"github.com/go-vram/vram/internal/together"
)

// Each hit, miss, damaged entry, loss and failed operation among goroutines is counted once, with its bytes.
func TestFiguresAmongGoroutines(t *testing.T) {
	t.Setenv(store.Variable, "")
	const goroutineCount, rounds, limit = 4, 40, 32 << 10
	folder, image := t.TempDir(), make([]byte, 100)
	entryBytes := int64(len(store.Encode(keyOf("0 000"), image)))
	var failing atomic.Bool
	var failures, lost, unread, hits, misses atomic.Int64
	s := store.OpenOn(store.Config{Folder: folder, LimitBytes: limit}, &store.Faulty{Fail: func(operation string) error {
		switch operation {
		case "folder", "trust", "create", "close": // the first three end a store, and a file is lost once
			return nil
		case "touch", "list": // always
		default:
			if rand.N(3) > 0 { //nolint:gosec // a test
				return nil
			}
		}
		if !failing.Load() {
			return nil
		}
		failures.Add(1)
		switch operation {
		case "write", "rename":
			lost.Add(1)
		case "read":
			unread.Add(1)
		}
		return errDisk
	}})
	get := func(k store.Key) {
		if _, ok := s.Get(k); ok {
			hits.Add(1)
		} else {
			misses.Add(1)
		}
	}
	s.Put(keyOf("0 old"), image)
	aged(t, folder, keyOf("0 old"), 100*24*time.Hour)
	failing.Store(true)
	together.Run(goroutineCount, func(number int) {
		torn := keyOf(fmt.Sprint("torn ", number))
		for round := range rounds {
			assert.NoError(t, os.WriteFile(filepath.Join(folder, store.Name(torn)), []byte("torn"), 0o600))
			get(torn)
			get(keyOf("0 old"))
			s.Put(keyOf(fmt.Sprintf("%d %03d", number, round)), image)
			s.Put(torn, make([]byte, limit)) // more than there is room for
		}
	})
	failing.Store(false)
	stats := s.Stats()
	tooLarge := int64(goroutineCount * rounds)
	written := 1 + goroutineCount*rounds - lost.Load()
	assert.Equal(t, store.Stats{
		Hits: hits.Load(), Misses: misses.Load(), Damaged: misses.Load() - unread.Load(), Written: written, Lost: lost.Load() + tooLarge,
		Failed: failures.Load(), ReadBytes: hits.Load() * int64(len(image)), WrittenBytes: written * entryBytes, HeldBytes: stats.HeldBytes,
	}, stats)

	var heldBytes int64
	s.Put(keyOf("0 end"), image) // counts the folder
	for _, name := range namesIn(t, folder) {
		if strings.HasSuffix(name, ".kernel") {
			info, err := os.Stat(filepath.Join(folder, name))
			require.NoError(t, err)
			heldBytes += info.Size()
		}
	}
	assert.Equal(t, heldBytes, s.Stats().HeldBytes)
}

// Each entry that goroutines write is in the folder, or was counted as one that was evicted, with its bytes.
func TestEvictionsAmongGoroutines(t *testing.T) {
	t.Setenv(store.Variable, "")
	const goroutineCount, rounds, limit = 4, 50, 16_000
	folder := t.TempDir()
	s := store.Open(store.Config{Folder: folder, LimitBytes: limit})
	var writtenBytes atomic.Int64
	together.Run(goroutineCount, func(number int) {
		for round := range rounds {
			k, image := keyOf(fmt.Sprint(number, " ", round)), make([]byte, 10*round)
			s.Put(k, image)
			writtenBytes.Add(int64(len(store.Encode(k, image))))
		}
	})
	stats := s.Stats()
	assert.EqualValues(t, goroutineCount*rounds, stats.Written)
	assert.Equal(t, writtenBytes.Load(), stats.WrittenBytes)
	assert.Len(t, namesIn(t, folder), int(stats.Written-stats.Evicted))
	assert.Equal(t, stats.WrittenBytes-stats.EvictedBytes, bytesIn(t, folder))
	assert.LessOrEqual(t, bytesIn(t, folder), stats.HeldBytes)
	assert.LessOrEqual(t, stats.HeldBytes, int64(limit))
	assert.Zero(t, stats.Lost+stats.Failed)
}
