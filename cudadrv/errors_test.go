package cudadrv_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

func TestResultNamesAreCUDAs(t *testing.T) {
	for r, name := range map[cudadrv.Result]string{
		cudadrv.Success:        "CUDA_SUCCESS",
		cudadrv.OutOfMemory:    "CUDA_ERROR_OUT_OF_MEMORY",
		cudadrv.IllegalAddress: "CUDA_ERROR_ILLEGAL_ADDRESS",
		cudadrv.NotReady:       "CUDA_ERROR_NOT_READY",
	} {
		assert.Equal(t, name, r.String())
		assert.Equal(t, name, r.Error())
	}
}

func TestUnknownResultsKeepTheirNumber(t *testing.T) {
	assert.Equal(t, "CUresult(709)", cudadrv.Result(709).String())
}

func TestCallErrorIsItsResultAlsoWhenWrapped(t *testing.T) {
	err := fmt.Errorf("pool: grow: %w", &cudadrv.CallError{Func: "cuMemCreate", Result: cudadrv.OutOfMemory})
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	assert.NotErrorIs(t, err, cudadrv.InvalidValue)

	var call *cudadrv.CallError
	require.True(t, errors.As(err, &call))
	assert.Equal(t, "cuMemCreate", call.Func)
	assert.Equal(t, "cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY", call.Error())
	call.Detail = "2 MiB wanted, 0 free"
	assert.Equal(t, "cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY: 2 MiB wanted, 0 free", call.Error())
}

func TestCapabilityHasWantsAll(t *testing.T) {
	both := cudadrv.VirtualMemory | cudadrv.PinnedHost
	assert.True(t, both.Has(cudadrv.VirtualMemory))
	assert.True(t, both.Has(both))
	assert.False(t, cudadrv.VirtualMemory.Has(both))
	assert.True(t, cudadrv.Capability(0).Has(0))
}

// The error of an argument that is not opened is ErrNotOpen, and no other.
func TestAnArgumentThatIsNotOpened(t *testing.T) {
	err := error(&cudadrv.NotOpenError{Argument: "stream"})
	assert.ErrorIs(t, err, cudadrv.ErrNotOpen)
	assert.NotErrorIs(t, err, cudadrv.OutOfMemory)
	assert.ErrorContains(t, err, "stream")
}
