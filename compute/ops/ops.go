package ops

import (
	"errors"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/attention"
	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/compute/kernel/routine"
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
	Attentions
}

// New creates the operations for the device of a context, and for all contexts on it. The context must stay open until Close.
// New compiles nothing. Options configure the compiler, such as kernel.WithStore and kernel.Prepared: the package comment says
// how a program prepares operations. Errors: cuda.ErrNotOpen.
func New(c *cuda.Context, with ...kernel.Option) (Ops, error) {
	compiler, err := kernel.NewCompiler(c, with...)
	if err != nil {
		return Ops{}, err
	}
	s := &set{compiler: compiler, products: matmul.New(c, matmul.WithCompiler(compiler)), attention: attention.New(c, compiler)}
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
		Attentions{s},
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
