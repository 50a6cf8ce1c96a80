//go:build linux && (amd64 || arm64)

package bytecheck

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/internal/fakecuda"
	"github.com/go-vram/vram/internal/recoveredtest"
)

// How the fake performs work: see internal/fakecuda.
const (
	queued   = 1
	threaded = 2
)

// onFake is libcuda's driver on a fake of the test's own, which wants everything back at the end.
func onFake(t *testing.T, mode int32) cudadrv.Driver {
	t.Helper()
	library, err := buildFake()
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		t.Skip(err) //nolint:forbidigo // the fake is C, and there is nothing to run on without a compiler
	}
	require.NoError(t, err)
	content, err := os.ReadFile(library)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "libcuda.so.1")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	require.NoError(t, err)
	var setMode func(int32)
	var setPatience func(uint32)
	var live, lost func(int32) int64
	purego.RegisterLibFunc(&setMode, handle, "fakecuda_set_mode")
	purego.RegisterLibFunc(&setPatience, handle, "fakecuda_set_patience")
	purego.RegisterLibFunc(&live, handle, "fakecuda_live")
	purego.RegisterLibFunc(&lost, handle, "fakecuda_lost")
	setMode(mode)
	setPatience(2) // queued work is performed once somebody has asked for it twice
	t.Cleanup(func() {
		require.Zero(t, live(-1), "objects that were not given back")
		require.Zero(t, lost(0), "objects that went away with a context")
	})
	return dynamic.New(dynamic.Config{Library: path})
}

var buildFake = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "bytecheck")
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
