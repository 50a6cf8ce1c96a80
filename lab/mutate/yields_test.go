package mutate

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/lab/trial"
)

// A package with lost updates, and with atomic variables in every kind of expression.
const (
	losing = `package store

import (
	"sync"
	"sync/atomic"
)

type node struct {
	next  atomic.Pointer[node]
	count atomic.Int64
}

// add loses what another goroutine adds at the same time.
func (n *node) add() { n.count.Store(n.count.Load() + 1) }

// locked gives its lock back between the look and the change.
type locked struct {
	sync.RWMutex
	count int
}

func (l *locked) add() {
	l.RLock()
	count := l.count
	l.RUnlock()
	l.Lock()
	defer l.Unlock()
	l.count = count + 1
}

func all(n *node, many []node, p *atomic.Int64, of func() *node) int64 {
	load := n.count.Load
	var own atomic.Bool
	own.CompareAndSwap(false, many[0].next.Load() == nil)
	defer func() { own.Store(own.Load()) }()
	defer own.Load()
	if next := (*n).next.Load(); next != nil {
		return next.next.Load().count.Load()
	}
	return load() + p.Load() + of().count.Add(1) + many[len(many)-1].count.Swap(2)
}
`
	losingTest = `package store

import (
	"sync"
	"testing"
)

func TestAdd(t *testing.T) {
	var n node
	var l locked
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				n.add()
				l.add()
			}
		})
	}
	all.Wait()
	if got := n.count.Load(); got != 4000 {
		t.Error("lost:", 4000-got)
	}
	if l.count != 4000 {
		t.Error("lost in spite of a lock:", 4000-l.count)
	}
	if got := all2(); got != 2+1+0+1 {
		t.Error("another value:", got)
	}
}

func all2() int64 {
	n, of, many := new(node), new(node), make([]node, 2)
	n.count.Store(2)
	return all(n, many, &many[0].count, func() *node { return of }) + many[1].count.Load() - 1
}
`
)

// One thread runs a goroutine until it waits, so a lost update is never seen there; with yields it is. All else computes as before.
func TestYieldsLetOthersRun(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GOWORK", "off")
	for name, text := range map[string]string{"go.mod": "module losing\n\ngo 1.26\n", "store/store.go": losing, "store/store_test.go": losingTest} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	p, err := Load(t.Context(), dir, "./store")
	require.NoError(t, err)
	run := func(texts map[string]string) trial.Outcome {
		folder := t.TempDir()
		overlay, err := trial.Overlay(folder, texts)
		require.NoError(t, err)
		tests, err := trial.Build(t.Context(), dir, "store", overlay, filepath.Join(folder, "store.test"))
		require.NoError(t, err)
		return tests.Run(context.Background(), "TestAdd", time.Minute, []string{"GOMAXPROCS=1"})
	}
	out := run(nil)
	assert.Equal(t, trial.Passed, out.End, out.Said)
	texts, err := p.Yields(nil)
	require.NoError(t, err)
	assert.Len(t, texts, 2, "the file and yieldBefore")
	out = run(texts)
	assert.Equal(t, "TestAdd", out.Test, out.Said)
	assert.Contains(t, out.Said, "lost:")
	assert.Contains(t, out.Said, "lost in spite of a lock:")
	assert.NotContains(t, out.Said, "another value:")
}

// The yields of a file with mutants stand in the texts of the mutants.
func TestYieldsOfMutants(t *testing.T) {
	p, mutants := loadHouse(t, "testdata/house")
	s, err := p.Schemata(mutants)
	require.NoError(t, err)
	texts, err := p.Yields(s.Texts)
	require.NoError(t, err)
	for path, text := range s.Texts {
		if filepath.Base(path) == "store.go" {
			assert.NotContains(t, text, "yieldBefore")
			assert.Contains(t, texts[path], "yieldBefore")
			assert.Contains(t, texts[path], "mutantOn")
		}
	}
	overlay, err := trial.Overlay(t.TempDir(), texts)
	require.NoError(t, err)
	_, err = trial.Go(t.Context(), p.root, "build", "-overlay="+overlay, "./store")
	require.NoError(t, err)
}
