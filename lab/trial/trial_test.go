package trial

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	source = "package p\n\nfunc One() int { return 1 }\n"
	tests  = `package p

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

func TestOne(t *testing.T) {
	t.Run("part", func(t *testing.T) {
		if One() != 1 {
			t.Error("--- FAIL: TestOther (said only)")
		}
	})
}

func TestExit(*testing.T) { os.Exit(3) }

func TestHang(*testing.T) { select {} }

func TestEnv(t *testing.T) {
	if os.Getenv("TRIAL") == "" || !testing.Short() {
		t.Error()
	}
}

func TestReserve(t *testing.T) {
	if _, err := syscall.Mmap(-1, 0, 64<<30, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE); err != nil {
		t.Error(err)
	}
}

func TestAllocate(t *testing.T) {
	if _, err := syscall.Mmap(-1, 0, 64<<30, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE); err != nil {
		t.Error(err)
	}
}

func TestLeave(t *testing.T) {
	left := exec.Command("sleep", "1000")
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Println("left", left.Process.Pid)
	os.Exit(3)
}

func Example() {
	fmt.Println(One())
	// Output: 1
}

func FuzzOne(*testing.F) {}

func BenchmarkOne(*testing.B) {}
`
)

// module writes a module of two packages, p with tests and q without.
func module(t *testing.T) (root string) {
	t.Helper()
	t.Setenv("GOWORK", "off")
	root = t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/small\n\ngo 1.26\n", "p/p.go": source, "p/p_test.go": tests, "q/q.go": "package q\n",
	} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return root
}

// Each end of tests is told apart, and a failed test is named.
func TestRun(t *testing.T) {
	root := module(t)
	overlay, err := Overlay(t.TempDir(), nil)
	require.NoError(t, err)
	p, err := Build(t.Context(), root, "p", overlay, filepath.Join(t.TempDir(), "p.test"))
	require.NoError(t, err)
	assert.False(t, p.Searches)
	names, err := p.List(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"TestOne", "TestExit", "TestHang", "TestEnv", "TestReserve", "TestAllocate", "TestLeave", "FuzzOne", "Example"}, names)
	for _, want := range []struct {
		pattern string
		end     End
		test    string
		said    string
	}{
		{"^TestOne$|^Example$", Passed, "", "PASS"},
		{"^TestExit$", Failed, "", "exit status 3"},
		{"^TestHang$", Expired, "", "timed out"},
		{"^TestEnv$", Failed, "TestEnv", ""},
		{"^TestReserve$", Passed, "", ""},
		{"^TestAllocate$", Failed, "TestAllocate", "cannot allocate memory"},
		{"^TestNothing$", Passed, "", "no tests to run"},
	} {
		limit := time.Minute
		if want.end == Expired {
			limit = time.Second
		}
		out := p.Run(t.Context(), want.pattern, limit, nil)
		assert.Equal(t, want.end, out.End, "%s\n%s", want.pattern, out.Said)
		assert.Equal(t, want.test, out.Test, want.pattern)
		assert.Contains(t, out.Said, want.said)
	}
	assert.Equal(t, Passed, p.Run(t.Context(), "^TestEnv$", time.Minute, []string{"TRIAL=1"}).End)

	// Processes that a test has started end with it.
	_, said, _ := strings.Cut(p.Run(t.Context(), "^TestLeave$", time.Minute, nil).Said, "left ")
	pid, _, _ := strings.Cut(said, "\n")
	require.NotEmpty(t, pid)
	require.Eventually(t, func() bool {
		command, err := os.ReadFile("/proc/" + pid + "/cmdline")
		return err != nil || len(command) == 0 // gone, or not waited for yet
	}, time.Minute, time.Millisecond)
}

// Files of an overlay are built instead of those in the tree.
func TestOverlay(t *testing.T) {
	root := module(t)
	changed := "package p\n\nfunc One() int { return 2 }\n"
	overlay, err := Overlay(t.TempDir(), map[string]string{filepath.Join(root, "p/p.go"): changed})
	require.NoError(t, err)
	p, err := Build(t.Context(), root, "p", overlay, filepath.Join(t.TempDir(), "p.test"))
	require.NoError(t, err)
	out := p.Run(t.Context(), "^TestOne$", time.Minute, nil)
	assert.Equal(t, Failed, out.End)
	assert.Equal(t, "TestOne/part", out.Test, "the innermost, and no test that the output mentions")
	q, err := Build(t.Context(), root, "q", overlay, filepath.Join(t.TempDir(), "q.test"))
	require.NoError(t, err)
	names, err := q.List(t.Context())
	require.NoError(t, err)
	assert.Empty(t, names)
	_, err = Build(t.Context(), root, "none", overlay, filepath.Join(t.TempDir(), "none.test"))
	require.ErrorContains(t, err, "none")
}

// Changed files are those that differ from a commit, and new ones that git does not ignore.
func TestChanged(t *testing.T) {
	root := module(t)
	git := func(args ...string) {
		t.Helper()
		_, err := command(t.Context(), root, "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		require.NoError(t, err)
	}
	git("init", "--quiet")
	git("add", ".")
	git("commit", "--quiet", "--message=one")
	files, err := Changed(t.Context(), root, "HEAD")
	require.NoError(t, err)
	assert.Empty(t, files)
	for name, text := range map[string]string{".gitignore": "ignored.go\n", "ignored.go": "", "p/p.go": "package p\n", "q/new.go": "package q\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	files, err = Changed(t.Context(), root, "HEAD")
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{".gitignore", "p/p.go", "q/new.go"}, files)
	_, err = Changed(t.Context(), root, "nothing")
	require.Error(t, err)
}

// Each calls the function once for each number, and no more than so many at a time.
func TestEach(t *testing.T) {
	const count = 50
	var seen [count]atomic.Int32
	var working, most atomic.Int32
	Each(3, count, func(i int) {
		now := working.Add(1)
		for high := most.Load(); now > high && !most.CompareAndSwap(high, now); high = most.Load() {
		}
		seen[i].Add(1)
		working.Add(-1)
	})
	assert.LessOrEqual(t, most.Load(), int32(3))
	for i := range seen {
		assert.EqualValues(t, 1, seen[i].Load())
	}
	Each(0, 1, func(i int) { seen[i].Add(1) })
	assert.EqualValues(t, 2, seen[0].Load())
}
