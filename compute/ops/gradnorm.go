package ops

import (
	"errors"
	"math"

	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// GradNorm returns the Euclidean norm of all elements of gradients, the factor that clips them, and whether the norm is infinite
// or NaN, as GradNormInto writes them.
func (o Optimizers) GradNorm(at tensor.Context, grads []*tensor.Tensor, most float64) (norm, scale, nonFinite *tensor.Tensor, err error) {
	number := func(of tensor.Type) output { return sized(opGradNorm, of, nil, grads...) }
	all, err := createAll(at, func(all [maxSteps]*tensor.Tensor) error {
		return o.GradNormInto(at, all[0], all[1], all[2], grads, most)
	}, number(tensor.Float32), number(tensor.Float32), number(tensor.Bool))
	return all[0], all[1], all[2], err
}

// GradNormInto writes the norm of all elements of gradients; the factor of PyTorch's clip_grad_norm_ with which the norm is at
// most most: the lesser of 1 and most/(norm+1e-6); and whether the norm is infinite or NaN, where that function has
// error_if_nonfinite. They are tensors of one element, float32, float32 and bool, and one that is nil is not written. The host
// does not wait: AdamWStep takes scale and nonFinite from memory, and gradients themselves are not changed. Gradients with NaN
// have NaN as both numbers, and an infinite norm the factor 0, or NaN for an infinite most.
//
// The gradients are float16, bfloat16 and float32, in any layout, and are read once. It makes one launch for each 128 of the same
// type, which adds squares in float32, and one that adds the sums of its blocks of 16,384 elements, in their order. A gradient
// with gaps is copied before, and takes a launch of its own. Errors: ErrNumber for a most that is negative or NaN, ErrShape,
// *tensor.TypeError, tensor.ErrTooLarge, kernel.ErrOverlap.
func (o Optimizers) GradNormInto(at tensor.Context, norm, scale, nonFinite *tensor.Tensor, grads []*tensor.Tensor, most float64) error {
	err := checkNorm([3]*tensor.Tensor{norm, scale, nonFinite}, grads, most)
	if err == nil {
		n := gradNorm{set: o.set, outs: [3]*tensor.Tensor{norm, scale, nonFinite}, grads: grads, most: most}
		err = n.compute(at)
	}
	if err != nil {
		return named(opGradNorm, err, given(norm, scale, nonFinite), grads...)
	}
	return nil
}

// checkNorm refuses tensors and numbers.
func checkNorm(outs [3]*tensor.Tensor, grads []*tensor.Tensor, most float64) error {
	if !(most >= 0) {
		return badNumber("the greatest norm", most)
	}
	refused := func(t *tensor.Tensor) error {
		return &tensor.TypeError{Op: opGradNorm.String(), Types: []tensor.Type{t.Type()}}
	}
	for _, g := range grads {
		if !g.Type().Valid() {
			return tensor.ErrNoTensor
		}
		if !floats(g) {
			return refused(g)
		}
	}
	for i, out := range outs {
		of := tensor.Float32
		if i == len(outs)-1 {
			of = tensor.Bool
		}
		switch {
		case out == nil:
			continue
		case !out.Type().Valid():
			return tensor.ErrNoTensor
		case out.Type() != of:
			return refused(out)
		case out.Len() != 1:
			return ErrShape
		}
		for _, other := range outs[i+1:] {
			if err := apart(out, other); err != nil {
				return err
			}
		}
		for _, g := range grads {
			if err := apart(out, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// gradNorm is a norm that is computed.
type gradNorm struct {
	set     *set
	in      tensor.Context // of temporary memory, which has the tag of a scope
	at      *cuda.Context
	outs    [3]*tensor.Tensor
	grads   []*tensor.Tensor
	most    float64
	frame   *routineFrame
	partial *tensor.Tensor
	kernel  routine.Kernel
	slots   int // that are taken
	blocks  int // of the launch
	done    int // blocks of earlier launches
}

// squareBlocks returns the number of blocks of a gradient.
func squareBlocks(count int) int {
	return (count + routine.SquareBlockLen - 1) / routine.SquareBlockLen
}

// compute submits the launches.
func (n *gradNorm) compute(at tensor.Context) (err error) {
	n.in = at
	if n.at, err = tensor.ContextOf(at); err != nil {
		return err
	}
	blocks := 0
	for _, g := range n.grads {
		if blocks += squareBlocks(g.Len()); blocks > math.MaxInt32 {
			return tensor.ErrTooLarge
		}
	}
	l, err := layout.Of(blocks)
	if err != nil {
		return err
	}
	n.frame = n.set.frame()
	defer n.frame.release()
	return temporary(n.in, tensor.Float32, l, func(partial *tensor.Tensor) error {
		n.partial = partial
		for i, g := range n.grads {
			if firstGrad(n.grads, g.Type()) < i {
				continue
			}
			if err := n.sums(n.grads[i:], g.Type()); err != nil {
				return err
			}
		}
		return n.scale()
	})
}

// firstGrad returns the number of the first gradient of a type.
func firstGrad(grads []*tensor.Tensor, of tensor.Type) int {
	for i, g := range grads {
		if g.Type() == of {
			return i
		}
	}
	return len(grads)
}

// sums adds the squares of the gradients of a type.
func (n *gradNorm) sums(grads []*tensor.Tensor, of tensor.Type) error {
	n.kernel = routine.Kernel{Kind: routine.SquareSums, Of: [4]tensor.Type{of}}
	for _, g := range grads {
		if g.Type() != of || g.Len() == 0 {
			continue
		}
		l := g.Layout()
		if first, end := l.Bounds(); end-first == l.Len() && !l.MayOverlap() { // in any order
			if err := n.add(g); err != nil {
				return err
			}
			continue
		}
		if err := n.copied(g); err != nil {
			return err
		}
	}
	return n.flush()
}

// copied adds the squares of a gradient that is not dense.
func (n *gradNorm) copied(g *tensor.Tensor) error {
	if err := n.flush(); err != nil {
		return err
	}
	var lengths [layout.MaxRank]int
	l, err := layout.Of(g.Layout().AppendShape(lengths[:0])...)
	if err != nil {
		return err
	}
	return temporary(n.in, g.Type(), l, func(dense *tensor.Tensor) error {
		if err := (Makers{n.set}).CopyInto(n.at, dense, g); err != nil {
			return err
		}
		return errors.Join(n.add(dense), n.flush())
	})
}

// add takes a gradient into the launch.
func (n *gradNorm) add(g *tensor.Tensor) error {
	f := n.frame
	if n.slots == 0 {
		r, err := n.partial.Range()
		if err != nil {
			return err
		}
		const size = 4
		f.value(cuda.Out(r.Buffer).Of(r.Offset+size*int64(n.done), r.Bytes-size*int64(n.done)))
	}
	if err := f.pointers(cuda.In, g); err != nil {
		return err
	}
	f.value(cuda.Value(int64(g.Len())))
	f.value(word(n.blocks))
	n.slots++
	n.blocks += squareBlocks(g.Len())
	if n.slots == routine.SquareSlots {
		return n.flush()
	}
	return nil
}

// flush launches, unless there is nothing to do.
func (n *gradNorm) flush() error {
	if n.slots == 0 {
		return nil
	}
	const never = math.MaxUint32
	for ; n.slots < routine.SquareSlots; n.slots++ {
		n.frame.args = append(n.frame.args, cuda.Value(uint64(0)), cuda.Value(int64(0)), word(never))
	}
	blocks := n.blocks
	n.slots, n.blocks, n.done = 0, 0, n.done+blocks
	return n.frame.run(n.at, n.set, n.kernel, blocks)
}

// scale writes the results.
func (n *gradNorm) scale() error {
	f := n.frame
	sums := n.partial
	if n.done == 0 {
		sums = nil
	}
	if err := f.pointers(cuda.In, sums); err != nil {
		return err
	}
	f.value(word(n.done))
	f.value(cuda.Value(float32(n.most)))
	if err := f.pointers(cuda.Out, n.outs[:]...); err != nil {
		return err
	}
	return f.run(n.at, n.set, routine.Kernel{Kind: routine.ClipScale, Threads: oneBlock}, 1)
}
