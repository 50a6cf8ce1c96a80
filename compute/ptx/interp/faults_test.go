package interp_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata/faults.txt again: run all tests, with -short")

const faultsFile = "testdata/faults.txt"

// faults has the errors of kernels, by the test and a hash of the text: of testdata, and of this run.
var faults = struct {
	sync.Mutex
	now map[string]string
	was func() map[string]string
}{now: map[string]string{}, was: sync.OnceValue(readFaults)}

func readFaults() map[string]string {
	all := map[string]string{}
	text, err := os.ReadFile(faultsFile)
	if err != nil {
		return all
	}
	for line := range strings.Lines(string(text)) {
		key, fault, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		all[key] = fault
	}
	return all
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if *update && code == 0 && testing.Short() {
		var text strings.Builder
		for _, key := range slices.Sorted(maps.Keys(faults.now)) {
			fmt.Fprintf(&text, "%s: %s\n", key, faults.now[key])
		}
		if err := os.WriteFile(faultsFile, []byte(text.String()), 0o600); err != nil {
			panic(err)
		}
	}
	os.Exit(code)
}

// kept requires that the error of a kernel, which its text and the arguments of its launch name, is the one that testdata has: its
// kind, its place, the access, the detail and the other place. Of random kernels testdata has the faults of the short form.
func kept(t *testing.T, err error, kernel ...any) {
	t.Helper()
	key := fmt.Sprintf("%s %x", t.Name(), sha256.Sum256(fmt.Appendln(nil, kernel...)))[:len(t.Name())+13]
	text := strings.ReplaceAll(fmt.Sprint(err), "\n", "\\n")
	if *update {
		faults.Lock()
		defer faults.Unlock()
		if before, found := faults.now[key]; found {
			require.Equal(t, before, text, "the same each time")
		}
		faults.now[key] = text
		return
	}
	was, found := faults.was()[key]
	if found {
		assert.Equal(t, was, text)
	} else if testing.Short() {
		assert.Fail(t, "unknown", "%s has nothing for %s: %s", faultsFile, key, text)
	}
}
