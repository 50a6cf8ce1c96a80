//go:build !gpu

package cublaslt_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/cublaslt"
	"github.com/go-vram/vram/cuda/gemm"
)

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

var problem = gemm.Problem{M: 4, N: 8, K: 16, Bias: true, Epilogue: gemm.GELUAux, Batch: 2}

// Each library call that fails once returns an error with its name and status, leaves nothing allocated, and does not affect
// the next product.
func TestFailingCalls(t *testing.T) {
	r := newRig(t)
	p, e, o := r.ones(problem)
	for _, name := range []string{
		"cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutSetAttribute",
		"cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul",
	} {
		failures := 0
		for ; ; failures++ {
			h, err := cublaslt.Open(r.c)
			require.NoError(t, err)
			r.call("fakecublaslt_reset")
			r.fail(name, failures+1, 14)
			require.NoError(t, r.c.Fill8(cuda.Whole(o.C.Buffer), 0))
			err = r.multiply(h, p, e, o)
			if err != nil {
				var failed *cublaslt.StatusError
				require.ErrorAs(t, err, &failed)
				assert.Contains(t, failed.Error(), "cublaslt: "+name+": CUBLAS_STATUS_INTERNAL_ERROR")
				if h.Plans() == 0 {
					assert.Equal(t, 1, r.live(), "the handle alone: %s %d", name, failures)
				}
				require.NoError(t, r.multiply(h, p, e, o))
			}
			assert.InDelta(t, 16.9999, r.first(o), 1e-3)
			require.NoError(t, r.c.Synchronize(context.Background()))
			require.NoError(t, h.Close())
			require.NoError(t, h.Close())
			require.ErrorIs(t, r.multiply(h, p, e, o), cuda.ErrNotOpen)
			require.Zero(t, r.live(), "%s %d", name, failures)
			if err == nil {
				break // there are no more calls
			}
		}
		assert.Positive(t, failures, name)
	}
}

// A handle that cannot be made is an error, and a library that is forbidden or absent another one.
func TestAbsentLibraries(t *testing.T) {
	r := newRig(t)
	r.fail("cublasLtCreate", 1, 3)
	_, err := cublaslt.Open(r.c)
	var failed *cublaslt.StatusError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, cublaslt.Status(3), failed.Status)

	t.Setenv(cublaslt.Variable, "/nowhere/libcublasLt.so")
	_, err = cublaslt.Open(r.c)
	var absent *cublaslt.AbsentError
	require.ErrorAs(t, err, &absent)
	assert.Equal(t, []string{"/nowhere/libcublasLt.so"}, absent.Tried)
	t.Setenv(cublaslt.Variable, "off")
	_, err = cublaslt.Open(r.c)
	require.ErrorAs(t, err, &absent)
	require.ErrorIs(t, err, cublaslt.ErrForbidden)
	_, err = cublaslt.Open(nil)
	require.Error(t, err)
}

// Each shape asks for its algorithm once. The cache is bounded, and evicted shapes are still computed.
func TestPlansAreKept(t *testing.T) {
	r := newRig(t)
	h, err := cublaslt.Open(r.c)
	require.NoError(t, err)
	p, e, o := r.ones(gemm.Problem{M: 4, N: 4, K: 4})
	first, err := h.Plan(p, cublaslt.AlignmentOf(p, o), false)
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, r.multiply(h, p, e, o))
	}
	assert.Equal(t, 1, r.calls("cublasLtMatmulAlgoGetHeuristic"))
	refused := p
	refused.Precision = gemm.TF32x3
	for range 2 {
		require.ErrorIs(t, r.multiply(h, refused, e, o), cublaslt.ErrUnsupported)
	}
	assert.Equal(t, 2, h.Plans())
	for n := range int64(cublaslt.MaxPlans) {
		q := gemm.Problem{M: 1, N: 5 + n, K: 1}.Filled()
		_, err := h.Plan(q, cublaslt.Alignment{A: 16, B: 16, C: 16, Bias: 16, Aux: 16}, false)
		require.NoError(t, err)
	}
	assert.Equal(t, cublaslt.MaxPlans, h.Plans())
	assert.Equal(t, 1+4*cublaslt.MaxPlans, r.live())
	w, err := r.c.Workspace(first.WorkspaceBytes)
	require.NoError(t, err)
	require.NoError(t, first.Launch(r.c, o, e, cuda.Whole(w)))
	assert.InDelta(t, 4, r.first(o), 1e-6)
	assert.Equal(t, 1+4*cublaslt.MaxPlans, r.live())
	require.NoError(t, h.Close())
}

// Plans that are asked for at the same time are one a problem, for which the library is asked once.
func TestManyGoroutinesPlan(t *testing.T) {
	r := newRig(t)
	h, err := cublaslt.Open(r.c)
	require.NoError(t, err)
	const goroutines, shapes = 4, cublaslt.MaxPlans / 4
	var plans [goroutines][shapes]*cublaslt.Plan
	var all sync.WaitGroup
	begin := make(chan struct{})
	for number := range plans {
		all.Go(func() {
			<-begin
			for i := range plans[number] {
				var err error
				n := int64((i+number*shapes/goroutines)%shapes) + 5
				plans[number][n-5], err = h.Plan(gemm.Problem{M: 1, N: n, K: 1}.Filled(), cublaslt.Alignment{A: 16, B: 16, C: 16}, false)
				assert.NoError(t, err)
			}
		})
	}
	close(begin)
	all.Wait()
	for _, own := range plans[1:] {
		for i := range own {
			assert.Same(t, plans[0][i], own[i])
		}
	}
	assert.Equal(t, shapes, h.Plans())
	assert.Equal(t, shapes, r.calls("cublasLtMatmulAlgoGetHeuristic"))
	require.NoError(t, h.Close())
}

// The plan that was used last stays longest in the cache, and one that has left it is asked for again.
func TestThePlanThatWasUsedLastStays(t *testing.T) {
	r := newRig(t)
	h, err := cublaslt.Open(r.c)
	require.NoError(t, err)
	plan := func(n int64) *cublaslt.Plan {
		plan, err := h.Plan(gemm.Problem{M: 1, N: 5 + n, K: 1}.Filled(), cublaslt.Alignment{A: 16, B: 16, C: 16}, false)
		require.NoError(t, err)
		return plan
	}
	var all []*cublaslt.Plan
	for n := range int64(cublaslt.MaxPlans) {
		all = append(all, plan(n))
	}
	assert.Same(t, all[0], plan(0))
	plan(cublaslt.MaxPlans)
	asked := r.calls("cublasLtMatmulAlgoGetHeuristic")
	assert.Same(t, all[0], plan(0), "it was used")
	assert.Same(t, all[2], plan(2))
	assert.Equal(t, asked, r.calls("cublasLtMatmulAlgoGetHeuristic"))
	assert.NotSame(t, all[1], plan(1), "it has left")
	assert.Equal(t, asked+1, r.calls("cublasLtMatmulAlgoGetHeuristic"))
	require.NoError(t, h.Close())
}

// The library's errors at the end of a handle are Close's, and another call ends the rest. A library that lacks a function is none.
func TestErrorsAtTheEnds(t *testing.T) {
	r := newRig(t)
	p, e, o := r.ones(gemm.Problem{M: 4, N: 4, K: 4})
	for _, name := range []string{"cublasLtMatmulDescDestroy", "cublasLtMatrixLayoutDestroy", "cublasLtDestroy"} {
		h, err := cublaslt.Open(r.c)
		require.NoError(t, err)
		require.NoError(t, r.multiply(h, p, e, o))
		require.NoError(t, r.c.Synchronize(context.Background()))
		assert.Regexp(t, `^cuBLASLt \d+\.\d+\.\d+$`, h.Library())
		plan, err := h.Plan(p, cublaslt.AlignmentOf(p, o), false)
		require.NoError(t, err)
		assert.Equal(t, h.Library(), plan.Library)
		w, err := r.c.Workspace(max(plan.WorkspaceBytes, 1))
		require.NoError(t, err)
		r.fail(name, 1, 14)
		var failed *cublaslt.StatusError
		require.ErrorAs(t, h.Close(), &failed, name)
		assert.Equal(t, name, failed.Func)
		require.ErrorIs(t, plan.Launch(r.c, o, e, cuda.Part(w, 0, plan.WorkspaceBytes)), cuda.ErrNotOpen, name)
		for range 2 {
			require.NoError(t, h.Close(), name)
			assert.Zero(t, r.live(), name)
		}
	}
	assert.Zero(t, (*cublaslt.Handle)(nil).Plans())
	assert.Zero(t, new(cublaslt.Handle).Plans())

	t.Setenv(cublaslt.Variable, "libc.so.6")
	_, err := cublaslt.Open(r.c)
	var absent *cublaslt.AbsentError
	require.ErrorAs(t, err, &absent)
	assert.Equal(t, []string{"libc.so.6"}, absent.Tried)
	t.Setenv(cublaslt.Variable, "")
	if _, err = cublaslt.Open(r.c); errors.As(err, &absent) { // else this machine has it, which may refuse the fake's device
		require.NotEmpty(t, absent.Tried)
		assert.Contains(t, absent.Tried[0], "cublasLt")
		assert.Len(t, absent.Errs, len(absent.Tried))
	}
}

// A product of float64 has factors of float64.
func TestAProductOfFloat64(t *testing.T) {
	r := newRig(t)
	h, err := cublaslt.Open(r.c)
	require.NoError(t, err)
	p, e, o := r.ones(gemm.Problem{M: 4, N: 4, K: 4, In: gemm.Float64, Out: gemm.Float64})
	for _, at := range []cuda.Range{o.A, o.B, o.C} {
		values := make([]float64, 16)
		for i := range values {
			values[i] = 1 + 0x1p-40
		}
		require.NoError(t, cuda.Store(r.c, at, values))
	}
	o.Alpha, o.Beta = 0.5, 3+0x1p-40
	require.NoError(t, r.multiply(h, p, e, o))
	got, err := cuda.Load[float64](r.c, o.C, 16)
	require.NoError(t, err)
	const one = 1 + 0x1p-40
	assert.InDelta(t, 0.5*4*one*one+(3+0x1p-40)*one, got[15], 1e-14)
	require.NoError(t, h.Close())
}

// A stale operand is refused, and the library is not called.
func TestStaleOperands(t *testing.T) {
	r := newRig(t)
	h, err := cublaslt.Open(r.c)
	require.NoError(t, err)
	p, e, o := r.ones(gemm.Problem{M: 4, N: 4, K: 4})
	require.NoError(t, o.B.Buffer.Free())
	require.ErrorIs(t, r.multiply(h, p, e, o), cuda.ErrNotLive)
	assert.Zero(t, r.calls("cublasLtMatmul"))
	require.NoError(t, h.Close())
}

// A workspace that is shorter than the plan's is refused, also where its buffer is long enough.
func TestShortWorkspaces(t *testing.T) {
	r := newRig(t)
	h, err := cublaslt.Open(r.c)
	require.NoError(t, err)
	p, e, o := r.ones(gemm.Problem{M: 4, N: 4, K: 4})
	plan, err := h.Plan(p, cublaslt.AlignmentOf(p, o), false)
	require.NoError(t, err)
	require.Positive(t, plan.WorkspaceBytes)
	w, err := r.c.Workspace(plan.WorkspaceBytes)
	require.NoError(t, err)
	for _, work := range []cuda.Range{{}, cuda.Part(w, 0, plan.WorkspaceBytes-1), cuda.Part(w, 0, -1)} {
		var short *cuda.RangeError
		require.ErrorAs(t, plan.Launch(r.c, o, e, work), &short)
		assert.Equal(t, cuda.RangeError{Bytes: plan.WorkspaceBytes, BufferBytes: work.Bytes}, *short)
	}
	assert.Zero(t, r.calls("cublasLtMatmul"))
	require.NoError(t, plan.Launch(r.c, o, e, cuda.Whole(w)))
	assert.Equal(t, 1, r.calls("cublasLtMatmul"))
	require.NoError(t, r.c.Synchronize(context.Background()))
	require.NoError(t, h.Close())
}

// An algorithm without a workspace has a plan without one, which takes an empty range, and touches no other.
func TestAProductWithoutAWorkspace(t *testing.T) {
	r := newRig(t)
	h, err := cublaslt.Open(r.c)
	require.NoError(t, err)
	p, e, o := r.ones(gemm.Problem{M: 4, N: 4, K: 4})
	const findsWithout = -4 // the fake succeeds, with an algorithm that wants no workspace
	r.fail("cublasLtMatmulAlgoGetHeuristic", 1, findsWithout)
	plan, err := h.Plan(p, cublaslt.AlignmentOf(p, o), false)
	require.NoError(t, err)
	assert.Zero(t, plan.WorkspaceBytes)
	freed, err := r.c.Alloc(64)
	require.NoError(t, err)
	require.NoError(t, freed.Free())
	for _, work := range []cuda.Range{{}, cuda.Whole(freed), cuda.Part(o.A.Buffer, 0, 0)} {
		require.NoError(t, r.c.Fill8(o.C, 0))
		require.NoError(t, plan.Launch(r.c, o, e, work), work)
		assert.InDelta(t, 4, r.first(o), 0)
	}
	require.NoError(t, h.Close())
}

// Sums of 16-bit products are fp32, also where the library splits a long K: the sum of the first half is no number of the
// output's type.
func TestLongSumsOf16BitsAreFloat32(t *testing.T) {
	r := newRig(t)
	h, err := cublaslt.Open(r.c)
	require.NoError(t, err)
	for _, c := range []struct {
		of            gemm.Type
		first, second uint32 // two elements of A: of the first half of K, and of the second one
		each          uint32 // of B
		want          uint16
	}{
		{gemm.Float16, 0x5c005c00, 0xdc00dc00, 0x5c005c00, 0},       // 128*256*256 - 128*256*256: the halves are infinite
		{gemm.BFloat16, 0x3f813f80, 0xbf80bf80, 0x3f803f80, 0x3f00}, // 128.5 - 128: bfloat16 has no 128.5
	} {
		p, e, o := r.ones(gemm.Problem{M: 1, N: 1, K: 256, In: c.of, Out: c.of})
		require.NoError(t, r.c.Fill32(cuda.Part(o.A.Buffer, 0, 256), c.first))
		require.NoError(t, r.c.Fill32(cuda.Part(o.A.Buffer, 256, 256), c.second))
		require.NoError(t, r.c.Fill32(cuda.Whole(o.B.Buffer), c.each))
		require.NoError(t, r.multiply(h, p, e, o))
		got := make([]uint16, 1)
		require.NoError(t, cuda.CopyOut(r.c, got, o.C.Buffer))
		assert.Equal(t, c.want, got[0], "%v", c.of)
	}
	require.NoError(t, h.Close())
}
