package ops

import (
	"maps"
	"sync/atomic"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/attention"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// set has the kernels.
type set struct {
	compiler  *kernel.Compiler
	products  *matmul.Multiplier
	attention *attention.Attention
	met       atomic.Pointer[map[met]*way]                      // replaced by a copy with one more
	entries   atomic.Pointer[map[key]*entry]                    // likewise
	first     [operations]atomic.Pointer[[]keyed]               // the entries of each operation that were met first; likewise
	functions atomic.Pointer[map[routine.Kernel]*cuda.Function] // likewise
	wide      bool                                              // routines compute places in 64 bits: for tests
}

// entry is a kernel.
type entry struct {
	kernel *kernel.Kernel
	of     tensor.Type // of the first output
}

// keyed is an entry with its key.
type keyed struct {
	key   key
	entry *entry
}

// maxFirst is how many entries of an operation are compared one by one: in the time of a look into the map.
const maxFirst = 8

// entry finds a kernel, or builds it. Errors: as expr.Expr.Err and kernel.Compiler.Reduction.
func (s *set) entry(k *key) (*entry, error) {
	if s == nil {
		return nil, ErrNotOpen
	}
	if first := s.first[k.op].Load(); first != nil {
		for i := range *first {
			if known := &(*first)[i]; known.key == *k {
				return known.entry, nil
			}
		}
	}
	if e := (*s.entries.Load())[*k]; e != nil {
		return e, nil
	}
	e, err := s.build(*k)
	if err != nil {
		return nil, err
	}
	return s.add(k, e), nil
}

// add makes an entry known, unless there is one: it returns that one.
func (s *set) add(k *key, e *entry) *entry {
	for {
		old := s.entries.Load()
		if known := (*old)[*k]; known != nil {
			return known
		}
		next := maps.Clone(*old)
		next[*k] = e
		if s.entries.CompareAndSwap(old, &next) {
			break
		}
	}
	for {
		old := s.first[k.op].Load()
		var first []keyed
		if old != nil {
			first = *old
		}
		if len(first) == maxFirst {
			return e
		}
		first = append(first[:len(first):len(first)], keyed{*k, e})
		if s.first[k.op].CompareAndSwap(old, &first) {
			return e
		}
	}
}

// build makes a kernel. It compiles nothing.
func (s *set) build(k key) (*entry, error) {
	all := k.expressions()
	for i := range all {
		all[i] = all[i].Typed()
		if err := all[i].Err(); err != nil {
			return nil, err
		}
	}
	if own := all[0].Type; k.out == own {
		k.out = 0
		return s.entry(&k)
	} else if k.out != 0 {
		if !k.op.converts() && family(k.out) < family(own) {
			return nil, &tensor.TypeError{Op: k.op.String() + " into", Types: []tensor.Type{k.out, own}}
		}
		all[0] = all[0].Cast(k.out)
	}
	e := &entry{of: all[0].Type}
	var err error
	if reduces(all) {
		e.kernel, err = s.compiler.Reduction(k.axes.list(), all...)
	} else {
		e.kernel, err = s.compiler.Elementwise(all...)
	}
	return e, err
}

func reduces(all []expr.Expr) bool {
	for _, e := range all {
		if e.Depth() > 0 {
			return true
		}
	}
	return false
}

// maxMet bounds the known ways: one more starts with an empty map. Without the map a product takes some microseconds more and
// allocates.
const maxMet = 256

// way finds how tensors are multiplied, or plans it. Errors: ErrShape, *tensor.TypeError, kernel.ErrRepeats.
func (s *set) way(out, x, y *tensor.Tensor) (*way, error) {
	k := met{[3]layout.Layout{out.Layout(), x.Layout(), y.Layout()}, [3]tensor.Type{out.Type(), x.Type(), y.Type()}}
	if w := (*s.met.Load())[k]; w != nil {
		return w, nil
	}
	w, err := planned(&k)
	if err != nil {
		return nil, err
	}
	old := s.met.Load()
	next := map[met]*way{}
	if len(*old) < maxMet {
		next = maps.Clone(*old)
	}
	next[k] = w
	s.met.CompareAndSwap(old, &next) // of two goroutines that plan at once one may be forgotten
	return w, nil
}

// run launches the kernel.
func (e *entry) run(at tensor.Context, op operation, outputs []*tensor.Tensor, inputs ...*tensor.Tensor) error {
	return failed(op, e.kernel.Run(at, outputs, inputs...), outputs, inputs...)
}
