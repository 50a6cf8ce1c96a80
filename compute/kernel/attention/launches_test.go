//go:build !gpu

package attention_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/attention"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/kept"
	"github.com/go-vram/vram/internal/launchlog"
)

var update = flag.Bool("update", false, "write testdata/launches.txt again")

// device opens a device of a driver.
func device(t *testing.T, driver cudadrv.Driver) *vram.Device {
	t.Helper()
	dev, err := vram.Open(vram.Config{Driver: driver})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	return dev
}

// zero is an element of an operand that no kernel reads.
func zero() float64 { return 0 }

// operands makes the operands of both passes, of zeros.
func (r *rig) operands(p attention.Problem) *backward {
	r.Helper()
	p, err := p.Check()
	require.NoError(r, err)
	x := &forward{Problem: p}
	x.q = r.matrix(p.Type, p.Batch, p.Heads, p.Queries, p.Dim, true, zero)
	x.k = r.matrix(p.Type, p.Batch, p.KeyHeads, p.Keys, p.Dim, true, zero)
	x.v = r.matrix(p.Type, p.Batch, p.KeyHeads, p.Keys, p.Dim, true, zero)
	x.outputs(r, true)
	return r.backward(x, true)
}

// problems take each way through the package: few queries and many, keys in one part and in several, more and fewer rows than
// tiles have, and heads that share keys.
func problems() (all []attention.Problem) {
	for n, x := range [][5]int64{ // sequences, heads, heads of keys, queries, keys
		{1, 1, 1, 1, 1}, {1, 1, 1, 1, 511}, {1, 1, 1, 1, 512}, {2, 4, 2, 16, 1100}, {2, 8, 1, 8, 700}, {1, 8, 1, 9, 300}, {3, 2, 1, 32, 1024}, {1, 1, 1, 64, 100},
		{1, 1, 1, 65, 64}, {2, 2, 1, 128, 129}, {1, 3, 3, 129, 256}, {2, 4, 2, 257, 65}, {1, 2, 2, 384, 385}, {1, 1, 1, 70, 0}, {1, 1, 1, 0, 70}, {0, 1, 1, 5, 5},
	} {
		for _, dim := range []int64{64, 128} {
			all = append(all, attention.Problem{
				Batch: x[0], Heads: x[1], KeyHeads: x[2], Queries: x[3], Keys: x[4], Dim: dim, Type: types()[n%2], Causal: (n+int(dim/64))%2 == 0,
			})
		}
	}
	return all
}

// Each problem has the launches that testdata has for it, by warpgroups and without, on devices of many and few multiprocessors:
// a change of their number, geometry or kernels is seen.
func TestLaunches(t *testing.T) {
	const file = "testdata/launches.txt"
	driver, log := launchlog.New()
	r := newRigOn(t, device(t, driver))
	plain := r.withoutGroups()
	var text strings.Builder
	for _, p := range problems() {
		b := r.operands(p)
		for way, by := range []*rig{r, plain} {
			for _, multiprocessors := range []int64{132, 3} {
				attention.SetMultiprocessors(by.a, multiprocessors)
				log.Take()
				require.NoError(t, by.a.Forward(r.c, b.Problem, b.Operands), "%+v", p)
				require.NoError(t, r.c.Synchronize(t.Context()))
				forward := log.Take()
				require.NoError(t, by.a.Backward(r.c, b.Problem, b.Operands, b.Gradients), "%+v", p)
				require.NoError(t, r.c.Synchronize(t.Context()))
				fmt.Fprintf(&text, "%d sequences, %d heads of %d, %dx%d rows of %d, causal %t, warpgroups %t, %d multiprocessors: %s | %s\n",
					p.Batch, p.Heads, p.KeyHeads, p.Queries, p.Keys, p.Dim, p.Causal, way == 0, multiprocessors, forward, log.Take())
			}
		}
	}
	kept.Text(t, *update, file, text.String())
}

// Whichever call of the driver fails in the first run of a pass, or in a later one, the pass returns the driver's error; and it
// succeeds later.
func TestAFailedCallIsAnError(t *testing.T) {
	driver, _ := launchlog.New()
	faults := fault.Wrap(driver)
	r := newRigOn(t, device(t, faults))
	for name, x := range map[string]struct {
		groups bool
		p      attention.Problem
	}{
		"parts of keys": {true, attention.Problem{Batch: 1, Heads: 1, Queries: 1, Keys: 512, Dim: 64, Type: gemm.BFloat16}},
		"warpgroups":    {true, attention.Problem{Batch: 1, Heads: 2, KeyHeads: 1, Queries: 70, Keys: 70, Dim: 128, Type: gemm.Float16}},
		"many queries":  {false, attention.Problem{Batch: 2, Heads: 1, Queries: 70, Keys: 70, Dim: 128, Type: gemm.Float16}},
	} {
		b := r.operands(x.p)
		for _, function := range []string{
			"cuLaunchKernel", "cuModuleLoadData", "cuModuleGetFunction", "cuFuncSetAttribute", "cuTensorMapEncodeTiled",
		} {
			for n, failed := uint64(1), true; failed; n++ {
				before := faults.Injected()
				k, err := kernel.NewCompiler(r.c)
				require.NoError(t, err)
				r.a = attention.New(r.c, k)
				attention.UseGroups(r.a, x.groups)
				require.NoError(t, faults.Add(fault.Rule{Func: function, First: n, Result: cudadrv.Unknown}))
				forward := r.a.Forward(r.c, b.Problem, b.Operands)
				inForward := faults.Injected() > before
				backward := r.a.Backward(r.c, b.Problem, b.Operands, b.Gradients)
				faults.Clear()
				switch failed = faults.Injected() > before; {
				case inForward:
					require.ErrorIs(t, forward, cudadrv.Unknown, "%s, %s number %d", name, function, n)
				case failed:
					require.NoError(t, forward)
					require.ErrorIs(t, backward, cudadrv.Unknown, "%s, %s number %d", name, function, n)
				default:
					require.NoError(t, backward)
				}
				require.NoError(t, r.a.Forward(r.c, b.Problem, b.Operands), name)
				require.NoError(t, r.a.Backward(r.c, b.Problem, b.Operands, b.Gradients), name)
				require.NoError(t, r.c.Synchronize(t.Context()))
				require.NoError(t, k.Close())
			}
		}
	}
}

// A problem of another type, or of another dimension, takes other kernels; one that is no problem takes none.
func TestNeeds(t *testing.T) {
	driver, log := launchlog.New()
	r := newRigOn(t, device(t, driver))
	p := attention.Problem{Batch: 1, Heads: 1, Queries: 70, Keys: 70, Dim: 64, Type: gemm.BFloat16}
	other := p
	other.Dim = 128
	few := p
	few.Queries = 1
	for _, x := range []struct {
		backward bool
		problems []attention.Problem
		want     int
	}{
		{false, []attention.Problem{p}, 2}, {true, []attention.Problem{p}, 6}, {true, []attention.Problem{p, p}, 6},
		{false, []attention.Problem{p, other}, 4}, {false, []attention.Problem{few}, 1}, {true, []attention.Problem{few}, 3}, {true, nil, 0},
	} {
		needs, err := r.a.Needs(x.backward, x.problems...)
		require.NoError(t, err)
		assert.Len(t, needs, x.want, "%+v", x)
		for i, n := range needs {
			assert.NotEmpty(t, n.Text)
			for _, m := range needs[:i] {
				assert.NotEqual(t, m.Text, n.Text)
			}
		}
	}
	p.Dim = 65
	var refused *attention.ProblemError
	_, err := r.a.Needs(true, few, p)
	require.ErrorAs(t, err, &refused)
	require.ErrorAs(t, r.a.Prepare(p, true), &refused)
	var none *attention.Attention
	_, err = none.Needs(true, few)
	require.ErrorIs(t, err, cuda.ErrNotOpen)
	assert.Empty(t, log.Take())
}
