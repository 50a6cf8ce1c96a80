package ops

import (
	"errors"
	"fmt"
	"maps"
	"sync/atomic"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

// Ops has the compiled kernels of operations for a device, and the operations as methods. New makes one, Close unloads it.
// Copies are the same Ops.
type Ops struct {
	Arithmetic
	Comparisons
	Activations
	Makers
	Reductions
	Rows
	Products
	Gradients
	Optimizers
	Indexing
	Randoms
}

// New creates the operations for the device of a context, and for all contexts on it. The context must stay open until Close.
// New compiles nothing. Options configure the compiler, such as kernel.WithStore and kernel.Prepared: the package comment says
// how a program prepares operations. Errors: cuda.ErrNotOpen.
func New(c *cuda.Context, with ...kernel.Option) (Ops, error) {
	compiler, err := kernel.NewCompiler(c, with...)
	if err != nil {
		return Ops{}, err
	}
	s := &set{compiler: compiler, products: matmul.New(c, matmul.WithCompiler(compiler))}
	s.entries.Store(&map[key]*entry{})
	s.met.Store(&map[met]*way{})
	s.functions.Store(&map[routine.Kernel]*cuda.Function{})
	return Ops{
		Arithmetic{s},
		Comparisons{s},
		Activations{s},
		Makers{s},
		Reductions{s},
		Rows{s},
		Products{s},
		newGradients(s),
		Optimizers{s},
		Indexing{s},
		Randoms{s},
	}, nil
}

// Kernels returns the compiler of the operations, for its statistics and measured variants; nil before New. It is closed by
// Close alone.
func (o Ops) Kernels() *kernel.Compiler {
	if s := o.Makers.set; s != nil {
		return s.compiler
	}
	return nil
}

// Close unloads the kernels, whose launches must have finished. Idempotent. After an error of kernel.Compiler.Close or
// matmul.Multiplier.Close another call tries again. Errors: ErrNotOpen.
func (o Ops) Close() error {
	s := o.Makers.set
	if s == nil {
		return ErrNotOpen
	}
	return errors.Join(s.compiler.Close(), s.products.Close())
}

// set has the kernels.
type set struct {
	compiler  *kernel.Compiler
	products  *matmul.Multiplier
	met       atomic.Pointer[map[met]*way]                      // replaced by a copy with one more
	entries   atomic.Pointer[map[key]*entry]                    // likewise
	first     [operations]atomic.Pointer[[]keyed]               // the entries of each operation that were met first; likewise
	functions atomic.Pointer[map[routine.Kernel]*cuda.Function] // likewise
	wide      bool                                              // routines compute places in 64 bits: for tests
}

// maxInputs is the number of operands of the operation with the most of them.
const maxInputs = 6

// key says which kernel it is.
type key struct {
	op      operation
	with    uint8       // optional operands that are there
	out     tensor.Type // of the only output; 0 for the type that the expression has
	in      [maxInputs]tensor.Type
	axes    axes
	numbers [4]uint64 // constants, as the bits of float64
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

// family orders the types as promotion does.
func family(of tensor.Type) int {
	switch of.Kind() {
	case tensor.Boolean:
		return 0
	case tensor.Floating:
		return 2
	case tensor.Unsigned, tensor.Signed:
	}
	return 1
}

// axes are those that are reduced: bit 0 is the last dimension, and so on.
type axes uint16

// allAxes are all of them, for any rank.
const allAxes axes = 1 << 15

// list returns the axes as package plan has them.
func (a axes) list() []int {
	if a&allAxes != 0 {
		return plan.All
	}
	all := []int{}
	for i := range 15 {
		if a&(1<<i) != 0 {
			all = append(all, -1-i)
		}
	}
	return all
}

// has reports whether a dimension is one of them.
func (a axes) has(dim, rank int) bool { return a&allAxes != 0 || a&(1<<(rank-1-dim)) != 0 }

// axesOf returns the axes with these numbers; all without any. Errors: ErrAxes.
func axesOf(rank int, numbers ...int) (axes, error) {
	if len(numbers) == 0 {
		return allAxes, nil
	}
	var all axes
	for _, n := range numbers {
		if rank == 0 && (n == 0 || n == -1) {
			return allAxes, nil // a scalar is a row of one element
		}
		dim, err := axisOf(rank, n)
		if err != nil {
			return 0, err
		}
		if all.has(dim, rank) {
			return 0, fmt.Errorf("axis %d twice, of %d dimensions: %w", n, rank, ErrAxes)
		}
		all |= 1 << (rank - 1 - dim)
	}
	return all, nil
}
