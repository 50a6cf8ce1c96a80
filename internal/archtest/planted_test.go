package archtest

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// model is a small module without a fault that uses everything that the rules allow.
func model() fstest.MapFS {
	house := fstest.MapFS{}
	for path, text := range map[string]string{
		"go.mod":                              "module example.org/house\n\ngo 1.26\n",
		"doc.go":                              "// Package vram is the root.\npackage vram\n",
		"device.go":                           "package vram\n\nimport (\n\t\"example.org/house/cudadrv\"\n\t\"example.org/house/streams\"\n)\n\n// ErrClosed is a lower package's.\nvar ErrClosed = streams.ErrClosed\n\nvar _ cudadrv.Ptr\n",
		"house_test.go":                       "package vram\n\nimport \"sync\"\n\nvar lock sync.Mutex\n",
		"actors/doc.go":                       "// Package actors is a foundation.\npackage actors\n\nimport _ \"github.com/asynkron/protoactor-go/actor\"\n",
		"futures/doc.go":                      "// Package futures is a foundation.\npackage futures\n\nimport _ \"sync/atomic\"\n",
		"cudadrv/doc.go":                      "// Package cudadrv is a foundation.\npackage cudadrv\n\nimport \"errors\"\n\n// ErrNoDriver is a sentinel.\nvar ErrNoDriver = errors.New(\"no driver\")\n\n// Ptr is an address.\ntype Ptr uint64\n",
		"cudadrv/sim/doc.go":                  "// Package sim is a driver.\npackage sim\n\nimport (\n\t\"sync\"\n\n\t\"example.org/house/cudadrv\"\n)\n\ntype device struct {\n\tlock sync.Mutex\n\tat cudadrv.Ptr\n}\n",
		"cudadrv/gorgonia/a.go":               "//go:build linux && gorgonia\n\n// Package gorgonia is a driver.\npackage gorgonia\n\nimport \"C\"\n\nimport _ \"gorgonia.org/cu\"\n",
		"internal/heap/doc.go":                "// Package heap is pure.\npackage heap\n\nimport \"time\"\n\ntype stamp = time.Duration\n\nvar table = [2]int{1, 2} //nolint:gochecknoglobals // constant table of two\n",
		"internal/pressure/doc.go":            "// Package pressure is pure.\npackage pressure\n",
		"pool/doc.go":                         "// Package pool is a shell.\npackage pool\n\nimport (\n\t_ \"example.org/house/actors\"\n\t_ \"example.org/house/internal/pool/core\"\n)\n",
		"cudadrv/hazard/internal/core/doc.go": "// Package core is pure.\npackage core\n\nimport _ \"example.org/house/cudadrv/site\"\n",
		"cudadrv/site/doc.go":                 "// Package site notes places.\npackage site\n",
		"compute/ptx/doc.go":                  "// Package ptx is pure.\npackage ptx\n",
		"internal/pool/core/doc.go":           "// Package core is pure.\npackage core\n\nimport (\n\t_ \"example.org/house/cudadrv\"\n\t_ \"example.org/house/internal/heap\"\n)\n",
		"streams/doc.go":                      "// Package streams is a shell.\npackage streams\n\nimport (\n\t\"errors\"\n\n\t_ \"example.org/house/pool\"\n\t_ \"example.org/house/internal/stream/core\"\n)\n\n// ErrClosed is a sentinel.\nvar ErrClosed = errors.New(\"closed\")\n\n// CloseError is an error.\ntype CloseError struct{}\n\n// Error is its text.\nfunc (*CloseError) Error() string { return \"closing\" }\n\n// ErrClosing is a sentinel.\nvar ErrClosing error = &CloseError{}\n",
		"internal/stream/claims/doc.go":       "// Package claims is pure.\npackage claims\n",
		"compute/tensor/layout/doc.go":        "// Package layout is pure.\npackage layout\n",
		"compute/kernel/tune/doc.go":          "// Package tune is pure.\npackage tune\n",
		"fleet/core/doc.go":                   "// Package core is pure.\npackage core\n",
		"internal/stream/core/doc.go":         "// Package core is pure.\npackage core\n\nimport _ \"sync/atomic\"\n",
		"go.work":                             "go 1.26\n\nuse (\n\t.\n\t./cmd/vram\n)\n",
		"cmd/vram/go.mod":                     "module example.org/house/cmd/vram\n",
		"cmd/vram/main.go":                    "// Command vram is a program.\npackage main\n\nimport (\n\t_ \"embed\"\n\n\t_ \"example.org/house\"\n)\n\n//go:embed trace.csv\nvar trace string\n\nfunc main() {}\n",
		"tools/go.mod":                        "module example.org/house/tools\n",
		"tools/main.go":                       "package main\n\nvar anything int\n",
		"testdata/broken.go":                  "this is no Go",
	} {
		house[path] = &fstest.MapFile{Data: []byte(text)}
	}
	return house
}

func TestModelHouseIsClean(t *testing.T) {
	t.Parallel()
	house, err := loadTree(model())
	require.NoError(t, err)
	require.Equal(t, "example.org/house", house.module)
	for _, r := range houseRules() {
		assert.Empty(t, r.check(house), r.name)
	}
}

// A planted fault is one file that breaks one rule.
type planted struct {
	rule string
	path string
	text string // "" removes the file
	want finding
}

func plantedFaults() []planted {
	fine := strings.Repeat("// A line.\n", 999)
	return []planted{
		{
			"import direction", "pool/up.go", "package pool\n\nimport _ \"example.org/house/streams\"\n",
			finding{"pool/up.go:3", "pool imports streams, which is not below it"},
		},
		{
			"import direction", "actors/aside.go", "package actors\n\nimport _ \"example.org/house/futures\"\n",
			finding{"actors/aside.go:3", "nor on another foundation"},
		},
		{
			"import direction", "internal/heap/up.go", "package heap\n\nimport _ \"example.org/house\"\n",
			finding{"internal/heap/up.go:3", "internal/heap imports the root"},
		},
		{
			"import direction", "attic/doc.go", "// Package attic is lost.\npackage attic\n",
			finding{"attic", "no place in the table of layers"},
		},
		{
			"root without gorgonia", "driver.go", "package vram\n\nimport _ \"example.org/house/cudadrv/gorgonia\"\n",
			finding{".", "vram > cudadrv/gorgonia"},
		},
		{
			"root without gorgonia", "cudadrv/all.go", "package cudadrv\n\nimport _ \"example.org/house/cudadrv/gorgonia\"\n",
			finding{".", "vram > cudadrv > cudadrv/gorgonia"},
		},
		{
			"foreign code in its place", "streams/a.go", "package streams\n\nimport _ \"github.com/asynkron/protoactor-go/actor\"\n",
			finding{"streams/a.go:3", "only actors may"},
		},
		{
			"foreign code in its place", "batch/a.go", "// Package batch plans.\npackage batch\n\nimport _ \"golang.org/x/sync/errgroup\"\n",
			finding{"batch/a.go:4", "nobody may"},
		},
		{
			"cgo under its tag", "cudadrv/sim/c.go", "package sim\n\nimport \"C\"\n",
			finding{"cudadrv/sim/c.go:3", "without the tag gorgonia"},
		},
		{
			"cgo under its tag", "cudadrv/gorgonia/c.go", "//go:build gorgonia || linux\n\npackage gorgonia\n\nimport \"C\"\n",
			finding{"cudadrv/gorgonia/c.go:5", "without the tag gorgonia"},
		},
		{
			"cgo under its tag", "cudadrv/gorgonia/c.go", "//go:build !gorgonia\n\npackage gorgonia\n\nimport \"C\"\n",
			finding{"cudadrv/gorgonia/c.go:5", "without the tag gorgonia"},
		},
		{
			"no shared locks", "futures/a.go", "package futures\n\nimport \"sync\"\n\ntype promise struct{ sync.Mutex }\n",
			finding{"futures/a.go:5", "a lock of the package sync"},
		},
		{
			"no shared locks", "internal/sizeclass/doc.go", "// Package sizeclass rounds.\npackage sizeclass\n\nimport other \"sync\"\n\ntype cache struct{ spare *other.Pool }\n",
			finding{"internal/sizeclass/doc.go:6", "a lock of the package sync"},
		},
		{
			"no shared locks", "a.go", "package vram\n\nimport . \"sync\"\n\ntype cache struct{ Map }\n",
			finding{"a.go:3", "a lock of the package sync"},
		},
		{
			"no init and no globals", "actors/a.go", "package actors\n\nfunc init() {}\n",
			finding{"actors/a.go:3", "an init function"},
		},
		{ // the import of a driver may give it a name, and do nothing else
			"no init and no globals", "cudadrv/sim/a.go",
			"package sim\n\nimport \"github.com/go-vram/vram/cudadrv\"\n\nfunc init() {\n\tcudadrv.Register(\"a\", nil)\n\tcudadrv.Names()\n}\n",
			finding{"cudadrv/sim/a.go:5", "an init function"},
		},
		{ // and only a driver's
			"no init and no globals", "pool/a.go",
			"package pool\n\nimport \"github.com/go-vram/vram/cudadrv\"\n\nfunc init() { cudadrv.Register(\"a\", nil) }\n",
			finding{"pool/a.go:5", "an init function"},
		},
		{
			"no init and no globals", "pool/a.go", "package pool\n\nvar limitBytes = 1\n",
			finding{"pool/a.go:3", "limitBytes is no sentinel"},
		},
		{
			"no init and no globals", "pool/a.go", "package pool\n\nvar errLast error\n",
			finding{"pool/a.go:3", "errLast is no sentinel"},
		},
		{
			"no init and no globals", "pool/a.go", "package pool\n\nvar errLast error = &last{}\n",
			finding{"pool/a.go:3", "errLast is no sentinel"},
		},
		{
			"no init and no globals", "pool/a.go", "package pool\n\nvar errLast error = &LastError{Bytes: 1}\n",
			finding{"pool/a.go:3", "errLast is no sentinel"},
		},
		{
			"no init and no globals", "pool/a.go", "package pool\n\nvar table = []int{1} //nolint:gochecknoglobals // it is handy\n",
			finding{"pool/a.go:3", "table is no sentinel"},
		},
		{
			"no init and no globals", "pool/a.go", "package pool\n\nimport \"regexp\"\n\nvar a, b = regexp.MustCompile(`a`), regexp.MustCompile(text)\n",
			finding{"pool/a.go:5", "b is no sentinel"},
		},
		{
			"pure cores", "internal/pool/core/a.go", "package core\n\nimport _ \"context\"\n",
			finding{"internal/pool/core/a.go:3", "the core internal/pool/core uses context"},
		},
		{
			"pure cores", "internal/pool/core/a.go", "package core\n\nimport _ \"sync/atomic\"\n",
			finding{"internal/pool/core/a.go:3", "the core internal/pool/core uses sync/atomic"},
		},
		{
			"pure cores", "internal/stream/core/a.go", "package core\n\nimport \"sync\"\n\nvar _ sync.Once\n",
			finding{"internal/stream/core/a.go:3", "the core internal/stream/core uses sync"},
		},
		{
			"pure cores", "internal/stream/core/a.go", "package core\n\nimport \"time\"\n\nfunc now() int64 { return time.Now().Unix() }\n",
			finding{"internal/stream/core/a.go:5", "looks at the clock"},
		},
		{
			"pure cores", "internal/pool/core/a.go", "package core\n\nfunc start() { go start() }\n",
			finding{"internal/pool/core/a.go:3", "a go statement"},
		},
		{
			"pure cores", "internal/pool/core/a.go", "package core\n\ntype mail chan int\n",
			finding{"internal/pool/core/a.go:3", "a channel"},
		},
		{
			"pure cores", "internal/pool/core/a.go", "package core\n\nfunc wait[M interface{ ~chan int }](m M) { <-m }\n",
			finding{"internal/pool/core/a.go:3", "a receive"},
		},
		{
			"pure cores", "internal/pool/core/a.go", "package core\n\nimport _ \"example.org/house/cudadrv/sim\"\n",
			finding{"internal/pool/core", "reaches cudadrv/sim: internal/pool/core > cudadrv/sim"},
		},
		{
			"pure cores", "internal/heap/a.go", "package heap\n\nimport _ \"example.org/house/actors\"\n",
			finding{"internal/pool/core", "reaches actors: internal/pool/core > internal/heap > actors"},
		},
		{
			"pure cores", "internal/pool/core/doc.go", "",
			finding{"internal/pool/core", "there is no such core"},
		},
		{
			"one step to change an atomic", "pool/a.go", "package pool\n\nfunc (p *count) up() {\n\tp.n.Store(p.n.Load() + (-1))\n}\n",
			finding{"pool/a.go:4", "p.n is loaded to be stored"},
		},
		{
			"package comments", "internal/heap/doc.go", "package heap\n",
			finding{"internal/heap", "the package has no comment"},
		},
		{
			"package comments", "internal/heap/doc.go", "// Heaps are good.\npackage heap\n",
			finding{"internal/heap/doc.go:1", `does not begin with "Package heap "`},
		},
		{
			"exported names", "streams/a.go", "package streams\n\nfunc Open() {}\n",
			finding{"streams/a.go:3", "Open is exported and has no comment"},
		},
		{
			"exported names", "batch/a.go", "// Package batch plans.\npackage batch\n\n// Plan is one.\ntype Plan[T any] struct{}\n\nfunc (p *Plan[T]) Add() {}\n",
			finding{"batch/a.go:7", "Add is exported and has no comment"},
		},
		{
			"exported names", "pool/a.go", "package pool\n\n// Client is told.\ntype Client interface {\n\t// Granted says so.\n\tGranted()\n\n\tDenied()\n}\n",
			finding{"pool/a.go:8", "Denied is exported and has no comment"},
		},
		{
			"exported names", "device.go", "package vram\n\nconst Limit = 1\n",
			finding{"device.go:3", "Limit is exported and has no comment"},
		},
		{
			"root files", "more.go", "package vram\n",
			finding{"more.go", "the root has ten files and two tests; tests of the exported interface belong to internal/acceptance"},
		},
		{
			"laboratory", "warm/a_test.go", "package warm\n\nimport _ \"example.org/house/lab/replay\"\n",
			finding{"warm/a_test.go:3", "warm imports lab/replay"},
		},
		{
			"file length", "pool/long.go", "package pool\n\n" + fine,
			finding{"pool/long.go", "1001 lines, at most 1000"},
		},
		{
			"file length", "cmd/vram/long.go", "package main\n\n" + fine, // in another module
			finding{"cmd/vram/long.go", "1001 lines, at most 1000"},
		},
	}
}

// TestEachRuleFindsItsFault plants one fault at a time.
func TestEachRuleFindsItsFault(t *testing.T) {
	t.Parallel()
	rules := map[string]rule{}
	shown := map[string]bool{}
	for _, r := range houseRules() {
		rules[r.name] = r
	}
	for _, p := range plantedFaults() {
		require.Contains(t, rules, p.rule)
		found := findingsOf(t, rules[p.rule], p)
		shown[p.rule] = true
		assert.True(t, containsFinding(found, p.want), "%s: planted in %s:\n%s\nfound %v", p.rule, p.path, p.text, found)
	}
	for name := range rules {
		assert.True(t, shown[name], "no planted fault shows that the rule %q can fail", name)
	}
}

// findingsOf checks the rule on the model with the fault.
func findingsOf(t *testing.T, r rule, p planted) []finding {
	t.Helper()
	house := model()
	if p.text == "" {
		delete(house, p.path)
	} else {
		house[p.path] = &fstest.MapFile{Data: []byte(p.text)}
	}
	read, err := loadTree(house)
	require.NoError(t, err, p.path)
	return r.check(read)
}

func containsFinding(found []finding, want finding) bool {
	for _, f := range found {
		if f.place == want.place && strings.Contains(f.what, want.what) {
			return true
		}
	}
	return false
}

func TestLoadTreeRefusesWhatIsNoModule(t *testing.T) {
	t.Parallel()
	_, err := loadTree(fstest.MapFS{})
	require.Error(t, err)
	_, err = loadTree(fstest.MapFS{"go.mod": {Data: []byte("go 1.26\n")}})
	require.ErrorContains(t, err, "names no module")
	house := model()
	house["pool/broken.go"] = &fstest.MapFile{Data: []byte("package")}
	_, err = loadTree(house)
	require.ErrorContains(t, err, "pool/broken.go")
}
