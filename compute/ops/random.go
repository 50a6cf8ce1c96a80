package ops

import (
	"math"

	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

// Randoms make random numbers.
type Randoms struct{ set *set }

// Random says which random numbers those are: of Philox 4x32-10 with the key Seed. A tensor has the same numbers on every
// device and in every layout. Each four elements, in row-major order, are made of the four words of one counter, whose low half
// begins at Offset and whose high half is Stream; the numbers of float64 from Uniform take two counters.
type Random struct {
	Seed, Stream, Offset uint64

	// Ahead is added to Offset: a tensor of one int64, or nil. A graph has other numbers at each launch where something adds to
	// it.
	Ahead *tensor.Tensor
}

// After returns r for the numbers that follow a tensor of so many elements: the two share none.
func (r Random) After(elements int) Random {
	r.Offset += uint64(elements+1) / 2 //nolint:gosec // not negative
	return r
}

// Uniform returns a new tensor of floating-point numbers that are evenly distributed from low to below high. Rounding of
// low+u*(high-low) may make high itself, but for 0 and 1. Errors: ErrNumber for bounds that are not in order, or whose distance
// is not finite.
func (o Randoms) Uniform(at tensor.Context, of tensor.Type, r Random, low, high float64, shape ...int) (*tensor.Tensor, error) {
	return create(at, unmade(opUniform, of, shape, ""), func(out *tensor.Tensor) error { return o.UniformInto(at, out, r, low, high) })
}

// UniformInto writes Uniform to a tensor.
func (o Randoms) UniformInto(at tensor.Context, out *tensor.Tensor, r Random, low, high float64) error {
	return failed(opUniform, o.launch(at, routine.Uniform, out, r, low, high-low), []*tensor.Tensor{out})
}

// Normal returns a new tensor of floating-point numbers with the normal distribution, by the method of Box and Muller. It
// computes in float32, also for float64: no number is farther than 6.8 deviations from the mean. Errors: ErrNumber for a
// deviation that is negative or not finite.
func (o Randoms) Normal(at tensor.Context, of tensor.Type, r Random, mean, deviation float64, shape ...int) (*tensor.Tensor, error) {
	return create(at, unmade(opNormal, of, shape, ""), func(out *tensor.Tensor) error { return o.NormalInto(at, out, r, mean, deviation) })
}

// NormalInto writes Normal to a tensor.
func (o Randoms) NormalInto(at tensor.Context, out *tensor.Tensor, r Random, mean, deviation float64) error {
	return failed(opNormal, o.launch(at, routine.Normal, out, r, mean, deviation), []*tensor.Tensor{out})
}

func (o Randoms) launch(at tensor.Context, kind routine.Kind, out *tensor.Tensor, r Random, base, scale float64) error {
	c, err := tensor.ContextOf(at)
	if err != nil {
		return err
	}
	of := out.Type()
	if of.Valid() && of.Kind() != tensor.Floating {
		return &tensor.TypeError{Op: kind.String(), Types: []tensor.Type{of}}
	}
	if !(scale >= 0) || math.IsInf(scale, 0) || of != tensor.Float64 && math.IsInf(float64(float32(scale)), 0) {
		name := "high-low"
		if kind == routine.Normal {
			name = "deviation"
		}
		return badNumber(name, scale)
	}
	f := o.set.frame()
	defer f.release()
	if err := f.bindOut(0, out, cuda.Out); err != nil {
		return err
	}
	ahead := cuda.Value(uint64(0))
	if r.Ahead != nil {
		if r.Ahead.Type() != tensor.Int64 {
			return &tensor.TypeError{Op: "ahead of " + kind.String(), Types: []tensor.Type{r.Ahead.Type()}}
		}
		if r.Ahead.Len() != 1 {
			return ErrShape
		}
		if err := f.bind(1, r.Ahead, cuda.In); err != nil {
			return err
		}
		if err := f.apart(0, 2); err != nil {
			return err
		}
		ahead = f.operands[1].arg
	}
	if out.Len() == 0 {
		return nil
	}
	l := out.Layout()
	f.goes(l, func(d int) [maxOperands]int { return [maxOperands]int{l.Stride(d)} })
	f.items.merge()
	f.size(l.Len())
	f.shape(&f.items)
	f.operand(0, &f.items)
	for _, n := range [...]uint64{r.Seed, r.Stream, r.Offset} {
		f.value(cuda.Value(n))
	}
	f.value(ahead)
	if of == tensor.Float64 {
		f.value(cuda.Value(base))
		f.value(cuda.Value(scale))
	} else {
		f.value(cuda.Value(float32(base)))
		f.value(cuda.Value(float32(scale)))
	}
	k := routine.Kernel{Kind: kind, Of: [4]tensor.Type{of}, Rank: uint8(f.items.rank)}                             //nolint:gosec // small
	k.Vector = l.Contiguous() && f.operands[0].address()%uint64(min(vectorBytes, routine.GroupLen*of.Size())) == 0 //nolint:gosec // small
	return f.run(c, o.set, k, blocksOf((l.Len()+routine.GroupLen-1)/routine.GroupLen))
}
