package site_test

import (
	"io/fs"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/site"
)

//go:noinline
func here() site.Stack { return site.Here(0) }

//go:noinline
func above() site.Stack { return site.Here(1) }

func TestAStackNamesItsPlace(t *testing.T) {
	s := here()
	assert.True(t, s.Known())
	assert.True(t, strings.HasPrefix(s.String(), "site_test.here (stack_test.go:"), s.String())
	assert.Contains(t, s.Trace("  "), "\n  site_test.TestAStackNamesItsPlace (stack_test.go:")
	assert.NotContains(t, s.Trace(""), "goexit")
	assert.True(t, strings.HasPrefix(above().String(), "site_test.TestAStackNamesItsPlace ("), above().String())
}

//go:noinline
func deep(skip int) site.Stack { return site.Deep(skip) }

// Deep skips as many calls as Here, and has more of the rest.
func TestDeepNamesItsPlace(t *testing.T) {
	assert.True(t, strings.HasPrefix(deep(0).String(), "site_test.deep (stack_test.go:"), deep(0).String())
	assert.True(t, strings.HasPrefix(deep(1).String(), "site_test.TestDeepNamesItsPlace (stack_test.go:"), deep(1).String())
	var nested func(calls int) (here, deep site.Stack)
	nested = func(calls int) (site.Stack, site.Stack) {
		if calls == 0 {
			return site.Here(0), site.Deep(0)
		}
		return nested(calls - 1)
	}
	some, all := nested(100)
	assert.Len(t, all, 2*len(some))
	assert.Equal(t, some[1:], all[1:len(some)], "the same calls but for the line")
}

// One call is enough to know a place.
func TestAPlaceOfOneCall(t *testing.T) {
	s := here()[:1]
	assert.True(t, s.Known())
	text, err := s.MarshalText()
	require.NoError(t, err)
	assert.Equal(t, s.String(), string(text))
	assert.True(t, strings.HasPrefix(s.String(), "site_test.here (stack_test.go:"), s.String())
}

func TestAnUnknownPlace(t *testing.T) {
	var s site.Stack
	assert.False(t, s.Known())
	assert.Equal(t, "an unknown place", s.String())
	assert.Empty(t, s.Trace("  "))
}

// The allocator's own calls are left out, but not the calls of its tests and programs.
func TestFramesBeginWithTheProgram(t *testing.T) {
	frames := here().Frames()
	require.NotEmpty(t, frames)
	for function, isOurs := range map[string]bool{
		"github.com/go-vram/vram.(*Device).NewStream":                       true,
		"github.com/go-vram/vram/streams.(*Stream).Alloc":                   true,
		"github.com/go-vram/vram/cudadrv/hazard.(*Device).Kernel":           true,
		"github.com/go-vram/vram/vramtest.(*Device).Launch":                 true,
		"github.com/go-vram/vram/internal/stream/magazine.(*Slot).freeSlow": true,
		"github.com/go-vram/vram/examples/pipeline.main":                    false,
		"github.com/go-vram/vram_test.TestX":                                false,
		"github.com/go-vram/vramous.F":                                      false,
		"example.org/streams.F":                                             false,
		"main.main":                                                         false,
	} {
		assert.Equal(t, isOurs, site.Ours(runtime.Frame{Function: function, File: "x.go"}), function)
	}
	assert.False(t, site.Ours(runtime.Frame{Function: "github.com/go-vram/vram/streams.F", File: "x_test.go"}))
}

// All packages of the repository are the allocator's own, but the packages of its programs. Calls of its tests are the program's.
func TestPackagesAreOurs(t *testing.T) {
	const root = "../.."
	programs, ours := map[string]int{}, map[string]int{} // packages by folder
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case filepath.Ext(path) != ".go":
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		function := strings.TrimSuffix("github.com/go-vram/vram/"+filepath.ToSlash(rel), "/.") + ".(*T).F"
		folder, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		if site.Ours(runtime.Frame{Function: function, File: path}) {
			ours[folder]++
		} else if !strings.HasSuffix(path, "_test.go") {
			programs[folder]++
		}
		return nil
	}))
	assert.Equal(t, []string{"cmd", "examples", "lab"}, slices.Sorted(maps.Keys(programs)))
	for folder := range programs {
		assert.Zero(t, ours[folder], folder)
	}
	for _, folder := range []string{".", "actors", "bridge", "cuda", "fleet", "host", "internal", "monitor", "warm"} {
		assert.Positive(t, ours[folder], folder)
	}
}

// An exported function can be the first of a goroutine that the program starts; the functions that it calls cannot.
func TestExportedFunctions(t *testing.T) {
	for function, want := range map[string]bool{
		"github.com/go-vram/vram/streams.(*Stream).AllocFor":       true,
		"github.com/go-vram/vram/streams.Buffer.Free":              true,
		"github.com/go-vram/vram/futures.Then[...]":                true,
		"github.com/go-vram/vram/futures.A":                        true,
		"github.com/go-vram/vram/futures.Z.A":                      true,
		"github.com/go-vram/vram/futures.a":                        false,
		"github.com/go-vram/vram/futures._":                        false,
		"github.com/go-vram/vram/futures.Future[...].Await":        true,
		"github.com/go-vram/vram/streams.(*Stream).AllocFor.func1": false,
		"github.com/go-vram/vram/streams.(*Stream).allocNow":       false,
		"github.com/go-vram/vram/streams.(*freedWatcher).Freed":    false,
		"github.com/go-vram/vram/streams.callStack":                false,
		"github.com/go-vram/vram/futures.(*chain[...]).run":        false,
		"github.com/go-vram/vram/futures.Future[...].park":         false,
	} {
		assert.Equal(t, want, site.Exported(function), function)
	}
}

// Frames begin with the program's innermost call, or else with the function that a goroutine of the allocator's began with.
func TestWhereFramesBegin(t *testing.T) {
	const exported, inner, program = "github.com/go-vram/vram/streams.(*Stream).AllocFor", "github.com/go-vram/vram/streams.find", "main.train"
	for _, c := range []struct {
		want      int
		functions []string
	}{
		{0, nil},
		{0, []string{program}},
		{0, []string{program, exported, program}},
		{1, []string{inner, program, program}},
		{2, []string{exported, inner, program, exported}},
		{0, []string{inner}},
		{0, []string{inner, inner}},
		{0, []string{exported}},
		{0, []string{exported, inner}},
		{1, []string{inner, exported}},
		{2, []string{exported, inner, exported, inner}},
	} {
		var all []runtime.Frame
		for _, f := range c.functions {
			all = append(all, runtime.Frame{Function: f, File: "x.go"})
		}
		assert.Equal(t, c.want, site.FirstOf(all), "%v", c.functions)
	}
}

// The first call of a stack is the caller, or the one that so many calls have led to: the others are as deep as they can be.
func TestAStackBeginsWithItsCaller(t *testing.T) {
	for _, h := range []*site.Helpers{nil, site.NewHelpers([]string{"example.com/other"})} {
		var nested func(calls, skip int) site.Stack
		nested = func(calls, skip int) site.Stack {
			if calls == 0 {
				return h.Here(skip)
			}
			return nested(calls-1, skip)
		}
		first := func(s site.Stack) string {
			f, _ := runtime.CallersFrames(s).Next()
			return f.Function
		}
		const test = here1 + "TestAStackBeginsWithItsCaller"
		assert.Equal(t, test+".func1", first(nested(0, 0)))
		assert.Equal(t, test, first(nested(0, 1)))
		assert.Len(t, nested(100, 0).Frames(), 22)
		assert.Equal(t, len(nested(100, 0)), len(nested(100, 3)))
	}
}

func BenchmarkHere(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		here()
	}
}

// at takes a note so many calls deeper.
//
//go:noinline
func at(depth int) site.Stack {
	if depth == 0 {
		return site.Here(0)
	}
	return at(depth - 1)
}

func BenchmarkHereUnderTwentyCalls(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		at(20)
	}
}
