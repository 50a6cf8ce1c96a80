package gorgonia_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	host "gorgonia.org/tensor"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/bridge/gorgonia"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/vramtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// rig is an engine on a device.
type rig struct {
	testing.TB

	dev    *vram.Device
	c      *cuda.Context
	o      ops.Ops
	e      *gorgonia.Engine
	random *rand.Rand
}

// newRig is an engine on a simulated device that executes kernels and looks for their mistakes.
func newRig(tb testing.TB) *rig {
	tb.Helper()
	return newRigOn(tb, vramtest.Open(tb, vramtest.Kernels()).Device)
}

// newRigOn is an engine on a device, which the caller closes. The end of the test looks for memory that is left.
func newRigOn(tb testing.TB, dev *vram.Device) *rig {
	tb.Helper()
	stream, err := dev.NewStream()
	require.NoError(tb, err)
	r := &rig{TB: tb, dev: dev, random: rand.New(rand.NewPCG(1, 2))}
	r.c, err = cuda.NewContext(stream)
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, r.c.Close()) })
	r.o, err = ops.New(r.c)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		assert.NoError(tb, r.c.Synchronize(context.Background()))
		assert.NoError(tb, r.o.Close())
	})
	r.e, err = gorgonia.New(r.c, r.o)
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, r.e.Close()) })
	return r
}

// lengths are none, one, primes, and neighbors of a power of two.
func (r *rig) length() int { return []int{0, 1, 1, 2, 3, 5, 7, 8, 13, 17, 31, 33}[r.random.IntN(12)] }

// shape returns a shape of so many dimensions and few elements.
func (r *rig) shape(rank int) []int {
	for {
		shape, count := make([]int, rank), 1
		for d := range shape {
			shape[d] = r.length()
			count *= shape[d]
		}
		if count < 2000 {
			return shape
		}
	}
}

// pair is a tensor of the host's engine, and one on the device with the same elements.
type pair struct{ host, device *host.Dense }

// The layouts of an operand.
const (
	plain = iota
	turned
	rows
	part
	columnMajor
	layouts
)

// operand is a matrix of random numbers in a layout.
func operand[T gorgonia.Float](r *rig, layout, m, n int) pair {
	r.Helper()
	if m < 2 || n < 2 {
		layout = plain
	}
	stored := []int{m, n}
	switch layout {
	case turned:
		stored = []int{n, m}
	case rows, part:
		stored = []int{m + 3, n + 2}
	}
	if layout == rows {
		stored[1] = n
	}
	x := numbers[T](r, stored...)
	switch layout {
	case turned:
		require.NoError(r, x.host.T())
		require.NoError(r, x.device.T())
	case rows, part:
		slices := []host.Slice{host.S(1, m+1)}
		if layout == part {
			slices = append(slices, host.S(2, n+2))
		}
		a, err := x.host.Slice(slices...)
		require.NoError(r, err)
		b, err := x.device.Slice(slices...)
		require.NoError(r, err)
		x = pair{dense(r, a), dense(r, b)}
	case columnMajor:
		values := elements[T](r, x.host)
		x.device = host.New(host.Of(x.host.Dtype()), host.WithShape(m, n), host.AsFortran(nil), host.WithEngine(r.e))
		require.NoError(r, gorgonia.Write(x.device, values))
		x.host = host.New(host.WithShape(m, n), host.AsFortran(values)) // orders the values another way
	}
	require.Equal(r, host.Shape{m, n}, x.device.Shape())
	return x
}

// numbers is a tensor of random numbers, none of which is near 0.
func numbers[T gorgonia.Float](r *rig, shape ...int) pair {
	r.Helper()
	values := make([]T, host.Shape(shape).TotalSize())
	for i := range values {
		values[i] = T(r.random.Float32() + 0.25)
		if r.random.IntN(2) == 0 {
			values[i] = -values[i]
		}
	}
	device, err := gorgonia.From(r.e, values, shape...)
	require.NoError(r, err)
	if len(shape) == 0 {
		device, err = gorgonia.Scalar(r.e, values[0])
		require.NoError(r, err)
		return pair{host.New(host.FromScalar(values[0])), device}
	}
	return pair{host.New(host.WithShape(shape...), host.WithBacking(values)), device}
}

func dense(tb testing.TB, t host.Tensor) *host.Dense {
	tb.Helper()
	d, ok := t.(*host.Dense)
	require.True(tb, ok)
	return d
}

// elements are the values of a tensor of the host in row-major order.
func elements[T gorgonia.Float](tb testing.TB, t host.Tensor) []T {
	tb.Helper()
	d := dense(tb, t)
	if d.IsScalar() {
		value, ok := d.ScalarValue().(T)
		require.True(tb, ok)
		return []T{value}
	}
	values := []T{}
	if d.Shape().TotalSize() == 0 {
		return values
	}
	all, ok := d.Data().([]T)
	require.True(tb, ok)
	var walk func(dim, at int)
	walk = func(dim, at int) {
		if dim == d.Dims() {
			values = append(values, all[at])
			return
		}
		for i := range d.Shape()[dim] {
			walk(dim+1, at+i*d.Strides()[dim])
		}
	}
	walk(0, 0)
	return values
}

// same requires the elements of a tensor of the host, within a relative error.
func same[T gorgonia.Float](r *rig, want, got host.Tensor, bound float64, text ...any) {
	r.Helper()
	require.Equal(r, want.Shape(), got.Shape(), text...)
	require.Same(r, r.e, got.Engine())
	values, err := gorgonia.Read[T](got)
	require.NoError(r, err, text...)
	expected := elements[T](r, want)
	require.Len(r, values, len(expected), text...)
	for i, w := range expected {
		require.InDelta(r, float64(w), float64(values[i]), bound*max(1, float64(w), -float64(w)), text...)
	}
}
