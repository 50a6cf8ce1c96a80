//go:build !gpu

package matmul_test

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/cublaslt"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/kept"
	"github.com/go-vram/vram/internal/launchlog"
)

// launched are products that take each way through the package.
var launched = []gemm.Problem{
	{M: 64, N: 64, K: 64},
	{M: 64, N: 64, K: 1 << 14, Precision: gemm.TF32},
	{M: 1, N: 64, K: 64, Bias: true},
	{M: 70, N: 1, K: 9000},
	{M: 70, N: 60, K: 0},
	{M: 64, N: 72, K: 64, Precision: gemm.RoundedBF16},
	{M: 64, N: 72, K: 64, Precision: gemm.RoundedF16, Batch: 3},
	{M: 500, N: 500, K: 64, Precision: gemm.TF32x3, Epilogue: gemm.GELU},
	{M: 128, N: 128, K: 128, In: gemm.BFloat16, Out: gemm.BFloat16, Epilogue: gemm.GELUAux, Bias: true},
	{M: 128, N: 128, K: 4096, In: gemm.Float16, Epilogue: gemm.GELUGradient},
	{M: 30, N: 20, K: 40, In: gemm.Float64, Out: gemm.Float64, Batch: 2},
	{M: 2, N: 2, K: 1, Batch: 65535},
	{M: 2, N: 2, K: 1, Batch: 65536},
	{M: 0, N: 2, K: 1},
	{M: 4096, N: 4096, K: 4096, TransposeA: true, Precision: gemm.TF32},
	{M: 4096, N: 3072, K: 4096, TransposeA: true, Precision: gemm.TF32},
	{M: 2048, N: 2048, K: 2048, In: gemm.BFloat16, Out: gemm.BFloat16},
}

// zeros are the operands of a product, without numbers.
func (r *rig) zeros(p gemm.Problem) gemm.Operands {
	r.Helper()
	p, e, err := p.Check()
	require.NoError(r, err)
	made := func(bytes int64) cuda.Range {
		if bytes == 0 {
			return cuda.Range{}
		}
		b, err := r.c.Alloc(bytes)
		require.NoError(r, err)
		r.Cleanup(func() { assert.NoError(r, b.Free()) })
		return cuda.Whole(b)
	}
	o := gemm.Operands{A: made(e.A), B: made(e.B), C: made(e.C), Alpha: 1}
	if p.Bias {
		o.Bias = made(e.Bias)
	}
	if p.Epilogue.ReadsAux() || p.Epilogue.WritesAux() {
		o.Aux = made(e.Aux)
	}
	return o
}

// Each product has the launches that testdata has for it: a change of their number, geometry or kernels is seen.
func TestLaunches(t *testing.T) {
	const file = "testdata/launches.txt"
	driver, log := launchlog.New()
	r := newRigOn(t, driver)
	var text strings.Builder
	for _, p := range launched {
		for _, multiprocessors := range []int64{132, 1} {
			m := matmul.New(r.c)
			matmul.SetMultiprocessors(m, multiprocessors)
			path, err := m.Multiply(r.c, p, r.zeros(p), matmul.Own)
			require.NoError(t, err, "%v", p)
			require.NoError(t, r.c.Synchronize(t.Context()))
			fmt.Fprintf(&text, "%v on %d multiprocessors: %v: %s\n", p, multiprocessors, path, log.Take())
			require.NoError(t, m.Close())
		}
	}
	counts := driver.(*sim.Driver).Device(0).Counts()
	assert.Equal(t, counts["cuModuleLoadData"], counts["cuModuleUnload"], "modules end with their multiplier")
	kept.Text(t, flag.Lookup("update").Value.String() == "true", file, text.String())
}

// Whichever call of the driver fails, the product returns the driver's error; and it is computed later.
func TestAFailedCallIsAnError(t *testing.T) {
	driver, _ := launchlog.New()
	faults := fault.Wrap(driver)
	r := newRigOn(t, faults)
	for _, p := range launched {
		o := r.zeros(p)
		for _, function := range []string{"cuLaunchKernel", "cuModuleLoadData", "cuModuleGetFunction", "cuFuncSetAttribute", "cuTensorMapEncodeTiled"} {
			for n, failed := uint64(1), true; failed; n++ {
				before := faults.Injected()
				m := matmul.New(r.c)
				require.NoError(t, faults.Add(fault.Rule{Func: function, First: n, Result: cudadrv.Unknown}))
				_, err := m.Multiply(r.c, p, o, matmul.Own)
				faults.Clear()
				if failed = faults.Injected() > before; failed {
					require.ErrorIs(t, err, cudadrv.Unknown, "%v: %s number %d", p, function, n)
				} else {
					require.NoError(t, err, "%v", p)
				}
				_, err = m.Multiply(r.c, p, o, matmul.Own)
				require.NoError(t, err, "%v", p)
				require.NoError(t, r.c.Synchronize(t.Context()))
				require.NoError(t, m.Close())
			}
		}
	}
}

// Prepare with the choice Library fails where the library is absent; with the others it loads the own kernels.
func TestPrepareWithoutTheLibrary(t *testing.T) {
	t.Setenv(cublaslt.Variable, filepath.Join(t.TempDir(), "none.so"))
	driver, _ := launchlog.New()
	r := newRigOn(t, driver)
	loads := func() uint64 { return driver.(*sim.Driver).Device(0).Counts()["cuModuleLoadData"] }
	for i, p := range []gemm.Problem{launched[0], launched[2]} {
		var absent *cublaslt.AbsentError
		before := loads()
		require.ErrorAs(t, r.m.Prepare(p, matmul.Library), &absent)
		assert.Equal(t, before, loads())
		require.NoError(t, r.m.Prepare(p, []matmul.Choice{matmul.Any, matmul.Own}[i]))
		assert.Equal(t, before+1, loads())
	}
}

// A closed multiplier, and one that is none, refuse all; operands that do not fit are refused before any launch.
func TestAMultiplierThatIsClosed(t *testing.T) {
	driver, log := launchlog.New()
	dev, err := vram.Open(vram.Config{Driver: driver})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	r := &rig{TB: t, dev: dev}
	r.c = r.context()
	t.Cleanup(func() { assert.NoError(t, r.c.Close()) })
	m := matmul.New(r.c)
	p := gemm.Problem{M: 64, N: 64, K: 64}
	o := r.zeros(p)
	short := o
	short.C.Bytes--
	var refused *gemm.ProblemError
	_, err = m.Multiply(r.c, p, short, matmul.Own)
	require.ErrorAs(t, err, &refused)
	overlapping := o
	overlapping.C = overlapping.A
	var overlap *gemm.OverlapError
	_, err = m.Multiply(r.c, p, overlapping, matmul.Own)
	require.ErrorAs(t, err, &overlap)
	assert.Empty(t, log.Take())
	require.NoError(t, m.Prepare(p, matmul.Own))
	require.NoError(t, m.Close())
	_, err = m.Multiply(r.c, gemm.Problem{M: 64, N: 64, K: 65}, r.zeros(gemm.Problem{M: 64, N: 64, K: 65}), matmul.Own)
	require.ErrorIs(t, err, cuda.ErrNotOpen)
	require.ErrorIs(t, m.Prepare(gemm.Problem{M: 64, N: 64, K: 64}, matmul.Own), cuda.ErrNotOpen)
	for _, none := range []*matmul.Multiplier{nil, {}} {
		_, err = none.Multiply(r.c, p, o, matmul.Own)
		require.ErrorIs(t, err, cuda.ErrNotOpen)
		_, err = none.Needs(p)
		require.ErrorIs(t, err, cuda.ErrNotOpen)
		require.ErrorIs(t, none.Prepare(p, matmul.Own), cuda.ErrNotOpen)
		require.ErrorIs(t, none.Close(), cuda.ErrNotOpen)
	}
}

// Goroutines that multiply at the same time, each on a stream of its own, all have the kernels, and all learn that there is no library.
func TestGoroutinesThatMultiply(t *testing.T) {
	t.Setenv(cublaslt.Variable, filepath.Join(t.TempDir(), "none.so"))
	driver, _ := launchlog.New()
	r := newRigOn(t, driver)
	type caller struct {
		on       *cuda.Context
		operands []gemm.Operands
	}
	var callers []caller
	for range 3 {
		other := *r
		other.c = r.context()
		t.Cleanup(func() { assert.NoError(t, other.c.Close()) })
		x := caller{on: other.c}
		for _, p := range launched[:7] {
			x.operands = append(x.operands, other.zeros(p))
		}
		callers = append(callers, x)
	}
	for range 5 {
		m := matmul.New(r.c)
		start := make(chan struct{})
		var group sync.WaitGroup
		for first, x := range callers {
			group.Go(func() {
				<-start
				_, err := m.Multiply(x.on, launched[0], x.operands[0], matmul.Library)
				var absent *cublaslt.AbsentError
				assert.ErrorAs(t, err, &absent)
				for n := range x.operands {
					n = (n + 2*first) % len(x.operands) // each begins with another kernel
					_, err := m.Multiply(x.on, launched[n], x.operands[n], matmul.Own)
					assert.NoError(t, err)
				}
				assert.NoError(t, x.on.Synchronize(context.Background()))
			})
		}
		close(start)
		group.Wait()
		require.NoError(t, m.Close())
	}
}
