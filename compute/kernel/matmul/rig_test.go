package matmul_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv"
)

// rig is a device with a context and a multiplier.
type rig struct {
	testing.TB
	dev *vram.Device
	c   *cuda.Context
	m   *matmul.Multiplier
}

func newRig(tb testing.TB) *rig {
	tb.Helper()
	return newRigOn(tb, driver(tb))
}

// tiled is a device with a shape whose tiles on it are of a size, as a regular expression of the names of kernels. Kernels of
// fp32 have one size.
type tiled struct {
	tile string
	*rig
	m, n int64
}

func newRigOn(tb testing.TB, driver cudadrv.Driver) *rig {
	tb.Helper()
	dev, err := vram.Open(vram.Config{Driver: driver})
	require.NoError(tb, err)
	r := &rig{TB: tb, dev: dev}
	r.c = r.context()
	r.m = matmul.New(r.c)
	tb.Cleanup(func() {
		assert.NoError(tb, r.m.Close())
		assert.NoError(tb, r.c.Close())
		assert.NoError(tb, dev.Close())
	})
	return r
}

func (r *rig) context() *cuda.Context {
	r.Helper()
	s, err := r.dev.NewStream()
	require.NoError(r, err)
	c, err := cuda.NewContext(s)
	require.NoError(r, err)
	return c
}

// operand is a range of a buffer with the contents that the host wrote. Bytes around the elements are checked, too.
type operand struct {
	cuda.Range
	host     []byte
	elements []float64 // of host, when the product was computed
	t        gemm.Type
}

const guardBytes = 64

// operand fills a buffer with random numbers, from an offset on.
func (r *rig) operand(random *rand.Rand, t gemm.Type, bytes, offset int64) *operand {
	r.Helper()
	b, err := r.c.Alloc(guardBytes + offset + bytes + guardBytes)
	require.NoError(r, err)
	x := &operand{Range: cuda.Part(b, guardBytes+offset, bytes), host: make([]byte, b.Bytes()), t: t}
	for i := int64(0); i+t.Bytes() <= b.Bytes(); i += t.Bytes() {
		put(x.host[i:], t, random.NormFloat64())
	}
	require.NoError(r, r.c.CopyInAt(b, 0, x.host))
	return x
}

// decode sets elements.
func (x *operand) decode() {
	x.elements = make([]float64, x.Bytes/x.t.Bytes())
	for i := range x.elements {
		x.elements[i] = get(x.host[x.Offset+int64(i)*x.t.Bytes():], x.t)
	}
}

// product is a problem with operands and the expected result.
type product struct {
	gemm.Problem
	a, b, c, bias, aux *operand
	alpha, beta        float64
	want, wantAux      []float64 // by element of C and Aux; NaN: the previous contents
	magnitude          float64   // of the sums, for errors of few elements
}

func (r *rig) product(random *rand.Rand, p gemm.Problem, alpha, beta float64, offset int64) *product {
	r.Helper()
	filled, e, err := p.Check()
	require.NoError(r, err)
	x := &product{Problem: filled, alpha: alpha, beta: beta}
	x.a = r.operand(random, p.In, e.A, offset*p.In.Bytes())
	x.b = r.operand(random, p.In, e.B, offset*p.In.Bytes())
	x.c = r.operand(random, p.Out, e.C, offset*p.Out.Bytes())
	x.bias = r.operand(random, p.Out, e.Bias, 0)
	x.aux = r.operand(random, p.Out, e.Aux, 0)
	x.compute()
	return x
}

func (x *product) operands() gemm.Operands {
	return gemm.Operands{A: x.a.Range, B: x.b.Range, C: x.c.Range, Bias: x.bias.Range, Aux: x.aux.Range, Alpha: x.alpha, Beta: x.beta}
}

// compute is the product in float64, from the definition.
func (x *product) compute() {
	strideA := [2]int64{x.LDA, 1}
	if x.TransposeA {
		strideA = [2]int64{1, x.LDA}
	}
	strideB := [2]int64{x.LDB, 1}
	if x.TransposeB {
		strideB = [2]int64{1, x.LDB}
	}
	for _, o := range []*operand{x.a, x.b, x.c, x.bias, x.aux} {
		o.decode()
	}
	x.want, x.wantAux = unknown(x.c.Bytes/x.Out.Bytes()), unknown(x.aux.Bytes/x.Out.Bytes())
	var all sync.WaitGroup
	magnitudes := make([]float64, x.Batch*x.M)
	const atOnce = 16
	for first := int64(0); first < x.Batch*x.M; first += atOnce {
		all.Go(func() {
			for row := first; row < min(first+atOnce, x.Batch*x.M); row++ {
				magnitudes[row] = x.row(row/x.M, row%x.M, strideA, strideB)
			}
		})
	}
	all.Wait()
	for _, m := range magnitudes {
		x.magnitude += m
	}
}

func unknown(elements int64) []float64 {
	all := make([]float64, elements)
	for i := range all {
		all[i] = math.NaN()
	}
	return all
}

// row computes a row of a matrix of the batch.
func (x *product) row(batch, i int64, strideA, strideB [2]int64) (total float64) {
	for j := range x.N {
		sum, magnitude := 0.0, 0.0
		atA, atB := batch*x.StrideA+i*strideA[0], batch*x.StrideB+j*strideB[1]
		for range x.K {
			v := x.a.elements[atA] * x.b.elements[atB]
			sum += v
			magnitude += v * v
			atA += strideA[1]
			atB += strideB[0]
		}
		at, aux := batch*x.StrideC+i*x.LDC+j, batch*x.StrideAux+i*x.LDAux+j
		v := x.alpha * sum
		if x.beta != 0 {
			v += x.beta * x.c.elements[at]
		}
		if x.Bias {
			v += x.bias.elements[j]
		}
		total += x.alpha*x.alpha*magnitude + v*v
		switch x.Epilogue {
		case gemm.GELU:
			v = gelu(v)
		case gemm.GELUAux:
			x.wantAux[aux] = v
			v = gelu(v)
		case gemm.GELUGradient:
			v *= geluGradient(x.aux.elements[aux])
		case gemm.None:
		}
		x.want[at] = v
	}
	return total
}

// bound is the error that the package promises, of sums, and of results in their type.
func (x *product) bound() float64 {
	bound := map[gemm.Precision]float64{
		gemm.IEEE: 1e-5, gemm.TF32x3: 1e-5, gemm.TF32: 1e-3, gemm.RoundedBF16: 1e-2, gemm.RoundedF16: 1e-3,
	}[x.Precision]
	switch x.Out {
	case gemm.BFloat16:
		bound += 0x1p-8
	case gemm.Float16:
		bound += 0x1p-10
	case gemm.Float64:
		bound = 1e-14
	case gemm.Float32:
	}
	return bound
}

// check compares the elements and the bytes between them.
func (r *rig) check(x *product, message ...any) {
	r.Helper()
	r.compare(x, x.c, x.want, message...)
	r.compare(x, x.aux, x.wantAux, message...)
	for _, read := range []*operand{x.a, x.b, x.bias} {
		r.compare(x, read, nil, message...)
	}
}

func (r *rig) compare(x *product, of *operand, want []float64, message ...any) {
	r.Helper()
	got := make([]byte, len(of.host))
	require.NoError(r, r.c.CopyOutAt(got, of.Buffer, 0))
	size := of.t.Bytes()
	var wrong, norm float64
	var count int
	for i := int64(0); i+size <= int64(len(got)); i += size {
		in := i - of.Offset
		if in >= 0 && in/size < int64(len(want)) && !math.IsNaN(want[in/size]) {
			w := want[in/size]
			g := get(got[i:], of.t)
			wrong += (g - w) * (g - w)
			norm += w * w
			count++
			continue
		}
		if !bytes.Equal(of.host[i:i+size], got[i:i+size]) {
			require.FailNow(r, "changed", "%v: byte %d, of %d from %d on: %v", x.Problem, i, of.Bytes, of.Offset, message)
		}
	}
	if count < 64 { // sums may cancel
		norm += x.magnitude
	}
	if e := math.Sqrt(wrong) / math.Max(math.Sqrt(norm), 1e-30); !(e <= x.bound()) {
		require.FailNow(r, "too large an error", "%v, alpha %g, beta %g: %g, want %g: %v", x.Problem, x.alpha, x.beta, e, x.bound(), message)
	}
}

func (r *rig) free(x *product) {
	r.Helper()
	for _, o := range []*operand{x.a, x.b, x.c, x.bias, x.aux} {
		require.NoError(r, o.Buffer.Free())
	}
}

// multiply computes a product and checks it.
func (r *rig) multiply(random *rand.Rand, p gemm.Problem, alpha, beta float64, offset int64, choice matmul.Choice) matmul.Path {
	r.Helper()
	x := r.product(random, p, alpha, beta, offset)
	path, err := r.m.Multiply(r.c, p, x.operands(), choice)
	require.NoError(r, err, "%v", p)
	r.check(x, path)
	r.free(x)
	return path
}
