package ptx_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// compiled are the CUDA C++ sources of testdata with the flags of clang.
func compiled() map[string][]string {
	return map[string][]string{
		"elementwise": {"--cuda-gpu-arch=sm_70", "-Xclang", "-target-feature", "-Xclang", "+ptx70"},
		"shared":      {"--cuda-gpu-arch=sm_70", "-Xclang", "-target-feature", "-Xclang", "+ptx70"},
		"calls":       {"--cuda-gpu-arch=sm_70", "-Xclang", "-target-feature", "-Xclang", "+ptx70", "-gline-tables-only"},
		"tensorcore":  {"--cuda-gpu-arch=sm_80", "-Xclang", "-target-feature", "-Xclang", "+ptx71"},
		"warpgroup":   {"--cuda-gpu-arch=sm_90a", "-Xclang", "-target-feature", "-Xclang", "+ptx80"},
	}
}

// The texts next to the sources come from clang 19. Debian's package clang-19 needs neither a toolkit of NVIDIA nor a GPU.
func TestClangWritesTheTexts(t *testing.T) {
	clang, err := exec.LookPath("clang-19")
	if err != nil {
		t.Skip(err) //nolint:forbidigo // the texts are committed, and only this compiler writes them
	}
	for name, flags := range compiled() {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.ptx")
			args := append([]string{
				"-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "-O3", "-S", "-ffile-prefix-map=" + workingDir(t) + "=.",
				"-fdebug-compilation-dir=.", name + ".cu", "-o", out,
			}, flags...)
			command := exec.Command(clang, args...)
			command.Dir = "testdata"
			messages, err := command.CombinedOutput()
			require.NoError(t, err, string(messages))
			text, err := os.ReadFile(out)
			require.NoError(t, err)
			golden(t, name+".ptx", string(text))
		})
	}
}

func workingDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	require.NoError(t, err)
	return dir
}

// The corpus has a text for each source.
func TestEachSourceHasItsText(t *testing.T) {
	sources, err := filepath.Glob("testdata/*.cu")
	require.NoError(t, err)
	assert.Len(t, sources, len(compiled()))
}
