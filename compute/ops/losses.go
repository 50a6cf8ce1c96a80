package ops

import (
	"math"

	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// LossGradient says which gradient of losses is wanted. The zero value is the gradient of their sum.
type LossGradient struct {
	Mean    bool           // of the mean over the targets that are not ignored
	Scale   float64        // a factor of the gradient, not of the loss; 0 stands for 1
	ScaleAt *tensor.Tensor // another factor, a tensor of one float32, read on the device; nil for none
}

// The operands of a gradient over logits.
const (
	lossLogits = iota
	lossTargets
	lossRows
	lossTotal
	lossScale
)

// CrossEntropyGradient replaces logits by their gradient, and returns the loss and the losses of the rows, as
// CrossEntropyGradientInto does.
func (o rowGradients) CrossEntropyGradient(
	at tensor.Context, logits, targets *tensor.Tensor, how LossGradient, options ...LossOption,
) (loss, losses *tensor.Tensor, err error) {
	all, err := createAll(at, func(all [maxSteps]*tensor.Tensor) error {
		return o.CrossEntropyGradientInto(at, all[0], all[1], logits, targets, how, options...)
	}, sized(opCrossEntropyGradient, tensor.Float32, nil, logits, targets), sized(opCrossEntropyGradient, tensor.Float32, targets.Shape(), logits, targets))
	return all[0], all[1], err
}

// CrossEntropyGradientInto replaces logits by the gradient of their sum or mean of losses, and writes the losses of CrossEntropy:
// of each row into losses, and their sum or mean into loss, both float32. One that is nil is not written. Logits are float16,
// bfloat16 or float32, in any layout, and the targets int32 or int64; it computes in float32.
//
// A block takes a row. It finds the maximum and the sum of exponentials in one pass (M. Milakov, N. Gimelshein: Online normalizer
// calculation for softmax, 2018), and keeps the row in shared memory: logits are read once and written once. A row for which a
// block has not enough, 227 KiB on compute capability 9.0, is read twice. One more launch adds the losses, and one counts the
// targets if there is a mean and an ignored class.
//
// Special numbers are as for CrossEntropy: a row with NaN or +Inf, or of -Inf alone, or with a class that there is not, has NaN
// as its loss and gradient. The mean of no targets is NaN. Errors: ErrShape, ErrEmpty for rows of no elements, ErrNumber for a
// scale that float32 does not have, *tensor.TypeError, tensor.ErrTooLarge, kernel.ErrRepeats, kernel.ErrOverlap.
func (o rowGradients) CrossEntropyGradientInto(
	at tensor.Context, loss, losses, logits, targets *tensor.Tensor, how LossGradient, options ...LossOption,
) error {
	err := how.check(loss, losses, logits, targets)
	if err == nil {
		k := lossKey(opCrossEntropyGradient, options)
		g := lossGradient{set: o.set, how: how, ignores: k.with&withIgnored != 0, ignored: int64(k.numbers[0])} //nolint:gosec // the same bits
		err = g.withRows(at, [...]*tensor.Tensor{lossLogits: logits, lossTargets: targets, lossRows: losses, lossTotal: loss, lossScale: how.ScaleAt})
	}
	if err != nil {
		return failed(opCrossEntropyGradient, err, given(loss, losses, logits), targets)
	}
	return nil
}

// check refuses tensors and numbers.
func (h LossGradient) check(loss, losses, logits, targets *tensor.Tensor) error {
	refused := func(of ...tensor.Type) error {
		return &tensor.TypeError{Op: opCrossEntropyGradient.String(), Types: of}
	}
	switch of, by := logits.Type(), targets.Type(); {
	case !of.Valid() || !by.Valid():
		return tensor.ErrNoTensor
	case !routine.CrossEntropyTypes(of, by):
		return refused(of, by)
	case logits.Rank() != targets.Rank()+1 || losses != nil && !sameShape(losses, targets):
		return ErrShape
	}
	for d := range targets.Rank() {
		if targets.Dim(d) != logits.Dim(d) {
			return ErrShape
		}
	}
	for _, t := range [...]*tensor.Tensor{loss, losses, h.ScaleAt} {
		switch {
		case t == nil:
		case !t.Type().Valid():
			return tensor.ErrNoTensor
		case t.Type() != tensor.Float32:
			return refused(t.Type())
		case t != losses && t.Len() != 1:
			return ErrShape
		}
	}
	if !(math.Abs(h.Scale) <= math.MaxFloat32) {
		return badNumber("scale", h.Scale)
	}
	if columns := logits.Dim(-1); columns == 0 && targets.Len() > 0 {
		return ErrEmpty
	} else if columns > math.MaxInt32 || targets.Len() > math.MaxInt32 {
		return tensor.ErrTooLarge
	}
	return nil
}

// lossGradient is a gradient that is computed.
type lossGradient struct {
	set     *set
	in      tensor.Context // of temporary memory, which has the tag of a scope
	at      *cuda.Context
	frame   *routineFrame
	how     LossGradient
	ignores bool
	ignored int64
	all     [maxOperands]*tensor.Tensor
}

// withRows has memory for the losses of rows, where their sum is wanted.
func (g *lossGradient) withRows(at tensor.Context, all [maxOperands]*tensor.Tensor) (err error) {
	g.in = at
	if g.at, err = tensor.ContextOf(at); err != nil {
		return err
	}
	g.all = all
	if all[lossRows] != nil || all[lossTotal] == nil {
		return g.withCount()
	}
	var lengths [layout.MaxRank]int
	l, err := layout.Of(all[lossTargets].Layout().AppendShape(lengths[:0])...)
	if err != nil {
		return err
	}
	return temporary(at, tensor.Float32, l, func(losses *tensor.Tensor) error {
		g.all[lossRows] = losses
		return g.withCount()
	})
}

// withCount has memory for the number of targets, where it is not known.
func (g *lossGradient) withCount() error {
	if !g.how.Mean || !g.ignores || g.all[lossTargets].Len() == 0 {
		return g.compute(nil)
	}
	l, err := layout.Of()
	if err != nil {
		return err
	}
	return temporary(g.in, tensor.Float32, l, g.compute)
}

// compute submits the launches.
func (g *lossGradient) compute(share *tensor.Tensor) error {
	f := g.set.frame()
	defer f.release()
	g.frame = f
	for k, t := range g.all {
		if err := g.bind(k, t); err != nil {
			return err
		}
	}
	for _, k := range [...]int{lossLogits, lossRows, lossTotal} {
		if err := f.apart(k, maxOperands); err != nil {
			return err
		}
	}
	targets := g.all[lossTargets]
	count := targets.Len()
	f.goes(targets.Layout(), func(d int) (strides [maxOperands]int) {
		for _, k := range [...]int{lossLogits, lossTargets, lossRows} { // 0 of no losses
			strides[k] = g.all[k].Layout().Stride(d)
		}
		return strides
	})
	if count > 0 {
		f.items.merge()
		if err := g.count(count, share); err != nil {
			return err
		}
		if err := g.rows(count, share); err != nil {
			return err
		}
	}
	return g.total(count, share)
}

// bind takes a tensor in; one that is nil is an address of 0.
func (g *lossGradient) bind(k int, t *tensor.Tensor) error {
	switch {
	case t == nil:
		g.frame.operands[k] = place{arg: cuda.Value(uint64(0))}
		return nil
	case k == lossLogits:
		return g.frame.bindOut(k, t, cuda.InOut)
	case k == lossRows || k == lossTotal:
		return g.frame.bindOut(k, t, cuda.Out)
	}
	return g.frame.bind(k, t, cuda.In)
}

// kernel is a kernel of the launches.
func (g *lossGradient) kernel(kind routine.Kind, threads uint16) routine.Kernel {
	of := [4]tensor.Type{g.all[lossLogits].Type(), g.all[lossTargets].Type()}
	return routine.Kernel{Kind: kind, Of: of, Rank: uint8(g.frame.items.rank), Threads: threads} //nolint:gosec // small
}

// oneBlock is the number of threads of a block that is alone.
const oneBlock = 1024

// count writes 1 divided by the number of targets that count.
func (g *lossGradient) count(count int, share *tensor.Tensor) error {
	if share == nil {
		return nil
	}
	f := g.frame
	out, err := share.Out()
	if err != nil {
		return err
	}
	f.size(count)
	f.shape(&f.items)
	f.operand(lossTargets, &f.items)
	f.value(cuda.Value(g.ignored))
	f.value(out)
	k := g.kernel(routine.Counted, oneBlock)
	k.Of[0] = 0
	return f.run(g.at, g.set, k, 1)
}

// shared returns the factor of each loss, and the address at which the device finds it, or 0.
func (g *lossGradient) shared(count int, share *tensor.Tensor) (factor float64, at cuda.Arg, err error) {
	switch {
	case share != nil:
		at, err = share.In()
		return 1, at, err
	case g.how.Mean:
		factor = 1 / float64(count)
	default:
		factor = 1
	}
	return factor, cuda.Value(uint64(0)), nil
}

// rows writes the gradient and the losses of rows.
func (g *lossGradient) rows(count int, share *tensor.Tensor) error {
	f, l := g.frame, g.all[lossLogits].Layout()
	factor, shareAt, err := g.shared(count, share)
	if err != nil {
		return err
	}
	if g.how.Scale != 0 {
		factor *= g.how.Scale
	}
	columns := l.Dim(-1)
	f.shape(&f.items)
	for k := range lossTotal {
		f.operand(k, &f.items)
	}
	f.value(word(columns))
	f.value(cuda.Value(int64(l.Stride(-1))))
	f.value(shareAt)
	f.value(f.operands[lossScale].arg)
	f.value(cuda.Value(float32(factor)))
	ignores := 0
	if g.ignores {
		ignores = 1
	}
	f.value(word(ignores))
	f.value(cuda.Value(g.ignored))
	rowBytes := columns * g.all[lossLogits].Type().Size()
	k := g.kernel(routine.CrossEntropy, routine.CrossEntropyThreads(rowBytes))
	info := g.at.Info().Compute
	if limit := routine.MaxSharedBytes(10*info.Major + info.Minor); l.Stride(-1) == 1 && rowBytes <= limit-sharedStep {
		k.SharedKiB = uint16((rowBytes + sharedStep - 1) / sharedStep * (sharedStep >> 10)) //nolint:gosec // small
	}
	return f.run(g.at, g.set, k, count)
}

// sharedStep is the unit of shared memory of kernels, of which there are fewer so.
const sharedStep = 4 << 10

// total writes the loss.
func (g *lossGradient) total(count int, share *tensor.Tensor) error {
	if g.all[lossTotal] == nil {
		return nil
	}
	factor, shareAt, err := g.shared(count, share)
	if err != nil {
		return err
	}
	f := g.frame
	if err := f.bind(lossRows, g.all[lossRows], cuda.In); err != nil { // which the launch before has written
		return err
	}
	f.size(count)
	f.shape(&f.items)
	f.operand(lossRows, &f.items)
	f.value(shareAt)
	f.value(cuda.Value(float32(factor)))
	f.value(f.operands[lossTotal].arg)
	k := g.kernel(routine.Total, oneBlock)
	k.Of = [4]tensor.Type{}
	return f.run(g.at, g.set, k, 1)
}
