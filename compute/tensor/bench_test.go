package tensor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
)

func benchContext(b *testing.B) *cuda.Context {
	b.Helper()
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true})})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, dev.Close()) })
	return must(cuda.NewContext(must(dev.NewStream())(b)))(b)
}

// Memory that is there again: a buffer, a tensor with it, and a tensor in a scope.
func BenchmarkMemory(b *testing.B) {
	c := benchContext(b)
	run := func(name string, pair func() error) {
		b.Run("impl="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := pair(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("buffer", func() error {
		x, err := c.Alloc(4000)
		if err != nil {
			return err
		}
		return x.Free()
	})
	run("tensor", func() error {
		x, err := tensor.New(c, tensor.Float32, 10, 100)
		if err != nil {
			return err
		}
		if err := x.Allocate(); err != nil {
			return err
		}
		return x.Free()
	})
	run("scope", func() error {
		return tensor.Scoped(c, func(s *tensor.Scope) error {
			x, err := tensor.New(s, tensor.Float32, 10, 100)
			if err != nil {
				return err
			}
			return x.Allocate()
		})
	})
}

func BenchmarkView(b *testing.B) {
	x := must(tensor.New(benchContext(b), tensor.Float32, 10, 100))(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x.Transpose(0, 1); err != nil {
			b.Fatal(err)
		}
	}
}
