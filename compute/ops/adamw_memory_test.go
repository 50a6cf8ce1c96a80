//go:build !gpu

package ops_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// launchLog is an executor that executes nothing, and notes the kernels with the sizes of their parameters.
type launchLog struct{ launches []launched }

type launched struct {
	kernel     string
	paramBytes int
}

func (r *launchLog) Load([]byte, map[string]sim.Variable) (sim.Program, error) { return r, nil }

func (r *launchLog) Launch(k sim.KernelLaunch) (sim.Execution, error) {
	r.launches = append(r.launches, launched{k.Kernel, len(k.Params)})
	return func(func(cudadrv.Ptr) (cudadrv.Ptr, []byte, bool)) error { return nil }, nil
}

var adamW = ops.AdamWConfig{Beta1: 0.9, Beta2: 0.999}

// A step is refused if and only if memory that a state writes is read or written by another operand, of the state or of another
// one, wherever either begins.
func TestAdamWAllRefusesEveryOverlap(t *testing.T) {
	r := newRigOn(t, sim.New(sim.Config{Bytes: true, Executor: &launchLog{}}))
	const words = 128
	memory, err := tensor.Zeros(r.s, tensor.Float32, words)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 9))
	counts := map[bool]int{}
	for range 6000 {
		type part struct {
			from, to int
			written  bool
		}
		var parts []part
		take := func(n int, written bool) *tensor.Tensor {
			from := random.IntN(words - n + 1)
			parts = append(parts, part{from, from + n, written})
			x, err := memory.Narrow(0, from, n)
			require.NoError(t, err)
			if n == 1 {
				x, err = x.Reshape()
				require.NoError(t, err)
			}
			return x
		}
		var states []ops.AdamWState
		step := ops.AdamWStep{Rate: 0.1, Step: 1}
		for range 1 + random.IntN(2) {
			n := []int{0, 2, 3, 9, 20}[random.IntN(5)]
			states = append(states, ops.AdamWState{Param: take(n, true), Grad: take(n, false), First: take(n, true), Second: take(n, true)})
		}
		if random.IntN(2) == 0 {
			step.RateAt = take(1, false)
		}
		if random.IntN(2) == 0 {
			step.StepAt = take(1, false)
		}
		overlap := false
		for i, a := range parts {
			for j, b := range parts {
				overlap = overlap || i != j && a.written && max(a.from, b.from) < min(a.to, b.to)
			}
		}
		counts[overlap]++
		if err := r.o.AdamWAll(r.c, states, step, adamW); overlap {
			require.ErrorIs(t, err, kernel.ErrOverlap, "%v", parts)
		} else {
			require.NoError(t, err, "%v", parts)
		}
	}
	assert.Greater(t, min(counts[true], counts[false]), 100, "%v", counts)
}

// A state that needs indices of 64 bits has them among other states, too: it is launched as it is alone.
func TestAdamWAllLaunchesAStateAsAlone(t *testing.T) {
	record := &launchLog{}
	r := newRigOn(t, sim.New(sim.Config{Bytes: true, Executor: record}))
	const far = 1 << 31
	huge, err := tensor.New(r.s, tensor.Float32, far+1) // nothing touches its bytes
	require.NoError(t, err)
	wide, err := huge.Slice(0, 0, far+1, far)
	require.NoError(t, err)
	laid := func(step int) *tensor.Tensor {
		x, err := tensor.New(r.s, tensor.Float32, 2*step)
		require.NoError(t, err)
		x, err = x.Slice(0, 0, 2*step, step)
		require.NoError(t, err)
		return x
	}
	state := func(param *tensor.Tensor, step int) ops.AdamWState {
		return ops.AdamWState{Param: param, Grad: laid(1), First: laid(step), Second: laid(1)}
	}
	dense, strided, far64 := state(laid(1), 1), state(laid(1), 3), state(wide, 1)
	launches := func(states ...ops.AdamWState) []launched {
		record.launches = nil
		require.NoError(t, r.o.AdamWAll(r.c, states, ops.AdamWStep{Rate: 0.1, Step: 1}, adamW))
		return record.launches
	}
	one, narrow, large := launches(dense), launches(strided), launches(far64)
	require.Len(t, one, 1)
	require.Len(t, large, 1)
	require.Greater(t, large[0].paramBytes, narrow[0].paramBytes, "indices of 64 bits")
	for _, program := range [][]ops.AdamWState{
		{dense, far64}, {far64, dense}, {strided, far64}, {far64, strided}, {dense, strided, far64}, {dense, far64, strided}, {far64, dense, strided},
	} {
		var want []launched
		for _, s := range program {
			switch s {
			case dense:
				want = append(want, one...)
			case strided:
				want = append(want, narrow...)
			default:
				want = append(want, large...)
			}
		}
		assert.ElementsMatch(t, want, launches(program...))
	}
}
