//go:build !gpu

package matmul_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/compute/kernel/matmul/internal/variant"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/cublaslt"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/cudadrv/dynamic/library"
	"github.com/go-vram/vram/internal/fakecublaslt"
	"github.com/go-vram/vram/internal/fakecuda"
)

// programs is how many random problems a test computes, with up to so many multiplications each.
const (
	programs    = 60
	mostWork    = 1 << 20
	onHardware  = false
	largestSize = 200
)

var emulation = sync.OnceValues(emulate)

// driver is a fake of libcuda that runs the kernels of this package on the host: their sources, compiled for it.
func driver(tb testing.TB) cudadrv.Driver {
	tb.Helper()
	return driverOf(tb, 132)
}

// driverOf is a driver of a device with so many multiprocessors, and a fake of cuBLASLt on it. attributes are further ones, each with its value.
func driverOf(tb testing.TB, multiprocessors int, attributes ...uintptr) cudadrv.Driver {
	tb.Helper()
	kernels, err := emulation()
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		tb.Skip(err) //nolint:forbidigo // the fake is C, and there is nothing to run on without a compiler
	}
	require.NoError(tb, err)
	path, err := fakecuda.Build(tb.TempDir())
	require.NoError(tb, err)
	fake, err := library.Open(path)
	require.NoError(tb, err)
	set, err := fake.Function("fakecuda_set_runner")
	require.NoError(tb, err)
	set.Call([]uintptr{kernels})
	set, err = fake.Function("fakecuda_set_attribute")
	require.NoError(tb, err)
	const multiprocessorCount = 16 // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
	set.Call([]uintptr{0, multiprocessorCount, uintptr(multiprocessors)})
	const tensorMaps = 127 // CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED: the sources that need them are not compiled for the host
	set.Call([]uintptr{0, tensorMaps, 0})
	for i := 0; i+1 < len(attributes); i += 2 {
		set.Call([]uintptr{0, attributes[i], attributes[i+1]})
	}
	blas, err := fakecublaslt.Build(tb.TempDir(), path)
	require.NoError(tb, err)
	tb.Setenv(cublaslt.Variable, blas)
	return dynamic.New(dynamic.Config{Library: path})
}

// emulate compiles the sources for the host, and returns the runner.
func emulate() (uintptr, error) {
	compiler, level := cmp.Or(os.Getenv("CXX"), "g++"), "-O0" // emulate.h has g++ optimise what it defines
	if _, err := exec.LookPath(compiler); err != nil {
		compiler, level = "clang++-19", "-O1"
	}
	if _, err := exec.LookPath(compiler); err != nil {
		return 0, fmt.Errorf("%w: g++", fakecuda.ErrNoCompiler)
	}
	dir, err := os.MkdirTemp("", "matmul") // the library stays open until the process ends
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	all := []byte(variantsHeader())
	if err := os.WriteFile(filepath.Join(dir, "variants.h"), all, 0o600); err != nil {
		return 0, err
	}
	files, err := filepath.Glob("source/*")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		all = append(all, content...)
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o600); err != nil {
			return 0, err
		}
	}
	content, err := fakecuda.Compile([]string{compiler}, dir, all, "-std=c++17", level, "-fPIC", "-shared", "-fvisibility=hidden",
		"-U_FORTIFY_SOURCE", "-w", "-I.", "emulate.cpp")
	if err != nil {
		return 0, err
	}
	path := filepath.Join(dir, "kernels.so")
	if err := os.WriteFile(path, content, 0o700); err != nil {
		return 0, err
	}
	kernels, err := library.Open(path)
	if err != nil {
		return 0, err
	}
	run, err := kernels.Function("vram_run")
	return uintptr(run), err
}

// variantsHeader includes the source of each variant with its macros, in a namespace, and lists the kernels.
func variantsHeader() string {
	var text, list strings.Builder
	for _, v := range variant.All() {
		if v.Bulk { // only on the interpreter
			continue
		}
		for _, d := range v.Defines {
			fmt.Fprintf(&text, "#define %s\n", strings.Replace(d, "=", " ", 1))
		}
		fmt.Fprintf(&text, "namespace of_%s {\n#include %q\n}\n", v.Name, v.Source)
		for _, d := range v.Defines {
			name, _, _ := strings.Cut(d, "=")
			fmt.Fprintf(&text, "#undef %s\n", name)
		}
		for _, k := range v.Kernels {
			fmt.Fprintf(&list, " K(of_%s, %s)", v.Name, k)
		}
	}
	fmt.Fprintf(&text, "#define EACH_KERNEL%s\n", list.String())
	return text.String()
}

// devices are some on which a problem of that shape has each of the larger tiles.
func devices(tb testing.TB) (all []tiled) {
	tb.Helper()
	for multiprocessors, tile := range map[int]string{1: largestTile, 8: "128x64|staged", 16: "64x64"} {
		all = append(all, tiled{tile, newRigOn(tb, driverOf(tb, multiprocessors)), 246, 250})
	}
	return all
}

// Devices without asynchronous copies and matrix units compute fp32 with the older kernels, and refuse the rest.
func TestOlderDevices(t *testing.T) {
	tiles := map[int]string{1: "plain_f32_128x128", 8: "plain_f32_128x64", 132: "plain_f32_64x64"}
	if testing.Short() {
		delete(tiles, 1)
		delete(tiles, 8)
	}
	for multiprocessors, kernel := range tiles {
		r := newRigOn(t, driverOf(t, multiprocessors, 75, 7, 76, 5)) // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
		random := newRandom(4)
		for transposed := range tileTranspositions() {
			p := gemm.Problem{M: 130, N: 133, K: 20, TransposeA: transposed&1 != 0, TransposeB: transposed&2 != 0, Bias: true}
			if transposed%2 == 0 {
				p.LDA, p.LDB, p.LDC = 256, 256, 256
			}
			assert.Equal(t, kernel, r.multiply(random, p, 1, 1, 0, matmul.Own).Kernel)
		}
		p := gemm.Problem{M: 8, N: 8, K: 8, Precision: gemm.TF32}
		x := r.product(random, p, 1, 0, 0)
		_, err := r.m.Multiply(r.c, p, x.operands(), matmul.Own)
		require.ErrorIs(t, err, matmul.ErrUnsupported)
		r.free(x)
	}
}

// A Close that the library refuses to end the handle for is tried again by another one. No product is computed in between.
func TestARefusedEndOfTheLibrary(t *testing.T) {
	r := newRig(t)
	fake, err := library.Open(os.Getenv(cublaslt.Variable))
	require.NoError(t, err)
	control := func(name string, args ...uintptr) uintptr {
		f, err := fake.Function(name)
		require.NoError(t, err)
		return f.Call(args)
	}
	random, p := newRandom(3), gemm.Problem{M: 8, N: 8, K: 8}
	assert.NotEmpty(t, r.multiply(random, p, 1, 0, 0, matmul.Library).Library)
	name := []byte("cublasLtDestroy\x00")
	control("fakecublaslt_fail", uintptr(unsafe.Pointer(&name[0])), 1, 14)
	var refused *cublaslt.StatusError
	require.ErrorAs(t, r.m.Close(), &refused)
	assert.Equal(t, "cublasLtDestroy", refused.Func)
	x := r.product(random, p, 1, 0, 0)
	_, err = r.m.Multiply(r.c, p, x.operands(), matmul.Library)
	require.ErrorIs(t, err, cuda.ErrNotOpen)
	r.free(x)
	assert.Positive(t, control("fakecublaslt_live"))
	for range 2 {
		require.NoError(t, r.m.Close())
		assert.Zero(t, control("fakecublaslt_live"))
	}
	runtime.KeepAlive(name)
}
