package kernel

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/cuda"
)

// Kernel computes outputs of inputs with Run. Any number of goroutines may use it.
type Kernel struct {
	by       *Compiler
	program  *plan.Program
	outputs  []expr.Expr
	variants atomic.Pointer[map[plan.Variant]*variant] // replaced, never changed
	fitted   fits
	choices  choices
}

// Elementwise makes a kernel of expressions without reductions. It compiles nothing. Errors: the errors of expr.Expr.Err and
// plan.New, ErrReduces.
func (c *Compiler) Elementwise(outputs ...expr.Expr) (*Kernel, error) {
	return c.kernel(false, nil, outputs)
}

// Reduction makes a kernel of expressions with reductions over some axes, counted from the end: -1 is the last one; plan.All is
// all of them. Errors: the errors of expr.Expr.Err and plan.New, ErrReduces.
func (c *Compiler) Reduction(axes []int, outputs ...expr.Expr) (*Kernel, error) {
	return c.kernel(true, axes, outputs)
}

func (c *Compiler) kernel(reduces bool, axes []int, outputs []expr.Expr) (*Kernel, error) {
	if c == nil || c.on == nil {
		return nil, ErrNotOpen
	}
	p, err := plan.New(axes, outputs...)
	if err != nil {
		return nil, err
	}
	if p.Reduces() != reduces {
		return nil, ErrReduces
	}
	k := &Kernel{by: c, program: p, outputs: slices.Clone(outputs), choices: choices{program: p, tuner: c.tuner}}
	k.variants.Store(&map[plan.Variant]*variant{})
	k.fitted.clear()
	k.choices.all.Store(&map[class]*choice{})
	return k, nil
}

// String returns the text of the output expressions.
func (k *Kernel) String() string {
	if k == nil {
		return "no kernel"
	}
	if len(k.outputs) == 1 {
		return k.outputs[0].String()
	}
	all := make([]string, len(k.outputs))
	for i, e := range k.outputs {
		all[i] = e.String()
	}
	return strings.Join(all, ", ")
}

// brief returns the text of the expressions for an error, or the name in profiles if the text is long.
func (k *Kernel) brief() string {
	const most = 64
	name := k.String()
	if len(name) > most {
		return k.program.Name()
	}
	return name
}

func (k *Kernel) miscounted(outputs, inputs int) error {
	return &CountError{k.brief(), inputs, outputs, k.program.Inputs, len(k.program.Operands) - k.program.Inputs}
}

func (k *Kernel) refused(i int, err error) error {
	e := &OperandError{Kernel: k.brief(), Index: i, Err: err}
	if i >= k.program.Inputs {
		e.Output, e.Index = true, i-k.program.Inputs
	}
	return e
}

// variant returns a loaded variant, or nil.
func (k *Kernel) variant(of plan.Variant) *variant { return (*k.variants.Load())[of] }

// add keeps a variant of a loaded module.
func (k *Kernel) add(of plan.Variant, m *cuda.Module) (*variant, error) {
	v, err := loadVariant(k.program, of, m)
	if err != nil {
		return nil, err
	}
	for {
		old := k.variants.Load()
		next := maps.Clone(*old)
		next[of] = v
		if k.variants.CompareAndSwap(old, &next) {
			return v, nil
		}
	}
}

// OperandError refuses a tensor.
type OperandError struct {
	Kernel string // the expressions, or the kernel's name where they are long
	Output bool
	Index  int // of the inputs, or of the outputs
	Err    error
}

// Error names the kernel and the operand.
func (e *OperandError) Error() string {
	side := "input"
	if e.Output {
		side = "output"
	}
	return fmt.Sprintf("kernel: %s: %s %d: %v", e.Kernel, side, e.Index, e.Err)
}

// Unwrap is the reason: ErrOverlap, ErrRepeats, a *tensor.TypeError, an error of the tensor.
func (e *OperandError) Unwrap() error { return e.Err }

// CountError refuses a number of tensors.
type CountError struct {
	Kernel      string // as in OperandError
	Inputs      int    // that were given
	Outputs     int
	WantInputs  int
	WantOutputs int
}

// Error names both numbers.
func (e *CountError) Error() string {
	return fmt.Sprintf("kernel: %s has %d inputs and %d outputs, not %d and %d", e.Kernel, e.WantInputs, e.WantOutputs, e.Inputs, e.Outputs)
}
