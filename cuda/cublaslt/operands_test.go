//go:build !gpu

package cublaslt_test

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/cublaslt"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/vramtest"
)

// Operands lie anywhere in their buffers, up to the last byte. Each of them, and the workspace, is an argument of the launch: one that
// is not live is refused by its number, and the library is not called.
func TestOperandsAreArguments(t *testing.T) {
	r := newRig(t)
	h, err := cublaslt.Open(r.c)
	require.NoError(t, err)
	const before = 512 // bytes of each buffer
	for name, c := range map[string]struct {
		problem gemm.Problem
		beta    float64
		want    float32
		used    func(o *gemm.Operands) []*cuda.Range
	}{
		"plain": {
			gemm.Problem{M: 4, N: 8, K: 16},
			0, 16,
			func(o *gemm.Operands) []*cuda.Range { return []*cuda.Range{&o.A, &o.B, &o.C} },
		},
		"accumulates": {
			gemm.Problem{M: 4, N: 8, K: 16},
			2, 18,
			func(o *gemm.Operands) []*cuda.Range { return []*cuda.Range{&o.A, &o.B, &o.C} },
		},
		"bias, Aux is written": {
			gemm.Problem{M: 4, N: 8, K: 16, Bias: true, Epilogue: gemm.GELUAux},
			0, 17,
			func(o *gemm.Operands) []*cuda.Range { return []*cuda.Range{&o.A, &o.B, &o.C, &o.Bias, &o.Aux} },
		},
		"Aux is read": {
			gemm.Problem{M: 4, N: 8, K: 16, Epilogue: gemm.GELUGradient, Batch: 2},
			0, 16 * 1.0829641,
			func(o *gemm.Operands) []*cuda.Range { return []*cuda.Range{&o.A, &o.B, &o.C, &o.Aux} },
		},
	} {
		p, e, err := c.problem.Check()
		require.NoError(t, err)
		plan, err := h.Plan(p, cublaslt.Alignment{A: 16, B: 16, C: 16, Bias: 16, Aux: 16}, c.beta != 0)
		require.NoError(t, err)
		fresh := func() (all []*cuda.Range, o *gemm.Operands, work cuda.Range) {
			o = &gemm.Operands{Alpha: 1, Beta: c.beta}
			for i, at := range c.used(o) {
				bytes := map[*cuda.Range]int64{&o.A: e.A, &o.B: e.B, &o.C: e.C, &o.Bias: e.Bias, &o.Aux: e.Aux}[at]
				b, err := r.c.Alloc(before + bytes)
				require.NoError(t, err, i)
				require.NoError(t, r.c.Fill32(cuda.Whole(b), 0x3f800000))
				*at = cuda.Part(b, before, bytes)
				all = append(all, at)
			}
			b, err := r.c.Alloc(before + plan.WorkspaceBytes)
			require.NoError(t, err)
			work = cuda.Part(b, before, plan.WorkspaceBytes)
			return append(all, &work), o, work
		}
		free := func(all []*cuda.Range) {
			for _, at := range all {
				if at.Buffer.Live() {
					require.NoError(t, at.Buffer.Free())
				}
			}
		}
		all, o, work := fresh()
		require.NoError(t, plan.Launch(r.c, *o, e, work), name)
		got := make([]float32, 1+before/4)
		require.NoError(t, cuda.CopyOut(r.c, got, o.C.Buffer))
		assert.InDelta(t, c.want, got[before/4], 1e-3, name)
		assert.InDelta(t, 1, got[before/4-1], 0, name)
		free(all)
		launches := r.calls("cublasLtMatmul")
		for i := range all {
			all, o, work := fresh()
			require.NoError(t, all[i].Buffer.Free())
			var refused *cuda.ArgumentError
			require.ErrorAs(t, plan.Launch(r.c, *o, e, work), &refused, "%s, operand %d", name, i)
			assert.Equal(t, i, refused.Index, name)
			require.ErrorIs(t, refused, cuda.ErrNotLive, name)
			free(all)
		}
		assert.Equal(t, launches, r.calls("cublasLtMatmul"))
		for i := range all { // a frozen operand is one that is read alone
			all, o, work := fresh()
			require.NoError(t, r.c.Freeze(all[i].Buffer))
			err := plan.Launch(r.c, *o, e, work)
			if all[i] == &o.C || all[i] == &o.Aux && p.Epilogue.WritesAux() || i == len(all)-1 {
				var refused *cuda.ArgumentError
				require.ErrorAs(t, err, &refused, "%s, operand %d", name, i)
				assert.Equal(t, i, refused.Index, name)
				require.ErrorIs(t, err, cuda.ErrFrozen, name)
			} else {
				require.NoError(t, err, "%s, operand %d", name, i)
			}
			free(all)
		}
	}
	require.NoError(t, r.c.Synchronize(context.Background()))
	require.NoError(t, h.Close())
}

// numbersOf returns the bytes of numbers, small integers above 0, as a type has them.
func numbersOf(of gemm.Type, numbers []int) (all []byte) {
	for _, n := range numbers {
		v := float64(n)
		switch of {
		case gemm.Float32:
			all = binary.LittleEndian.AppendUint32(all, math.Float32bits(float32(v)))
		case gemm.Float64:
			all = binary.LittleEndian.AppendUint64(all, math.Float64bits(v))
		case gemm.BFloat16:
			all = binary.LittleEndian.AppendUint16(all, uint16(math.Float32bits(float32(v))>>16))
		case gemm.Float16: // its exponent is 5 bits long, and its fraction 10
			fraction, exponent := math.Frexp(v)
			all = binary.LittleEndian.AppendUint16(all, uint16(exponent+14)<<10+uint16(2048*fraction)-1024)
		}
	}
	return all
}

// matrix is an operand of a product: the element of a batch, a row and a column is at a place, and others are gaps.
type matrix struct {
	numbers []int
	at      func(batch, row, column int64) int64
}

func matrixOf(random *rand.Rand, bytes int64, of gemm.Type, ld, stride int64, transposed bool) matrix {
	m := matrix{make([]int, bytes/of.Bytes()), func(batch, row, column int64) int64 { return batch*stride + row*ld + column }}
	if transposed {
		m.at = func(batch, row, column int64) int64 { return batch*stride + column*ld + row }
	}
	for i := range m.numbers {
		m.numbers[i] = 1 + random.IntN(3)
	}
	return m
}

// A product of any types, transposed or not, of one or several matrices with gaps between rows and between matrices, is right, and
// leaves the gaps as they are.
func TestProductsOfEachLayout(t *testing.T) {
	r := newRig(t)
	h, err := cublaslt.Open(r.c)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	put := func(of gemm.Type, m matrix) cuda.Range {
		b, err := r.c.Alloc(int64(len(m.numbers)) * of.Bytes())
		require.NoError(t, err)
		require.NoError(t, cuda.CopyIn(r.c, b, numbersOf(of, m.numbers)))
		return cuda.Whole(b)
	}
	for _, types := range [][2]gemm.Type{
		{gemm.Float32, gemm.Float32},
		{gemm.Float16, gemm.Float16},
		{gemm.Float16, gemm.Float32},
		{gemm.BFloat16, gemm.BFloat16},
		{gemm.BFloat16, gemm.Float32},
		{gemm.Float64, gemm.Float64},
	} {
		for i := range 8 {
			p := gemm.Problem{
				M: 3, N: 4, K: 5, TransposeA: i&1 != 0, TransposeB: i&2 != 0, LDA: 7, LDB: 8, LDC: 9, LDAux: 16,
				StrideA: 41, StrideB: 42, StrideC: 43, StrideAux: 56, In: types[0], Out: types[1],
			}
			if i&4 != 0 {
				p.Batch = 3
			}
			if p.In != gemm.Float64 {
				p.Epilogue = gemm.GELUAux // Aux has the product, and C its GELU: the same number for one above 10
			}
			p, e, err := p.Check()
			require.NoError(t, err)
			a := matrixOf(random, e.A, p.In, p.LDA, p.StrideA, p.TransposeA)
			b := matrixOf(random, e.B, p.In, p.LDB, p.StrideB, p.TransposeB)
			c := matrixOf(random, e.C, p.Out, p.LDC, p.StrideC, false)
			o := gemm.Operands{A: put(p.In, a), B: put(p.In, b), C: put(p.Out, c), Alpha: 1, Beta: 8}
			results := map[*cuda.Range]matrix{&o.C: c}
			if p.UsesAux() {
				aux := matrixOf(random, e.Aux, p.Out, p.LDAux, p.StrideAux, false)
				o.Aux = put(p.Out, aux)
				results[&o.Aux] = aux
			}
			for n := range p.Batch {
				for row := range p.M {
					for column := range p.N {
						at := c.at(n, row, column)
						sum := 8 * c.numbers[at]
						for k := range p.K {
							sum += a.numbers[a.at(n, row, k)] * b.numbers[b.at(n, k, column)]
						}
						for _, m := range results {
							m.numbers[m.at(n, row, column)] = sum
						}
					}
				}
			}
			require.NoError(t, r.multiply(h, p, e, o), p)
			for result, want := range results {
				got := make([]byte, result.Bytes)
				require.NoError(t, cuda.CopyOut(r.c, got, result.Buffer))
				assert.Equal(t, numbersOf(p.Out, want.numbers), got, "%v, Aux: %t", p, result == &o.Aux)
			}
			for _, at := range []cuda.Range{o.A, o.B, o.C, o.Aux} {
				if at.Buffer != (cuda.Buffer{}) {
					require.NoError(t, at.Buffer.Free())
				}
			}
		}
	}
	require.NoError(t, h.Close())
}

// A product touches its operands and its workspace, and no other bytes of their buffers.
func TestAProductTouchesItsOperandsAlone(t *testing.T) {
	var checked *hazard.Driver
	r := newRigOn(t, func(c vram.Config) vram.Config {
		c, checked = vramtest.Watch(c)
		return c
	})
	view, err := checked.View(0)
	require.NoError(t, err)
	other, err := r.c.NewStream()
	require.NoError(t, err)
	h, err := cublaslt.Open(r.c)
	require.NoError(t, err)
	const around = 8 << 20 // bytes of each buffer before its operand, and after it: more than the operand has
	for i, p := range []gemm.Problem{
		{M: 4, N: 8, K: 16, Bias: true, Epilogue: gemm.GELUAux},
		{M: 4, N: 8, K: 16, Epilogue: gemm.GELUGradient},
		{M: 4, N: 8, K: 16},
		{M: 4, N: 8, K: 16},
	} {
		p, e, err := p.Check()
		require.NoError(t, err)
		beta := []float64{0, 0, 0, 1}[i]
		plan, err := h.Plan(p, cublaslt.Alignment{A: 16, B: 16, C: 16, Bias: 16, Aux: 16}, beta != 0)
		require.NoError(t, err)
		require.Positive(t, plan.WorkspaceBytes)
		var all []cuda.Range
		part := func(bytes int64) cuda.Range {
			if bytes == 0 {
				return cuda.Range{}
			}
			b, err := r.c.Alloc(bytes + 2*around)
			require.NoError(t, err)
			all = append(all, cuda.Part(b, around, bytes))
			return all[len(all)-1]
		}
		o := gemm.Operands{A: part(e.A), B: part(e.B), C: part(e.C), Bias: part(e.Bias), Aux: part(e.Aux), Alpha: 1, Beta: beta}
		work := part(plan.WorkspaceBytes)
		require.NoError(t, other.Wait(r.c), "its memory is new")
		require.NoError(t, plan.Launch(r.c, o, e, work))
		found := func() int {
			reports, _ := checked.Checker(0).Reports()
			return len(reports)
		}
		before := found()
		for i, at := range all {
			p := at.Buffer.Ptr()
			require.NoError(t, view.MemsetD8Async(p, 0, around, other.Stream().Handle()))
			require.NoError(t, view.MemsetD8Async(p+cudadrv.Ptr(around+at.Bytes), 0, around, other.Stream().Handle()))
			assert.Equal(t, before, found(), "%v, operand %d", p, i)
		}
		at := all[2]
		require.NoError(t, view.MemsetD8Async(at.Buffer.Ptr()+cudadrv.Ptr(around+at.Bytes-1), 0, 1, other.Stream().Handle()))
		assert.Equal(t, 1, found(), "the last byte of C: a race at one place is reported once")
		require.NoError(t, r.c.Synchronize(t.Context()))
		require.NoError(t, other.Synchronize(t.Context()))
		for _, at := range all {
			require.NoError(t, at.Buffer.Free())
		}
	}
	require.NoError(t, h.Close())
	require.NoError(t, other.Close())
	require.NoError(t, view.Close())
}

// C is read where Beta is not 0, and only there.
func TestAProductReadsCForBeta(t *testing.T) {
	for beta, want := range map[float64][]string{0: {"writes"}, 0.5: {"reads", "writes"}, -1: {"reads", "writes"}} {
		var checked *hazard.Driver
		r := newRigOn(t, func(c vram.Config) vram.Config {
			c, checked = vramtest.Watch(c)
			return c
		})
		view, err := checked.View(0)
		require.NoError(t, err)
		other, err := view.StreamCreate()
		require.NoError(t, err)
		h, err := cublaslt.Open(r.c)
		require.NoError(t, err)
		p, e, o := r.ones(gemm.Problem{M: 4, N: 8, K: 16})
		require.NoError(t, r.c.Synchronize(t.Context()))
		o.Beta = beta
		require.NoError(t, view.MemsetD8Async(o.C.Buffer.Ptr(), 0, 4, other))
		require.NoError(t, r.multiply(h, p, e, o))
		reports, _ := checked.Checker(0).Reports()
		var got []string
		for _, one := range reports {
			got = append(got, one.Now.What[strings.LastIndex(one.Now.What, " ")+1:])
		}
		assert.Equal(t, want, got, "beta %v", beta)
		require.NoError(t, view.CtxSynchronize())
		require.NoError(t, view.StreamDestroy(other))
		require.NoError(t, h.Close())
		require.NoError(t, view.Close())
	}
}

// A problem that the library is not asked about is not supported.
func TestProblemsThatTheLibraryIsNotAsked(t *testing.T) {
	r := newRig(t)
	h, err := cublaslt.Open(r.c)
	require.NoError(t, err)
	for _, p := range []gemm.Problem{
		{M: 4, N: 8},
		{M: 4, K: 8},
		{N: 8, K: 16},
		{M: 4, N: 8, K: 16, Precision: gemm.RoundedF16},
		{M: 4, N: 8, K: 16, Epilogue: gemm.GELUGradient, Bias: true},
	} {
		p = p.Filled()
		_, err := h.Plan(p, cublaslt.Alignment{A: 16, B: 16, C: 16, Bias: 16, Aux: 16}, false)
		var refused *cublaslt.UnsupportedError
		require.ErrorAs(t, err, &refused, "%+v", p)
		assert.Equal(t, cublaslt.UnsupportedError{Problem: p, Status: cublaslt.NotSupported}, *refused)
	}
	assert.Zero(t, r.calls("cublasLtMatmulAlgoGetHeuristic"))
	require.NoError(t, h.Close())
}

// The library may find no algorithm in three ways, and each is remembered. Another failure of the question is not.
func TestNoAlgorithm(t *testing.T) {
	r := newRig(t)
	h, err := cublaslt.Open(r.c)
	require.NoError(t, err)
	const (
		findsNone     = -1 // the fake succeeds, with a count of 0
		findsUnusable = -2 // the fake succeeds, with an algorithm whose status is CUBLAS_STATUS_ARCH_MISMATCH
	)
	for i, c := range []struct{ answer, want cublaslt.Status }{
		{cublaslt.NotSupported, cublaslt.NotSupported},
		{cublaslt.InvalidValue, cublaslt.InvalidValue},
		{findsNone, cublaslt.NotSupported},
		{findsUnusable, 8},
	} {
		p := gemm.Problem{M: 4, N: 8, K: 16 + int64(i)}.Filled()
		r.fail("cublasLtMatmulAlgoGetHeuristic", 1, c.answer)
		for range 2 {
			_, err := h.Plan(p, cublaslt.Alignment{A: 16, B: 16, C: 16}, false)
			var refused *cublaslt.UnsupportedError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, cublaslt.UnsupportedError{Problem: p, Status: c.want}, *refused)
		}
		assert.Equal(t, i+1, h.Plans())
		assert.Equal(t, 1, r.live(), "the handle alone")
	}
	require.NoError(t, h.Close())
}

// The library gets the alignment of each operand as that operand's, though it multiplies the transposes with A and B exchanged.
func TestEachOperandHasItsAlignment(t *testing.T) {
	r := newRig(t)
	h, err := cublaslt.Open(r.c)
	require.NoError(t, err)
	p, e, o := r.ones(gemm.Problem{M: 4, N: 4, K: 4})
	for name, operand := range map[string]*cuda.Range{"A": &o.A, "B": &o.B} {
		whole := *operand
		b, err := r.c.Alloc(256)
		require.NoError(t, err)
		*operand = cuda.Part(b, 4, whole.Bytes)
		require.NoError(t, r.c.Fill32(*operand, 0x3f800000))
		require.NoError(t, r.multiply(h, p, e, o), name)
		assert.InDelta(t, 4, r.first(o), 1e-6, name)
		require.NoError(t, b.Free())
		*operand = whole
	}
	require.NoError(t, h.Close())
}

// A plan that has left the cache is made again at its launch. If that fails, the launch does.
func TestAPlanThatHasLeftTheCache(t *testing.T) {
	r := newRig(t)
	h, err := cublaslt.Open(r.c)
	require.NoError(t, err)
	p, e, o := r.ones(gemm.Problem{M: 4, N: 4, K: 4})
	plan, err := h.Plan(p, cublaslt.AlignmentOf(p, o), false)
	require.NoError(t, err)
	w, err := r.c.Workspace(plan.WorkspaceBytes)
	require.NoError(t, err)
	more := func(n int64) error {
		_, err := h.Plan(gemm.Problem{M: 1, N: 5 + n, K: 1}.Filled(), cublaslt.Alignment{A: 16, B: 16, C: 16}, false)
		return err
	}
	for n := range int64(cublaslt.MaxPlans - 1) {
		require.NoError(t, more(n))
	}
	before := r.live()
	r.fail("cublasLtMatmulDescDestroy", 1, 14)
	require.NoError(t, more(cublaslt.MaxPlans), "the library keeps a descriptor of the old plan, and the new one is there")
	assert.Equal(t, cublaslt.MaxPlans, h.Plans())
	live := r.live()
	assert.Equal(t, before+1, live)
	for name, status := range map[string]cublaslt.Status{"cublasLtMatmulDescCreate": 14, "cublasLtMatmulAlgoGetHeuristic": cublaslt.NotSupported} {
		r.fail(name, 1, status)
		require.Error(t, plan.Launch(r.c, o, e, cuda.Whole(w)), name)
		assert.Zero(t, r.calls("cublasLtMatmul"), name)
		assert.Equal(t, live, r.live(), name)
	}
	const findsLarger = -3 // the fake succeeds, with an algorithm that wants a longer workspace
	for _, answer := range []cublaslt.Status{cublaslt.Success, findsLarger} {
		r.fail("cublasLtMatmulAlgoGetHeuristic", 1, answer)
		require.NoError(t, plan.Launch(r.c, o, e, cuda.Part(w, 0, plan.WorkspaceBytes)), "the caller's workspace is long enough")
		assert.InDelta(t, 4, r.first(o), 1e-6)
	}
	r.fail("cublasLtMatmulDescDestroy", 1, 14)
	require.NoError(t, plan.Launch(r.c, o, e, cuda.Whole(w)), "it has made the plan, whose descriptor the library keeps")
	assert.Equal(t, live+1, r.live())
	require.NoError(t, h.Close(), "it destroys all descriptors")
}

// Plans are kept by all that the question to the library has: a product that differs in any field of its problem, in an alignment, or
// in whether it adds up, has a plan of its own, and asks again.
func TestEachDifferenceHasItsPlan(t *testing.T) {
	r := newRig(t)
	h, err := cublaslt.Open(r.c)
	require.NoError(t, err)
	p := gemm.Problem{
		M: 16, N: 16, K: 16, LDA: 64, LDB: 64, LDC: 64, LDAux: 64, Batch: 2, StrideA: 1 << 12, StrideB: 1 << 12, StrideC: 1 << 12, StrideAux: 1 << 12,
	}.Filled()
	a := cublaslt.Alignment{A: 16, B: 16, C: 16, Bias: 16, Aux: 16}
	plans := 0
	ask := func(p gemm.Problem, a cublaslt.Alignment, accumulates bool, what string) {
		plans++
		for range 2 {
			_, err := h.Plan(p, a, accumulates)
			var refused *cublaslt.UnsupportedError
			if err != nil {
				require.ErrorAs(t, err, &refused, what)
			}
			assert.Equal(t, plans, h.Plans(), what)
		}
	}
	ask(p, a, false, "the first")
	ask(p, a, true, "beta")
	vary := func(of reflect.Value, ask func(what string)) {
		for i := range of.NumField() {
			f := of.Field(i)
			old := reflect.ValueOf(f.Interface())
			switch {
			case f.Kind() == reflect.Bool:
				f.SetBool(!f.Bool())
			case f.CanInt():
				f.SetInt(f.Int() + 16)
			default:
				f.SetUint(f.Uint() + 1)
			}
			ask(of.Type().Field(i).Name)
			f.Set(old)
		}
	}
	vary(reflect.ValueOf(&a).Elem(), func(what string) { ask(p, a, false, what) })
	vary(reflect.ValueOf(&p).Elem(), func(what string) { ask(p, a, false, what) })
	require.NoError(t, h.Close())
}
