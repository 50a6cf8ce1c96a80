package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/store"
)

var errDisk = errors.New("the disk")

// failing is a store whose operations of a name fail as long as failed is set.
func failing(t *testing.T, folder string, limitBytes int64, log store.Logger, failed *string, with error) *store.Store {
	t.Helper()
	t.Setenv(store.Variable, "")
	return store.OpenOn(store.Config{Folder: folder, LimitBytes: limitBytes, Log: log}, &store.Faulty{Fail: func(operation string) error {
		if operation == *failed {
			return with
		}
		return nil
	}})
}

// Whichever operation of the disk fails in a Put, it is counted, logged once, and leaves no file that is not an entry. Those that
// cannot succeed later disable the store; after others the next Put keeps its image.
func TestEachOperationOfPutFails(t *testing.T) {
	for operation, x := range map[string]struct{ lost, disables bool }{
		"folder": {true, true}, "trust": {true, true}, "create": {true, true},
		"write": {true, false}, "close": {true, false}, "rename": {true, false}, "list": {false, false},
	} {
		folder, failed := t.TempDir(), operation
		var log logged
		s := failing(t, folder, 0, &log, &failed, errDisk)
		s.Put(keyOf("a"), []byte("image"))
		stats := s.Stats()
		assert.Equal(t, int64(1), stats.Failed, operation)
		assert.Equal(t, x.disables, stats.Disabled != "", operation)
		want := []int64{0, 1}
		if x.lost {
			want = []int64{1, 0}
			require.Len(t, log, 1, operation)
			assert.Contains(t, log[0], "the disk", operation)
			assert.Empty(t, namesIn(t, folder), operation)
		}
		assert.Equal(t, want, []int64{stats.Lost, stats.Written}, operation)
		failed = ""
		s.Put(keyOf("a"), []byte("later"))
		image, ok := s.Get(keyOf("a"))
		assert.Equal(t, !x.disables, ok, operation)
		if ok {
			assert.Equal(t, "later", string(image), operation)
		}
	}
}

// An entry that cannot be read is a miss, and one whose use cannot be noted is a hit; both are counted. A folder that is not
// trusted is logged by the first Get.
func TestEachOperationOfGetFails(t *testing.T) {
	folder := t.TempDir()
	var failed string
	var log logged
	s := failing(t, folder, 0, &log, &failed, errDisk)
	s.Put(keyOf("a"), []byte("image"))
	failed = "read"
	_, ok := s.Get(keyOf("a"))
	assert.False(t, ok)
	assert.Equal(t, []int64{1, 0}, []int64{s.Stats().Failed, s.Stats().Damaged})
	failed = ""
	_, ok = s.Get(keyOf("a"))
	assert.True(t, ok)
	aged(t, folder, keyOf("a"), 100*24*time.Hour)
	failed = "touch"
	_, ok = s.Get(keyOf("a"))
	assert.True(t, ok)
	assert.Equal(t, int64(2), s.Stats().Failed)
	assert.Empty(t, log)

	failed = "trust"
	other := failing(t, folder, 0, &log, &failed, errDisk)
	for range 2 {
		_, ok = other.Get(keyOf("a"))
		assert.False(t, ok)
	}
	assert.Contains(t, other.Stats().Disabled, "the disk")
	require.Len(t, log, 1)
	failed = ""
	_, ok = other.Get(keyOf("a"))
	assert.True(t, ok, "it looks again")
}

// A folder is looked at until it was found good, once; the first reason to keep nothing stays.
func TestWhenAFolderIsTrusted(t *testing.T) {
	t.Setenv(store.Variable, "")
	folder := t.TempDir()
	looked := 0
	reason := map[string]error{}
	s := store.OpenOn(store.Config{Folder: folder}, &store.Faulty{Fail: func(operation string) error {
		if operation == "trust" {
			looked++
		}
		return reason[operation]
	}})
	reason["trust"] = fs.ErrNotExist
	for range 3 {
		_, ok := s.Get(keyOf("a"))
		assert.False(t, ok)
	}
	assert.Equal(t, 3, looked)
	delete(reason, "trust")
	for range 3 {
		s.Put(keyOf("a"), []byte("image"))
		_, ok := s.Get(keyOf("a"))
		assert.True(t, ok)
	}
	assert.Equal(t, 4, looked)

	s = store.OpenOn(store.Config{Folder: folder}, &store.Faulty{Fail: func(operation string) error { return reason[operation] }})
	reason["folder"], reason["trust"] = errors.New("the first"), errors.New("the second")
	s.Put(keyOf("a"), []byte("image"))
	_, ok := s.Get(keyOf("a"))
	assert.False(t, ok)
	assert.Equal(t, "the first", s.Stats().Disabled)
}

// An entry has as many bytes as the bound at most; a longer file in its place is damaged.
func TestTheLongestEntry(t *testing.T) {
	folder := t.TempDir()
	image := make([]byte, 5000)
	limit := int64(len(store.Encode(keyOf("a"), image)))
	var none string
	s := failing(t, folder, limit, nil, &none, nil)
	s.Put(keyOf("a"), image)
	_, ok := s.Get(keyOf("a"))
	assert.True(t, ok)
	s.Put(keyOf("b"), append(image, 0))
	assert.Equal(t, []int64{1, 1}, []int64{s.Stats().Written, s.Stats().Lost})
	path := filepath.Join(folder, store.Name(keyOf("c")))
	require.NoError(t, os.WriteFile(path, store.Encode(keyOf("c"), append(image, 0)), 0o600))
	_, ok = s.Get(keyOf("c"))
	assert.False(t, ok)
	assert.Equal(t, int64(1), s.Stats().Damaged)
	assert.NoFileExists(t, path)
}

// Entries that another process has removed are no failures, and hold nothing; others that cannot be removed hold their bytes.
func TestEvictionThatFails(t *testing.T) {
	for _, with := range []error{&fs.PathError{Op: "remove", Path: "entry", Err: fs.ErrNotExist}, errDisk} {
		failed := "remove"
		s := failing(t, t.TempDir(), 4000, nil, &failed, with)
		for _, source := range []string{"a", "b", "c", "d"} {
			s.Put(keyOf(source), make([]byte, 1200))
		}
		stats := s.Stats()
		assert.Equal(t, []int64{4, 0}, []int64{stats.Written, stats.Evicted})
		assert.Equal(t, errors.Is(with, fs.ErrNotExist), stats.Failed == 0)
		assert.Equal(t, errors.Is(with, fs.ErrNotExist), stats.HeldBytes <= 4000, "%d bytes", stats.HeldBytes)
	}
}

// The disk's own operations fail where the folder is none, and say where.
func TestOperationsOfTheDisk(t *testing.T) {
	t.Setenv(store.Variable, "")
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	var log logged
	s := store.Open(store.Config{Folder: filepath.Join(path, "folder"), Log: &log})
	s.Put(keyOf("a"), []byte("image"))
	assert.Equal(t, int64(1), s.Stats().Failed)
	require.Len(t, log, 1)
	assert.True(t, strings.Contains(log[0], "not a directory"), log[0])

	gone := t.TempDir()
	s = store.Open(store.Config{Folder: gone})
	s.Put(keyOf("a"), []byte("image"))
	require.NoError(t, os.RemoveAll(gone))
	_, ok := s.Get(keyOf("a"))
	assert.False(t, ok)
	s.Put(keyOf("a"), []byte("image"))
	_, ok = s.Get(keyOf("a"))
	assert.True(t, ok, "it is made again")
	assert.Zero(t, s.Stats().Failed)
}
