package store_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/kernel/store"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

// process runs three kernels on a device of its own with a compiler of its own, as a new process would.
func process(t *testing.T, folder string) (results []float32, compiled kernel.Stats, stored store.Stats) {
	t.Helper()
	dev, err := vram.Open(vram.Config{Driver: driver()})
	require.NoError(t, err)
	stream, err := dev.NewStream()
	require.NoError(t, err)
	c, err := cuda.NewContext(stream)
	require.NoError(t, err)
	s := opened(t, folder)
	kernels, err := kernel.NewCompiler(c, kernel.WithStore(s.On(c.Info())))
	require.NoError(t, err)

	a := expr.Input(0, tensor.Float32)
	softmax, err := kernels.Reduction([]int{-1}, a.Softmax())
	require.NoError(t, err)
	exp, err := kernels.Elementwise(a.Exp())
	require.NoError(t, err)
	total, err := kernels.Reduction(plan.All, a.Sum())
	require.NoError(t, err)
	require.NoError(t, tensor.Scoped(c, func(s *tensor.Scope) error {
		x, err := tensor.From(s, []float32{1, -2, 3, 4, -5, 6}, 2, 3)
		require.NoError(t, err)
		y, err := tensor.New(s, tensor.Float32, 2, 3)
		require.NoError(t, err)
		sum, err := tensor.New(s, tensor.Float32)
		require.NoError(t, err)
		for _, k := range []*kernel.Kernel{softmax, exp} {
			require.NoError(t, k.Run(s, []*tensor.Tensor{y}, x))
			values, err := tensor.Read[float32](y)
			require.NoError(t, err)
			results = append(results, values...)
		}
		require.NoError(t, total.Run(s, []*tensor.Tensor{sum}, y))
		value, err := tensor.Item[float32](sum)
		results = append(results, value)
		return err
	}))
	compiled, stored = kernels.Stats(), s.Stats()
	require.NoError(t, c.Synchronize(context.Background()))
	require.NoError(t, kernels.Close())
	require.NoError(t, c.Close())
	require.NoError(t, dev.Close())
	return results, compiled, stored
}

// A second process compiles nothing. A store that is damaged, deleted, replaced by other code or turned off changes the number of
// compilations alone.
func TestALaterProcessCompilesNothing(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "kernels")
	want, compiled, stored := process(t, folder)
	assert.Equal(t, [3]int64{3, 0, 0}, [3]int64{compiled.Compiled, compiled.Stored, compiled.Refused})
	assert.Equal(t, [2]int64{3, 3}, [2]int64{stored.Misses, stored.Written})
	names := namesIn(t, folder)
	require.Len(t, names, 3)

	again := func(name string, compiles int64) {
		t.Helper()
		results, compiled, stored := process(t, folder)
		assert.Equal(t, want, results, name)
		assert.Equal(t, compiles, compiled.Compiled, name)
		assert.Equal(t, 3-compiles, compiled.Stored, name)
		assert.Equal(t, [2]int64{3 - compiles, compiles}, [2]int64{stored.Hits, stored.Misses}, name)
	}
	again("stored", 0)

	path := filepath.Join(folder, names[1])
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data[len(data)/2] ^= 4
	require.NoError(t, os.WriteFile(path, data, 0o600))
	again("one entry is damaged", 1)
	again("it was written again", 0)

	require.NoError(t, os.Truncate(path, 100))
	again("one entry is truncated", 1)
	require.NoError(t, os.Rename(path, filepath.Join(folder, names[0])))
	again("one has the name of another one", 2)
	require.NoError(t, os.RemoveAll(folder))
	again("all are deleted", 3)
	again("all were written again", 0)
}
