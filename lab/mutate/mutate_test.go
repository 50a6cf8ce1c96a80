package mutate

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/lab/trial"
)

const root = "../.."

var update = flag.Bool("update", false, "write testdata/outcomes.txt")

// loadHouse reads a package of the module in testdata.
func loadHouse(t *testing.T, dir string) (*Program, []*Mutant) {
	t.Helper()
	t.Setenv("GOWORK", "off")
	p, err := Load(t.Context(), dir, "./store")
	require.NoError(t, err)
	return p, p.Mutants()
}

// Every operator finds its place in a package that has one for each. Its tests and its user's find the mutants that
// testdata/outcomes.txt calls killed or hung.
func TestOutcomesOfEveryOperator(t *testing.T) {
	const path = "testdata/outcomes.txt"
	p, mutants := loadHouse(t, "testdata/house")
	s, err := p.Schemata(mutants)
	require.NoError(t, err)
	assert.Empty(t, s.Dropped)
	done := 0
	r := Runner{
		Root: p.root, Workers: 2, Log: t.Logf, Done: func(Result) { done++ },
		Users: func(string) []string { return []string{"user"} },
	}
	results, left, err := r.Run(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, []string{"store:TestSum"}, left, "it fails with no mutant on")
	assert.Equal(t, len(mutants), done)
	var lines strings.Builder
	killed := map[Operator]bool{}
	for _, r := range results {
		_, _ = fmt.Fprintf(&lines, "%s | %s | %s | %s | %s\n", r.Verdict, r.Test, r.Mutant.Operator, r.Mutant.Function, r.Mutant.Text)
		killed[r.Mutant.Operator] = killed[r.Mutant.Operator] || r.Verdict == Killed
	}
	for _, op := range Operators() {
		assert.True(t, killed[op], "%s: no mutant is killed", op)
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(lines.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), lines.String())
}

// Mutants of the same place contain each other: the text compiles with all of them, also for packages that are written in
// every style.
func TestSchemataCompile(t *testing.T) {
	patterns := []string{"./internal/heap", "./futures", "./internal/stream/magazine"}
	if !testing.Short() {
		patterns = []string{"./..."}
	}
	p, err := Load(t.Context(), root, patterns...)
	require.NoError(t, err)
	s, err := p.Schemata(Sample{}.of(p.Mutants())) // in an order of its own
	require.NoError(t, err)
	for _, m := range s.Dropped {
		assert.Fail(t, "it does not compile", "%s %s: %s", m.Place(), m.Operator, m.After)
	}
	overlay, err := trial.Overlay(t.TempDir(), s.Texts)
	require.NoError(t, err)
	_, err = trial.Go(t.Context(), root, append([]string{"build", "-overlay=" + overlay, "--"}, patterns...)...)
	require.NoError(t, err)
}

// A mutant whose text is wrong is dropped, alone.
func TestWrongTextIsDropped(t *testing.T) {
	p, mutants := loadHouse(t, "testdata/house")
	i := slices.IndexFunc(mutants, func(m *Mutant) bool { return m.Operator == DropCount })
	wrong := mutants[i]
	for _, text := range []string{"if mutantOn(" + number + ", 1) { ", "if ) { "} {
		wrong.wraps[0].before = text
		s, err := p.Schemata(mutants)
		require.NoError(t, err)
		assert.Equal(t, []*Mutant{wrong}, s.Dropped, text)
	}
}

// Generated files and functions that make texts have no mutants.
func TestTextsHaveNoMutants(t *testing.T) {
	_, mutants := loadHouse(t, "testdata/house")
	for _, m := range mutants {
		assert.NotEqual(t, "(*Store).String", m.Function)
		assert.NotEqual(t, "generated", m.Function)
	}
}

// copyHouse copies the module in testdata, with a text of its files replaced.
func copyHouse(t *testing.T, old, by string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/house")))
	for _, file := range []string{"store/store.go", "store/store_test.go"} {
		path := filepath.Join(dir, file)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, by)), 0o600))
	}
	return dir
}

// A kill is valid while the function and the test exist, a survivor while the function and all tests are the same.
func TestCacheIsValidWhileNothingChanged(t *testing.T) {
	users := func(string) []string { return []string{"user"} }
	_, mutants := loadHouse(t, "testdata/house")
	path := filepath.Join(t.TempDir(), "cache", "results.json")
	cache, err := OpenCache("testdata/house", path, users, 0)
	require.NoError(t, err)
	for i, m := range mutants {
		_, ok := cache.Valid(m)
		assert.False(t, ok)
		r := Result{Mutant: m, Verdict: Survived}
		if i%2 == 0 {
			r.Verdict, r.Test = Killed, "store:TestPut,TestMove/part"
		}
		cache.Put(r)
	}
	require.NoError(t, cache.Save())
	for _, c := range []struct {
		old, by           string
		killed, survivors string // functions whose results are not valid; * for all
	}{
		{"", "", "", ""},
		{"s.opened += 2", "s.opened += 1 + 1", "(*Store).Twice", "(*Store).Twice"},
		{"s.Wait(3)", "s.Wait(4)", "", ""}, // no test has that text
		{"Wait(3)", "Wait(4)", "", "*"},
		{"TestUse", "TestUses", "", "*"},
		{"TestMove", "TestMoves", "*", "*"},
	} {
		if c.old == "" {
			c.old, c.by = "nothing has this", ""
		}
		dir := copyHouse(t, c.old, c.by)
		_, mutants := loadHouse(t, dir)
		cache, err := OpenCache(dir, path, users, 0)
		require.NoError(t, err)
		killed, survivors := map[string]bool{}, map[string]bool{}
		for _, m := range mutants {
			switch r, ok := cache.Valid(m); {
			case !ok && cache.entries[m.Key()].Verdict == Killed:
				killed[m.Function] = true
			case !ok:
				survivors[m.Function] = true
			default:
				assert.True(t, r.Cached)
			}
		}
		for _, pair := range []struct {
			want string
			got  map[string]bool
		}{{c.killed, killed}, {c.survivors, survivors}} {
			if pair.want == "*" {
				assert.Greater(t, len(pair.got), 5, c.old)
				continue
			}
			assert.Subset(t, []string{pair.want}, keys(pair.got), c.old)
		}
	}
}

func keys(of map[string]bool) (all []string) {
	for key := range of {
		all = append(all, key)
	}
	return all
}

// A sample is the same for the same seed, and stays when other packages join.
func TestSampleIsOfTheSeed(t *testing.T) {
	var mutants []*Mutant
	for i := range 100 {
		mutants = append(mutants, &Mutant{Package: []string{"a", "b"}[i%2], Text: fmt.Sprint(i)})
	}
	one := Sample{Each: 5, Seed: 1}.of(mutants)
	assert.Len(t, one, 10)
	assert.Equal(t, one, Sample{Each: 5, Seed: 1}.of(mutants))
	assert.NotEqual(t, one, Sample{Each: 5, Seed: 2}.of(mutants))
	assert.Equal(t, one[:7], Sample{Each: 5, All: 7, Seed: 1}.of(mutants))
	a := slices.DeleteFunc(slices.Clone(mutants), func(m *Mutant) bool { return m.Package != "a" })
	assert.Subset(t, one, Sample{Each: 5, Seed: 1}.of(a))
	assert.Len(t, Sample{}.of(mutants), 100)
}

// A plan does not try marked mutants, nor those that the cache knows.
func TestPlanLeavesOutWhatIsKnown(t *testing.T) {
	cache, err := OpenCache(t.TempDir(), "none", func(string) []string { return nil }, 0)
	require.NoError(t, err)
	a := &Mutant{Package: "a", Function: "F", Operator: Negate, Text: "if x {"}
	b := &Mutant{Package: "a", Function: "F", Operator: Negate, Text: "if y {"}
	c := &Mutant{Package: "a", Function: "F", Operator: Negate, Text: "if z {"}
	cache.Put(Result{Mutant: c, Verdict: Unreached})
	cache.Put(Result{Mutant: b, Verdict: Invalid})
	marks := []Mark{{"a", "F", Negate, "if x {", "x is never read"}}
	plan := NewPlan([]*Mutant{a, b, c}, marks, cache, Sample{})
	assert.Equal(t, []*Mutant{b}, plan.Try)
	assert.ElementsMatch(t, []Result{{Mutant: a, Verdict: Equivalent}, {Mutant: c, Verdict: Unreached, Cached: true}}, plan.Known)
	assert.Empty(t, stale(marks, []*Mutant{a}))
	for text, want := range map[string]bool{
		"if r := d.outside(inContext, call.X, f, (2+1)); r != cudadrv.Success {": true, "return d.done(f, c, d.outside(on(s), c, f, (1+1)))": true,
		"if err := h.call(f, len(args)+(1+1)); err != nil {": true, "return h.call(create, (1+1))": true, "f.args[(0+1)] = x": false,
		"return f.call((1+1), 2)": false, "d.outside(inContext, call.X, f, 2); (2+1)": false,
	} {
		for pkg, marks := range map[string]bool{"cudadrv/dynamic": true, "cudadrv/sim": false} {
			m := &Mutant{Package: pkg, Operator: PlusOne, Text: text}
			_, is := marked(nil, []*Mutant{m})[m]
			assert.Equal(t, want && marks, is, text)
		}
	}
	assert.Equal(t, marks, stale(marks, []*Mutant{b, c}))
}

// Each mark names a mutant that exists, and has a reason.
func TestMarksAreOfMutants(t *testing.T) {
	var patterns []string
	for _, m := range Marks() {
		assert.NotEmpty(t, m.Why, m.key())
		patterns = append(patterns, "./"+m.Package)
	}
	if len(patterns) == 0 {
		return
	}
	slices.Sort(patterns)
	p, err := Load(t.Context(), root, slices.Compact(patterns)...)
	require.NoError(t, err)
	for _, m := range stale(Marks(), p.Mutants()) {
		assert.Fail(t, "no mutant is "+m.key(), "the code changed: adapt the mark, or delete it")
	}
}

// Each folder of the table of users exists, and its users' tests have a package of it in them.
func TestUsersUseTheirPackages(t *testing.T) {
	const module = "github.com/go-vram/vram"
	args := []string{"list", "-test", "-f", `{{.ImportPath}}{{range .Deps}} {{.}}{{end}}`}
	for _, all := range users() {
		for _, user := range all {
			args = append(args, "./"+user)
		}
	}
	said, err := trial.Go(t.Context(), root, args...)
	require.NoError(t, err)
	uses := map[string][]string{} // packages that a test program has, by its name
	for line := range strings.Lines(string(said)) {
		words := strings.Fields(line)
		uses[words[0]] = words[1:]
	}
	for dir, users := range users() {
		assert.DirExists(t, filepath.Join(root, dir))
		of := path.Join(module, dir)
		for _, user := range users {
			assert.True(t, slices.ContainsFunc(uses[path.Join(module, user)+".test"], func(path string) bool {
				return path == of || strings.HasPrefix(path, of+"/")
			}), "%s does not use %s", user, dir)
		}
	}
	assert.Equal(t, []string{"internal/stream/core", "streams", "internal/acceptance", "lab/simulation"}, Users("internal/stream/claims"))
	assert.Equal(t, []string{"compute/ops"}, Users("compute/kernel"))
	assert.Empty(t, Users("monitor/history"))
}

// The report counts a hang as a kill, and an unreached mutant as a survivor.
func TestReport(t *testing.T) {
	results := []Result{
		{Mutant: &Mutant{Package: "b", File: "b/x.go", Line: 3, Function: "F", Operator: Negate, Text: "if x {", Before: "if !x {", After: "if x {"}, Verdict: Survived},
		{Mutant: &Mutant{Package: "a", File: "a/x.go", Line: 7, Function: "G", Operator: DropCall, Text: "f()", Before: "f()"}, Verdict: Unreached},
	}
	for _, v := range []Verdict{Killed, Hung, Equivalent, Invalid, Skipped} {
		results = append(results, Result{Mutant: &Mutant{Package: "a", Operator: Table}, Verdict: v})
	}
	var out strings.Builder
	require.NoError(t, Report(&out, results))
	assert.Contains(t, out.String(), "| a       | 4       | 2      | 1             | 0        | 1         | 1          | 67        |\n")
	assert.Contains(t, out.String(), "| all     | 5       | 2      | 1             | 1        | 1         | 1          | 50        |\n")
	assert.Contains(t, out.String(), "\na/x.go:7 G: drop call, unreached\n-\tf()\n+\t(dropped)\n")
	assert.Contains(t, out.String(), "\nb/x.go:3 F: negate, survived\n-\tif !x {\n+\tif x {\n")
}

// An effort bounds the tests of a mutant, but the fastest one runs.
func TestEffort(t *testing.T) {
	tests := []*test{{took: 1}, {took: 2}, {took: 3}}
	assert.Len(t, within(tests, 0), 3)
	assert.Len(t, within(tests, 6), 3)
	assert.Len(t, within(tests, 5), 2)
	assert.Len(t, within(tests[2:], 1), 1)
	assert.Empty(t, within(nil, 1))
}
