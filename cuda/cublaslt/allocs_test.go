//go:build !gpu

package cublaslt_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/cublaslt"
	"github.com/go-vram/vram/cuda/gemm"
)

// A product whose plan is known allocates nothing on Go's heap.
func TestAWarmProductAllocatesNothing(t *testing.T) {
	r := newRig(t)
	h, err := cublaslt.Open(r.c)
	require.NoError(t, err)
	for name, p := range map[string]gemm.Problem{
		"plain": {M: 8, N: 8, K: 8}, "bias": {M: 8, N: 8, K: 8, Bias: true, Epilogue: gemm.GELUAux}, "batch": {M: 4, N: 8, K: 8, Batch: 3},
	} {
		p, e, o := r.ones(p)
		require.NoError(t, r.multiply(h, p, e, o), name)
		w, err := r.c.Workspace(cublaslt.MaxWorkspaceBytes)
		require.NoError(t, err)
		assert.LessOrEqual(t, testing.AllocsPerRun(100, func() {
			plan, err := h.Plan(p, cublaslt.AlignmentOf(p, o), o.Beta != 0)
			if err == nil {
				err = plan.Launch(r.c, o, e, cuda.Part(w, 0, plan.WorkspaceBytes))
			}
			if err != nil {
				t.Error(err)
			}
		}), float64(runAllocs), name)
	}
	require.NoError(t, r.c.Synchronize(context.Background()))
	require.NoError(t, h.Close())
}
