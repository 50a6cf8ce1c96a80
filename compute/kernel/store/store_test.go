package store_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/store"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/recoveredtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

func keyOf(source string) store.Key {
	return store.Key{
		Source: source, Emitter: "e 1", Options: "-O3", Driver: "sim 13.0", Compute: cudadrv.ComputeCapability{Major: 9},
	}
}

// opened is a store in a folder.
func opened(t *testing.T, folder string) *store.Store {
	t.Helper()
	t.Setenv(store.Variable, "")
	return store.Open(store.Config{Folder: folder})
}

func namesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestRoundTrip(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a", "b")
	s := opened(t, folder)
	assert.Equal(t, folder, s.Folder())
	k := keyOf("text\n\x00")
	_, ok := s.Get(k)
	assert.False(t, ok)
	assert.NoDirExists(t, folder, "Open and Get make no folder")
	s.Put(k, []byte("cubin"))
	s.Put(k, []byte("image"))
	for _, reader := range []*store.Store{s, opened(t, folder)} {
		image, ok := reader.Get(k)
		require.True(t, ok)
		assert.Equal(t, "image", string(image))
	}
	assert.Equal(t, []string{store.Name(k)}, namesIn(t, folder))
	stats := s.Stats()
	assert.Equal(t, [4]int64{1, 1, 2, 5}, [4]int64{stats.Hits, stats.Misses, stats.Written, stats.ReadBytes})
	assert.Contains(t, stats.String(), "hits 1 (5 bytes), misses 1, damaged 0, written 2 (")
	data, err := os.ReadFile(filepath.Join(folder, store.Name(k)))
	require.NoError(t, err)
	const header = "emitter \"e 1\"\noptions \"-O3\"\ndriver \"sim 13.0\"\ncompute 9.0\nsource 6\ntext\n\x00\n"
	assert.True(t, strings.HasSuffix(string(data), "\n"+header+"image"), "%q", data)
	format, _, _ := strings.Cut(string(data), "\n")
	assert.Equal(t, fmt.Sprintf("%x.kernel", sha256.Sum256([]byte(format+"\n"+header))), store.Name(k), "of the format, too")
}

// Each part of the key counts, and parts do not run into each other.
func TestKeysDiffer(t *testing.T) {
	folder := t.TempDir()
	s := opened(t, folder)
	k := keyOf("text")
	s.Put(k, []byte("image"))
	other := func(change func(*store.Key)) store.Key { o := k; change(&o); return o }
	for name, o := range map[string]store.Key{
		"source":  other(func(o *store.Key) { o.Source = "texts" }),
		"emitter": other(func(o *store.Key) { o.Emitter = "e 2" }),
		"options": other(func(o *store.Key) { o.Options = "" }),
		"driver":  other(func(o *store.Key) { o.Driver = "sim 13.1" }),
		"compute": other(func(o *store.Key) { o.Compute.Minor = 3 }),
		"shifted": other(func(o *store.Key) { o.Emitter, o.Options = "e 1\"\noptions \"-O3", "" }),
	} {
		_, ok := s.Get(o)
		assert.False(t, ok, name)
		// The file of one key under the name of another one, as two texts with one hash would have it.
		require.NoError(t, os.WriteFile(filepath.Join(folder, store.Name(o)), store.Encode(k, []byte("image")), 0o600))
		_, ok = s.Get(o)
		assert.False(t, ok, name)
		s.Put(o, []byte(name))
		image, ok := s.Get(o)
		assert.True(t, ok, name)
		assert.Equal(t, name, string(image))
	}
	assert.Zero(t, s.Stats().Damaged)
}

// Devices and drivers have views of their own.
func TestViews(t *testing.T) {
	s := opened(t, t.TempDir())
	info := cudadrv.Info{Driver: "dynamic", DriverVersion: 12040, Compute: cudadrv.ComputeCapability{Major: 9}}
	s.On(info).Put("text", []byte("image"))
	image, ok := s.On(info).Get("text")
	require.True(t, ok)
	assert.Equal(t, "image", string(image))
	for _, change := range []func(*cudadrv.Info){
		func(i *cudadrv.Info) { i.Driver = "sim" },
		func(i *cudadrv.Info) { i.DriverVersion = 12041 },
		func(i *cudadrv.Info) { i.DriverVersion = 12050 },
		func(i *cudadrv.Info) { i.Compute.Major = 10 },
		func(i *cudadrv.Info) { i.Compute.Minor = 3 },
	} {
		other := info
		change(&other)
		_, ok := s.On(other).Get("text")
		assert.Equal(t, other.DriverVersion == 12041, ok, "%v", other)
	}
}

// An image is the caller's own: later ones do not change it.
func TestImagesAreTheCallers(t *testing.T) {
	s := opened(t, t.TempDir())
	sources := []string{"a", "b", "c", "d"}
	images := make([][]byte, len(sources))
	for _, source := range sources {
		s.Put(keyOf(source), bytes.Repeat([]byte(source), 1000))
	}
	for i, source := range sources {
		images[i], _ = s.Get(keyOf(source))
	}
	for i, source := range sources {
		assert.True(t, bytes.Equal(bytes.Repeat([]byte(source), 1000), images[i]), source)
	}
}

func TestNoStore(t *testing.T) {
	var s *store.Store
	var v *store.View
	s.Put(keyOf("a"), nil)
	v.Put("a", nil)
	s.On(cudadrv.Info{}).Put("a", nil)
	_, ok := s.Get(keyOf("a"))
	assert.False(t, ok)
	_, ok = v.Get("a")
	assert.False(t, ok)
	assert.Equal(t, store.Stats{}, s.Stats())
	assert.Empty(t, s.Folder())
}

// A file with any byte changed or cut off is a miss, is counted, removed and written again.
func TestDamagedEntries(t *testing.T) {
	folder := t.TempDir()
	s := opened(t, folder)
	k := keyOf("t")
	good := store.Encode(k, []byte("image"))
	path := filepath.Join(folder, store.Name(k))
	var bad [][]byte
	for i := range good {
		bad = append(bad, good[:i])
		for _, flip := range []byte{1, 0x20, 0x80} {
			changed := bytes.Clone(good)
			changed[i] ^= flip
			bad = append(bad, changed)
		}
	}
	bad = append(bad, append(bytes.Clone(good), 0))
	for i, data := range bad {
		require.NoError(t, os.WriteFile(path, data, 0o600))
		image, ok := s.Get(k)
		require.False(t, ok, "%q: %q", data, image)
		require.NoFileExists(t, path)
		require.Equal(t, int64(i+1), s.Stats().Damaged)
	}
	require.NoError(t, os.Mkdir(path, 0o700))
	_, ok := s.Get(k)
	assert.False(t, ok, "a folder in the place of an entry")
	s.Put(k, []byte("image"))
	_, ok = s.Get(k)
	assert.True(t, ok)
	assert.Equal(t, s.Stats().Misses, s.Stats().Damaged)
	assert.Zero(t, s.Stats().Failed)
}

func FuzzDecode(f *testing.F) {
	k := keyOf("text")
	f.Add(store.Encode(k, []byte("image")))
	f.Add(store.Encode(keyOf("other"), []byte("image")))
	f.Add([]byte("vram compiled kernel 1\n"))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		image, ok := store.Decode(data, k)
		if ok {
			assert.Equal(t, store.Encode(k, image), data, "one file for an image")
		}
		round, ok := store.Decode(store.Encode(k, data), k)
		require.True(t, ok)
		assert.True(t, bytes.Equal(data, round))
	})
}

// Two stores on a folder, each with many goroutines that read, write and damage the same entries: Get returns the image of its
// key.
func TestManyWriters(t *testing.T) {
	folder := t.TempDir()
	const keys = 4
	imageOf := func(k int) []byte { return bytes.Repeat([]byte{byte(k)}, 3000) }
	sources := []string{"a", "b", "c", "d"}
	var all sync.WaitGroup
	for range 2 {
		s := opened(t, folder)
		for worker := range 8 {
			all.Go(func() {
				for round := range 30 {
					k := (worker + round) % keys
					switch {
					case worker == 0 && round%5 == 0:
						path := filepath.Join(folder, store.Name(keyOf(sources[k])))
						_ = os.Truncate(path, 100) // or it is not there
					case worker%2 == 0:
						s.Put(keyOf(sources[k]), imageOf(k))
					default:
						if image, ok := s.Get(keyOf(sources[k])); ok {
							assert.True(t, bytes.Equal(imageOf(k), image))
						}
					}
				}
			})
		}
	}
	all.Wait()
	assert.LessOrEqual(t, len(namesIn(t, folder)), keys, "no temporary files are left")
}

// The time of use is renewed when it is older than a day.
func TestUseIsNoted(t *testing.T) {
	folder := t.TempDir()
	s := opened(t, folder)
	k := keyOf("a")
	s.Put(k, []byte("image"))
	path := filepath.Join(folder, store.Name(k))
	for _, age := range []time.Duration{time.Hour, 48 * time.Hour} {
		then := time.Now().Add(-age).Truncate(time.Second)
		require.NoError(t, os.Chtimes(path, then, then))
		_, ok := s.Get(k)
		require.True(t, ok)
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, age < 24*time.Hour, info.ModTime().Equal(then), "%v", age)
	}
}
