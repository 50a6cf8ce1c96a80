package matmul_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/cublaslt"
	"github.com/go-vram/vram/cuda/gemm"
)

// absent ends a test on a GPU without the library.
func (r *rig) absent(err error) bool {
	var absent *cublaslt.AbsentError
	if onHardware && errors.As(err, &absent) {
		r.Log(err)
		return true
	}
	return false
}

// The library computes random problems within the same error, or says that it does not, and then own kernels do.
func TestTheLibrary(t *testing.T) {
	r := newRig(t)
	var library, refused int
	for seed := range uint64(programs) {
		random := newRandom(1000 + seed)
		p := randomProblem(random)
		path := r.multiply(random, p, 1.5, float64(random.IntN(2)), int64(random.IntN(2)), matmul.Any)
		switch {
		case path.Library != "":
			library++
		case path.Refused != nil:
			if r.absent(path.Refused) {
				return
			}
			require.ErrorIs(t, path.Refused, cublaslt.ErrUnsupported)
			refused++
		}
	}
	t.Logf("%d by the library, %d refused by it", library, refused)
	assert.Positive(t, library)
	assert.Positive(t, refused)
}

// With the choice Library a problem that the library does not compute is an error, and stores nothing.
func TestTheLibraryAlone(t *testing.T) {
	r := newRig(t)
	random := newRandom(1)
	p := gemm.Problem{M: 33, N: 20, K: 17, Precision: gemm.TF32x3}
	x := r.product(random, p, 1, 0, 0)
	_, err := r.m.Multiply(r.c, p, x.operands(), matmul.Library)
	if r.absent(err) {
		r.free(x)
		return
	}
	require.ErrorIs(t, err, cublaslt.ErrUnsupported)
	x.want = nil
	r.check(x)
	r.free(x)
	p.Precision = gemm.TF32
	path := r.multiply(random, p, 1, 0, 0, matmul.Library)
	assert.NotEmpty(t, path.Library)
}

// A graph multiplies the contents of its operands at each launch, by the library and by own kernels, also with a workspace and
// on other streams.
func TestProductsInGraphs(t *testing.T) {
	r := newRig(t)
	for _, choice := range []matmul.Choice{matmul.Own, matmul.Any} {
		for _, p := range []gemm.Problem{
			{M: 40, N: 33, K: 1300},
			{M: 64, N: 64, K: 64, Precision: gemm.RoundedBF16, Bias: true, Epilogue: gemm.GELU},
			{M: 1, N: 50, K: 5000},
		} {
			x := r.product(newRandom(5), p, 1, 0, 0)
			g, err := r.c.Capture(func() error {
				_, err := r.m.Multiply(r.c, p, x.operands(), choice)
				return err
			})
			require.NoError(t, err)
			other := r.context()
			y := r.product(newRandom(6), p, 1, 0, 0)
			require.NoError(t, r.c.CopyInAt(x.a.Buffer, 0, y.a.host))
			require.NoError(t, r.c.CopyInAt(x.b.Buffer, 0, y.b.host))
			require.NoError(t, r.c.CopyInAt(x.bias.Buffer, 0, y.bias.host))
			_, err = r.c.Workspace(1 << 24) // work of others in between has a workspace of its own
			require.NoError(t, err)
			require.NoError(t, g.Launch(other))
			x.a.host, x.b.host, x.bias.host, x.want, x.magnitude = y.a.host, y.b.host, y.bias.host, y.want, y.magnitude
			r.check(x, choice)
			r.free(x)
			require.NoError(t, other.Synchronize(context.Background()))
			require.NoError(t, g.Close())
			r.free(y)
			require.NoError(t, other.Close())
		}
	}
}

// Operands of other streams are in order with the work there.
func TestOperandsOfOtherStreams(t *testing.T) {
	r := newRig(t)
	other := r.context()
	for _, choice := range []matmul.Choice{matmul.Own, matmul.Any} {
		for seed := range uint64(20) {
			p := gemm.Problem{M: 60, N: 50, K: 40}
			x := r.product(newRandom(seed), p, 1, 0, 0)
			require.NoError(t, r.c.Fill8(cuda.Whole(x.a.Buffer), 0))
			require.NoError(t, r.c.CopyInAt(x.a.Buffer, 0, x.a.host))
			_, err := r.m.Multiply(other, p, x.operands(), choice)
			require.NoError(t, err)
			r.check(x)
			r.free(x)
		}
	}
	require.NoError(t, other.Close())
}

// Invalid operands are refused before anything is submitted.
func TestRefusedProblems(t *testing.T) {
	r := newRig(t)
	random := rand.New(rand.NewPCG(1, 1))
	p := gemm.Problem{M: 8, N: 8, K: 8}
	x := r.product(random, p, 1, 0, 0)
	for name, change := range map[string]func(*gemm.Problem, *gemm.Operands){
		"M":         func(p *gemm.Problem, _ *gemm.Operands) { p.M = -1 },
		"K":         func(p *gemm.Problem, _ *gemm.Operands) { p.K = gemm.MaxSize + 1 },
		"LDA":       func(p *gemm.Problem, _ *gemm.Operands) { p.LDA = 7 },
		"StrideC":   func(p *gemm.Problem, _ *gemm.Operands) { p.Batch, p.StrideC = 2, 63 },
		"A":         func(p *gemm.Problem, _ *gemm.Operands) { p.LDA = 1 << 61 },
		"B":         func(_ *gemm.Problem, o *gemm.Operands) { o.B.Bytes = 8*8*4 - 1 },
		"C":         func(_ *gemm.Problem, o *gemm.Operands) { o.C.Offset++ },
		"Bias":      func(p *gemm.Problem, o *gemm.Operands) { p.Bias, o.Bias.Bytes = true, 31 },
		"Precision": func(p *gemm.Problem, _ *gemm.Operands) { p.In, p.Precision = gemm.BFloat16, gemm.TF32 },
		"Out":       func(p *gemm.Problem, _ *gemm.Operands) { p.Out = gemm.Float16 },
		"Epilogue":  func(p *gemm.Problem, _ *gemm.Operands) { p.Epilogue = 9 },
	} {
		changed, o := p, x.operands()
		change(&changed, &o)
		_, err := r.m.Multiply(r.c, changed, o, matmul.Own)
		var refused *gemm.ProblemError
		if assert.ErrorAs(t, err, &refused, name) {
			assert.Equal(t, name, refused.Field, "%v", err)
		}
	}
	o := x.operands()
	stale := r.operand(random, gemm.Float32, 256, 0)
	require.NoError(t, stale.Buffer.Free())
	o.A = stale.Range
	for _, choice := range []matmul.Choice{matmul.Own, matmul.Any} {
		_, err := r.m.Multiply(r.c, p, o, choice)
		require.ErrorIs(t, err, cuda.ErrNotLive)
	}
	x.want = nil
	r.check(x)
	r.free(x)
}

// A product does not overwrite its operands or its other outputs.
func TestOverlappingOperands(t *testing.T) {
	r := newRig(t)
	random := rand.New(rand.NewPCG(2, 1))
	x := r.product(random, gemm.Problem{M: 8, N: 8, K: 8, Bias: true, Epilogue: gemm.GELUAux}, 1, 0, 0)
	half := func(of *operand, from int64) cuda.Range { return cuda.Part(of.Buffer, of.Offset+from, 8*8*4) }
	for name, c := range map[string]struct {
		change func(*gemm.Operands)
		want   gemm.OverlapError
	}{
		"A":               {func(o *gemm.Operands) { o.C = half(x.a, 0) }, gemm.OverlapError{Written: "C", Other: "A"}},
		"the end of B":    {func(o *gemm.Operands) { o.C = half(x.b, -4) }, gemm.OverlapError{Written: "C", Other: "B"}},
		"bias":            {func(o *gemm.Operands) { o.Bias = half(x.c, 0) }, gemm.OverlapError{Written: "C", Other: "Bias"}},
		"aux":             {func(o *gemm.Operands) { o.Aux = half(x.c, 4) }, gemm.OverlapError{Written: "C", Other: "Aux"}},
		"aux over A":      {func(o *gemm.Operands) { o.Aux = half(x.a, 0) }, gemm.OverlapError{Written: "Aux", Other: "A"}},
		"aux over a bias": {func(o *gemm.Operands) { o.Bias = half(x.aux, 0) }, gemm.OverlapError{Written: "Aux", Other: "Bias"}},
	} {
		for _, choice := range []matmul.Choice{matmul.Own, matmul.Any, matmul.Library} {
			o := x.operands()
			c.change(&o)
			_, err := r.m.Multiply(r.c, x.Problem, o, choice)
			var refused *gemm.OverlapError
			if assert.ErrorAs(t, err, &refused, name) {
				assert.Equal(t, c.want, *refused, name)
				require.ErrorIs(t, err, cuda.ErrOverlap)
			}
		}
	}
	x.want, x.wantAux = nil, nil
	r.check(x)
	r.free(x)

	// Adjacent columns of one matrix do not overlap.
	b, err := r.c.Alloc(8 * 24 * 4)
	require.NoError(t, err)
	require.NoError(t, r.c.Fill8(cuda.Whole(b), 0))
	columns := func(from int64) cuda.Range { return cuda.Part(b, from*4, (7*24+8)*4) }
	p := gemm.Problem{M: 8, N: 8, K: 8, LDA: 24, LDB: 24, LDC: 24}
	for _, from := range [][3]int64{{0, 8, 16}, {16, 8, 0}, {0, 16, 8}} {
		_, err = r.m.Multiply(r.c, p, gemm.Operands{A: columns(from[0]), B: columns(from[1]), C: columns(from[2]), Alpha: 1}, matmul.Own)
		require.NoError(t, err)
	}
	_, err = r.m.Multiply(r.c, p, gemm.Operands{A: columns(0), B: columns(8), C: columns(15), Alpha: 1}, matmul.Own)
	require.ErrorIs(t, err, cuda.ErrOverlap)
	require.NoError(t, b.Free())
}

// Sizes of 0 are problems: without sums C is scaled, and without elements nothing happens.
func TestEmptyProblems(t *testing.T) {
	r := newRig(t)
	random := newRandom(2)
	for _, choice := range []matmul.Choice{matmul.Own, matmul.Any, matmul.Library} {
		assert.Equal(t, "nothing", r.multiply(random, gemm.Problem{M: 0, N: 8, K: 8}, 1, 1, 0, choice).String())
		assert.Equal(t, "nothing", r.multiply(random, gemm.Problem{M: 8, N: 0, K: 8}, 1, 1, 0, choice).String())
		for _, beta := range []float64{0, 0.5} {
			p := gemm.Problem{M: 9, N: 8, K: 0, Bias: true, Batch: 2, In: gemm.Float16, Out: gemm.Float16}
			assert.Equal(t, "sum_f32", r.multiply(random, p, 1, beta, 0, choice).String())
		}
	}
}

// More products than a grid has room for are several launches.
func TestManyProducts(t *testing.T) {
	if !onHardware {
		return // a minute of coroutines
	}
	r := newRig(t)
	p := gemm.Problem{M: 2, N: 3, K: 2, Batch: 65535 + 3, LDC: 4}
	r.multiply(newRandom(1), p, 1, 0, 0, matmul.Own)
}
