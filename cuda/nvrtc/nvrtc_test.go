//go:build linux && (amd64 || arm64)

package nvrtc_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/nvrtc"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
	"github.com/go-vram/vram/cudadrv/sim"
)

// fake builds the library of testdata.
func fake(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libnvrtc.so.13")
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err) //nolint:forbidigo // the fake is C, and there is nothing to open without a compiler
	}
	out, err := exec.Command(compiler, "-shared", "-fPIC", "-o", path, "testdata/fakenvrtc.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

func TestSourceIsCompiled(t *testing.T) {
	path := fake(t)
	l, err := nvrtc.Find("/nothing/libnvrtc.so.13", path)
	require.NoError(t, err)
	assert.Equal(t, path, l.Path())
	major, minor := l.Version()
	assert.Equal(t, [2]int{13, 7}, [2]int{major, minor})
	for _, of := range []cudadrv.ComputeCapability{{Major: 9}, {Major: 99, Minor: 9}} {
		image, err := l.Compile("ok.cu", "source", of, "-DX=1")
		require.NoError(t, err)
		assert.Equal(t, "source", string(image[:6]))
	}
}

// PTX is PTX for every kind of device that the compiler knows.
func TestSourceIsCompiledToPTX(t *testing.T) {
	l, err := nvrtc.Find(fake(t))
	require.NoError(t, err)
	text, err := l.PTX("ok.cu", "source", cudadrv.ComputeCapability{Major: 7})
	require.NoError(t, err)
	assert.Equal(t, "source\x00", string(text))
	var refused *nvrtc.CompileError
	_, err = l.PTX("broken.cu", "#error", cudadrv.ComputeCapability{Major: 7})
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "--gpu-architecture=compute_70", refused.Options[0])
	_, err = (*nvrtc.Library)(nil).PTX("", "", cudadrv.ComputeCapability{})
	require.ErrorIs(t, err, nvrtc.ErrLibrary)
}

func TestWrongSourceIsNumbered(t *testing.T) {
	l, err := nvrtc.Find(fake(t))
	require.NoError(t, err)
	_, err = l.Compile("broken.cu", "int a;\n#error\n", cudadrv.ComputeCapability{Major: 9})
	var refused *nvrtc.CompileError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, 6, refused.Result)
	assert.Contains(t, err.Error(), "broken.cu(2): error: #error")
	assert.Contains(t, err.Error(), "1  int a;\n2  #error\n")
}

func TestALibraryThatIsNotThere(t *testing.T) {
	_, err := nvrtc.Find("/nothing/libnvrtc.so.13")
	var missing *nvrtc.NotFoundError
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, []string{"/nothing/libnvrtc.so.13"}, missing.Tried)
	require.ErrorContains(t, err, "/nothing/libnvrtc.so.13: cannot open shared object file")
}

// A long source is shown around the lines that the log names.
func TestALongSourceIsShownWhereItIsWrong(t *testing.T) {
	source := strings.Repeat("int a;\n", 20) + "wrong\n" + strings.Repeat("int b;\n", 20)
	e := &nvrtc.CompileError{
		Name: "x.cu", Source: source, Result: 6,
		Log: "x.cu(21): error: identifier\n      wrong\n      ^\n\nother.h(3): error: there\nx.cu(2): warning: here\nx.cu(21): error: again\nx.cu(end): note\n",
	}
	assert.Equal(t, []int{2, 21}, e.Lines())
	const want = " 1  int a;\n 2  int a;\n 3  int a;\n 4  int a;\n...\n19  int a;\n20  int a;\n21  wrong\n22  int b;\n23  int b;\n...\n"
	assert.True(t, strings.HasSuffix(e.Error(), want), e.Error())
	assert.Equal(t, nvrtc.Numbered(source), nvrtc.Excerpt(source, []int{0, 42}), "no line that there is")
}

// The variable names the library, or forbids it; paths of the caller come before it.
func TestTheVariableNamesTheLibrary(t *testing.T) {
	path := fake(t)
	t.Setenv(nvrtc.Variable, path)
	l, err := nvrtc.Find()
	require.NoError(t, err)
	assert.Equal(t, path, l.Path())
	t.Setenv(nvrtc.Variable, "/nothing/libnvrtc.so")
	var missing *nvrtc.NotFoundError
	_, err = nvrtc.Find()
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, []string{"/nothing/libnvrtc.so"}, missing.Tried)
	t.Setenv(nvrtc.Variable, "off")
	_, err = nvrtc.Find()
	require.ErrorAs(t, err, &missing)
	require.ErrorIs(t, err, nvrtc.ErrForbidden)
	assert.Equal(t, "nvrtc: not found: VRAM_NVRTC is off", err.Error())
	_, err = nvrtc.Find(path)
	require.NoError(t, err)
}

// Code of a context's device is loaded; a simulated device, which does not take it, gets PTX.
func TestCodeIsLoaded(t *testing.T) {
	l, err := nvrtc.Find(fake(t))
	require.NoError(t, err)
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	c, err := cuda.NewContext(s)
	require.NoError(t, err)
	for _, source := range []string{drivertest.PTX, drivertest.PTX + "// binary\n"} {
		m, err := l.Load(c, "kernels.cu", source)
		require.NoError(t, err)
		_, err = m.Function("vram_fill32")
		require.NoError(t, err)
	}
	_, err = l.Load(c, "broken.cu", "#error")
	var refused *nvrtc.CompileError
	require.ErrorAs(t, err, &refused)
	_, err = l.Load(c, "nothing.cu", "no PTX")
	require.ErrorIs(t, err, cudadrv.InvalidImage)
	_, err = l.Load(nil, "kernels.cu", drivertest.PTX)
	require.ErrorIs(t, err, cuda.ErrNotOpen)
	_, err = (*nvrtc.Library)(nil).Load(c, "kernels.cu", drivertest.PTX)
	require.ErrorIs(t, err, nvrtc.ErrLibrary)
	require.NoError(t, c.Close())
	_, err = l.Load(c, "kernels.cu", drivertest.PTX)
	require.ErrorIs(t, err, cuda.ErrNotOpen)
	require.NoError(t, dev.Close())
}
