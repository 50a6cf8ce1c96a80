package library

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The loader is asked first, then folders are, with the first name before the second.
func TestCandidates(t *testing.T) {
	env := func(name string) string {
		return map[string]string{"CUDA_HOME": "/opt/cuda", "CONDA_PREFIX": "/conda", "VIRTUAL_ENV": "/venv", "HOME": "/home/me"}[name]
	}
	every := func(pattern string) ([]string, error) { return []string{pattern}, nil }
	all := Candidates([]string{"libx.so.13", "libx.so.12"}, env, every)
	assert.Equal(t, []string{"libx.so.13", "libx.so.12", "/opt/cuda/lib64/libx.so.13"}, all[:3])
	for _, path := range []string{
		"/usr/local/cuda/lib64/libx.so.12", "/usr/local/cuda-*/lib64/libx.so.13", "/conda/lib/libx.so.13",
		"/venv/lib/python3*/site-packages/nvidia/c*/lib/libx.so.13", "/conda/lib/python3*/site-packages/nvidia/c*/lib/libx.so.12",
		"/home/me/.local/lib/python3*/site-packages/nvidia/c*/lib/libx.so.12", "/usr/lib/python3/dist-packages/nvidia/c*/lib/libx.so.12",
		"/usr/local/lib/python3*/dist-packages/nvidia/c*/lib/libx.so.12",
	} {
		assert.Contains(t, all, path)
	}
	none := func(string) ([]string, error) { return nil, nil }
	assert.Len(t, Candidates([]string{"libx.so"}, env, none), 1)
}
