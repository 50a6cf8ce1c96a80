//go:build !gpu

package ops_test

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/eachcall"
)

// Whichever driver call fails, or panics, an operation leaves no buffer, no driver object and no goroutine: neither those that
// are its result nor those that it works with.
func TestAFailedCallLeavesNothing(t *testing.T) {
	machine := sim.New(sim.Config{Bytes: true, TimedKernels: true})
	faults := fault.Wrap(machine)
	r := newRigOn(t, faults)
	float := func(shape ...int) *tensor.Tensor {
		x, err := tensor.Zeros(r.s, tensor.Float32, shape...)
		require.NoError(t, err)
		return x
	}
	long, square, table, flat := float(1<<18), float(64, 64), float(100, 8), float(96, 40)
	indices, err := tensor.Zeros(r.s, tensor.Int32, 30)
	require.NoError(t, err)
	wide, err := tensor.Zeros(r.s, tensor.Int32, 96, 40)
	require.NoError(t, err)
	turned, err := flat.Transpose(0, 1)
	require.NoError(t, err)
	both, err := tensor.Zeros(r.s, tensor.Float16, 1, 1, 3, 128)
	require.NoError(t, err)
	rows, err := both.Narrow(-1, 0, 64)
	require.NoError(t, err)
	apart, err := both.Slice(-1, 0, 128, 2)
	require.NoError(t, err)
	many, err := tensor.Zeros(r.s, tensor.Float16, 1, 1, 70, 64)
	require.NoError(t, err)
	gapped, err := flat.Slice(1, 0, 40, 2)
	require.NoError(t, err)
	classes, err := tensor.Zeros(r.s, tensor.Int64, 64)
	require.NoError(t, err)
	places, err := tensor.Zeros(r.s, tensor.Int32, 96)
	require.NoError(t, err)
	table40 := float(7, 40)
	for name, do := range map[string]func(s *tensor.Scope) error{
		"exp": func(s *tensor.Scope) error { _, err := r.o.Exp(s, square); return err },
		"sum": func(s *tensor.Scope) error { _, err := r.o.Sum(s, long, false); return err },
		"sum of a new context": func(*tensor.Scope) (err error) { // tickets are made
			stream, err := r.dev.NewStream()
			if err != nil {
				return err
			}
			closes := func(closes func() error) { err = errors.Join(err, eachcall.Closes(faults, closes)) }
			defer closes(stream.Close)
			c, err := cuda.NewContext(stream)
			if err != nil {
				return err
			}
			defer closes(c.Close)
			s, err := tensor.NewScope(c)
			if err != nil {
				return err
			}
			defer closes(s.Close)
			x, err := tensor.Zeros(s, tensor.Float32, 1<<18) // others could not use it any more if the stream cannot be waited for
			if err != nil {
				return err
			}
			_, err = r.o.Sum(s, x, false)
			return err
		},
		"attention": func(s *tensor.Scope) error {
			config := ops.AttentionConfig{Causal: true}
			out, lse, err := r.o.Attention(s, rows, rows, rows, config)
			if err != nil {
				return err
			}
			_, _, _, err = r.o.AttentionBackward(s, out, out, lse, apart, rows, rows, config)
			return err
		},
		"attention by warpgroups": func(s *tensor.Scope) error {
			config := ops.AttentionConfig{Causal: true}
			out, lse, err := r.o.Attention(s, many, many, many, config)
			if err != nil {
				return err
			}
			_, _, _, err = r.o.AttentionBackward(s, out, out, lse, many, many, many, config)
			return err
		},
		"softmax":   func(s *tensor.Scope) error { _, err := r.o.Softmax(s, flat, 1); return err },
		"embedding": func(s *tensor.Scope) error { _, err := r.o.Embedding(s, table, indices); return err },
		"scatter":   func(s *tensor.Scope) error { _, err := r.o.ScatterAdd(s, flat, wide, flat, 0); return err },
		"cross entropy gradient": func(s *tensor.Scope) error {
			_, _, err := r.o.CrossEntropyGradient(s, square, classes, ops.LossGradient{Mean: true}, ops.Ignored(1))
			return err
		},
		"layer norm residual backward": func(s *tensor.Scope) error {
			_, _, _, err := r.o.LayerNormResidualBackward(s, square, square, square, nil, 1, epsilon)
			return err
		},
		"gradient norm": func(s *tensor.Scope) error {
			_, _, _, err := r.o.GradNorm(s, []*tensor.Tensor{long, turned, gapped}, 1)
			return err
		},
		"embedding backward": func(s *tensor.Scope) error {
			_, err := r.o.EmbeddingBackward(s, flat, table40, places, ops.Padding(1))
			return err
		},
		"concat": func(s *tensor.Scope) error { _, err := r.o.Concat(s, 0, flat, flat); return err },
		"clone":  func(s *tensor.Scope) error { _, err := tensor.Clone(s, turned); return err },
		"read":   func(*tensor.Scope) error { _, err := tensor.Read[float32](turned); return err },
		"zeros":  func(s *tensor.Scope) error { _, err := tensor.Zeros(s, tensor.Float32, 1000); return err },
		"copy over itself": func(s *tensor.Scope) error {
			back, err := square.Transpose(0, 1)
			if err != nil {
				return err
			}
			return tensor.Copy(s, square, back)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &eachcall.Bench{Faults: faults, Tolerated: []string{"cuStreamIsCapturing"}, Left: func() map[string]int {
				machine.Device(0).Advance(time.Hour) // the work ends
				_, _ = r.dev.Trim(t.Context(), 0)
				all := machine.Device(0).Objects()
				all["goroutine"], all["live byte"] = runtime.NumGoroutine(), int(r.dev.Stats().LiveBytes)
				return all
			}}
			b.Run(t, func() (undo func() error, err error) {
				s, err := tensor.NewScope(r.c)
				if err != nil {
					return nil, err
				}
				defer func() { err = errors.Join(err, s.Close()) }()
				return nil, do(s)
			})
		})
	}
}
