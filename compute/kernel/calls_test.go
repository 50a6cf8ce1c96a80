//go:build !gpu

package kernel_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/launchlog"
)

// eachFails calls an operation with the first call of a function of the driver failing, then with its second, until none is left.
// It returns how many failed.
func eachFails(t *testing.T, faults *fault.Driver, function string, op func() error, failed func(n uint64, err error)) (count int) {
	t.Helper()
	for n := uint64(1); ; n++ {
		before := faults.Injected()
		require.NoError(t, faults.Add(fault.Rule{Func: function, First: n, Result: cudadrv.Unknown}))
		err := op()
		faults.Clear()
		if faults.Injected() == before {
			require.NoError(t, err)
			return count
		}
		count++
		failed(n, err)
	}
}

// Whichever call of the driver fails in the first run of a kernel, the run returns the driver's error, and the next one succeeds.
func TestEachCallOfARunFails(t *testing.T) {
	driver, _ := launchlog.New()
	faults := fault.Wrap(driver)
	r := newRigOn(t, faults)
	in, total := r.made(tensor.Float32, 1<<18), r.made(tensor.Float32)
	require.NoError(t, in.Allocate())
	require.NoError(t, total.Allocate())
	for _, function := range []string{"cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel", "cuMemsetD8Async"} {
		count := eachFails(t, faults, function, func() error {
			c := r.context() // its tickets are made
			k, err := kernel.NewCompiler(c)
			require.NoError(t, err)
			sum, err := k.Reduction(plan.All, expr.Input(0, tensor.Float32).Sum())
			require.NoError(t, err)
			err = sum.Run(c, outs(total), in)
			if err != nil {
				faults.Clear()
				require.NoError(t, sum.Run(c, outs(total), in), function)
			}
			require.NoError(t, c.Synchronize(t.Context()))
			require.NoError(t, k.Close())
			return err
		}, func(n uint64, err error) { require.ErrorIs(t, err, cudadrv.Unknown, "%s number %d", function, n) })
		assert.Positive(t, count, function)
	}
}

// Whichever call of the driver fails in a measurement, it returns the driver's error, or disqualifies the variant by it. Nothing
// that it had allocated is left, and the next measurement succeeds.
func TestEachCallOfAMeasurementFails(t *testing.T) {
	driver, _ := launchlog.New()
	faults := fault.Wrap(driver)
	r := newRigOn(t, faults, kernel.WithTuning(small(kernel.Tuning{Rounds: 1})), kernel.WithClock(times{}.of))
	n := r.negation()
	require.NoError(t, n.y.Allocate())
	tune := func() error {
		_, err := n.k.Tune(t.Context(), outs(n.y), n.x)
		return err
	}
	require.NoError(t, tune())
	require.NoError(t, r.c.Synchronize(t.Context()))
	live := r.dev.Stats().LiveBytes
	for _, function := range []string{"cuLaunchKernel", "cuMemcpyHtoDAsync", "cuMemcpyDtoDAsync", "cuMemcpyDtoHAsync", "cuMemsetD8Async", "cuStreamSynchronize"} {
		count := eachFails(t, faults, function, tune, func(number uint64, err error) {
			if _, ok := errors.AsType[*kernel.DisqualifiedError](err); !ok {
				require.ErrorIs(t, err, cudadrv.Unknown, "%s number %d", function, number)
			}
			require.NoError(t, r.c.Synchronize(t.Context()))
			require.Equal(t, live, r.dev.Stats().LiveBytes, "%s number %d", function, number)
		})
		t.Logf("%s: %d calls", function, count)
	}
}
