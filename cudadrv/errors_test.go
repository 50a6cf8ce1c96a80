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

// The results of failed work are sticky, and no other result is.
func TestStickyResults(t *testing.T) {
	sticky := map[cudadrv.Result]bool{
		cudadrv.IllegalAddress: true, cudadrv.LaunchTimeout: true, cudadrv.AssertionFailed: true, cudadrv.StackError: true,
		cudadrv.IllegalInstruction: true, cudadrv.MisalignedAddress: true, cudadrv.InvalidAddressSpace: true,
		cudadrv.InvalidProgramCounter: true, cudadrv.LaunchFailed: true, cudadrv.ECCUncorrectable: true,
		cudadrv.NVLinkUncorrectable: true, cudadrv.HardwareContained: true,
	}
	for r := range cudadrv.Result(1000) {
		if sticky[r] != r.Sticky() {
			assert.Equal(t, sticky[r], r.Sticky(), "%v", r)
		}
	}
	assert.Len(t, sticky, 12)
}

// viewed is a device with a view, which may be itself.
type viewed struct {
	cudadrv.Device
	view cudadrv.Device
}

func (v *viewed) ProgramView() cudadrv.Device { return v.view }

// The view of a device is the last of its views: the device itself where it has no other.
func TestTheViewOfADevice(t *testing.T) {
	plain := struct{ cudadrv.Device }{}
	own := new(viewed)
	own.view = own
	for _, c := range []struct{ of, want cudadrv.Device }{
		{plain, plain},
		{own, own},
		{&viewed{view: plain}, plain},
		{&viewed{view: &viewed{view: own}}, own},
	} {
		assert.Equal(t, c.want, cudadrv.ProgramView(c.of))
	}
}
