package kernel

import (
	"errors"
	"sync/atomic"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// variant is a loaded variant.
type variant struct {
	passes []*cuda.Function
	params []plan.Param
}

// loadVariant finds the kernels of a variant in its module.
func loadVariant(p *plan.Program, of plan.Variant, m *cuda.Module) (*variant, error) {
	v := &variant{params: p.Params(of)}
	for _, name := range p.Passes(of) {
		f, err := m.Function(name)
		if err != nil {
			return nil, err
		}
		v.passes = append(v.passes, f)
	}
	return v, nil
}

// ready is a launch that lacks only the buffers. It does not change while one runs.
type ready struct {
	passes   []*cuda.Function
	shape    cuda.Geometry
	args     []cuda.Arg // each launch has a copy with its buffers
	operands []location // inputs, then outputs

	split                     bool // several blocks reduce a row: the fields below are set
	scratchBytes, ticketBytes int64
	scratch, tickets          int // indices of their parameters
	known                     atomic.Pointer[contextTickets]
}

// location is the place of an operand in its buffer and among the parameters.
type location struct {
	offsetBytes, bytes int64
	param              int
	out                bool
	same               uint64 // bit i: input i has the layout and the type of this output, and may be the same tensor
}

// set makes the launch of a geometry. It reuses the memory of an earlier one.
func (r *ready) set(p *plan.Program, v *variant, g *plan.Geometry, layouts []layout.Layout) {
	*r = ready{passes: v.passes, args: r.args[:0], operands: r.operands[:0], split: g.Split}
	x, y := g.Grid()
	r.shape = cuda.Geometry{
		Grid:  cuda.Dim3{X: uint32(x), Y: uint32(y), Z: 1},        //nolint:gosec // CUDA refuses one that is too large
		Block: cuda.Dim3{X: uint32(g.BlockThreads()), Y: 1, Z: 1}, //nolint:gosec // small
	}
	for i, l := range layouts {
		r.operands = append(r.operands, locate(p, i, l, layouts))
	}
	if g.Split {
		r.scratchBytes = p.ScratchBytes(g)
		if len(v.passes) == 1 { // else the next pass computes the row values
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
			r.tickets, arg = i, cuda.Value(uint64(0)) // for a pass without tickets
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

// locate returns the location of an operand without its parameter.
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

// arg returns the argument of a kernel without its buffer.
func (l *location) arg() cuda.Arg {
	switch {
	case l.bytes == 0:
		return cuda.Value(uint64(0))
	case l.out:
		return cuda.Out(cuda.Buffer{}).Of(l.offsetBytes, l.bytes)
	}
	return cuda.In(cuda.Buffer{}).Of(l.offsetBytes, l.bytes)
}

// overlap reports whether an operand shares memory with an output, other than an input of the same elements.
func (r *ready) overlap(addresses *[plan.MaxOperands]uint64) bool {
	for i := range r.operands {
		out := &r.operands[i]
		if !out.out {
			continue
		}
		a := addresses[i]
		for j := range r.operands {
			other := &r.operands[j]
			b := addresses[j]
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

// fill sets args to the arguments of operands in these ranges.
func (r *ready) fill(args []cuda.Arg, ranges *[plan.MaxOperands]cuda.Range) []cuda.Arg {
	args = append(args[:0], r.args...)
	for i := range r.operands {
		at, arg := &ranges[i], &args[r.operands[i].param]
		*arg = arg.Of(at.Offset, at.Bytes)
		arg.SetBuffer(at.Buffer)
	}
	return args
}

// launch submits the passes.
func (r *ready) launch(c *cuda.Context, args []cuda.Arg) error {
	if r.split {
		return r.launchSplit(c, args)
	}
	return r.submit(c, args)
}

func (r *ready) submit(c *cuda.Context, args []cuda.Arg) error {
	for _, pass := range r.passes {
		if err := c.Launch(pass, r.shape, args...); err != nil {
			return err
		}
	}
	return nil
}

// launchSplit launches a reduction of rows that several blocks share, with scratch memory and tickets.
func (r *ready) launchSplit(c *cuda.Context, args []cuda.Arg) (err error) {
	scratch, err := c.Alloc(r.scratchBytes)
	if err != nil {
		return err
	}
	var tickets tickets
	defer func() { err = errors.Join(err, scratch.Free(), tickets.release()) }() // also after a panic of the driver
	args[r.scratch].SetBuffer(scratch)
	if r.ticketBytes == 0 {
		return cuda.Together(c, func(bool) error { return r.submit(c, args) })
	}
	of, err := ticketsOf(c, &r.known)
	if err != nil {
		return err
	}
	return cuda.Together(c, func(captured bool) (err error) { // else a graph might have the fill of the tickets and not the launch
		if tickets, err = of.of(c, captured, r.ticketBytes); err != nil {
			return err
		}
		args[r.tickets] = cuda.InOut(tickets.at.Buffer).Of(tickets.at.Offset, tickets.at.Bytes)
		return r.submit(c, args)
	})
}
