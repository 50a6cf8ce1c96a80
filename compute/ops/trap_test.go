//go:build !gpu

package ops_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
)

// An index out of range ends the launch, and no memory is touched with it. The fault names the operation, the index and the
// length.
func TestAnIndexOutOfRangeTraps(t *testing.T) {
	const rows = 5
	for _, index := range []int64{-1, rows, 1 << 31, 1 << 32, -1 << 63, 1<<63 - 1} {
		for name, work := range map[string]func(o ops.Ops, s *tensor.Scope, x, indices *tensor.Tensor) error{
			"gather": func(o ops.Ops, s *tensor.Scope, x, indices *tensor.Tensor) error {
				_, err := o.Gather(s, x, indices, 0)
				return err
			},
			"gather_backward_keys": func(o ops.Ops, s *tensor.Scope, x, indices *tensor.Tensor) error {
				_, err := o.GatherBackward(s, x, x, indices, 0)
				return err
			},
			"scatter_add_keys": func(o ops.Ops, s *tensor.Scope, x, indices *tensor.Tensor) error {
				_, err := o.ScatterAdd(s, x, indices, x, 0)
				return err
			},
			"embedding": func(o ops.Ops, s *tensor.Scope, x, indices *tensor.Tensor) error {
				_, err := o.Embedding(s, x, indices)
				return err
			},
			"embedding_backward_keys": func(o ops.Ops, s *tensor.Scope, x, indices *tensor.Tensor) error {
				_, err := o.EmbeddingBackward(s, x, x, indices)
				return err
			},
		} {
			executor := ptxrun.New(ptxrun.Config{})
			dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true, Executor: executor})})
			require.NoError(t, err)
			stream, err := dev.NewStream()
			require.NoError(t, err)
			c, err := cuda.NewContext(stream)
			require.NoError(t, err)
			o, err := ops.New(c)
			require.NoError(t, err)
			s, err := tensor.NewScope(c)
			require.NoError(t, err)
			x, err := tensor.From(s, []float32{0, 1, 2, 3, 4})
			require.NoError(t, err)
			indices, err := tensor.From(s, []int64{0, 4, index, 1, 2})
			require.NoError(t, err)
			failed := work(o, s, x, indices)
			if err := c.Synchronize(context.Background()); failed == nil {
				failed = err
			}
			require.Error(t, failed, "%s %d", name, index)
			require.NotEmpty(t, executor.Faults(), "%s %d", name, index)
			fault := executor.Faults()[0]
			require.ErrorIs(t, fault, interp.Trap, "%s %d", name, index)
			require.ErrorContains(t, fault, "kernel "+name+":")
			compared := strconv.FormatInt(index, 10)
			if index < 0 {
				compared = fmt.Sprintf("%d (%d)", uint64(index), index)
			}
			require.ErrorContains(t, fault, fmt.Sprintf("compared %s with %d", compared, rows))
			_ = dev.Close() // of a device whose context is lost
		}
	}
}
