// Package recoveredtest fails the tests of a package when a panic was recovered that none of them had planted.
package recoveredtest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-vram/vram/internal/leaks"
	"github.com/go-vram/vram/internal/recovered"
)

// Planted is a value for panic that a test means to be recovered.
func Planted(text string) error { return recovered.Planted(text) }

// Watcher keeps the panics that were not planted.
type Watcher struct {
	mu  sync.Mutex
	all []recovered.Panic
}

// Watch has a new Watcher see every panic of the process from now on.
func Watch() *Watcher {
	w := &Watcher{}
	recovered.Watch(w.see)
	return w
}

func (w *Watcher) see(p recovered.Panic) {
	if expectations.has(p) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, p)
}

// expected are texts of panics that tests provoke without a panic of their own.
type expected struct {
	mu    sync.Mutex
	texts []string
}

var expectations expected //nolint:gochecknoglobals // The whole process is watched.

// Expect says that the test provokes panics whose report contains the text: it spoils books, say, and an audit panics.
// The test must see to it itself that they come. The text is as narrow as it can be: it serves the whole process.
func Expect(tb testing.TB, text string) {
	tb.Helper()
	expectations.mu.Lock()
	defer expectations.mu.Unlock()
	expectations.texts = append(expectations.texts, text)
}

func (e *expected) has(p recovered.Panic) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.texts, func(text string) bool { return strings.Contains(p.String(), text) })
}

// Unplanted are the panics that nobody planted, in the order in which they were recovered.
func (w *Watcher) Unplanted() []recovered.Panic {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

// Run runs the tests. It returns their exit code, or 1 after it has printed the panics that no test had planted.
func Run(m *testing.M) int {
	w := Watch()
	code := m.Run()
	for _, p := range w.Unplanted() {
		fmt.Fprintf(os.Stderr, "a panic was recovered that no test had planted: %v\n%s\n", p, p.Stack)
		code = 1
	}
	return code
}

// runner runs the tests of a package, for leaks.Main.
type runner struct{ *testing.M }

// Run implements goleak.TestingM.
func (r runner) Run() int { return Run(r.M) }

// Main is the TestMain of a package whose tests must neither leak goroutines nor have hidden panics. It ends the process, after it
// has called the functions.
func Main(m *testing.M, atEnd ...func()) { leaks.Main(runner{m}, atEnd...) }
