//go:build linux && (amd64 || arm64)

package nvrtc_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda/nvrtc"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic/library"
)

// control calls a function of the fake that the tests have.
func control(t *testing.T, path string) func(name string, arguments ...uintptr) int {
	t.Helper()
	lib, err := library.Open(path)
	require.NoError(t, err)
	return func(name string, arguments ...uintptr) int {
		f, err := lib.Function(name)
		require.NoError(t, err)
		return int(f.Call(arguments))
	}
}

// Each call of the library that fails once is the error of the operation, which names it, leaves no program, and does not affect the
// next compilation.
func TestEachCallOfTheLibraryFails(t *testing.T) {
	path, hopper := fake(t), cudadrv.ComputeCapability{Major: 9}
	l, err := nvrtc.Find(path)
	require.NoError(t, err)
	call := control(t, path)
	compile := func(source string) error {
		_, err := l.Compile("x.cu", source, hopper)
		return err
	}
	ptx := func(source string) error {
		_, err := l.PTX("x.cu", source, hopper)
		return err
	}
	for _, c := range []struct {
		function string
		of       func(source string) error
		source   string
		refused  bool // the source, too
	}{
		{"nvrtcCreateProgram", compile, "source", false},
		{"nvrtcGetCUBINSize", compile, "source", false},
		{"nvrtcGetCUBIN", compile, "source", false},
		{"nvrtcGetProgramLogSize", compile, "#error", true},
		{"nvrtcGetProgramLog", compile, "#error", true},
		{"nvrtcCreateProgram", ptx, "source", false},
		{"nvrtcGetPTXSize", ptx, "source", false},
		{"nvrtcGetPTX", ptx, "source", false},
	} {
		name := append([]byte(c.function), 0)
		call("fakenvrtc_fail", uintptr(unsafe.Pointer(&name[0])), 11)
		err := c.of(c.source)
		require.ErrorIs(t, err, nvrtc.ErrLibrary, c.function)
		require.ErrorContains(t, err, c.function+": error 11")
		assert.Equal(t, c.refused, errors.As(err, new(*nvrtc.CompileError)), c.function)
		assert.Zero(t, call("fakenvrtc_live"), c.function)
		require.NoError(t, c.of("source"), c.function)
	}
	name := []byte("nvrtcVersion\x00")
	call("fakenvrtc_fail", uintptr(unsafe.Pointer(&name[0])), 11)
	major, minor := l.Version()
	assert.Equal(t, [2]int{}, [2]int{major, minor})
	assert.Zero(t, call("fakenvrtc_live"))
}

// builtinsLoaded: a test has loaded builtins. The process keeps them, also where the test runs again.
var builtinsLoaded bool

// The library looks for its builtins by their name alone: Find opens the ones in its folder first, in a folder of any name.
func TestTheBuiltinsOfAFolder(t *testing.T) {
	path, hopper := fake(t), cudadrv.ComputeCapability{Major: 9}
	l, err := nvrtc.Find(path)
	require.NoError(t, err)
	if _, err = l.Compile("x.cu", "source", hopper, "--builtins"); !builtinsLoaded {
		var refused *nvrtc.CompileError
		require.ErrorAs(t, err, &refused, "there are none")
		assert.Equal(t, 7, refused.Result)
	}

	dir := filepath.Join(t.TempDir(), "[a") // no pattern has this
	require.NoError(t, os.Mkdir(dir, 0o700))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	const builtins = "libnvrtc-builtins.so.13.7"
	require.NoError(t, os.WriteFile(filepath.Join(dir, builtins), []byte("no library"), 0o600))
	for _, name := range []string{"libnvrtc-alt.so.13", "libnvrtc.so.13"} { // before the builtins in the folder, and after them
		path = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o700))
		var missing *nvrtc.NotFoundError
		_, err = nvrtc.Find(path)
		require.ErrorAs(t, err, &missing)
		require.ErrorContains(t, err, builtins)
		require.NoError(t, os.Rename(path, filepath.Join(dir, "moved")))
	}

	require.NoError(t, os.Rename(filepath.Join(dir, "moved"), path))
	require.NoError(t, os.Remove(filepath.Join(dir, builtins)))
	out, err := exec.Command("cc", "-shared", "-Wl,-soname,"+builtins, "-x", "c", "-o", filepath.Join(dir, builtins), os.DevNull).CombinedOutput()
	require.NoError(t, err, "%s", out)
	l, err = nvrtc.Find(path)
	require.NoError(t, err)
	_, err = l.Compile("x.cu", "source", hopper, "--builtins")
	require.NoError(t, err)
	builtinsLoaded = true
}

// A library that lacks a function is none that can be used.
func TestALibraryThatLacksAFunction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libnvrtc.so.13")
	out, err := exec.Command("cc", "-shared", "-x", "c", "-o", path, os.DevNull).CombinedOutput()
	require.NoError(t, err, "%s", out)
	_, err = nvrtc.Find(path)
	var missing *nvrtc.NotFoundError
	require.ErrorAs(t, err, &missing)
	require.ErrorIs(t, err, nvrtc.ErrLibrary)
	require.ErrorContains(t, err, "undefined symbol: nvrtcVersion")
}

// Without a path and the variable, the library is looked for in the folders of toolkits.
func TestALibraryOfAToolkit(t *testing.T) {
	home := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, "lib64"), 0o700))
	path := filepath.Join(home, "lib64", "libnvrtc.so.13")
	require.NoError(t, os.Symlink(fake(t), path))
	t.Setenv(nvrtc.Variable, "")
	t.Setenv("CUDA_HOME", home)
	l, err := nvrtc.Find()
	require.NoError(t, err)
	assert.True(t, l.Path() == path || filepath.Base(l.Path()) == l.Path(), "%s: where the loader finds one, that is taken", l.Path())
}

// The collector does not take the texts of a compilation while the library reads them, and nothing of it is pinned later.
func TestTextsOutliveACollection(t *testing.T) {
	path, hopper := fake(t), cudadrv.ComputeCapability{Major: 9}
	l, err := nvrtc.Find(path)
	require.NoError(t, err)
	began, says, err := os.Pipe()
	require.NoError(t, err)
	waits, goes, err := os.Pipe()
	require.NoError(t, err)
	call := control(t, path)
	call("fakenvrtc_wait", says.Fd(), waits.Fd())
	long := func(letter string) string { return strings.Repeat(letter, 100) } // not on a stack
	name, source, options := long("n"), "#echo"+long("s"), []string{long("o"), long("p")}
	failed := make(chan error)
	go func() {
		_, err := l.PTX(name, source, hopper, options...)
		failed <- err
	}()
	for range 2 { // the program is created, and compiled
		_, err := began.Read(make([]byte, 1))
		require.NoError(t, err)
		overwriteFreed()
		_, err = goes.Write([]byte{0})
		require.NoError(t, err)
	}
	var refused *nvrtc.CompileError
	require.ErrorAs(t, <-failed, &refused)
	assert.Equal(t, strings.Join(slices.Concat([]string{name, "--gpu-architecture=compute_90"}, options), " "), refused.Log)
	call("fakenvrtc_wait", ^uintptr(0), 0)
	finalized := make(chan struct{})
	runtime.SetFinalizer(new([16]*int), func(*[16]*int) { close(finalized) })
	runtime.GC() // ends the process if something stays pinned
	<-finalized
	for _, f := range []*os.File{began, says, waits, goes} {
		require.NoError(t, f.Close())
	}
}

// overwriteFreed collects garbage and writes to its memory.
func overwriteFreed() {
	runtime.GC()
	runtime.GC()
	var kept [][]byte
	for size := 8; size <= 256; size += 8 {
		for range 1000 {
			kept = append(kept, bytes.Repeat([]byte("x"), size))
		}
	}
	runtime.KeepAlive(kept)
}

// A library that lacks one function is none that can be used.
func TestALibraryThatLacksOneFunction(t *testing.T) {
	for _, name := range []string{"nvrtcDestroyProgram", "nvrtcGetCUBIN"} {
		path := filepath.Join(t.TempDir(), "libnvrtc.so.13")
		out, err := exec.Command("cc", "-shared", "-fPIC", "-D"+name+"=other", "-o", path, "testdata/fakenvrtc.c").CombinedOutput()
		require.NoError(t, err, "%s", out)
		_, err = nvrtc.Find("/nothing/libnvrtc.so.13", path)
		require.ErrorIs(t, err, nvrtc.ErrLibrary, name)
		require.ErrorContains(t, errors.Unwrap(err), "undefined symbol: "+name)
		require.ErrorContains(t, errors.Unwrap(err), "/nothing/libnvrtc.so.13", "each path has its error")
	}
}

// Goroutines that compile at once get code of their own source, with their own options.
func TestGoroutinesCompileAtOnce(t *testing.T) {
	l, err := nvrtc.Find(fake(t))
	require.NoError(t, err)
	const goroutines, times = 8, 100
	var all sync.WaitGroup
	for n := range goroutines {
		all.Go(func() {
			source, option := strings.Repeat(string(rune('a'+n)), 20_000*n+1), "-D"+strconv.Itoa(n)
			of := cudadrv.ComputeCapability{Major: 8, Minor: n}
			for range times {
				image, err := l.Compile("x.cu", source, of, option)
				assert.NoError(t, err)
				assert.Equal(t, source, string(image))
				image, err = l.PTX("x.cu", source, of, option)
				assert.NoError(t, err)
				assert.Equal(t, source+"\x00", string(image))
				var refused *nvrtc.CompileError
				_, err = l.PTX("y.cu", "#echo", of, option)
				if assert.ErrorAs(t, err, &refused) {
					assert.Equal(t, fmt.Sprintf("y.cu --gpu-architecture=compute_8%d %s", n, option), refused.Log)
				}
				major, minor := l.Version()
				assert.Equal(t, [2]int{13, 7}, [2]int{major, minor})
			}
		})
	}
	all.Wait()
}

// The device's own code is compiled for its architecture, and PTX where the compiler does not know it: with the same options, and
// with no architecture.
func TestOptionsOfACompilation(t *testing.T) {
	l, err := nvrtc.Find(fake(t))
	require.NoError(t, err)
	for of, want := range map[cudadrv.ComputeCapability]string{
		{Major: 8, Minor: 6}:  "--gpu-architecture=sm_86 -a -b",
		{Major: 99, Minor: 9}: "-a -b",
	} {
		_, err = l.Compile("x.cu", "#echo", of, "-a", "-b")
		var refused *nvrtc.CompileError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, "x.cu "+want, refused.Log)
		assert.Equal(t, want, strings.Join(refused.Options, " "))
	}
}
