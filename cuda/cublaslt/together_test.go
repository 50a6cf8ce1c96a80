//go:build !gpu

package cublaslt_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/cublaslt"
	"github.com/go-vram/vram/cuda/gemm"
)

// Goroutines open the library, plan and multiply at the same time: each product has its own factors, and the handle has each
// plan once. Products that meet closes are right, or refused.
func TestCallsMeetAmongGoroutines(t *testing.T) {
	const goroutineCount, rounds = 3, 30
	r := newRig(t)
	shapes := []gemm.Problem{{M: 4, N: 4, K: 4}, {M: 4, N: 4, K: 8, Bias: true}}
	planCount := len(shapes) + goroutineCount*rounds
	type product struct {
		p gemm.Problem
		e gemm.Extent
		o gemm.Operands
	}
	var products [goroutineCount][]product
	var contexts [goroutineCount]*cuda.Context
	var handles [goroutineCount]*cublaslt.Handle
	var works [goroutineCount]cuda.Buffer
	for g := range products {
		for _, shape := range shapes {
			p, e, o := r.ones(shape)
			o.Alpha = float64(g + 1)
			products[g] = append(products[g], product{p, e, o})
		}
		s, err := r.dev.NewStream()
		require.NoError(t, err)
		contexts[g], err = cuda.NewContext(s)
		require.NoError(t, err)
		works[g], err = contexts[g].Alloc(cublaslt.MaxWorkspaceBytes)
		require.NoError(t, err)
	}
	require.NoError(t, r.c.Synchronize(t.Context()))
	multiply := func(h *cublaslt.Handle, g int, one product) error {
		plan, err := h.Plan(one.p, cublaslt.AlignmentOf(one.p, one.o), false)
		if err != nil {
			return err
		}
		return plan.Launch(contexts[g], one.o, one.e, cuda.Part(works[g], 0, plan.WorkspaceBytes))
	}
	holds := func(g int, one product) {
		got := make([]float32, 1)
		assert.NoError(t, cuda.CopyOut(contexts[g], got, one.o.C.Buffer))
		want := float32(one.o.Alpha) * float32(one.p.K)
		if one.p.Bias {
			want++
		}
		assert.InDelta(t, want, got[0], 1e-5)
	}
	all := func(f func(g int)) {
		var group sync.WaitGroup
		begin := make(chan struct{})
		for g := range goroutineCount {
			group.Go(func() {
				<-begin
				f(g)
			})
		}
		close(begin)
		group.Wait()
	}
	all(func(g int) {
		var err error
		handles[g], err = cublaslt.Open(r.c)
		assert.NoError(t, err)
	})
	all(func(g int) {
		for round := range rounds {
			own := gemm.Problem{M: 1, N: int64(5 + round*goroutineCount + g), K: 1}.Filled()
			_, err := handles[0].Plan(own, cublaslt.Alignment{A: 16, B: 16, C: 16}, false)
			assert.NoError(t, err)
			for _, one := range products[g] {
				assert.NoError(t, multiply(handles[0], g, one))
				holds(g, one)
				assert.LessOrEqual(t, handles[0].Plans(), planCount)
			}
		}
	})
	assert.Equal(t, planCount, handles[0].Plans())
	assert.Equal(t, planCount, r.calls("cublasLtMatmulAlgoGetHeuristic"))
	assert.Equal(t, goroutineCount*rounds*len(shapes), r.calls("cublasLtMatmul"))
	for _, h := range handles {
		all(func(g int) {
			if g < goroutineCount-1 {
				for _, one := range products[g] {
					if err := multiply(h, g, one); err != nil {
						assert.ErrorIs(t, err, cuda.ErrNotOpen)
						continue
					}
					holds(g, one)
				}
			}
			assert.NoError(t, h.Close())
			assert.ErrorIs(t, multiply(h, g, products[g][0]), cuda.ErrNotOpen)
		})
	}
	assert.Zero(t, r.live())
	for g, c := range contexts {
		require.NoError(t, errors.Join(works[g].Free(), c.Close()))
	}
}
