package gorgonia_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	host "gorgonia.org/tensor"

	"github.com/go-vram/vram/bridge/gorgonia"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/ops"
)

// The operations of gorgonia.org/tensor that the engine has for elements.
var onElements = map[string]func(a, b any, options ...host.FuncOpt) (host.Tensor, error){
	"add": host.Add, "sub": host.Sub, "mul": host.Mul, "div": host.Div,
}

// rounds is how many random shapes a test tries.
func rounds() int {
	if testing.Short() {
		return 8
	}
	return 60
}

func TestOperationsOnElementsAreAsTheHosts(t *testing.T) {
	r := newRig(t)
	t.Run("float32", func(t *testing.T) { onElementsOf[float32](t, r) })
	t.Run("float64", func(t *testing.T) { onElementsOf[float64](t, r) })
}

func onElementsOf[T gorgonia.Float](t *testing.T, shared *rig) {
	t.Helper()
	for name, f := range onElements {
		t.Run(name, func(t *testing.T) {
			r := *shared
			r.TB = t
			for range rounds() {
				require.NoError(t, r.e.Scoped(func() error {
					elementsOnce[T](&r, f)
					return nil
				}))
			}
		})
	}
}

// elementsOnce compares an operation of random operands, with each option.
func elementsOnce[T gorgonia.Float](r *rig, f func(a, b any, options ...host.FuncOpt) (host.Tensor, error)) {
	r.Helper()
	shape := r.shape(2)
	m, n := shape[0], shape[1]
	x, y := operand[T](r, r.random.IntN(layouts), m, n), operand[T](r, r.random.IntN(layouts), m, n)
	text := fmt.Sprint(shape, x.device.Strides(), y.device.Strides())
	scalar, deviceScalar := T(r.random.Float32()+0.5), numbers[T](r)
	plainX, plainY := elements[T](r, x.host), elements[T](r, y.host)
	of := func(values []T) *host.Dense { // the host's engine changes operands of one element
		return host.New(host.WithShape(m, n), host.WithBacking(slices.Clone(values)))
	}
	expect := func(a, b any, options ...host.FuncOpt) host.Tensor {
		if m*n == 0 {
			return of(nil) // the host's engine fails
		}
		want, err := f(a, b, options...)
		require.NoError(r, err, text)
		return want
	}
	for _, operands := range []func() (a, b, x, y any){
		func() (any, any, any, any) { return of(plainX), of(plainY), x.device, y.device },
		func() (any, any, any, any) { return of(plainX), of(plainX), x.device, x.device },
		func() (any, any, any, any) { return of(plainX), scalar, x.device, scalar },
		func() (any, any, any, any) { return scalar, of(plainX), scalar, x.device },
		func() (any, any, any, any) {
			return of(plainX), deviceScalar.host.ScalarValue(), x.device, deviceScalar.device
		},
		func() (any, any, any, any) {
			return deviceScalar.host.ScalarValue(), of(plainX), deviceScalar.device, x.device
		},
	} {
		a, b, deviceA, deviceB := operands()
		want := elements[T](r, expect(a, b))
		got, err := f(deviceA, deviceB)
		require.NoError(r, err, text)
		same[T](r, of(want), got, 0, text)

		reuse, sum := numbers[T](r, m, n), numbers[T](r, m, n)
		got, err = f(deviceA, deviceB, host.WithReuse(reuse.device))
		require.NoError(r, err, text)
		assert.Same(r, reuse.device, got)
		same[T](r, of(want), got, 0, text)

		got, err = f(deviceA, deviceB, host.WithIncr(sum.device))
		require.NoError(r, err, text)
		assert.Same(r, sum.device, got)
		for i, v := range elements[T](r, sum.host) {
			want[i] += v
		}
		same[T](r, of(want), got, 0, text)
	}
	got, err := f(x.device, y.device, host.UseUnsafe())
	require.NoError(r, err, text)
	assert.Same(r, x.device, got)
	same[T](r, expect(of(plainX), of(plainY)), got, 0, text)
}

// plainCopy is a tensor of the host with the same elements in row-major order.
func plainCopy[T gorgonia.Float](r *rig, t *host.Dense) *host.Dense {
	r.Helper()
	return host.New(host.WithShape(t.Shape()...), host.WithBacking(elements[T](r, t)))
}

func TestProductsAreAsTheHosts(t *testing.T) {
	r := newRig(t)
	t.Run("float32", func(t *testing.T) { products[float32](t, r, 1e-5) })
	t.Run("float64", func(t *testing.T) { products[float64](t, r, 1e-13) })
}

func products[T gorgonia.Float](t *testing.T, shared *rig, bound float64) {
	t.Helper()
	r := *shared
	r.TB = t
	for range rounds() {
		require.NoError(t, r.e.Scoped(func() error {
			m, k, n := r.length(), r.length(), r.length()
			x, y := operand[T](&r, r.random.IntN(layouts), m, k), operand[T](&r, r.random.IntN(layouts), k, n)
			text := fmt.Sprint(m, k, n, x.device.Strides(), y.device.Strides())
			want := host.New(host.WithShape(m, n), host.WithBacking(make([]T, m*n)))
			if m*k*n > 0 {
				var err error
				want, err = plainCopy[T](&r, x.host).MatMul(plainCopy[T](&r, y.host))
				require.NoError(t, err, text)
			}
			got, err := r.e.Product(x.device, y.device)
			require.NoError(t, err, text)
			same[T](&r, want, got, bound, text)

			got, err = x.device.MatMul(y.device)
			require.NoError(t, err, text)
			same[T](&r, want, got, bound, text)

			out := operand[T](&r, r.random.IntN(layouts), m, n)
			got, err = x.device.MatMul(y.device, host.WithReuse(out.device))
			require.NoError(t, err, text)
			assert.Same(t, out.device, got)
			same[T](&r, want, got, bound, text)
			return nil
		}))
	}
}

// A matrix of one column or one row has fewer strides than dimensions in column-major order.
func TestVectorsInColumnMajorOrder(t *testing.T) {
	r := newRig(t)
	for _, shape := range [][2]int{{8, 1}, {1, 8}, {1, 1}} {
		x := host.New(host.Of(host.Float32), host.WithShape(shape[:]...), host.AsFortran(nil), host.WithEngine(r.e))
		require.Less(t, len(x.Strides()), 2)
		values := []float32{1, 2, 3, 4, 5, 6, 7, 8}[:shape[0]*shape[1]]
		require.NoError(t, gorgonia.Write(x, values))
		got, err := gorgonia.Read[float32](x)
		require.NoError(t, err)
		assert.Equal(t, values, got)
		sum, err := host.Add(x, x, host.WithReuse(x))
		require.NoError(t, err)
		got, err = gorgonia.Read[float32](sum)
		require.NoError(t, err)
		assert.Equal(t, 2*values[0], got[0])
		a := operand[float32](r, turned, 8, 7)
		b := numbers[float32](r, 7, 1)
		want, err := plainCopy[float32](r, a.host).MatMul(b.host)
		require.NoError(t, err)
		product, err := a.device.MatMul(b.device) // whose result has column-major order
		require.NoError(t, err)
		same[float32](r, want, product, 1e-5, "a column")
	}
}

func TestReductionsAreAsTheHosts(t *testing.T) {
	r := newRig(t)
	t.Run("float32", func(t *testing.T) { reductions[float32](t, r, 1e-5) })
	t.Run("float64", func(t *testing.T) { reductions[float64](t, r, 1e-13) })
}

func reductions[T gorgonia.Float](t *testing.T, shared *rig, bound float64) {
	t.Helper()
	r := *shared
	r.TB = t
	all := map[string]func(d *host.Dense, along ...int) (*host.Dense, error){
		"sum": (*host.Dense).Sum, "max": (*host.Dense).Max, "min": (*host.Dense).Min,
	}
	for range rounds() {
		shape := r.shape(3)
		x := numbers[T](&r, shape...)
		for _, along := range [][]int{nil, {0}, {1}, {2}, {0, 1}, {1, 2}, {0, 1, 2}} {
			for name, f := range all {
				text := fmt.Sprint(name, shape, along)
				got, err := f(x.device, along...)
				if x.host.Shape().TotalSize() == 0 {
					if name != "sum" && err != nil {
						require.ErrorIs(t, err, ops.ErrEmpty, text)
					} else {
						require.NoError(t, err, text)
					}
					continue
				}
				require.NoError(t, err, text)
				want, err := f(x.host, along...)
				require.NoError(t, err, text)
				same[T](&r, want, got, bound, text)
			}
		}
	}
}

func TestAReductionOfNoElements(t *testing.T) {
	r := newRig(t)
	x, err := gorgonia.From(r.e, []float32{}, 0, 3)
	require.NoError(t, err)
	sum, err := x.Sum(0)
	require.NoError(t, err)
	values, err := gorgonia.Read[float32](sum)
	require.NoError(t, err)
	assert.Equal(t, []float32{0, 0, 0}, values)
	_, err = x.Max()
	require.ErrorIs(t, err, ops.ErrEmpty)
}

func TestNaNIsTheExtremum(t *testing.T) {
	r := newRig(t)
	x, err := gorgonia.From(r.e, []float32{1, float32(math.NaN()), 3})
	require.NoError(t, err)
	for _, f := range []func(along ...int) (*host.Dense, error){x.Max, x.Min} {
		got, err := f()
		require.NoError(t, err)
		values, err := gorgonia.Read[float32](got)
		require.NoError(t, err)
		assert.True(t, math.IsNaN(float64(values[0])))
	}
}

// One refusal of each kind, none of which leaves memory.
func TestOperationsRefuse(t *testing.T) {
	r := newRig(t)
	other, err := gorgonia.New(r.c, r.o)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	x, y, wide := numbers[float32](r, 2, 3).device, numbers[float32](r, 3, 2).device, numbers[float64](r, 2, 3).device
	foreign, err := gorgonia.From(other, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	require.NoError(t, err)
	whole := host.New(host.Of(host.Int32), host.WithShape(2, 3), host.WithEngine(r.e))
	masked := x.ShallowClone()
	masked.SetMask(make([]bool, 6))
	sparse := host.CSRFromCoord(host.Shape{2, 3}, []int{0}, []int{1}, []float32{1})
	line, err := gorgonia.From(r.e, []float32{1, 2, 3, 4, 5})
	require.NoError(t, err)
	first, err := line.Slice(host.S(0, 4))
	require.NoError(t, err)
	last, err := line.Slice(host.S(1, 5))
	require.NoError(t, err)
	plain := host.New(host.WithShape(2, 3), host.WithBacking(make([]float32, 6)))
	live := r.dev.Stats().LiveBytes
	for name, c := range map[string]struct {
		want error
		do   func() (host.Tensor, error)
	}{
		"another shape":         {gorgonia.ErrShape, func() (host.Tensor, error) { return r.e.Add(x, y) }},
		"another type":          {gorgonia.ErrType, func() (host.Tensor, error) { return r.e.Add(x, wide) }},
		"a type that is not":    {gorgonia.ErrType, func() (host.Tensor, error) { return r.e.Add(whole, whole) }},
		"a wider scalar":        {gorgonia.ErrType, func() (host.Tensor, error) { return r.e.AddScalar(x, float64(1), true) }},
		"an integer":            {gorgonia.ErrType, func() (host.Tensor, error) { return r.e.AddScalar(x, 1, true) }},
		"no tensor":             {gorgonia.ErrLayout, func() (host.Tensor, error) { return r.e.Add(nil, x) }},
		"a masked tensor":       {gorgonia.ErrLayout, func() (host.Tensor, error) { return r.e.Add(x, masked) }},
		"a sparse tensor":       {gorgonia.ErrLayout, func() (host.Tensor, error) { return r.e.Add(x, sparse) }},
		"another engine":        {gorgonia.ErrForeign, func() (host.Tensor, error) { return r.e.Add(x, foreign) }},
		"a tensor of the host":  {gorgonia.ErrForeign, func() (host.Tensor, error) { return r.e.Add(x, plain) }},
		"two options":           {gorgonia.ErrOption, func() (host.Tensor, error) { return r.e.Add(x, x, host.WithReuse(x), host.WithIncr(x)) }},
		"a type of the result":  {gorgonia.ErrOption, func() (host.Tensor, error) { return r.e.Add(x, x, host.As(host.Float64)) }},
		"an output's shape":     {gorgonia.ErrShape, func() (host.Tensor, error) { return r.e.Add(x, x, host.WithReuse(y)) }},
		"an output's type":      {gorgonia.ErrType, func() (host.Tensor, error) { return r.e.Add(x, x, host.WithReuse(wide)) }},
		"a sum's shape":         {gorgonia.ErrShape, func() (host.Tensor, error) { return r.e.Add(x, x, host.WithIncr(y)) }},
		"overlapping memory":    {kernel.ErrOverlap, func() (host.Tensor, error) { return r.e.Add(first, first, host.WithReuse(last)) }},
		"inner dimensions":      {ops.ErrShape, func() (host.Tensor, error) { return nil, r.e.MatMul(x, x, x) }},
		"a product's operand":   {gorgonia.ErrShape, func() (host.Tensor, error) { return r.e.Product(x, line) }},
		"a product of vectors":  {gorgonia.ErrShape, func() (host.Tensor, error) { return nil, r.e.MatMul(line, line, line) }},
		"a product's type":      {gorgonia.ErrType, func() (host.Tensor, error) { return r.e.Product(y, wide) }},
		"an axis that is not":   {ops.ErrAxes, func() (host.Tensor, error) { return r.e.Sum(x, 2) }},
		"the sum of no tensor":  {gorgonia.ErrLayout, func() (host.Tensor, error) { return r.e.Sum(nil) }},
		"new integers":          {gorgonia.ErrType, func() (host.Tensor, error) { return r.e.New(host.Int32, 1) }},
		"a read as float64":     {nil, func() (host.Tensor, error) { _, err := gorgonia.Read[float64](x); return nil, err }},
		"a read from the host":  {gorgonia.ErrForeign, func() (host.Tensor, error) { _, err := gorgonia.Read[float32](plain); return nil, err }},
		"a write of few values": {nil, func() (host.Tensor, error) { return nil, gorgonia.Write(x, []float32{1}) }},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.do()
			failure := (*gorgonia.Error)(nil)
			require.ErrorAs(t, err, &failure)
			assert.NotEmpty(t, failure.Op)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
			}
			assert.Nil(t, got)
		})
	}
	assert.Equal(t, live, r.dev.Stats().LiveBytes, "a refusal left memory")
}
