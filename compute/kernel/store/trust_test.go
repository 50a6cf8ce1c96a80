//go:build unix

package store_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/store"
)

// A file that is longer than the store's bound is no entry: nothing of it is read, and it is removed.
func TestAFileLongerThanTheBoundIsNotRead(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(store.Variable, "")
	s := store.Open(store.Config{Folder: folder, LimitBytes: 1 << 20})
	for _, bytes := range []int64{1<<20 + 1, 1 << 40} {
		path := filepath.Join(folder, store.Name(keyOf("a")))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Truncate(path, bytes))
		_, ok := s.Get(keyOf("a"))
		assert.False(t, ok)
		assert.NoFileExists(t, path)
	}
	assert.EqualValues(t, 2, s.Stats().Damaged)
	s.Put(keyOf("a"), []byte("image"))
	image, ok := s.Get(keyOf("a"))
	assert.True(t, ok)
	assert.Equal(t, []byte("image"), image)
}

// A pipe of an entry's name is none, and is removed; it is not opened, which would wait for a writer.
func TestAPipeIsNotOpened(t *testing.T) {
	folder := t.TempDir()
	s := opened(t, folder)
	s.Put(keyOf("b"), []byte("image")) // the folder is good
	path := filepath.Join(folder, store.Name(keyOf("a")))
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	done := make(chan bool, 1)
	go func() {
		_, ok := s.Get(keyOf("a"))
		done <- ok
	}()
	for len(done) == 0 { // a writer finds no reader
		writer, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			assert.NoError(t, writer.Close())
			assert.Fail(t, "the pipe was opened")
			break
		}
		runtime.Gosched()
	}
	assert.False(t, <-done)
	assert.NoFileExists(t, path)
	assert.EqualValues(t, 1, s.Stats().Damaged)
}

// A folder that another user may write to, or owns, gives no code and gets none.
func TestAFolderOfOthersIsNotUsed(t *testing.T) {
	harms := map[string]func(folder string) error{
		"group":    func(folder string) error { return os.Chmod(folder, 0o770) },
		"everyone": func(folder string) error { return os.Chmod(folder, 0o707) },
	}
	if os.Geteuid() == 0 {
		harms["owner"] = func(folder string) error { return os.Chown(folder, 12345, -1) }
	} else {
		t.Log("only root gives folders away: a folder of another owner is not tested")
	}
	for name, harm := range harms {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			t.Setenv(store.Variable, "")
			require.NoError(t, os.Chmod(folder, 0o700))
			store.Open(store.Config{Folder: folder}).Put(keyOf("a"), []byte("image"))
			require.NoError(t, harm(folder))
			t.Cleanup(func() { _ = os.Chmod(folder, 0o700) }) //nolint:gosec // a folder
			var log logged
			s := store.Open(store.Config{Folder: folder, Log: &log})
			_, ok := s.Get(keyOf("a"))
			assert.False(t, ok)
			s.Put(keyOf("b"), []byte("image"))
			assert.Len(t, namesIn(t, folder), 1)
			assert.Contains(t, s.Stats().Disabled, "other users may choose the code")
			assert.Len(t, log, 1)
		})
	}
}
