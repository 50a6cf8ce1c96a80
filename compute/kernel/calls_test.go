//go:build !gpu

package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
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

// Whichever call of the driver fails in the first run of a kernel, or as it is prepared, the driver's error is returned, and the next
// attempt succeeds.
func TestEachCallOfARunFails(t *testing.T) {
	driver, _ := launchlog.New()
	faults := fault.Wrap(driver)
	r := newRigOn(t, faults)
	in, total := r.made(tensor.Float32, 1<<18), r.made(tensor.Float32)
	require.NoError(t, in.Allocate())
	require.NoError(t, total.Allocate())
	code := []string{"cuModuleLoadData", "cuModuleGetFunction"}
	for name, one := range map[string]struct {
		functions []string
		do        func(k *kernel.Compiler, c *cuda.Context, sum *kernel.Kernel) error
	}{
		"Run": {append(code, "cuLaunchKernel", "cuMemsetD8Async"), func(_ *kernel.Compiler, c *cuda.Context, sum *kernel.Kernel) error {
			return sum.Run(c, outs(total), in)
		}},
		"Prepare": {code, func(_ *kernel.Compiler, _ *cuda.Context, sum *kernel.Kernel) error {
			_, err := sum.Prepare(outs(total), in).Await(t.Context())
			return err
		}},
		"WarmUp": {code, func(k *kernel.Compiler, _ *cuda.Context, sum *kernel.Kernel) error {
			return k.WarmUp(t.Context(), []kernel.Need{{Kernel: sum, Layouts: []layout.Layout{in.Layout(), total.Layout()}}}, nil)
		}},
	} {
		for _, function := range one.functions {
			count := eachFails(t, faults, function, func() error {
				c := r.context() // its tickets are made
				k, err := kernel.NewCompiler(c)
				require.NoError(t, err)
				sum, err := k.Reduction(plan.All, expr.Input(0, tensor.Float32).Sum())
				require.NoError(t, err)
				err = one.do(k, c, sum)
				if err != nil {
					faults.Clear()
					require.NoError(t, one.do(k, c, sum), "%s, %s", name, function)
				}
				require.NoError(t, c.Synchronize(t.Context()))
				require.NoError(t, k.Close())
				return err
			}, func(n uint64, err error) {
				require.ErrorIs(t, err, cudadrv.Unknown, "%s, %s number %d", name, function, n)
			})
			assert.Positive(t, count, "%s, %s", name, function)
		}
	}
}

// turning is a kernel that transposes a matrix: it has two variants, of which the larger tile is the faster one.
type turning struct {
	*rig
	driver *sim.Driver
	faults *fault.Driver
	k      *kernel.Kernel
	x, y   *tensor.Tensor
}

const smallTile, largeTile = "block=256 vector=1 tile=32", "block=256 vector=1 tile=64"

// newTurning is on a simulated device whose kernels do nothing, and take a time for each block.
func newTurning(t *testing.T, eachBlock time.Duration, with ...kernel.Option) *turning {
	t.Helper()
	driver := sim.New(sim.Config{Bytes: true, TimedKernels: true, KernelTime: func(_ string, g cudadrv.Geometry) time.Duration {
		return time.Duration(g.Grid.X*g.Grid.Y*g.Grid.Z) * eachBlock
	}})
	faults := fault.Wrap(driver)
	r := newRigOn(t, faults, append([]kernel.Option{kernel.WithTuning(small(kernel.Tuning{Rounds: 1}))}, with...)...)
	k, err := r.kernels.Elementwise(expr.Input(0, tensor.Float32).Neg())
	require.NoError(t, err)
	x, err := r.normal(1, 48, 48).Transpose(0, 1)
	require.NoError(t, err)
	return &turning{r, driver, faults, k, x, r.made(tensor.Float32, 48, 48)}
}

// Whichever call of the driver fails in a measurement, it returns the driver's error, or disqualifies the variant by it where that
// was launched to be compared, also the winner after it was timed. Nothing that it had made is left, and the next measurement
// succeeds.
func TestEachCallOfAMeasurementFails(t *testing.T) {
	for name, with := range map[string][]kernel.Option{
		"times of the device": nil, "times of a test": {kernel.WithClock(times{largeTile: 100}.of)},
	} {
		n := newTurning(t, 400*time.Microsecond, with...)
		tuned := func() ([]tune.Row, error) { return n.k.Tune(t.Context(), outs(n.y), n.x) }
		left := func() map[string]int {
			require.NoError(t, n.c.Synchronize(t.Context()))
			all := n.driver.Device(0).Objects()
			all["live byte"] = int(n.dev.Stats().LiveBytes)
			return all
		}
		rows, err := tuned()
		require.NoError(t, err)
		require.Len(t, rows, 2, "a disqualified variant is the last one")
		before := left()
		var calls []string
		n.faults.SetBefore(func(function string) { calls = append(calls, function) })
		_, err = tuned()
		n.faults.SetBefore(nil)
		require.NoError(t, err)
		launches, launchCount := 0, 0
		for _, function := range calls {
			if function == "cuLaunchKernel" {
				launchCount++
			}
		}
		seen := map[string]int{}
		for i, function := range calls {
			require.NoError(t, n.faults.Add(fault.Rule{First: uint64(i + 1), Count: 1, Result: cudadrv.Unknown}))
			_, err := tuned()
			n.faults.Clear()
			wrong, disqualified := errors.AsType[*kernel.DisqualifiedError](err)
			where := fmt.Sprintf("%s, call %d, %s: %v", name, i+1, function, err)
			switch {
			case disqualified:
				seen["disqualified "+function]++
				require.Len(t, wrong.Rows, 1, where)
				assert.Equal(t, largeTile, wrong.Rows[0].Variant, where)
				assert.Equal(t, tune.Failed, wrong.Rows[0].State, where)
				assert.Contains(t, wrong.Rows[0].Why, cudadrv.Unknown.Error(), where)
			case err != nil || function != "cuStreamIsCapturing": // it is asked again by the call itself
				require.ErrorIs(t, err, cudadrv.Unknown, where)
			}
			if function == "cuLaunchKernel" { // two of each variant, then those that are timed, then two of the winner
				launches++
				assert.Equal(t, launches > 2 && launches <= 4 || launches > launchCount-2, disqualified, where)
			}
			if function == "cuEventDestroy" {
				before["event"]++ // it stays where the driver does not end it
			}
			require.Equal(t, before, left(), where)
			_, err = tuned()
			require.NoError(t, err, where)
		}
		for _, function := range []string{"cuMemcpyHtoDAsync", "cuMemcpyDtoDAsync", "cuMemcpyDtoHAsync", "cuMemsetD8Async", "cuEventElapsedTime"} {
			assert.Zero(t, seen["disqualified "+function], "%s is no launch of a variant", function)
		}
	}
}

// A time is the mean of as many launches as last two milliseconds together, from one to sixteen. Fills before them keep the device
// busy: two, and one for each four launches.
func TestATimeIsOfManyLaunches(t *testing.T) {
	const smallBlocks, compared = 4, 6 // a launch of the small tile has four blocks; two launches of each variant and of the winner are compared
	for each, repeats := range map[time.Duration]uint64{
		4 * time.Microsecond: 16, 125 * time.Microsecond: 16, 126 * time.Microsecond: 15, 500 * time.Microsecond: 4, time.Millisecond: 2,
		1100 * time.Microsecond: 1, 2 * time.Millisecond: 1, 100 * time.Millisecond: 1,
	} {
		n := newTurning(t, each/smallBlocks)
		counts := func(function string) uint64 { return n.driver.Device(0).Counts()[function] }
		launches, fills := counts("cuLaunchKernel"), counts("cuMemsetD8Async")
		rows, err := n.k.Tune(t.Context(), outs(n.y), n.x)
		require.NoError(t, err)
		assert.Equal(t, each/smallBlocks*smallBlocks, find(t, rows, smallTile).Median, each)
		assert.Equal(t, each/smallBlocks, find(t, rows, largeTile).Median, each)
		assert.Equal(t, compared+1+2*repeats, counts("cuLaunchKernel")-launches, each)
		assert.Equal(t, compared+2+2*(2+repeats/4), counts("cuMemsetD8Async")-fills, each)
	}
}

// A Run that cannot wait for the work before its measurement returns the driver's error and submits nothing. The next Run measures.
func TestAFirstRunThatCannotWaitMeasuresLater(t *testing.T) {
	n := newTurning(t, time.Microsecond, kernel.WithTuning(small(kernel.Tuning{Mode: kernel.TuneNow, Rounds: 1})))
	launches := func() uint64 { return n.driver.Device(0).Counts()["cuLaunchKernel"] }
	require.NoError(t, n.c.Fill8(cuda.Whole(must(n.x.Buffer())), 0)) // work to wait for
	require.NoError(t, n.faults.Add(fault.Rule{Func: "cuStreamSynchronize", First: 1, Count: 1, Result: cudadrv.Unknown}))
	require.ErrorIs(t, n.k.Run(n.c, outs(n.y), n.x), cudadrv.Unknown)
	n.faults.Clear()
	assert.Zero(t, launches())
	stats := n.kernels.Stats()
	assert.Zero(t, stats.Tuned+stats.TuningFailed)
	for range 2 {
		require.NoError(t, n.k.Run(n.c, outs(n.y), n.x))
		assert.Equal(t, int64(1), n.kernels.Stats().Tuned)
	}
	assert.Positive(t, launches())
}

// A measurement that takes too long has rows where each variant was timed in enough rounds, and else fails. One that is cancelled
// has none at any time.
func TestAMeasurementThatTakesLong(t *testing.T) {
	for name, row := range map[string]struct {
		limit          time.Duration
		cancelled      int // by this call of the clock
		asked, rounds  int
		want           error
		tuned, refused int64
	}{
		"before the third round ends":     {limit: 5*time.Minute - 1, asked: 5, want: kernel.ErrTuningTime, refused: 1},
		"as the third round ends":         {limit: 6*time.Minute - 1, asked: 6, rounds: 3, tuned: 1},
		"in the fourth round":             {limit: 6 * time.Minute, asked: 7, rounds: 3, tuned: 1},
		"not":                             {limit: 10 * time.Minute, asked: 10, rounds: 5, tuned: 1},
		"cancelled before the third ends": {limit: time.Hour, cancelled: 5, asked: 5, want: context.Canceled, refused: 1},
		"cancelled in the fourth round":   {limit: time.Hour, cancelled: 7, asked: 7, want: context.Canceled, refused: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				asked := 0
				n := newTurning(t, 0, kernel.WithTuning(small(kernel.Tuning{Rounds: 5, Limit: row.limit})), kernel.WithClock(func(plan.Schedule) time.Duration {
					if asked++; asked == row.cancelled {
						cancel()
					}
					time.Sleep(time.Minute) //nolint:forbidigo // virtual time
					return time.Microsecond
				}))
				rows, err := n.k.Tune(ctx, outs(n.y), n.x)
				n.kernels.AwaitTuning()
				require.ErrorIs(t, err, row.want)
				assert.Equal(t, row.asked, asked)
				assert.Equal(t, err == nil, rows != nil)
				for _, r := range rows {
					assert.GreaterOrEqual(t, r.Rounds, row.rounds)
				}
				stats := n.kernels.Stats()
				assert.Equal(t, [2]int64{row.tuned, row.refused}, [2]int64{stats.Tuned, stats.TuningFailed})
				assert.Equal(t, time.Duration(asked)*time.Minute, stats.TuningTime)
			})
		})
	}
}
