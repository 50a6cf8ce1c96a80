//go:build linux && (amd64 || arm64) && !gpu

package share

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/internal/fakecuda"
)

// Kinds of objects that the fake counts.
const (
	kindEvents       = 2
	kindHandles      = 3
	kindReservations = 6
	kindMappings     = 7
	kindAll          = -1
)

// onGPU says that the tests run on the driver of this machine.
const onGPU = false

// fake is a fake libcuda of a test's own. To another one, of the same process, it is the driver of another process.
type fake struct {
	path string
	live func(kind int32) int64
	lost func() int64
	hold func(on int32) // events of other processes that are opened from then on
}

func newFake(t *testing.T) *fake {
	t.Helper()
	content, err := os.ReadFile(builtLibrary(t))
	require.NoError(t, err)
	f := &fake{path: filepath.Join(t.TempDir(), "libcuda.so.1")}
	require.NoError(t, os.WriteFile(f.path, content, 0o600))
	handle, err := purego.Dlopen(f.path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	require.NoError(t, err)
	purego.RegisterLibFunc(&f.live, handle, "fakecuda_live")
	purego.RegisterLibFunc(&f.lost, handle, "fakecuda_lost")
	purego.RegisterLibFunc(&f.hold, handle, "fakecuda_hold_events")
	t.Cleanup(func() {
		assert.Zero(t, f.live(kindAll), "objects that were not given back")
		assert.Zero(t, f.lost(), "objects that went away with a context")
	})
	return f
}

func (f *fake) driver() *dynamic.Driver { return dynamic.New(dynamic.Config{Library: f.path}) }

// memory counts handles, reservations and mappings.
func (f *fake) memory() [3]int64 {
	return [3]int64{f.live(kindHandles), f.live(kindReservations), f.live(kindMappings)}
}

// libraryUnderTest returns the library of two processes: a fake of the test's own, which both open.
func libraryUnderTest(t *testing.T) string {
	t.Helper()
	return newFake(t).path
}

func builtLibrary(t *testing.T) string {
	t.Helper()
	path, err := buildFake()
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		t.Skip(err) //nolint:forbidigo // the fake is C, and there is nothing to run on without a compiler
	}
	require.NoError(t, err)
	return path
}

var buildFake = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fakecuda")
	if err != nil {
		return "", err
	}
	fakeDir.Store(&dir)
	return fakecuda.Build(dir)
})

// fakeDir is where the library was built, if it was.
var fakeDir atomic.Pointer[string]

func removeLibrary() {
	if dir := fakeDir.Load(); dir != nil {
		_ = os.RemoveAll(*dir)
	}
}
