package store_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/store"
)

// bytesIn returns the size of all entries of a folder.
func bytesIn(t *testing.T, folder string) (bytes int64) {
	t.Helper()
	for _, name := range namesIn(t, folder) {
		info, err := os.Stat(filepath.Join(folder, name))
		require.NoError(t, err)
		bytes += info.Size()
	}
	return bytes
}

// aged makes an entry older.
func aged(t *testing.T, folder string, k store.Key, age time.Duration) {
	t.Helper()
	then := time.Now().Add(-age)
	require.NoError(t, os.Chtimes(filepath.Join(folder, store.Name(k)), then, then))
}

func TestTheBoundIsKept(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(store.Variable, "")
	const limit = 20_000
	s := store.Open(store.Config{Folder: folder, LimitBytes: limit})
	for i := range 100 {
		s.Put(keyOf(strconv.Itoa(i)), make([]byte, 100+37*i%900))
		held := bytesIn(t, folder)
		require.LessOrEqual(t, held, int64(limit))
		require.Equal(t, held, s.Stats().HeldBytes)
		_, ok := s.Get(keyOf(strconv.Itoa(i)))
		require.True(t, ok, "the entry that was written stays")
	}
	stats := s.Stats()
	assert.Positive(t, stats.Evicted)
	assert.Equal(t, stats.WrittenBytes-stats.EvictedBytes, stats.HeldBytes)

	s.Put(keyOf("large"), make([]byte, limit))
	assert.Equal(t, int64(1), s.Stats().Lost)
	assert.Equal(t, stats.HeldBytes, s.Stats().HeldBytes, "nothing is evicted for it")
}

func TestTheLeastRecentlyUsedGoFirst(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(store.Variable, "")
	s := store.Open(store.Config{Folder: folder, LimitBytes: 5000})
	for i, source := range []string{"a", "b", "c", "d"} {
		s.Put(keyOf(source), make([]byte, 900))
		aged(t, folder, keyOf(source), time.Duration(100-i)*24*time.Hour)
	}
	_, ok := s.Get(keyOf("a")) // the oldest one
	require.True(t, ok)
	s.Put(keyOf("e"), make([]byte, 900))
	assert.Equal(t, int64(1), s.Stats().Evicted)
	for _, source := range []string{"a", "c", "d", "e"} {
		_, ok := s.Get(keyOf(source))
		assert.True(t, ok, source)
	}
	_, ok = s.Get(keyOf("b"))
	assert.False(t, ok)
}

// Entries of other processes count, files of others stay, and files that dead processes left go.
func TestFilesOfOthers(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(store.Variable, "")
	config := store.Config{Folder: folder, LimitBytes: 20_000}
	stores := []*store.Store{store.Open(config), store.Open(config)}
	for _, name := range []string{"notes.txt", "short.kernel", "old.writing", "new.writing"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	long := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(folder, "old.writing"), long, long))
	for i := range 200 {
		stores[i%2].Put(keyOf(strconv.Itoa(i)), make([]byte, 500))
		require.LessOrEqual(t, bytesIn(t, folder), int64(20_000+20_000/16+1000))
	}
	for _, name := range []string{"notes.txt", "short.kernel", "new.writing"} {
		assert.FileExists(t, filepath.Join(folder, name))
	}
	assert.NoFileExists(t, filepath.Join(folder, "old.writing"))
	assert.Positive(t, stores[0].Stats().Evicted)
	assert.Positive(t, stores[1].Stats().Evicted)
	assert.Zero(t, stores[0].Stats().Failed)
}
