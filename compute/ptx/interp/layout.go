package interp

import (
	"encoding/binary"

	"github.com/go-vram/vram/compute/ptx"
)

// The windows of generic addresses: addresses below the first are global memory.
const (
	windowShift  = 56
	sharedWindow = uint64(1) << windowShift
	localWindow  = uint64(2) << windowShift
	paramWindow  = uint64(3) << windowShift
	ownWindow    = uint64(4) << windowShift // variables of the module that Launch.Globals does not name
)

// layOut gives parameters, shared variables and local variables their offsets.
func (c *compiler) layOut(entry *ptx.Function) {
	k := c.kernel
	for _, p := range entry.Params {
		k.params[p] = place(&k.paramBytes, p)
	}
	for _, d := range entry.Directives {
		if d.Name == "maxntid" || d.Name == "reqntid" {
			threads := 1
			for _, v := range d.Values {
				threads *= v
			}
			k.maxThreads = threads
		}
	}
	used := c.usedVariables()
	for _, v := range c.module.Variables {
		switch v.Space {
		case ptx.Shared:
			if used[v] {
				c.placeShared(v)
			}
		case ptx.Global, ptx.Const:
			k.globals = append(k.globals, v)
		case ptx.Generic, ptx.Local, ptx.Param:
		}
	}
	for _, fn := range c.order {
		c.layOutFunction(fn)
	}
	k.staticSharedBytes = roundUp(k.staticSharedBytes, 16) //nolint:mnd // the strictest alignment of a vector
}

// usedVariables are those that instructions of the kernel name: it has no memory for others of its module.
func (c *compiler) usedVariables() map[*ptx.Variable]bool {
	used := map[*ptx.Variable]bool{}
	for _, fn := range c.order {
		for _, i := range fn.source.Code().Instructions {
			for n := range i.Operands {
				used[i.Operands[n].Variable] = true
				for k := range i.Operands[n].Elements {
					used[i.Operands[n].Elements[k].Variable] = true
				}
			}
		}
	}
	return used
}

// placeShared gives a shared variable its offset. One without a size is dynamic memory, behind all others.
func (c *compiler) placeShared(v *ptx.Variable) {
	if v.Bytes() > 0 {
		c.kernel.shared[v] = place(&c.kernel.staticSharedBytes, v)
	}
}

func (c *compiler) layOutFunction(fn *function) {
	if !fn.entry {
		for _, v := range append(append([]*ptx.Variable{}, fn.source.Params...), fn.source.Results...) {
			fn.locals[v] = place(&fn.localBytes, v)
		}
	}
	for _, v := range fn.source.Code().Variables {
		switch v.Space {
		case ptx.Shared:
			c.placeShared(v)
		case ptx.Local, ptx.Param:
			fn.locals[v] = place(&fn.localBytes, v)
		case ptx.Global, ptx.Const:
			c.kernel.globals = append(c.kernel.globals, v)
		case ptx.Generic:
		}
	}
	fn.localBytes = roundUp(fn.localBytes, 16) //nolint:mnd // the strictest alignment of a vector
}

// place puts a variable behind the others, and returns its offset.
func place(end *int, v *ptx.Variable) int {
	offset := roundUp(*end, v.Alignment())
	*end = offset + v.Bytes()
	return offset
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }

// ownGlobals makes the memory of module variables that the launch does not name.
func (r *run) ownGlobals() {
	address := ownWindow
	for _, v := range r.kernel.globals {
		if at, ok := r.launch.Globals[v.Name]; ok {
			r.globals[v] = at
			continue
		}
		address = (address + 255) &^ 255
		r.globals[v] = address
		b := make([]byte, max(InitialBytes(v), v.Bytes()))
		r.own = append(r.own, Region{Start: address, Bytes: b, Owner: variableOwner{v}})
		address += uint64(len(b))
	}
	for i, v := range r.ownVariables() {
		Initialise(v, r.own[i].Bytes, func(name string) uint64 { return r.addressOf(name) })
	}
}

// ownVariables are those with memory of the run, in the order of run.own.
func (r *run) ownVariables() (own []*ptx.Variable) {
	for _, v := range r.kernel.globals {
		if r.globals[v] >= ownWindow {
			own = append(own, v)
		}
	}
	return own
}

// addressOf is the address of a module's variable by name.
func (r *run) addressOf(name string) uint64 {
	for v, address := range r.globals {
		if v.Name == name {
			return address
		}
	}
	return 0
}

// InitialBytes is the size of a module's variable, also of one whose initialiser says how long it is.
func InitialBytes(v *ptx.Variable) int {
	if bytes := v.Bytes(); bytes > 0 || v.Init == nil {
		return bytes
	}
	return countValues(v.Init) * v.Type.Bytes()
}

func countValues(o *ptx.Operand) int {
	if o.Kind != ptx.OperandVector {
		return 1
	}
	n := 0
	for i := range o.Elements {
		n += countValues(&o.Elements[i])
	}
	return n
}

// Initialise writes the initialiser of a module's variable to its memory; address finds that of other variables.
func Initialise(v *ptx.Variable, to []byte, address func(name string) uint64) {
	if v.Init != nil {
		writeValues(v.Init, v.Type, to, address)
	}
}

func writeValues(o *ptx.Operand, t ptx.Type, to []byte, address func(string) uint64) []byte {
	if o.Kind == ptx.OperandVector {
		for i := range o.Elements {
			to = writeValues(&o.Elements[i], t, to, address)
		}
		return to
	}
	var element [8]byte
	binary.LittleEndian.PutUint64(element[:], initialValue(o, t, address))
	n := copy(to, element[:t.Bytes()])
	return to[n:]
}

func initialValue(o *ptx.Operand, t ptx.Type, address func(string) uint64) uint64 {
	switch {
	case o.Variable != nil:
		return address(o.Variable.Name) + uint64(o.Offset) //nolint:gosec // in two's complement
	case o.Kind == ptx.OperandName:
		return address(o.Name) + uint64(o.Offset) //nolint:gosec // in two's complement
	}
	return constantBits(o, t)
}
