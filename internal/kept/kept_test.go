package kept_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/kept"
)

// recorder is a test that fails without a report, and keeps that.
type recorder struct {
	testing.TB

	report  string
	helpers int
}

func (r *recorder) Helper()                           { r.helpers++ }
func (r *recorder) Errorf(format string, args ...any) { r.report += fmt.Sprintf(format, args...) }
func (r *recorder) FailNow()                          { panic(r) }

// differs returns the report of Text, empty if it does not fail.
func differs(t *testing.T, update bool, file, text string) (report string) {
	t.Helper()
	r := &recorder{TB: t}
	defer func() {
		if value := recover(); value != nil && value != any(r) {
			panic(value)
		}
		assert.Positive(t, r.helpers, "the report names a line of the test")
		report = r.report
	}()
	kept.Text(r, update, file, text)
	return r.report
}

func TestText(t *testing.T) {
	file := filepath.Join(t.TempDir(), "testdata", "a.txt")
	none := differs(t, false, file, "one\ntwo\n")
	assert.Contains(t, none, "run the test with -update")
	assert.Contains(t, none, "no such file")
	kept.Text(t, true, file, "one\ntwo\n")
	kept.Text(t, false, file, "one\ntwo\n")
	for _, other := range []string{"", "one\n", "one\ntwo", "one\ntwo\n\n", "one\nTwo\n", "one\ntwo \n", "one\n\ttwo\n"} {
		assert.Contains(t, differs(t, false, file, other), "run the test with -update if that is wanted", "%q", other)
	}
	assert.Regexp(t, `(?s)expected: "two".*actual  : "Two"`, differs(t, false, file, "one\nTwo\n"))
	for name, want := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o750} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		assert.Zero(t, info.Mode().Perm()&^want, "%s: %s", name, info.Mode())
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "one\ntwo\n", string(text))
}
