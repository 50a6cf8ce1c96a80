package store_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/store"
)

// The entries of the test with several processes, and the bound of their folder: it holds a third of them.
const (
	sharedKeys      = 24
	sharedBytes     = 3000
	sharedLimit     = sharedKeys * (sharedBytes + 400) / 3
	processVariable = "VRAM_TEST_STORE_PROCESS" // the seed and the folder of a process that the test starts
	statsMark       = "STATS "
)

func sharedKey(k int) store.Key { return keyOf("kernel " + strconv.Itoa(k)) }

// sharedImage is the image of a key; each Put of it is the same.
func sharedImage(k int) []byte { return bytes.Repeat([]byte{byte(k), byte(k + 100)}, sharedBytes/2) }

// Several processes write, read, evict and damage the entries of one folder at once: Get returns the image of its key, no
// process fails, and in the end the folder is within its bound and has no unfinished files.
func TestManyProcesses(t *testing.T) {
	if what := os.Getenv(processVariable); what != "" {
		seed, folder, _ := strings.Cut(what, " ")
		useShared(t, seed, folder)
		return
	}
	binary, err := os.Executable()
	require.NoError(t, err)
	folder := filepath.Join(t.TempDir(), "kernels")
	var processes []*exec.Cmd
	var outputs []*bytes.Buffer
	for n := range 4 {
		c := exec.CommandContext(t.Context(), binary, "-test.run=^TestManyProcesses$", "-test.v")
		c.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", processVariable, n, folder))
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		require.NoError(t, c.Start())
		processes, outputs = append(processes, c), append(outputs, &out)
	}
	var all store.Stats
	for n, c := range processes {
		require.NoError(t, c.Wait(), outputs[n].String())
		_, rest, found := strings.Cut(outputs[n].String(), statsMark)
		require.True(t, found, outputs[n].String())
		var one store.Stats
		require.NoError(t, json.NewDecoder(strings.NewReader(rest)).Decode(&one))
		assert.Empty(t, one.Disabled)
		assert.Zero(t, one.Lost, "an image is lost by no other process")
		all.Hits += one.Hits
		all.Misses += one.Misses
		all.Damaged += one.Damaged
		all.Evicted += one.Evicted
	}
	assert.Positive(t, all.Hits)
	assert.Positive(t, all.Misses)
	assert.Positive(t, all.Damaged)
	assert.Positive(t, all.Evicted)

	t.Setenv(store.Variable, "")
	s := store.Open(store.Config{Folder: folder, LimitBytes: sharedLimit})
	s.Put(sharedKey(0), sharedImage(0)) // counts the folder
	known := map[string]int{}
	for k := range sharedKeys {
		known[store.Name(sharedKey(k))] = k
	}
	var held int64
	for _, name := range namesIn(t, folder) {
		k, isEntry := known[name]
		require.True(t, isEntry, "%s is no entry", name)
		file, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		held += int64(len(file))
		if image, ok := store.Decode(file, sharedKey(k)); ok {
			assert.Equal(t, sharedImage(k), image)
		}
	}
	assert.LessOrEqual(t, held, int64(sharedLimit))
}

// useShared is a process that uses the folder.
func useShared(t *testing.T, seed, folder string) {
	t.Helper()
	number, err := strconv.ParseUint(seed, 10, 64)
	require.NoError(t, err)
	rnd := rand.New(rand.NewPCG(number, 5)) //nolint:gosec // a test
	t.Setenv(store.Variable, "")
	s := store.Open(store.Config{Folder: folder, LimitBytes: sharedLimit})
	for range 600 {
		k := rnd.IntN(sharedKeys)
		path := filepath.Join(folder, store.Name(sharedKey(k)))
		switch rnd.IntN(10) {
		case 0:
			_ = os.Truncate(path, int64(rnd.IntN(200))) // or it is not there
		case 1:
			if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
				_, _ = f.WriteAt([]byte("damage"), int64(rnd.IntN(sharedBytes)))
				_ = f.Close()
			}
		case 2:
			_ = os.Remove(path)
		case 3, 4, 5:
			s.Put(sharedKey(k), sharedImage(k))
		default:
			if image, ok := s.Get(sharedKey(k)); ok {
				require.True(t, bytes.Equal(sharedImage(k), image), "the image of %d is another one", k)
			}
		}
	}
	text, err := json.Marshal(s.Stats())
	require.NoError(t, err)
	fmt.Println(statsMark + string(text))
}
