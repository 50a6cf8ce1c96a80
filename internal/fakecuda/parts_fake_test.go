//go:build linux && (amd64 || arm64) && !gpu

package fakecuda_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestACrashIsAnAnswer(t *testing.T) {
	open(t) // where there is a compiler
	got := answersOf(t, "crashing", nil)
	assert.Equal(t, "# crashing\n"+
		"first, cuDriverGetVersion: CUDA_SUCCESS\n"+
		"second, cuDriverGetVersion: crash\n"+
		"third, cuDriverGetVersion: CUDA_SUCCESS\n"+
		"needed, cuDriverGetVersion: crash\n"+
		"fifth, cuInit: CUDA_ERROR_INVALID_VALUE\n", tableOf([]*sheet{got}))
}
