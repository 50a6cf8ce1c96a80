//go:build unix

package safetensors

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// nextDescriptor returns the number of the file that is opened next: the lowest one that is free.
func nextDescriptor(t *testing.T) uintptr {
	t.Helper()
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	return f.Fd()
}

// Files and folders are closed, also where the file is refused.
func TestFilesAreClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	before := nextDescriptor(t)
	require.NoError(t, WriteFile(path, nil, []Source{{Name: "a", Type: Uint8, Shape: []int64{3}, Data: strings.NewReader("new")}}))
	f, err := OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Error(t, WriteFile(path, nil, []Source{{Name: "a", Type: Uint8, Shape: []int64{4}, Data: strings.NewReader("new")}}))
	require.NoError(t, os.WriteFile(path, []byte("no file of tensors"), 0o600))
	_, err = OpenFile(path)
	require.Error(t, err)
	_, err = OpenFile(path + ".none")
	require.Error(t, err)
	assert.Equal(t, before, nextDescriptor(t))
}

// A new file is on the disk before it has the path, and the path's name after that. Whichever call fails, the path has a whole file.
func TestFilesAreDurable(t *testing.T) {
	errFull := errors.New("the disk is full")
	for failing, want := range [][]string{
		{"sync new.tmp", "rename new.tmp to new", "sync folder"},
		{"sync new.tmp"},
		{"sync new.tmp", "rename new.tmp to new"},
		{"sync new.tmp", "rename new.tmp to new", "sync folder"},
	} {
		folder := filepath.Join(t.TempDir(), "folder")
		path := filepath.Join(folder, "new")
		require.NoError(t, os.Mkdir(folder, 0o700))
		require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
		var calls []string
		did := func(call string) error {
			if calls = append(calls, call); len(calls) == failing {
				return errFull
			}
			return nil
		}
		d := disk{
			sync: func(f *os.File) error { return did("sync " + filepath.Base(f.Name())) },
			rename: func(from, to string) error {
				if err := did("rename " + filepath.Base(from) + " to " + filepath.Base(to)); err != nil {
					return err
				}
				return os.Rename(from, to)
			},
		}
		err := d.write(path, nil, []Source{{Name: "a", Type: Uint8, Shape: []int64{3}, Data: strings.NewReader("new")}})
		assert.Equal(t, want, calls)
		assert.Equal(t, failing > 0, errors.Is(err, errFull), "%v", err)
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		if failing == 1 || failing == 2 {
			assert.Equal(t, "old", string(got))
		} else {
			assert.Equal(t, "new", string(got[len(got)-3:]))
		}
		left, err := os.ReadDir(folder)
		require.NoError(t, err)
		assert.Len(t, left, 1)
	}
}
