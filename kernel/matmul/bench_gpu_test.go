//go:build gpu

package matmul_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/cublaslt"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/kernel/matmul"
)

// microseconds is the device's time of a product, of many that are launched one behind the other: the median of some rounds.
func (r *rig) microseconds(launches int, launch func() error) float64 {
	r.Helper()
	var all []float64
	for range 7 {
		start, err := r.c.Record()
		require.NoError(r, err)
		for range launches {
			require.NoError(r, launch())
		}
		end, err := r.c.Record()
		require.NoError(r, err)
		require.NoError(r, end.Synchronize(context.Background()))
		took, err := end.Since(start)
		require.NoError(r, err)
		all = append(all, float64(took.Nanoseconds())/1e3/float64(launches))
		require.NoError(r, errors.Join(start.Close(), end.Close()))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// TestSpeed prints microseconds of square products, launched one behind the other and as nodes of a graph. It holds nothing.
func TestSpeed(t *testing.T) {
	r := newRig(t)
	kinds := map[string]gemm.Problem{
		"1 fp32": {}, "2 3xTF32": {Precision: gemm.TF32x3}, "3 TF32": {Precision: gemm.TF32},
		"4 bf16": {In: gemm.BFloat16, Out: gemm.BFloat16}, "5 f16": {In: gemm.Float16, Out: gemm.Float16},
		"6 fp32 rounded to bf16": {Precision: gemm.RoundedBF16},
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%6s %-22s %-42s %10s %10s %9s\n", "n", "precision", "path", "µs", "µs in graph", "TFLOP/s")
	for _, n := range []int64{512, 1024, 4096} {
		var buffers [3]cuda.Buffer
		for i := range buffers {
			b, err := r.c.Alloc(4 * n * n)
			require.NoError(t, err)
			random := newRandom(uint64(i))
			host := make([]byte, 4*n*n)
			for at := int64(0); at < n*n; at++ { // the bytes are numbers of every type, about 1
				put(host[4*at:], gemm.BFloat16, random.NormFloat64())
				put(host[4*at+2:], gemm.BFloat16, random.NormFloat64())
			}
			require.NoError(t, r.c.CopyInAt(b, 0, host))
			buffers[i] = b
		}
		for _, name := range sorted(kinds) {
			p := kinds[name]
			p.M, p.N, p.K = n, n, n
			o := gemm.Operands{A: cuda.Whole(buffers[0]), B: cuda.Whole(buffers[1]), C: cuda.Whole(buffers[2]), Alpha: 1}
			for _, choice := range []matmul.Choice{matmul.Own, matmul.Library} {
				path, err := r.m.Multiply(r.c, p, o, choice)
				var absent *cublaslt.AbsentError
				if errors.Is(err, cublaslt.ErrUnsupported) || errors.As(err, &absent) {
					t.Log(err)
					continue
				}
				require.NoError(t, err)
				launches := max(int(min(200, 20*4096*4096*4096/(n*n*n)/8)), 10)
				multiply := func() error {
					_, err := r.m.Multiply(r.c, p, o, choice)
					return err
				}
				single := r.microseconds(launches, multiply)
				const nodes = 10
				g, err := r.c.Capture(func() error {
					for range nodes {
						if err := multiply(); err != nil {
							return err
						}
					}
					return nil
				})
				require.NoError(t, err)
				graph := r.microseconds(max(launches/nodes, 1), func() error { return g.Launch(r.c) }) / nodes
				require.NoError(t, g.Close())
				fmt.Fprintf(&text, "%6d %-22s %-42s %10.1f %10.1f %9.1f\n", n, name[2:], path, single, graph, 2*float64(n*n*n)/graph/1e6)
			}
		}
		for _, b := range buffers {
			require.NoError(t, b.Free())
		}
	}
	t.Log("\n" + text.String())
}

func sorted(kinds map[string]gemm.Problem) (names []string) {
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Kernels leave their registers where they belong: what spills is slow.
func TestNoKernelSpills(t *testing.T) {
	r := newRig(t)
	for _, v := range matmul.Variants() {
		f, err := r.m.Function(v)
		require.NoError(t, err, v)
		local, err := f.Attribute(cudadrv.LocalBytes)
		require.NoError(t, err)
		registers, err := f.Attribute(cudadrv.Registers)
		require.NoError(t, err)
		t.Logf("%-32s %3d registers, %d bytes spilled", v, registers, local)
		if local > 32 { // some words outside of the loop are no harm
			t.Errorf("%s spills %d bytes", v, local)
		}
	}
}
