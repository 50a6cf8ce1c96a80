//go:build gorgonia && cgo && linux && (amd64 || arm64)

package gorgonia_test

import (
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recoveredtest"
)

// all is every kind of objects that the fake counts.
const all = -1

// fake is the library that this program is linked with and has loaded.
type fake struct {
	handle       uintptr
	setAttribute func(device, attribute, value int32)
	failCall     func(name string, occurrence uint32, result int32) int32
}

// newFake finds the library and wants everything back at the end.
func newFake(tb testing.TB) *fake {
	tb.Helper()
	handle, err := purego.Dlopen("libcuda.so.1", purego.RTLD_NOW|purego.RTLD_LOCAL)
	require.NoError(tb, err)
	address, err := purego.Dlsym(handle, "fakecuda_live")
	require.NoError(tb, err, "these tests run on the fake: make test-gorgonia")
	var live func(kind int32) int64
	purego.RegisterFunc(&live, address)
	var lost func() int64
	purego.RegisterLibFunc(&lost, handle, "fakecuda_lost")
	f := &fake{handle: handle}
	purego.RegisterLibFunc(&f.setAttribute, handle, "fakecuda_set_attribute")
	purego.RegisterLibFunc(&f.failCall, handle, "fakecuda_fail")
	lostBefore := lost()
	tb.Cleanup(func() {
		require.Zero(tb, live(all), "objects that were not given back")
		require.Equal(tb, lostBefore, lost(), "objects that went away with a context")
	})
	return f
}

// set sets the number of devices or another property of the fake.
func (f *fake) set(property string, value int32) {
	var set func(int32)
	purego.RegisterLibFunc(&set, f.handle, "fakecuda_set_"+property)
	set(value)
}

func TestMain(m *testing.M) { recoveredtest.Main(m) }
