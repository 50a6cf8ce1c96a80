package interp

import "github.com/go-vram/vram/compute/ptx"

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

// usedVariables returns the variables that instructions of the kernel name: it has no memory for others of its module.
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

// placeShared gives a shared variable its offset. A variable without a size is dynamic memory, after all others.
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

// place appends a variable and returns its offset.
func place(end *int, v *ptx.Variable) int {
	offset := roundUp(*end, v.Alignment())
	*end = offset + v.Bytes()
	return offset
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }
