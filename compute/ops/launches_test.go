//go:build !gpu

package ops_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/kept"
	"github.com/go-vram/vram/internal/launchlog"
)

var update = flag.Bool("update", false, "write testdata/launches.txt again")

// each calls a function for each way of each operation, in the order of their names.
func (all calls) each(do func(name string, f call)) {
	for _, op := range slices.Sorted(maps.Keys(all)) {
		for _, way := range slices.Sorted(maps.Keys(all[op])) {
			do(op+", "+way, all[op][way])
		}
	}
}

// Each operation has the launches that testdata has for it: a change of their number, geometry or kernels is seen.
func TestLaunchesOfOperations(t *testing.T) {
	const file = "testdata/launches.txt"
	driver, log := launchlog.New()
	r := newRigOn(t, driver)
	var text strings.Builder
	r.calls().each(func(name string, f call) {
		require.NoError(t, f(), name)
		log.Take() // with those that come first alone
		require.NoError(t, f(), name)
		require.NoError(t, r.c.Synchronize(t.Context()))
		fmt.Fprintf(&text, "%s: %s\n", name, log.Take())
	})
	kept.Text(t, *update, file, text.String())
}

// older is a driver whose devices say that they are of another architecture.
type older struct {
	cudadrv.Driver
	compute cudadrv.ComputeCapability
}

func (o older) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := o.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	return olderDevice{dev, dev.(cudadrv.Kernels), o.compute}, nil
}

type olderDevice struct {
	cudadrv.Device
	cudadrv.Kernels
	compute cudadrv.ComputeCapability
}

func (d olderDevice) Unwrap() cudadrv.Device { return d.Device }

func (d olderDevice) Info() cudadrv.Info {
	info := d.Device.Info()
	info.Compute = d.compute
	return info
}

// The gradient of a loss keeps a row in shared memory where a block of the architecture has as much, in steps of 4 KiB.
func TestSharedMemoryOfLosses(t *testing.T) {
	kib := map[cudadrv.ComputeCapability]int{ // of the programming guide; 48 are for each architecture
		{Major: 7}: 48, {Major: 7, Minor: 5}: 48, {Major: 8}: 163, {Major: 8, Minor: 6}: 99, {Major: 8, Minor: 7}: 163, {Major: 8, Minor: 9}: 99,
		{Major: 9}: 227, {Major: 10}: 227, {Major: 10, Minor: 3}: 227, {Major: 12}: 99, {Major: 12, Minor: 1}: 99,
	}
	for compute, most := range kib {
		driver, log := launchlog.New()
		r := newRigOn(t, older{driver, compute})
		for _, bytes := range []int{4, 4 << 10, 4<<10 + 4, 40 << 10, (most-4)<<10 - 4, (most - 4) << 10, (most-4)<<10 + 4, most << 10, 228 << 10, 300 << 10} {
			targets, err := tensor.Zeros(r.s, tensor.Int32, 1)
			require.NoError(t, err)
			require.NoError(t, r.o.CrossEntropyGradientInto(r.c, nil, r.zeros(1), r.zeros(1, bytes/4), targets, ops.LossGradient{}))
			require.NoError(t, r.c.Synchronize(t.Context()))
			want, kept := "", (bytes+4<<10-1)/(4<<10)*(4<<10)
			if bytes <= (most-4)<<10 {
				want = fmt.Sprintf(" with %d bytes", kept)
			}
			launches := log.Take()
			assert.Equal(t, want != "", strings.Contains(launches, " with "), "%v, %d bytes: %s", compute, bytes, launches)
			assert.Contains(t, launches, want, "%v, %d bytes", compute, bytes)
		}
	}
}

// Many tensors take as few launches as their number needs.
func TestLaunchesOfManyTensors(t *testing.T) {
	driver, log := launchlog.New()
	r := newRigOn(t, driver)
	const most = 2 * routine.SquareSlots
	whole := r.zeros(4*most + 4)
	states, grads := make([]ops.AdamWState, most+1), make([]*tensor.Tensor, most+1)
	for i := range states {
		s := &states[i]
		for k, to := range []**tensor.Tensor{&s.Param, &s.Grad, &s.First, &s.Second} {
			var err error
			*to, err = whole.Narrow(0, 4*i+k, 1)
			require.NoError(t, err)
		}
		grads[i] = s.Grad
	}
	launches := func(f func() error) int {
		require.NoError(t, f())
		require.NoError(t, r.c.Synchronize(t.Context()))
		return strings.Count(log.Take(), " of ") // the threads of each
	}
	norm := r.zeros()
	for _, n := range []int{0, 1, 2, 63, 64, 65, 127, 128, 129, 192, 193, 255, 256, 257} {
		step := ops.AdamWStep{Rate: 0.1, Step: 1}
		got := launches(func() error { return r.o.AdamWAll(r.c, states[:n], step, ops.AdamWConfig{Beta1: 0.9, Beta2: 0.9}) })
		assert.Equal(t, (n+routine.AdamWSlots-1)/routine.AdamWSlots, got, "%d states", n)
		got = launches(func() error { return r.o.GradNormInto(r.c, norm, nil, nil, grads[:n], 1) })
		assert.Equal(t, (n+routine.SquareSlots-1)/routine.SquareSlots+1, got, "%d gradients", n)
	}
}

// Whichever launch, copy or fill of an operation the driver refuses, the operation returns the driver's error.
func TestARefusedLaunchIsAnError(t *testing.T) {
	faults := fault.Wrap(launching(t))
	r := newRigOn(t, faults)
	refused := map[string]int{}
	r.calls().each(func(name string, f call) {
		require.NoError(t, f(), name) // kernels are loaded, and memory is there
		for _, function := range []string{"cuLaunchKernel", "cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async", "cuMemcpyDtoDAsync", "cuMemcpy2DAsync"} {
			for n := uint64(1); ; n++ {
				require.Less(t, n, uint64(100), name)
				before := faults.Injected()
				require.NoError(t, faults.Add(fault.Rule{Func: function, First: n, Result: cudadrv.Unknown}))
				err := f()
				faults.Clear()
				if faults.Injected() == before {
					require.NoError(t, err, name)
					break
				}
				require.ErrorIs(t, err, cudadrv.Unknown, "%s: %s number %d", name, function, n)
				refused[function]++
			}
		}
	})
	assert.Greater(t, refused["cuLaunchKernel"], 200, "%v", refused)
}
