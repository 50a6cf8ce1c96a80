package planted

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnEditAppliesOnce(t *testing.T) {
	files := fstest.MapFS{"a.go": {Data: []byte("one two two")}}
	bug := func(edits ...Edit) Bug { return Bug{Name: "b", Edits: edits} }
	got, err := bug(Edit{"a.go", "one", "1"}, Edit{"a.go", "1 two", "12"}).Planted(files)
	require.NoError(t, err, "an edit may change what one before it made")
	assert.Equal(t, map[string]string{"a.go": "12 two"}, got)
	for old, count := range map[string]int{"two": 2, "three": 0} {
		_, err := bug(Edit{"a.go", old, ""}).Planted(files)
		var wrong *EditError
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, EditError{"b", "a.go", old, count}, *wrong)
		assert.ErrorContains(t, err, "want once")
	}
	_, err = bug(Edit{"b.go", "", ""}).Planted(files)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// An edit of a function finds it in whichever file it stands, and its text in that function alone.
func TestAnEditFollowsItsFunction(t *testing.T) {
	const (
		head  = "package a\n\n"
		plain = "// one is one.\nfunc one() int { return 1 }\n"
		other = "func two() int { return 1 }\n"
	)
	planted := func(files map[string]string, edits ...Edit) (map[string]string, error) {
		module := fstest.MapFS{}
		for name, text := range files {
			module[name] = &fstest.MapFile{Data: []byte(head + text)}
		}
		return Bug{Name: "b", Edits: edits}.Planted(module)
	}
	edit := Edit{"x/a.one", "return 1", "return 2"}
	for _, file := range []string{"x/a/a.go", "x/a/z.go"} {
		got, err := planted(map[string]string{file: plain + other, "x/a/b.go": "func three() int { return one() }\n"}, edit)
		require.NoError(t, err)
		assert.Equal(t, map[string]string{file: head + "// one is one.\nfunc one() int { return 2 }\n" + other}, got)
	}
	methods := "type t[K any] int\n\nfunc (s *t[K]) m() { s.n() }\n\nfunc (t[K]) n() {}\n\nfunc of[K any]() {}\n"
	got, err := planted(map[string]string{"m.go": methods},
		Edit{"vram.(*t).m", "s.n()", "s.n(); s.n()"}, Edit{"vram.(*t).m", "s.n(); s", "s"}, Edit{"vram.t.n", "{}", "{ }"}, Edit{"vram.of", "{}", "{ }"})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"m.go": head + "type t[K any] int\n\nfunc (s *t[K]) m() { s.n() }\n\nfunc (t[K]) n() { }\n\nfunc of[K any]() { }\n"}, got)

	_, err = planted(map[string]string{"x/a/a.go": plain, "x/a/b.go": plain}, edit)
	var wrong *EditError
	require.ErrorAs(t, err, &wrong, "files for two platforms have it")
	assert.Equal(t, EditError{"b", "x/a.one", "return 1", 2}, *wrong)
	_, err = planted(map[string]string{"x/a/a.go": plain}, Edit{"x/a.one", "one is", ""})
	require.ErrorAs(t, err, &wrong, "a comment is no part of its function")
	_, err = planted(map[string]string{"x/a/a.go": plain, "x/a/a_test.go": other}, Edit{"x/a.two", "return 1", ""})
	var missing *AnchorError
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, AnchorError{"b", "x/a.two"}, *missing)
	_, err = planted(nil, edit)
	require.ErrorAs(t, err, &missing, "there is no such folder")
}

// Each verdict is reached in a small module.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module example.org/small\n\ngo 1.26\n",
		"p/p.go":      "package p\n\nfunc Sum(a, b int) int { return a + b }\n\nfunc Wait() {}\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n	t.Run(\"small\", func(t *testing.T) {\n		if Sum(1, 2) != 3 {\n			t.Error()\n		}\n	})\n}\n\nfunc TestWait(*testing.T) { Wait() }\n",
		"q/q.go":      "package q\n\nfunc One() int { return 1 }\n",
		"q/q_test.go": "package q\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n	if One() != 1 {\n		t.Error()\n	}\n}\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	r := Runner{Root: dir, Limit: time.Minute}
	sum := func(now string) []Edit { return []Edit{{"p/p.go", "return a + b", now}} }
	wait := func(now string) []Edit { return []Edit{{"p/p.go", "func Wait() {}", now}} }
	for _, want := range []struct {
		bug     Bug
		verdict Verdict
		test    string
		detail  string
	}{
		{Bug{Name: "wrong", Run: "^TestSum$", Edits: sum("return a - b")}, Found, "TestSum/small", ""},
		{Bug{Name: "a panic", Run: "^TestWait$", Edits: wait("func Wait() { panic(1) }")}, Found, "TestWait", ""},
		{Bug{Name: "harmless", Run: "^TestSum$", Edits: sum("return b + a")}, Missed, "", ""},
		{Bug{Name: "elsewhere", Run: "^TestWait$", Edits: sum("return 0")}, Missed, "", ""},
		{Bug{Name: "no Go", Run: "^TestSum$", Edits: sum("return c")}, Broken, "", "undefined: c"},
		{Bug{Name: "no such text", Run: "^TestSum$", Edits: []Edit{{"p/p.go", "gone", ""}}}, Broken, "", "occurs 0 times"},
		{Bug{Name: "no such test", Run: "^TestNothing$", Edits: sum("return 0")}, Broken, "", "no test has that name"},
		{Bug{Name: "a hang", Run: "^TestWait$", Edits: wait("func Wait() { select {} }")}, Expired, "", "timed out"},
		{Bug{Name: "an end without a test", Run: "^TestWait$", Edits: []Edit{
			{"p/p.go", "package p\n", "package p\n\nimport \"os\"\n"}, {"p/p.go", "func Wait() {}", "func Wait() { os.Exit(3) }"},
		}}, Broken, "", "exit status"},
	} {
		t.Run(want.bug.Name, func(t *testing.T) {
			want.bug.Package = "p"
			r := r
			if want.verdict == Expired {
				r.Limit = time.Second
			}
			out := r.Plant(t.Context(), want.bug)
			assert.Equal(t, want.verdict, out.Verdict, out.Detail)
			assert.Equal(t, want.test, out.Test)
			assert.Contains(t, out.Detail, want.detail)
		})
	}
	all := []Bug{
		{Name: "one", Package: "p", Run: "^TestSum$", Edits: sum("return a - b")},
		{Name: "of another package", Package: "q", Run: "^TestOne$", Edits: []Edit{{"q/q.go", "return 1", "return 2"}}},
		{Name: "of another package, harmless", Package: "q", Run: "^TestOne$", Edits: []Edit{{"q/q.go", "return 1", "return 2 - 1"}}},
		{Name: "two", Package: "p", Run: "^TestWait$", Edits: wait("func Wait() { panic(1) }")},
	}
	outcomes := r.PlantAll(t.Context(), all, 2, time.Time{})
	require.Len(t, outcomes, len(all))
	for i, want := range []Verdict{Found, Found, Missed, Found} {
		assert.Equal(t, all[i].Name, outcomes[i].Bug.Name)
		assert.Equal(t, want, outcomes[i].Verdict, outcomes[i].Detail)
	}
	for _, out := range r.PlantAll(t.Context(), all, 2, time.Now().Add(-time.Second)) {
		assert.Equal(t, Skipped, out.Verdict, "no time is left")
	}
	other := "package p\n\nimport \"testing\"\n\nfunc TestOther(t *testing.T) { t.Error() }\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p/q_test.go"), []byte(other), 0o600))
	fails := Bug{Name: "found by a test that fails", Package: "p", Run: "^TestOther$", Edits: sum("return 0")}
	outcomes = r.PlantAll(t.Context(), []Bug{all[0], all[1], fails}, 2, time.Time{})
	require.Len(t, outcomes, 3)
	for i, want := range []Verdict{Broken, Found, Broken} {
		assert.Equal(t, want, outcomes[i].Verdict, outcomes[i].Detail)
	}
	assert.Contains(t, outcomes[2].Detail, "with nothing planted: found TestOther")
}

// A change of a package selects the bugs that edit it and the bugs that its tests find.
func TestTouched(t *testing.T) {
	edits := func(at string) Bug { return Bug{Name: at, Package: "tests", Edits: []Edit{{At: "z.f"}, {At: at}}} }
	bugs := []Bug{edits("a/b.(*T).m"), edits("a/b/page.css"), edits("vram.Open"), edits("a/bb.f"), {Name: "tested", Package: "c"}}
	for file, want := range map[string][]Bug{
		"a/b/new_test.go": bugs[:2],
		"device.go":       bugs[2:3],
		"c/c_test.go":     bugs[4:],
		"tests/t_test.go": bugs[:4],
		"z/z.go":          bugs[:4],
		"a/README.md":     nil,
	} {
		assert.Equal(t, want, Touched(bugs, []string{file}), file)
	}
	assert.Len(t, Touched(bugs, []string{"device.go", "a/bb/x.go"}), 2)
	assert.Empty(t, Touched(bugs, nil))
}
