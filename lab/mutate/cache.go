package mutate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Cache keeps results in a file, and says which of them are still valid.
type Cache struct {
	root    string
	path    string
	users   func(dir string) []string
	effort  time.Duration
	entries map[string]entry
	tests   map[string]testFiles // of a folder
}

// entry is a result.
type entry struct {
	Hash     string // of the function
	Verdict  Verdict
	Test     string   `json:",omitempty"` // that killed
	Programs []string `json:",omitempty"` // whose tests a survivor passed: see programsOf
}

// testFiles is the tests of a package.
type testFiles struct {
	hash  string
	names map[string]bool
}

// OpenCache reads a cache; a file that does not exist is empty. Users and effort are the Runner's: a survivor
// is valid for the same ones only.
func OpenCache(root, path string, users func(dir string) []string, effort time.Duration) (*Cache, error) {
	c := &Cache{root: root, path: path, users: users, effort: effort, entries: map[string]entry{}, tests: map[string]testFiles{}}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(text, &c.entries); err != nil {
		return nil, fmt.Errorf("mutate: %s: %w", path, err)
	}
	return c, nil
}

// Valid returns the result of a mutant if neither its function changed nor the tests that decided.
func (c *Cache) Valid(m *Mutant) (Result, bool) {
	e, ok := c.entries[m.Key()]
	if !ok || e.Hash != m.Hash {
		return Result{}, false
	}
	switch e.Verdict {
	case Killed, Hung:
		ok = c.exist(e.Test)
	case Survived, Unreached:
		ok = !slices.ContainsFunc(c.programsOf(m.Package), func(p string) bool { return !slices.Contains(e.Programs, p) })
	case Invalid, Equivalent, Skipped:
		ok = false
	}
	return Result{Mutant: m, Verdict: e.Verdict, Test: e.Test, Cached: true}, ok
}

// survived returns the earlier result of a mutant whose function is the same: whether a test reaches it, and which of the programs that
// run for it, by their folders, it has passed.
func (c *Cache) survived(m *Mutant) (reached bool, passed map[string]bool) {
	e, ok := c.entries[m.Key()]
	if !ok || e.Hash != m.Hash || e.Verdict != Survived && e.Verdict != Unreached {
		return false, nil
	}
	passed = map[string]bool{}
	for _, p := range c.programsOf(m.Package) {
		dir, _, _ := strings.Cut(p, " ")
		passed[dir] = slices.Contains(e.Programs, p)
	}
	return e.Verdict == Survived, passed
}

// Put keeps a result.
func (c *Cache) Put(r Result) {
	e := entry{Hash: r.Mutant.Hash, Verdict: r.Verdict, Test: r.Test}
	switch r.Verdict {
	case Invalid, Equivalent, Skipped:
		return
	case Survived, Unreached:
		e.Programs = c.programsOf(r.Mutant.Package)
	case Killed, Hung:
	}
	c.entries[r.Mutant.Key()] = e
}

// Save writes the file.
func (c *Cache) Save() error {
	text, err := json.MarshalIndent(c.entries, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o750); err != nil {
		return err
	}
	return os.WriteFile(c.path, text, 0o600)
}

// exist reports whether tests that killed a mutant exist: "internal/heap:TestBins,TestRuns/one".
func (c *Cache) exist(tests string) bool {
	dir, names, _ := strings.Cut(tests, testSeparator)
	of := c.read(dir).names
	return !slices.ContainsFunc(strings.Split(names, ","), func(name string) bool {
		name, _, _ = strings.Cut(name, "/")
		return !of[name]
	})
}

// programsOf names the programs that run for a package: the folder, the hash of its tests, and the effort if it is another's.
func (c *Cache) programsOf(dir string) []string {
	all := []string{dir + " " + c.read(dir).hash}
	for _, of := range c.users(dir) {
		all = append(all, fmt.Sprintf("%s %s %v", of, c.read(of).hash, c.effort))
	}
	return all
}

// read reads the tests of a folder, and its testdata.
func (c *Cache) read(dir string) testFiles {
	if of, ok := c.tests[dir]; ok {
		return of
	}
	of := testFiles{names: map[string]bool{}}
	folder := filepath.Join(c.root, filepath.FromSlash(dir))
	declaresTest := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
	var texts []string
	add := func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			text = []byte(time.Now().String()) // no result is valid
		}
		texts = append(texts, strings.TrimPrefix(path, folder), string(text))
		if strings.HasSuffix(path, "_test.go") {
			for _, found := range declaresTest.FindAllSubmatch(text, -1) {
				of.names[string(found[1])] = true
			}
		}
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*_test.go")) // no such pattern is malformed
	for _, path := range files {
		add(path)
	}
	_ = filepath.WalkDir(filepath.Join(folder, "testdata"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			add(path)
		}
		return nil // most packages have no such folder
	})
	of.hash = hashOf(texts...)
	c.tests[dir] = of
	return of
}
