package cublaslt

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Libraries are looked for by the loader first, then in folders; a driver of CUDA 12 has none of 13.
func TestCandidates(t *testing.T) {
	env := func(name string) string {
		return map[string]string{"CUDA_HOME": "/opt/cuda", "VIRTUAL_ENV": "/venv", "HOME": "/home/me"}[name]
	}
	every := func(pattern string) ([]string, error) { return []string{pattern}, nil }
	all := candidates(13000, env, every)
	assert.Equal(t, []string{"libcublasLt.so.13", "libcublasLt.so.12", "/opt/cuda/lib64/libcublasLt.so.13"}, all[:3])
	for _, path := range candidates(12080, env, every) {
		assert.NotContains(t, path, ".13")
	}
	none := func(string) ([]string, error) { return nil, nil }
	assert.Len(t, candidates(13000, env, none), 2)
}
