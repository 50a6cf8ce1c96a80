package kept_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/kept"
)

// recorder is a test that fails without a report.
type recorder struct {
	testing.TB

	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) FailNow()              { panic(r) }

// differs reports whether Text fails.
func differs(t *testing.T, update bool, file, text string) (failed bool) {
	t.Helper()
	r := &recorder{TB: t}
	defer func() {
		if recover() != nil {
			failed = true
		}
	}()
	kept.Text(r, update, file, text)
	return r.failed
}

func TestText(t *testing.T) {
	file := filepath.Join(t.TempDir(), "testdata", "a.txt")
	assert.True(t, differs(t, false, file, "one\ntwo\n"), "there is none")
	kept.Text(t, true, file, "one\ntwo\n")
	kept.Text(t, false, file, "one\ntwo\n")
	for _, other := range []string{"", "one\n", "one\ntwo", "one\ntwo\n\n", "one\nTwo\n"} {
		assert.True(t, differs(t, false, file, other), "%q", other)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "one\ntwo\n", string(text))
}
