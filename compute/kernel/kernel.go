package kernel

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/futures"
)

// Kernel computes outputs of inputs: Run does. Any number of goroutines may use it.
type Kernel struct {
	by       *Compiler
	program  *plan.Program
	outputs  []expr.Expr
	variants atomic.Pointer[map[plan.Variant]*variant]
	fitted   atomic.Pointer[[]*fitted]
	choices  atomic.Pointer[map[class]*choice]
}

// variant is a compiled one.
type variant struct {
	passes []*cuda.Function
	params []plan.Param
}

// Elementwise makes a kernel of expressions without reductions. It compiles nothing. Errors: those of expr.Expr.Err and plan.New,
// ErrReduces.
func (c *Compiler) Elementwise(outputs ...expr.Expr) (*Kernel, error) {
	return c.kernel(false, nil, outputs)
}

// Reduction makes a kernel of expressions with reductions over some axes, counted from the end: -1 is the last one; plan.All is all of them.
// Errors: those of expr.Expr.Err and plan.New, ErrReduces.
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
	k := &Kernel{by: c, program: p, outputs: slices.Clone(outputs)}
	k.variants.Store(&map[plan.Variant]*variant{})
	k.fitted.Store(&[]*fitted{})
	k.choices.Store(&map[class]*choice{})
	return k, nil
}

// String is the text of the output expressions.
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

// brief is the text of the expressions for an error, or the name that profiles have where that is long.
func (k *Kernel) brief() string {
	const most = 64
	name := k.String()
	if len(name) > most {
		return k.program.Name()
	}
	return name
}

// Prepare compiles the variant for tensors with these types and layouts: the memory is not touched, but where it lies counts. It does not wait.
// Errors are those of Run.
func (k *Kernel) Prepare(outputs []*tensor.Tensor, inputs ...*tensor.Tensor) futures.Future[*Kernel] {
	if k == nil || k.by == nil {
		return futures.Failed[*Kernel](ErrNotOpen)
	}
	f := takeFrame()
	defer f.release()
	if err := f.bind(k, outputs, inputs); err != nil {
		return futures.Failed[*Kernel](err)
	}
	return futures.Then(k.ready(f.geometry), func(Origin) (*Kernel, error) { return k, nil })
}

// PrepareFor is Prepare for layouts without tensors: inputs, then outputs. The lowest places are taken to be aligned.
func (k *Kernel) PrepareFor(layouts ...layout.Layout) futures.Future[*Kernel] {
	f := takeFrame()
	defer f.release()
	if err := f.fitLayouts(k, layouts); err != nil {
		return futures.Failed[*Kernel](err)
	}
	return futures.Then(k.ready(&f.own), func(Origin) (*Kernel, error) { return k, nil })
}

// ready compiles the variant of a geometry, and says where its code came from.
func (k *Kernel) ready(g *plan.Geometry) futures.Future[Origin] { return k.readyBy(k.by.module, g) }

// readyBy is ready with module, or moduleHere.
func (k *Kernel) readyBy(module func(*Kernel, string) (futures.Future[*code], bool), g *plan.Geometry) futures.Future[Origin] {
	v := g.Variant
	if (*k.variants.Load())[v] != nil || g.Empty() {
		return futures.Done(Known)
	}
	loaded, known := module(k, k.program.Emit(v))
	return futures.Then(loaded, func(m *code) (Origin, error) {
		if _, err := k.add(v, m.module); err != nil {
			return Known, err
		}
		if known {
			return Known, nil
		}
		return m.origin, nil
	})
}

// Text is the PTX that Run compiles for tensors of the types of the expressions with these layouts: inputs, then outputs. The lowest places
// are taken to be aligned.
func (k *Kernel) Text(layouts ...layout.Layout) (string, error) {
	f := takeFrame()
	defer f.release()
	if err := f.fitLayouts(k, layouts); err != nil {
		return "", err
	}
	return k.program.Emit(f.own.Variant), nil
}

// fitLayouts computes the geometry of layouts whose lowest places are aligned.
func (f *frame) fitLayouts(k *Kernel, layouts []layout.Layout) error {
	if k == nil || k.by == nil {
		return ErrNotOpen
	}
	if len(layouts) != len(k.program.Operands) {
		return k.miscounted(len(layouts)-k.program.Inputs, k.program.Inputs)
	}
	clear(f.addresses[:len(layouts)])
	if err := k.program.Fit(&f.own, layouts, f.addresses[:len(layouts)]); err != nil {
		return err
	}
	k.choose(&f.own)
	return nil
}

func (k *Kernel) miscounted(outputs, inputs int) error {
	return &CountError{k.brief(), inputs, outputs, k.program.Inputs, len(k.program.Operands) - k.program.Inputs}
}

// add makes a variant of loaded code known.
func (k *Kernel) add(of plan.Variant, m *cuda.Module) (*variant, error) {
	v := &variant{params: k.program.Params(of)}
	for _, name := range k.program.Passes(of) {
		f, err := m.Function(name)
		if err != nil {
			return nil, err
		}
		v.passes = append(v.passes, f)
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
