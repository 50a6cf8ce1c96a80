package kernel

import (
	"errors"
	"sync/atomic"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// ready is a launch of which all is known but the buffers. It does not change while one runs.
type ready struct {
	passes   []*cuda.Function
	shape    cuda.Geometry
	args     []cuda.Arg // of those that are buffers each launch has its own
	operands []location // inputs, then outputs

	split                     bool // a row is reduced by several blocks: these are of such a launch
	scratchBytes, ticketBytes int64
	scratch, tickets          int // the numbers of their parameters
	known                     atomic.Pointer[contextTickets]
}

// location is where an operand is: in its buffer, and among the parameters.
type location struct {
	offsetBytes, bytes int64
	param              int
	out                bool
	same               uint64 // inputs, by number, with the layout and the type of this output, which may be those
}

// set makes the launch of a geometry. It allocates nothing where there was a larger one.
func (r *ready) set(p *plan.Program, v *variant, g *plan.Geometry, layouts []layout.Layout) {
	*r = ready{passes: v.passes, args: r.args[:0], operands: r.operands[:0], split: g.Split}
	x, y := g.Grid()
	r.shape = cuda.Geometry{
		Grid:  cuda.Dim3{X: uint32(x), Y: uint32(y), Z: 1},        //nolint:gosec // CUDA refuses what is too large
		Block: cuda.Dim3{X: uint32(g.BlockThreads()), Y: 1, Z: 1}, //nolint:gosec // small
	}
	for i, l := range layouts {
		r.operands = append(r.operands, locate(p, i, l, layouts))
	}
	if g.Split {
		r.scratchBytes = p.ScratchBytes(g)
		if len(v.passes) == 1 { // else the next pass makes the row values
			r.ticketBytes = g.TicketBytes()
		}
	}
	for i, param := range v.params {
		var arg cuda.Arg
		switch param.Kind { //nolint:exhaustive // the others are numbers
		case plan.Pointer:
			o := &r.operands[param.Operand]
			o.param, arg = i, o.arg()
		case plan.Scratch:
			r.scratch, arg = i, cuda.InOut(cuda.Buffer{}).Of(0, r.scratchBytes)
		case plan.Tickets:
			r.tickets, arg = i, cuda.Value(uint64(0)) // of a pass that takes none
		default:
			n := g.Value(param)
			if param.Bytes(g.Variant) == 8 {
				arg = cuda.Value(int64(n))
			} else {
				arg = cuda.Value(int32(n)) //nolint:gosec // indices have 64 bits where sizes need them
			}
		}
		r.args = append(r.args, arg)
	}
}

// locate is the location of an operand, but for its parameter.
func locate(p *plan.Program, i int, l layout.Layout, layouts []layout.Layout) location {
	first, end := l.Bounds()
	size := int64(p.Operands[i].Type.Size())
	at := location{offsetBytes: int64(first) * size, bytes: int64(end-first) * size, out: i >= p.Inputs}
	if at.out && !p.Operands[i].Row {
		for j := range p.Inputs {
			if layouts[j] == l && p.Operands[j].Type == p.Operands[i].Type {
				at.same |= 1 << j
			}
		}
	}
	return at
}

// arg is the argument of a kernel, without a buffer.
func (l *location) arg() cuda.Arg {
	switch {
	case l.bytes == 0:
		return cuda.Value(uint64(0))
	case l.out:
		return cuda.Out(cuda.Buffer{}).Of(l.offsetBytes, l.bytes)
	}
	return cuda.In(cuda.Buffer{}).Of(l.offsetBytes, l.bytes)
}

// again is the launch of tensors with layouts, and alignments, that were launched before: nil if there was none, or if they overlap. The
// frame has the arguments then. Errors: an *OperandError of a tensor without memory.
func (f *frame) again(k *Kernel, outputs, inputs []*tensor.Tensor) (*ready, error) {
	p := k.program
	if p == nil { // of a zero Kernel
		return nil, ErrNotOpen
	}
	if len(inputs) != p.Inputs || len(inputs)+len(outputs) != len(p.Operands) {
		return nil, nil //nolint:nilnil // bind refuses it
	}
	for _, e := range *k.fitted.Load() {
		r := e.ready.Load()
		if r == nil || !e.has(p, outputs, inputs) {
			continue
		}
		f.args = append(f.args[:0], r.args...)
		for i := range r.operands {
			b, err := operandOf(outputs, inputs, i).Buffer()
			if err != nil {
				return nil, k.refused(i, err)
			}
			o := &r.operands[i]
			f.args[o.param].SetBuffer(b)
			f.addresses[i] = 0
			if o.bytes > 0 {
				f.addresses[i] = uint64(b.Ptr()) + uint64(o.offsetBytes) //nolint:gosec // within the buffer
			}
		}
		if e.aligned(f) && !r.overlap(f) {
			return r, nil
		}
	}
	return nil, nil //nolint:nilnil // another way is looked for
}

func operandOf(outputs, inputs []*tensor.Tensor, i int) *tensor.Tensor {
	if i < len(inputs) {
		return inputs[i]
	}
	return outputs[i-len(inputs)]
}

// has reports whether tensors have the types of a program, and the layouts.
func (e *fitted) has(p *plan.Program, outputs, inputs []*tensor.Tensor) bool {
	for i, t := range inputs {
		if !t.Has(p.Operands[i].Type, &e.layouts[i]) {
			return false
		}
	}
	for i, t := range outputs {
		if i += len(inputs); !t.Has(p.Operands[i].Type, &e.layouts[i]) {
			return false
		}
	}
	return true
}

// aligned reports whether the operands of a frame have the alignments.
func (e *fitted) aligned(f *frame) bool {
	for i, low := range e.lows {
		if f.addresses[i]%vectorBytes != low {
			return false
		}
	}
	return true
}

// overlap reports whether an operand shares memory with an output, and is not an input of the same elements.
func (r *ready) overlap(f *frame) bool {
	for i := range r.operands {
		out := &r.operands[i]
		if !out.out {
			continue
		}
		a := f.addresses[i]
		for j := range r.operands {
			other := &r.operands[j]
			b := f.addresses[j]
			if other.out && j <= i || a >= b+uint64(other.bytes) || b >= a+uint64(out.bytes) { //nolint:gosec // not negative
				continue
			}
			if a != b || out.same>>j&1 == 0 {
				return true
			}
		}
	}
	return false
}

// take makes the arguments of the operands that the frame has.
func (f *frame) take(r *ready) {
	f.args = append(f.args[:0], r.args...)
	for i := range r.operands {
		at, arg := &f.ranges[i], &f.args[r.operands[i].param]
		*arg = arg.Of(at.Offset, at.Bytes)
		arg.SetBuffer(at.Buffer)
	}
}

// launch submits the passes.
func (f *frame) launch(c *cuda.Context, r *ready) error {
	if r.split {
		return f.launchSplit(c, r)
	}
	return f.submit(c, r)
}

func (f *frame) submit(c *cuda.Context, r *ready) error {
	for _, pass := range r.passes {
		if err := c.Launch(pass, r.shape, f.args...); err != nil {
			return err
		}
	}
	return nil
}

// launchSplit is launch of rows that several blocks reduce.
func (f *frame) launchSplit(c *cuda.Context, r *ready) (err error) {
	scratch, err := c.Alloc(r.scratchBytes)
	if err != nil {
		return err
	}
	var tickets tickets
	defer func() { // also after a panic of the driver
		if failed := scratch.Free(); failed != nil {
			err = errors.Join(err, failed)
		}
		if failed := tickets.release(); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	f.args[r.scratch].SetBuffer(scratch)
	if r.ticketBytes > 0 {
		if tickets, err = r.ticketsOf(c); err != nil {
			return err
		}
		f.args[r.tickets] = cuda.InOut(tickets.at.Buffer).Of(tickets.at.Offset, tickets.at.Bytes)
	}
	return f.submit(c, r)
}
