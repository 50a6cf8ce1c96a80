package ptx

import (
	"math/bits"
	"slices"
)

// The limits of memory. A text is small, and the memory that it asks for is not: a variable longer than
// maxVariableBytes is refused, although the assembler takes it.
const (
	maxConstBytes    = 64 << 10  // .const variables
	maxLocalBytes    = 512 << 10 // .local variables of a thread: CUDA's limit
	maxVariableBytes = 1 << 31
)

// checkVariable looks at the declaration of a variable, or of a parameter.
func (c *declarations) checkVariable(v *Variable) {
	switch {
	case v.Type.Class() == Opaque && v.Space == Global && v.Init == nil:
	case !isStored(v.Type) || v.Type == Pred:
		c.report(v.Pos, "variable %s: no memory has the type .%v", v.Name, v.Type)
	case !isAlignment(v.Align):
		c.report(v.Pos, "variable %s: an alignment of %d bytes is no power of two", v.Name, v.Align)
	case v.Vector > 1 && v.Type.Bytes()*v.Vector > maxVectorBytes:
		c.report(v.Pos, "variable %s: a vector of %d bytes, at most %d", v.Name, v.Type.Bytes()*v.Vector, maxVectorBytes)
	case v.Linkage == Common && v.Space != Global:
		c.report(v.Pos, "variable %s: only a .global variable is .common", v.Name)
	}
	c.checkB128(v.Pos, v.Type)
	if v.Bytes() > maxVariableBytes || v.Align > maxVariableBytes {
		c.report(v.Pos, "variable %s: more than %d bytes", v.Name, maxVariableBytes)
	}
	if v.Type == SamplerRef && !slices.Contains(c.module.Target.Options, "texmode_independent") {
		c.report(v.Pos, "variable %s: a sampler needs the option texmode_independent of the target", v.Name)
	}
	for n, dim := range v.Dims {
		switch {
		case dim == 0 || dim < Unsized:
			c.report(v.Pos, "variable %s: an array of no elements", v.Name)
		case dim == Unsized && (n > 0 || v.Linkage != Extern && v.Init == nil && v.Space != Param):
			c.report(v.Pos, "variable %s: only an .extern array has no length", v.Name)
		}
	}
	if v.Init != nil {
		c.checkInitialiser(v)
	}
}

// isAlignment reports whether a number of bytes is an alignment; 0 means the alignment of the type.
func isAlignment(bytes int) bool { return bytes >= 0 && bits.OnesCount(uint(bytes)) <= 1 }

// checkParam looks at a parameter or a result of a function, or of a call.
func (c *declarations) checkParam(f *Function, v *Variable) {
	c.checkVariable(v)
	switch {
	case v.Space != Param:
		c.report(v.Pos, "%s is in the space .%v, and not .param", v.Name, v.Space)
	case v.Vector > 0:
		c.report(v.Pos, "%s is a vector, which is no parameter", v.Name)
	case len(v.Dims) > 0 && v.Dims[0] == Unsized && (f == nil || f.Entry):
		c.report(v.Pos, "%s is an array without a length", v.Name)
	case v.Align > maxParamAlign && (f == nil || !f.Entry):
		c.report(v.Pos, "%s has an alignment of %d bytes, at most %d", v.Name, v.Align, maxParamAlign)
	case v.Pointer != nil && (f == nil || !f.Entry):
		c.report(v.Pos, "%s has the attribute .ptr, which only a parameter of an .entry has", v.Name)
	case v.Pointer != nil && !isAlignment(v.Pointer.Align):
		c.report(v.Pos, "%s: an alignment of %d bytes is no power of two", v.Name, v.Pointer.Align)
	case v.Pointer != nil && v.Pointer.Space == Param:
		c.report(v.Pos, "%s points to the space .param", v.Name)
	}
}

// maxParamAlign is the largest alignment of a parameter that a function passes to another one.
const maxParamAlign = 128

// checkInitialiser looks at the values of a variable of the module.
func (c *declarations) checkInitialiser(v *Variable) {
	if v.Space != Global && v.Space != Const || v.Linkage == Extern {
		c.report(v.Pos, "variable %s: only .global and .const variables that the module defines have an initial value", v.Name)
		return
	}
	dims := v.Dims
	if v.Vector > 1 {
		dims = append(append([]int{}, dims...), v.Vector)
	}
	if wrong := shapeMisfit(v.Init, dims, v.Vector > 1); wrong != "" {
		c.report(v.Pos, "variable %s: the initial value %s", v.Name, wrong)
		return
	}
	v.Init.each(func(o *Operand) {
		if o.Kind == OperandVector {
			return
		}
		if wrong := c.initialValue(v, o); wrong != "" {
			c.report(v.Pos, "variable %s: initial value %v %s", v.Name, o, wrong)
		}
	})
}

// shapeMisfit says how the braces of an initial value differ from the array's dimensions, or "". A vector is the last
// dimension, and complete.
func shapeMisfit(o *Operand, dims []int, vector bool) string {
	switch {
	case len(dims) == 0 && o.Kind == OperandVector:
		return "has braces, and the variable is no array"
	case len(dims) == 0:
		return ""
	case o.Kind != OperandVector:
		return "has no braces, and the variable is an array"
	case len(o.Elements) == 0 && dims[0] == Unsized:
		return "is empty, and the variable has no length"
	case dims[0] != Unsized && len(o.Elements) > dims[0]:
		return "has more values than the variable has elements"
	case vector && len(dims) == 1 && len(o.Elements) != dims[0]:
		return "has not all elements of a vector"
	}
	for n := range o.Elements {
		if wrong := shapeMisfit(&o.Elements[n], dims[1:], vector); wrong != "" {
			return wrong
		}
	}
	return ""
}

// initialValue says how a value does not fit the variable, or "".
func (c *declarations) initialValue(v *Variable, o *Operand) string {
	isUntyped := v.Type.Class() == Untyped
	switch o.Kind { //nolint:exhaustive // the kinds of constants
	case OperandName:
		return "is not declared"
	case OperandVariable, OperandFunction:
		if v.Type.Bits() != 64 {
			return "is an address, of 64 bits"
		}
		return c.addressValueMisfit(v, o)
	case OperandSpecial:
		if o.Special == WarpSize && (v.Type.IsInteger() || isUntyped) {
			return ""
		}
	case OperandFloat32, OperandFloat64:
		if v.Type == F16 || v.Type == F16x2 {
			return "is no value of halves, which are written as .b16"
		}
		if isUntyped {
			return "" // as the driver takes it: cut to the bits
		}
	}
	return constantMisfit(v.Type, o)
}

// addressValueMisfit is about an address: of .global or .const memory, or of a function, that stands before the variable.
func (c *declarations) addressValueMisfit(v *Variable, o *Operand) string {
	if o.Variable == nil {
		if v.Pos != (Pos{}) && !c.declaredBefore(o.Name, v.Pos) {
			return "is declared further down"
		}
		return ""
	}
	at := o.Variable
	switch {
	case at.Space != Global && at.Space != Const:
		return "is an address in the space ." + at.Space.String()
	case v.Type != U64:
		return "is an address, which is an .u64"
	case v.Pos != (Pos{}) && v.Pos.before(at.Pos):
		return "is declared further down"
	}
	return ""
}
