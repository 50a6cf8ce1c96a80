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
