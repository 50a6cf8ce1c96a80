package matmul_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv/sim"
)

// shelf is a store in memory.
type shelf struct {
	mu     sync.Mutex
	images map[string][]byte
}

func (s *shelf) Get(text string) (image []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	image, ok = s.images[text]
	return image, ok
}

func (s *shelf) Put(text string, image []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.images[text] = image
}

// severalKernels are products that take kernels of tiles, of sums of parts, of rounding and of one row.
func severalKernels() []gemm.Problem {
	return []gemm.Problem{
		{M: 64, N: 64, K: 64}, {M: 64, N: 64, K: 1 << 14, Precision: gemm.TF32}, {M: 64, N: 64, K: 64, Precision: gemm.RoundedBF16}, {M: 1, N: 64, K: 64},
	}
}

// withCompiler calls f with a multiplier that takes its kernels from a compiler, on a device of its own, as a process has it.
func withCompiler(t *testing.T, f func(r *rig, k *kernel.Compiler), with ...kernel.Option) {
	t.Helper()
	r := newRigOn(t, sim.New(sim.Config{Bytes: true, TimedKernels: true}))
	k, err := kernel.NewCompiler(r.c, with...)
	require.NoError(t, err)
	r.m = matmul.New(r.c, matmul.WithCompiler(k))
	f(r, k)
	require.NoError(t, r.c.Synchronize(context.Background()))
	require.NoError(t, errors.Join(r.m.Close(), k.Close()))
}

// ownProduct computes a product by own kernels.
func (r *rig) ownProduct(p gemm.Problem) error {
	r.Helper()
	o := gemm.Operands{Alpha: 1}
	var buffers []cuda.Buffer
	for _, to := range []*cuda.Range{&o.A, &o.B, &o.C} {
		b, err := r.c.Alloc(4 << 20)
		require.NoError(r, err)
		buffers = append(buffers, b)
		*to = cuda.Whole(b)
	}
	_, err := r.m.Multiply(r.c, p, o, matmul.Own)
	for _, b := range buffers {
		require.NoError(r, b.Free())
	}
	return err
}

// A process that finds the kernels of products in the store compiles none.
func TestStoredProducts(t *testing.T) {
	kept := &shelf{images: map[string][]byte{}}
	var first kernel.Stats
	for again := range 2 {
		withCompiler(t, func(r *rig, k *kernel.Compiler) {
			for _, p := range severalKernels() {
				require.NoError(t, r.ownProduct(p))
			}
			s := k.Stats()
			if again == 0 {
				first = s
				assert.Equal(t, [2]int64{s.Misses, 0}, [2]int64{s.Compiled, s.Stored})
				assert.GreaterOrEqual(t, s.Compiled, int64(4))
				assert.Len(t, kept.images, int(s.Compiled))
				return
			}
			assert.Equal(t, [2]int64{0, first.Compiled}, [2]int64{s.Compiled, s.Stored})
		}, kernel.WithStore(kept))
	}
}

// With Prepared a product is refused until its kernels were prepared, by WarmUp of the multiplier's needs or by Prepare.
func TestPreparedProducts(t *testing.T) {
	problems := severalKernels()
	withCompiler(t, func(r *rig, k *kernel.Compiler) {
		for _, p := range problems {
			require.ErrorIs(t, r.ownProduct(p), kernel.ErrNotPrepared)
		}
		needs, err := r.m.Needs(append(problems, problems...)...)
		require.NoError(t, err)
		origins := map[kernel.Origin]int{}
		require.NoError(t, k.WarmUp(t.Context(), needs, func(p kernel.Progress) {
			assert.Equal(t, len(needs), p.Of)
			origins[p.Origin]++
		}))
		assert.Equal(t, map[kernel.Origin]int{kernel.Compiled: len(needs)}, origins, "each text once")
		for _, p := range problems {
			require.NoError(t, r.ownProduct(p))
		}
		assert.Equal(t, int64(len(needs)), k.Stats().Compiled, "nothing else was compiled")
		var wrong *gemm.ProblemError
		_, err = r.m.Needs(gemm.Problem{M: -1})
		require.ErrorAs(t, err, &wrong)
		require.ErrorIs(t, r.ownProduct(gemm.Problem{M: 64, N: 64, K: 64, TransposeA: true, Precision: gemm.TF32x3}), kernel.ErrNotPrepared)
	}, kernel.Prepared())
	withCompiler(t, func(r *rig, _ *kernel.Compiler) {
		for _, p := range problems {
			require.NoError(t, r.m.Prepare(p, matmul.Own))
			require.NoError(t, r.ownProduct(p))
		}
	}, kernel.Prepared())
}
