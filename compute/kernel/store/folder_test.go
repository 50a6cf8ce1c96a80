package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/store"
)

// logged are the lines of a logger.
type logged []string

func (l *logged) Warn(message string, args ...any) {
	*l = append(*l, fmt.Sprint(append([]any{message}, args...)...))
}

func TestTheFolderOfTheUser(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	t.Setenv("HOME", home)
	t.Setenv(store.Variable, "")
	want, err := os.UserCacheDir()
	require.NoError(t, err)
	s := store.Open(store.Config{})
	assert.Equal(t, filepath.Join(want, "vram", "kernels"), s.Folder())
	s.Put(keyOf("a"), []byte("image"))
	assert.Len(t, namesIn(t, s.Folder()), 1)

	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	var log logged
	none := store.Open(store.Config{Log: &log})
	assert.Contains(t, none.Stats().Disabled, "HOME", "before the first use")
	none.Put(keyOf("a"), []byte("image"))
	none.Put(keyOf("a"), []byte("image"))
	_, ok := none.Get(keyOf("a"))
	assert.False(t, ok)
	assert.Equal(t, int64(2), none.Stats().Lost)
	assert.NotEmpty(t, none.Stats().Disabled)
	assert.Len(t, log, 1)
}

func TestTheVariableNamesTheFolder(t *testing.T) {
	folder, named := t.TempDir(), t.TempDir()
	t.Setenv(store.Variable, named)
	s := store.Open(store.Config{Folder: folder})
	assert.Equal(t, named, s.Folder())
	s.Put(keyOf("a"), []byte("image"))
	assert.Len(t, namesIn(t, named), 1)

	t.Setenv(store.Variable, store.Off)
	var log logged
	off := store.Open(store.Config{Folder: named, Log: &log})
	off.Put(keyOf("b"), []byte("image"))
	_, ok := off.Get(keyOf("a"))
	assert.False(t, ok)
	assert.Len(t, namesIn(t, named), 1)
	assert.Empty(t, namesIn(t, folder))
	assert.Contains(t, off.Stats().String(), "lost 1, evicted 0 (0 bytes), failed 0, held 0 bytes, disabled: VRAM_KERNEL_STORE is off")
	assert.Empty(t, log)
}

// A folder that cannot be made disables Put.
func TestAFileInThePlaceOfTheFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	t.Setenv(store.Variable, "")
	var log logged
	s := store.Open(store.Config{Folder: path, Log: &log})
	for range 3 {
		s.Put(keyOf("a"), []byte("image"))
		_, ok := s.Get(keyOf("a"))
		assert.False(t, ok)
	}
	assert.Equal(t, int64(3), s.Stats().Lost)
	assert.Contains(t, s.Stats().Disabled, "not a directory")
	require.Len(t, log, 1)
	assert.Contains(t, log[0], "not a directory")
}

// A folder that can only be read serves Get, and damaged entries stay misses.
func TestAReadOnlyFolder(t *testing.T) {
	folder := t.TempDir()
	opened(t, folder).Put(keyOf("a"), []byte("image"))
	old := time.Now().Add(-48 * time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(folder, store.Name(keyOf("a"))), old, old))
	require.NoError(t, os.WriteFile(filepath.Join(folder, store.Name(keyOf("b"))), []byte("vram"), 0o600))
	tried := map[string]int{}
	var log logged
	s := store.OpenOn(store.Config{Folder: folder, Log: &log}, &store.Faulty{Fail: func(operation string) error {
		if operation == "read" || operation == "trust" {
			return nil
		}
		tried[operation]++
		if operation == "folder" {
			return nil // it is there
		}
		return &os.PathError{Op: operation, Path: folder, Err: syscall.EROFS}
	}})
	image, ok := s.Get(keyOf("a"))
	require.True(t, ok)
	assert.Equal(t, "image", string(image))
	_, ok = s.Get(keyOf("b"))
	assert.False(t, ok)
	for range 3 {
		s.Put(keyOf("b"), []byte("image"))
	}
	assert.Equal(t, map[string]int{"folder": 1, "create": 1, "touch": 1, "remove": 1}, tried)
	stats := s.Stats()
	assert.Equal(t, [4]int64{1, 1, 3, 3}, [4]int64{stats.Hits, stats.Damaged, stats.Lost, stats.Failed})
	assert.Contains(t, stats.Disabled, "read-only file system")
	assert.Len(t, log, 1)
}

// A full disk loses the image, and leaves nothing. Later images are kept.
func TestAFullDisk(t *testing.T) {
	for _, failing := range []string{"write", "rename"} {
		folder := t.TempDir()
		full := true
		var log logged
		t.Setenv(store.Variable, "")
		s := store.OpenOn(store.Config{Folder: folder, Log: &log}, &store.Faulty{Fail: func(operation string) error {
			if full && operation == failing {
				return syscall.ENOSPC
			}
			return nil
		}})
		for range 2 {
			s.Put(keyOf("a"), []byte("image"))
		}
		assert.Empty(t, namesIn(t, folder))
		full = false
		s.Put(keyOf("a"), []byte("image"))
		_, ok := s.Get(keyOf("a"))
		assert.True(t, ok)
		stats := s.Stats()
		assert.Equal(t, [3]int64{2, 2, 1}, [3]int64{stats.Lost, stats.Failed, stats.Written})
		assert.Empty(t, stats.Disabled)
		assert.Len(t, log, 1)
	}
}

// A folder that was removed is made again.
func TestTheFolderIsRemoved(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "kernels")
	s := opened(t, folder)
	s.Put(keyOf("a"), []byte("image"))
	require.NoError(t, os.RemoveAll(folder))
	_, ok := s.Get(keyOf("a"))
	assert.False(t, ok)
	s.Put(keyOf("a"), []byte("image"))
	_, ok = s.Get(keyOf("a"))
	assert.True(t, ok)
	assert.Zero(t, s.Stats().Failed)
	info, err := os.Stat(folder)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

// An eviction that removes nothing is counted, and evicts when it can.
func TestAnEvictionThatFails(t *testing.T) {
	folder := t.TempDir()
	fails := true
	t.Setenv(store.Variable, "")
	s := store.OpenOn(store.Config{Folder: folder, LimitBytes: 2000}, &store.Faulty{Fail: func(operation string) error {
		if fails && operation == "remove" {
			return errors.ErrUnsupported
		}
		return nil
	}})
	for _, source := range []string{"a", "b", "c"} {
		s.Put(keyOf(source), make([]byte, 700))
	}
	assert.Greater(t, s.Stats().HeldBytes, int64(2000))
	assert.Equal(t, int64(2), s.Stats().Failed)
	fails = false
	s.Put(keyOf("d"), make([]byte, 700))
	assert.LessOrEqual(t, s.Stats().HeldBytes, int64(2000))
}
