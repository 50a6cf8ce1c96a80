package fault_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
)

func TestBadRulesAreNotAdded(t *testing.T) {
	drv, dev := open(t)
	for says, rule := range map[string]fault.Rule{
		`no function "cuMemCreat"`: {Func: "cuMemCreat", Result: cudadrv.Unknown},
		"no result to fail with":   {Func: "cuEventCreate"},
		"not between 0 and 1":      {Func: "cuEventCreate", Probability: 1.5, Result: cudadrv.Unknown},
		"probability NaN":          {Func: "cuEventCreate", Probability: math.NaN(), Result: cudadrv.Unknown},
	} {
		err := drv.Add(fault.Rule{Func: "cuEventCreate", Result: cudadrv.Unknown}, rule)
		require.ErrorIs(t, err, fault.ErrBadRule)
		assert.ErrorContains(t, err, says)
	}
	_, err := dev.EventCreate()
	require.NoError(t, err)
}

func TestRulesAsText(t *testing.T) {
	for text, rule := range map[string]fault.Rule{
		"cuMemCreate:5:2=CUDA_ERROR_OUT_OF_MEMORY": {Func: "cuMemCreate", First: 5, Count: 2, Result: cudadrv.OutOfMemory},
		"cuMemMap:3:*=CUDA_ERROR_MAP_FAILED":       {Func: "cuMemMap", First: 3, Count: fault.Forever, Result: cudadrv.MapFailed},
		"*~0.25@9=CUDA_ERROR_UNKNOWN":              {Probability: 0.25, Seed: 9, Result: cudadrv.Unknown},
		"cuMemAlloc:2~0.5=CUDA_ERROR_UNKNOWN":      {Func: "cuMemAlloc", First: 2, Probability: 0.5, Result: cudadrv.Unknown},
	} {
		assert.Equal(t, text, rule.String())
	}
}
