package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda/nvrtc"
)

const ptxOfCopy = `.version 7.0
.target sm_70
.address_size 64
.visible .entry copy_word(.param .u64 from, .param .u64 to)
{
	.reg .b64 %d<3>; .reg .b32 %r<2>;
	ld.param.u64 %d1, [from]; ld.param.u64 %d2, [to];
	ld.global.u32 %r1, [%d1];
	st.global.u32 [%d2], %r1;
	ret;
}
`

// The command writes the package to the file, or to the output.
func TestKernelsAreWritten(t *testing.T) {
	source := file(t, "copy.ptx", ptxOfCopy)
	code, stdout, stderr := vramCommand(t, "kernels", "-package", "kern", source)
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stdout, "\npackage kern\n")
	assert.Contains(t, stdout, "CopyWord(on *cuda.Context, geometry cuda.Geometry, from, to cuda.Memory) error")
	assert.Contains(t, stdout, "cuda.Mark(from, cuda.In), cuda.Mark(to, cuda.Out)")
	numbered := file(t, "numbered.ptx", strings.NewReplacer("from", "copy_word_param_0", "to", "copy_word_param_1").Replace(ptxOfCopy))
	declared := file(t, "copy.cuh", "__global__ void copy_word(const int *source, int *copy);")
	code, named, stderr := vramCommand(t, "kernels", "-package", "kern", "-source", declared, numbered)
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, named, "source, copyValue cuda.Memory) error")
	remark := file(t, "remark.cuh", "// a line without an end")
	code, again, stderr := vramCommand(t, "kernels", "-package", "kern", "-source", remark, "-source", declared, numbered)
	require.Equal(t, exitOK, code, stderr)
	assert.Equal(t, named, again)
	to := filepath.Join(t.TempDir(), "kernels.go")
	code, printed, stderr := vramCommand(t, "kernels", "-package", "kern", "-o", to, source)
	require.Equal(t, exitOK, code, stderr)
	assert.Empty(t, printed)
	written, err := os.ReadFile(to)
	require.NoError(t, err)
	assert.Equal(t, stdout, string(written))
}

// A mistake is one line, the exit code 2, and no file.
func TestMistakesInKernels(t *testing.T) {
	source, cu := file(t, "copy.ptx", ptxOfCopy), file(t, "copy.cu", ptxOfCopy)
	to := filepath.Join(t.TempDir(), "kernels.go")
	for name, c := range map[string]struct {
		want string
		args []string
	}{
		"package":   {"no name of a Go package", []string{"-package", "func", source}},
		"none":      {"missing flags: --package=NAME", []string{source}},
		"twice":     {"kernel copy_word is in copy.ptx and in copy.ptx", []string{"-package", "kern", source, source}},
		"malformed": {"bad.ptx: ptx: 1:1", []string{"-package", "kern", source, file(t, "bad.ptx", "no PTX")}},
		"no file":   {"no such file", []string{"-package", "kern", filepath.Join(t.TempDir(), "a.ptx")}},
		"kind":      {"want a file .ptx or .cu", []string{"-package", "kern", file(t, "a.txt", ptxOfCopy)}},
		"source":    {"no such file", []string{"-package", "kern", "-source", filepath.Join(t.TempDir(), "a.cu"), source}},
		"folder":    {"no such file", []string{"-package", "kern", "-o", filepath.Join(t.TempDir(), "a", "b.go"), source}},
		"arch":      {"--arch sm_90a: want sm_70", []string{"-package", "kern", "-arch", "sm_90a", source}},
		"library":   {"/nothing/libnvrtc.so", []string{"-package", "kern", "-nvrtc", "/nothing/libnvrtc.so", cu}},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"kernels"}, c.args...)
			if name != "folder" {
				args = append(args, "-o", to)
			}
			code, stdout, stderr := vramCommand(t, args...)
			assert.Equal(t, exitUsage, code)
			assert.Empty(t, stdout)
			assert.Contains(t, stderr, c.want)
			assert.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
			assert.NoFileExists(t, to)
		})
	}
}

// notFound is a search for NVIDIA's compiler on a machine without it.
func notFound(...string) (*nvrtc.Library, error) { return nil, &nvrtc.NotFoundError{} }

// CUDA C++ without a compiler is an error with a remedy.
func TestCUDAWithoutACompiler(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := (&kernelsCmd{Arch: "sm_70"}).compile(t.Context(), "a.cu", "", notFound)
	require.ErrorIs(t, err, errNoCompiler)
	require.ErrorContains(t, err, "a.cu: ")
}
