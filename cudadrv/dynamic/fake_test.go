//go:build linux && (amd64 || arm64)

package dynamic_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/internal/fakecuda"
	"github.com/go-vram/vram/internal/recoveredtest"
)

// Modes of the fake, and kinds of objects that it counts.
const (
	queued   = 1
	threaded = 2

	contexts = 0
	all      = -1
)

// fake is a fake libcuda of a test's own.
type fake struct {
	path string

	setDevices   func(int32)
	setMode      func(int32)
	setVersion   func(int32)
	setAttribute func(device, attribute, value int32)
	failCall     func(name string, occurrence uint32, result int32) int32
	callCount    func(name *byte) uint64
	live         func(kind int32) int64
	lost         func() int64
}

// newFake copies the library, so that its state is the test's alone, and wants everything back at the end.
func newFake(tb testing.TB) *fake {
	tb.Helper()
	content, err := os.ReadFile(fakeLibrary(tb))
	require.NoError(tb, err)
	return newFakeOf(tb, content)
}

// newFakeOf is newFake of another build of the library.
func newFakeOf(tb testing.TB, content []byte) *fake {
	tb.Helper()
	f := &fake{path: filepath.Join(tb.TempDir(), "libcuda.so.1")}
	require.NoError(tb, os.WriteFile(f.path, content, 0o600))
	handle, err := purego.Dlopen(f.path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	require.NoError(tb, err)
	purego.RegisterLibFunc(&f.setDevices, handle, "fakecuda_set_devices")
	purego.RegisterLibFunc(&f.setMode, handle, "fakecuda_set_mode")
	purego.RegisterLibFunc(&f.setVersion, handle, "fakecuda_set_version")
	purego.RegisterLibFunc(&f.setAttribute, handle, "fakecuda_set_attribute")
	purego.RegisterLibFunc(&f.failCall, handle, "fakecuda_fail")
	purego.RegisterLibFunc(&f.callCount, handle, "fakecuda_calls")
	purego.RegisterLibFunc(&f.live, handle, "fakecuda_live")
	purego.RegisterLibFunc(&f.lost, handle, "fakecuda_lost")
	var reset func() int64
	purego.RegisterLibFunc(&reset, handle, "fakecuda_reset")
	tb.Cleanup(func() {
		defer reset() // ends the library's thread, which stays with it in the process
		require.Zero(tb, f.live(all), "objects that were not given back")
		require.Zero(tb, f.lost(), "objects that went away with a context")
	})
	return f
}

// calls returns the number of calls of a function, or of all with "".
func (f *fake) calls(name string) uint64 {
	if name == "" {
		return f.callCount(nil)
	}
	return f.callCount(unsafe.SliceData(append([]byte(name), 0)))
}

// driver returns the driver under test on the fake.
func (f *fake) driver() *dynamic.Driver { return dynamic.New(dynamic.Config{Library: f.path}) }

// fakeLibrary returns the path of the library, which is built once.
func fakeLibrary(tb testing.TB) string {
	tb.Helper()
	path, err := buildFake()
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		tb.Skip(err) //nolint:forbidigo // the fake is C, and there is nothing to run on without a compiler
	}
	require.NoError(tb, err)
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

func TestMain(m *testing.M) {
	recoveredtest.Main(m, func() {
		if dir := fakeDir.Load(); dir != nil {
			_ = os.RemoveAll(*dir)
		}
	})
}
