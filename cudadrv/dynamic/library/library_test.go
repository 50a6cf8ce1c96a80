//go:build linux && (amd64 || arm64)

package library

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	opens  = 1600 // goroutines that open a library at once: with a hundred the scheduler often moves none
	rounds = 5
)

// Each failure has its own reason while other goroutines make calls: the loader keeps it by thread.
func TestEachFailureHasItsOwnReason(t *testing.T) {
	before := runtime.GOMAXPROCS(16) // so that goroutines change threads
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	libc, err := Open("libc.so.6")
	require.NoError(t, err)
	folder := t.TempDir()
	path := func(i int) string { return filepath.Join(folder, fmt.Sprintf("lib%04d.so", i)) }
	symbol := func(i int) string { return fmt.Sprintf("no_function_%04d", i) }
	wrong := 0
	for range rounds {
		for i, err := range atOnce(func(i int) error {
			if i%2 == 0 {
				_, err := Open(path(i))
				return err
			}
			_, err := libc.Function(symbol(i))
			return err
		}) {
			wants := []string{"library: " + path(i) + ": ", "cannot open shared object file: No such file or directory"}
			if i%2 != 0 {
				wants = []string{"library: libc.so.6: ", "undefined symbol: " + symbol(i)}
			}
			for _, want := range wants {
				if err == nil || !strings.Contains(err.Error(), want) {
					wrong++
					t.Logf("opening %d: %q, without %q", i, fmt.Sprint(err), want)
					break
				}
			}
		}
	}
	assert.Zero(t, wrong, "of %d failures", rounds*opens)
}

// atOnce makes calls at the same time, and returns their results.
func atOnce(call func(i int) error) []error {
	errs := make([]error, opens)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range opens {
		all.Go(func() {
			<-start
			errs[i] = call(i)
		})
	}
	close(start)
	all.Wait()
	return errs
}
