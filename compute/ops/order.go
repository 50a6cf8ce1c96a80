package ops

import (
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

// step is one of several outputs of an operation that makes launches for each of them: the output, which may be nil, and the
// operands that these launches read.
type step struct {
	out   *tensor.Tensor
	reads [4]*tensor.Tensor
}

// maxSteps is the number of outputs of the operation with the most launches of their own.
const maxSteps = 3

// order is an order of steps, by their numbers.
type order struct {
	steps [maxSteps]int
	count int
}

// ordered returns an order in which no step reads the output of an earlier one. It skips outputs that are nil. Errors:
// kernel.ErrOverlap if there is no such order, if two outputs share memory, or if an output shares memory with an operand of
// its step that has another layout or type; kernel.ErrRepeats; as tensor.Tensor.Range.
func ordered(steps ...step) (o order, err error) {
	var done [maxSteps]bool
	left := 0
	for i := range steps {
		if done[i] = steps[i].out == nil; done[i] {
			continue
		}
		left++
		if err := steps[i].check(steps[i+1:]); err != nil {
			return o, err
		}
	}
	for left > 0 {
		next := -1
		for i := range steps {
			if done[i] {
				continue
			}
			free, err := steps[i].unread(steps, i, done)
			if err != nil {
				return o, err
			}
			if free {
				next = i
				break
			}
		}
		if next < 0 {
			return o, kernel.ErrOverlap
		}
		done[next] = true
		o.steps[o.count] = next
		o.count++
		left--
	}
	return o, nil
}

// check refuses an output that shares memory with a later one, or with an operand of its step that is not the same elements.
func (s *step) check(later []step) error {
	if s.out.Layout().MayOverlap() {
		return kernel.ErrRepeats
	}
	for i := range later {
		if err := apart(s.out, later[i].out); err != nil {
			return err
		}
	}
	same := sameShape(s.out, s.reads[0]) // else it is summed, after which elements are others
	for _, t := range s.reads {
		if t == nil || same && t.Type() == s.out.Type() && t.Layout() == s.out.Layout() && oneStart(t, s.out) {
			continue
		}
		if err := apart(s.out, t); err != nil {
			return err
		}
	}
	return nil
}

// unread reports whether no other step that is to be done reads the output.
func (s *step) unread(all []step, own int, done [maxSteps]bool) (bool, error) {
	for i := range all {
		if i == own || done[i] {
			continue
		}
		for _, t := range all[i].reads {
			if shared, err := shareMemory(s.out, t); shared || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// apart returns kernel.ErrOverlap for two tensors that share memory. One that is nil shares none.
func apart(a, b *tensor.Tensor) error {
	shared, err := shareMemory(a, b)
	if err == nil && shared {
		err = kernel.ErrOverlap
	}
	return err
}

func shareMemory(a, b *tensor.Tensor) (bool, error) {
	if a == nil || b == nil {
		return false, nil
	}
	x, err := a.Range()
	if err != nil {
		return false, err
	}
	y, err := b.Range()
	if err != nil {
		return false, err
	}
	p, q := place{at: x}, place{at: y}
	return p.overlaps(&q), nil
}

// oneStart reports whether two tensors with the same layout and type have the same elements.
func oneStart(a, b *tensor.Tensor) bool {
	x, errX := a.Range()
	y, errY := b.Range()
	return errX == nil && errY == nil && startOf(x) == startOf(y)
}

func startOf(r cuda.Range) uint64 { return (&place{at: r}).address() }

// sameShape reports whether two tensors have the same lengths.
func sameShape(a, b *tensor.Tensor) bool {
	if a.Rank() != b.Rank() {
		return false
	}
	for d := range a.Rank() {
		if a.Dim(d) != b.Dim(d) {
			return false
		}
	}
	return true
}
