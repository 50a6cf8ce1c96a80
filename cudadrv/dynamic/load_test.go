//go:build linux && (amd64 || arm64)

package dynamic

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// compile makes a shared library of C source.
func compile(t *testing.T, source string) string {
	t.Helper()
	command := strings.Fields(os.Getenv("CC"))
	if len(command) == 0 {
		command = []string{"cc"}
	}
	found, err := exec.LookPath(command[0])
	if err != nil {
		t.Skipf("no C compiler to build a library with: %v", err) //nolint:forbidigo // there is nothing to load without one
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "lib.c")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	library := filepath.Join(dir, "libcuda.so.1")
	out, err := exec.CommandContext(t.Context(), found,
		append(command[1:], "-shared", "-fPIC", "-o", library, file)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return library
}

// libraryWith returns the source of a library in which every function but those without works.
func libraryWith(version, initResult int, without ...string) string {
	var b strings.Builder
	missing := map[string]bool{}
	for _, name := range without {
		missing[name] = true
	}
	for fn := range symbolCount {
		name := nameOf(fn)
		if missing[name] {
			continue
		}
		switch name {
		case "cuDriverGetVersion":
			fmt.Fprintf(&b, "int cuDriverGetVersion(int *v) { *v = %d; return 0; }\n", version)
		case "cuInit":
			fmt.Fprintf(&b, "int cuInit(unsigned f) { return f ? 1 : %d; }\n", initResult)
		case "cuDeviceGetCount":
			b.WriteString("int cuDeviceGetCount(int *n) { *n = 3; return 0; }\n")
		case "cuGetErrorName", "cuGetErrorString":
			fmt.Fprintf(&b, "int %s(int r, const char **p) { *p = r == 12345 ? \"NEWS_%s\" : 0; return r == 12345 ? 0 : 1; }\n", name, name)
		default:
			fmt.Fprintf(&b, "int %s(void) { return 801; }\n", name)
		}
	}
	return b.String()
}

func TestNoLibrary(t *testing.T) {
	none := filepath.Join(t.TempDir(), "libcuda.so.1")
	text := filepath.Join(t.TempDir(), "libcuda.so.1")
	require.NoError(t, os.WriteFile(text, []byte("no library"), 0o600))
	for _, path := range []string{none, text} {
		d := New(Config{Library: path})
		for range 2 { // a later call looks again
			_, err := d.DeviceCount()
			require.ErrorIs(t, err, cudadrv.ErrNoDriver)
			var failure *LibraryError
			require.ErrorAs(t, err, &failure)
			assert.Equal(t, []string{path}, failure.Tried)
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, "install")
			assert.True(t, Missing(err))
			_, err = d.Open(0)
			require.ErrorIs(t, err, cudadrv.ErrNoDriver)
		}
	}
	assert.ErrorContains(t, &LibraryError{Tried: []string{"libcuda.so.1"}}, "(libcuda.so.1)")
}

// A driver that is nil finds nothing, and says so.
func TestANilDriver(t *testing.T) {
	var d *Driver
	for name, call := range map[string]func() error{
		"DeviceCount": func() error { _, err := d.DeviceCount(); return err },
		"Open":        func() error { _, err := d.Open(0); return err },
		"Describe":    func() error { _, err := d.Describe(0); return err },
	} {
		err := call()
		require.ErrorIs(t, err, cudadrv.ErrNoDriver, name)
		require.ErrorContains(t, err, "dynamic: the driver is nil", name)
	}
	assert.Equal(t, "dynamic", d.Name())
}

func TestAnOldDriver(t *testing.T) {
	_, err := New(Config{Library: compile(t, libraryWith(10020, 0, "cuMemFree_v2"))}).DeviceCount()
	var old *VersionError
	require.ErrorAs(t, err, &old)
	assert.Equal(t, 10020, old.Have)
	assert.Equal(t, 11080, old.Needed)
	require.ErrorIs(t, err, cudadrv.ErrNoDriver)
	require.ErrorContains(t, err, "CUDA 10.2")
	require.ErrorContains(t, err, "11.8 or later")
	assert.False(t, Missing(err))
}

func TestMissingFunctionsThatAreRequired(t *testing.T) {
	_, err := New(Config{Library: compile(t, libraryWith(13000, 0, "cuMemAlloc_v2", "cuEventQuery"))}).Open(0)
	var missing *SymbolError
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, []string{"cuMemAlloc_v2", "cuEventQuery"}, missing.Symbols)
	require.ErrorIs(t, err, cudadrv.ErrNoDriver)
	require.ErrorContains(t, err, "lacks cuMemAlloc_v2, cuEventQuery, needed for every device")
	assert.False(t, Missing(err))

	// Without any function there is no version to complain about.
	_, err = New(Config{Library: compile(t, "int nothing;")}).DeviceCount()
	require.ErrorAs(t, err, &missing)
	assert.Contains(t, missing.Symbols, "cuDriverGetVersion")
}

// Each feature without one of its functions is lacking, and no other one is.
func TestMissingFunctionsTakeTheirFeatureAway(t *testing.T) {
	found := map[symbol]int{}
	for _, ability := range features {
		require.NotEmpty(t, ability.functions, ability.name)
		for _, fn := range ability.functions {
			found[fn]++
		}
	}
	for fn := range symbolCount {
		assert.Equal(t, 1, found[fn], "%s is in one feature", nameOf(fn))
	}
	d := New(Config{Library: compile(t, libraryWith(13000, 0, "cuMemHostAlloc", "cuLaunchHostFunc", "cuMemUnmap"))})
	count, err := d.DeviceCount()
	require.NoError(t, err)
	assert.Equal(t, 3, count)
	assert.Equal(t, cudadrv.PinnedHost|cudadrv.HostCalls|cudadrv.VirtualMemory, d.lib.lacking)
	assert.Equal(t, []string{"cuMemHostAlloc"}, d.lib.missing(cudadrv.PinnedHost))
	for _, ordinal := range []int{-1, 3} {
		_, err = d.Open(ordinal)
		require.ErrorIs(t, err, cudadrv.ErrNoDevice)
		require.ErrorIs(t, err, cudadrv.InvalidDevice)
	}
	_, err = d.Open(0) // cuDeviceGet of this library answers 801
	require.ErrorIs(t, err, cudadrv.NotSupported)
}

// Each result of cuInit becomes a cause and advice.
func TestInitFails(t *testing.T) {
	for result, want := range map[cudadrv.Result]struct {
		is   error
		text string
	}{
		cudadrv.NoDevice:       {cudadrv.ErrNoDevice, "CUDA_VISIBLE_DEVICES"},
		cudadrv.Unknown:        {cudadrv.ErrNoDriver, "/dev/nvidia*"},
		cudadrv.NotPermitted:   {cudadrv.ErrNoDriver, "/dev/nvidia*"},
		cudadrv.StubLibrary:    {cudadrv.ErrNoDriver, "stubs"},
		cudadrv.DriverMismatch: {cudadrv.ErrNoDriver, "different versions"},
		cudadrv.SystemNotReady: {cudadrv.ErrNoDriver, "fabric manager"},
		cudadrv.DeviceInUse:    {cudadrv.ErrNoDriver, "exclusive"},
		4:                      {cudadrv.ErrNoDriver, "nvidia-smi"},
		12345:                  {cudadrv.ErrNoDriver, "NEWS_cuGetErrorName: NEWS_cuGetErrorString"},
	} {
		t.Run(fmt.Sprint(int(result)), func(t *testing.T) {
			_, err := New(Config{Library: compile(t, libraryWith(13000, int(result)))}).DeviceCount()
			var failure *InitError
			require.ErrorAs(t, err, &failure)
			require.ErrorIs(t, err, want.is)
			require.ErrorIs(t, err, result)
			require.ErrorContains(t, err, want.text)
			require.ErrorContains(t, err, "cuInit: ")
			assert.Equal(t, result == cudadrv.NoDevice, Missing(err))
			assert.Equal(t, errors.Is(want.is, cudadrv.ErrNoDriver), errors.Is(err, cudadrv.ErrNoDriver))
		})
	}
}

// Goroutines that find no library at once have each their own reason: the loader keeps it by thread.
func TestNoLibraryForManyAtOnce(t *testing.T) {
	const opens = 1600
	folder := t.TempDir()
	path := func(i int) string { return filepath.Join(folder, fmt.Sprintf("libcuda.so.%04d", i)) }
	errs := make([]error, opens)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range opens {
		all.Go(func() {
			<-start
			_, errs[i] = New(Config{Library: path(i)}).DeviceCount()
		})
	}
	close(start)
	all.Wait()
	wrong := 0
	for i, err := range errs {
		if want := fmt.Sprintf("(%s: cannot open shared object file", path(i)); !strings.Contains(err.Error(), want) {
			wrong++
			t.Logf("opening %d: %v", i, err)
		}
	}
	assert.Zero(t, wrong, "of %d reasons", opens)
}
