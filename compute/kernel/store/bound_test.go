package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
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
	s.Put(keyOf("small"), nil)
	assert.Equal(t, []any{int64(1), stats.Written + 1, ""}, []any{s.Stats().Lost, s.Stats().Written, s.Stats().Disabled}, "that image alone is lost")
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

// The folder is counted by the first Put, and again when more than a sixteenth of the bound was written since, or when the bound is
// exceeded. A count that fails is made up for by the next Put.
func TestWhenAFolderIsCounted(t *testing.T) {
	t.Setenv(store.Variable, "")
	const image = 500
	entry := int64(len(store.Encode(keyOf("10"), make([]byte, image))))
	counted, fails := 0, false
	s := store.OpenOn(store.Config{Folder: t.TempDir(), LimitBytes: 2 * 16 * entry}, &store.Faulty{Fail: func(operation string) error {
		if operation != "list" {
			return nil
		}
		counted++
		if fails {
			return errors.ErrUnsupported
		}
		return nil
	}})
	put := func(n int) []int {
		var after []int
		for range n {
			s.Put(keyOf(strconv.FormatInt(10+s.Stats().Written, 10)), make([]byte, image))
			after = append(after, counted)
		}
		return after
	}
	assert.Equal(t, []int{1, 1, 1, 2, 2, 2, 3}, put(7), "two entries are a sixteenth of the bound")
	fails = true
	assert.Equal(t, []int{3, 3, 4, 5}, put(4))
	assert.Equal(t, int64(2), s.Stats().Failed)
	fails = false
	assert.Equal(t, []int{6, 6}, put(2))
	assert.Equal(t, 13*entry, s.Stats().HeldBytes)
	assert.Zero(t, s.Stats().Evicted)
	before := counted
	put(19) // all 32 that there is room for
	assert.Equal(t, [2]int64{32 * entry, 0}, [2]int64{s.Stats().HeldBytes, s.Stats().Evicted})
	assert.Equal(t, before+6, counted)
	put(1)
	assert.Equal(t, before+7, counted)
	assert.Equal(t, [2]int64{28 * entry, 5}, [2]int64{s.Stats().HeldBytes, s.Stats().Evicted}, "seven eighths of the bound are left")
}

// A folder that the first Put could not count is counted by the next one, with the entries that were there before.
func TestTheFirstCountFails(t *testing.T) {
	folder := t.TempDir()
	failed := "list"
	opened(t, folder).Put(keyOf("a"), make([]byte, 500))
	s := failing(t, folder, 0, nil, &failed, errDisk)
	s.Put(keyOf("b"), make([]byte, 500))
	failed = ""
	s.Put(keyOf("c"), make([]byte, 500))
	assert.Equal(t, bytesIn(t, folder), s.Stats().HeldBytes)
	assert.Len(t, namesIn(t, folder), 3)
}

// A folder of an entry's name is none: it holds no bytes, and is not evicted.
func TestAFolderIsNoEntry(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(store.Variable, "")
	inside := filepath.Join(folder, store.Name(keyOf("a")))
	require.NoError(t, os.Mkdir(inside, 0o700))
	long := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(inside, long, long))
	s := store.Open(store.Config{Folder: folder, LimitBytes: 4000})
	for _, source := range []string{"b", "c", "d", "e"} {
		s.Put(keyOf(source), make([]byte, 1200))
	}
	stats := s.Stats()
	assert.Equal(t, stats.WrittenBytes-stats.EvictedBytes, stats.HeldBytes)
	assert.Positive(t, stats.Evicted)
	assert.DirExists(t, inside)
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

// A file that is being written is left alone for an hour, and no longer.
func TestAFileIsBeingWrittenForAnHour(t *testing.T) {
	t.Setenv(store.Variable, "")
	for age, stays := range map[time.Duration]bool{time.Hour - 1: true, time.Hour: true, time.Hour + 1: false} {
		synctest.Test(t, func(t *testing.T) { // of virtual time
			folder := t.TempDir()
			path := filepath.Join(folder, "a.writing")
			require.NoError(t, os.WriteFile(path, nil, 0o600))
			then := time.Now().Add(-age)
			require.NoError(t, os.Chtimes(path, then, then))
			store.Open(store.Config{Folder: folder}).Put(keyOf("a"), nil)
			_, err := os.Stat(path)
			assert.Equal(t, stays, err == nil, "%v: %v", age, err)
		})
	}
}

// A bound of one byte keeps nothing, and one that is not set keeps entries.
func TestTheSmallestBound(t *testing.T) {
	t.Setenv(store.Variable, "")
	for limit, lost := range map[int64]int64{-1: 0, 0: 0, 1: 1} {
		s := store.Open(store.Config{Folder: t.TempDir(), LimitBytes: limit})
		s.Put(keyOf("a"), []byte("image"))
		assert.Equal(t, [2]int64{lost, 1 - lost}, [2]int64{s.Stats().Lost, s.Stats().Written}, limit)
	}
}

// Goroutines that write at the same time keep the bound together: they count no less than there is.
func TestGoroutinesThatPut(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(store.Variable, "")
	const limit, goroutines, each = 20_000, 3, 20
	s := store.Open(store.Config{Folder: folder, LimitBytes: limit})
	var all sync.WaitGroup
	for n := range goroutines {
		all.Go(func() {
			for i := range each {
				s.Put(keyOf(strconv.Itoa(n*each+i)), make([]byte, 500+37*i))
			}
		})
	}
	all.Wait()
	stats, held := s.Stats(), bytesIn(t, folder)
	assert.LessOrEqual(t, held, int64(limit))
	assert.LessOrEqual(t, held, stats.HeldBytes)
	assert.Equal(t, held, stats.WrittenBytes-stats.EvictedBytes)
	assert.Equal(t, []int64{goroutines * each, 0, 0}, []int64{stats.Written, stats.Lost, stats.Failed})
}
