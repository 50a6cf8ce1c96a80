package ptx

import (
	"fmt"
	"slices"
)

// addressMisfit says how an operand is not memory in the space that the instruction names, or "".
func (c *visible) addressMisfit(i *Instruction, s *operandSpec, o *Operand) string {
	space := s.space
	if s.anySpace {
		space = i.Space()
	}
	switch {
	case o.Kind != OperandAddress:
		return "is no address: brackets are missing"
	case s.tensor:
		if wrong := c.coordinatesMisfit(i, o); wrong != "" {
			return wrong
		}
	case len(o.Elements) > 0:
		return "has coordinates"
	}
	switch {
	case o.Register != nil:
		return c.baseMisfit(space, o.Register)
	case o.Variable != nil:
		return c.placeMisfit(i, space, o)
	case o.Name != "":
		return "is not declared"
	}
	return "has no base"
}

// coordinatesMisfit is about the place in a tensor: a vector of as many numbers as the name says.
func (c *visible) coordinatesMisfit(i *Instruction, o *Operand) string {
	count := i.Rank()
	if len(o.Elements) != 1 || o.Elements[0].Kind != OperandVector || len(o.Elements[0].Elements) != count {
		return fmt.Sprintf("has no vector of %d coordinates", count)
	}
	for n := range o.Elements[0].Elements {
		e := &o.Elements[0].Elements[n]
		if wrong := c.valueMisfit(i, &operandSpec{typ: S32}, e); wrong != "" {
			return fmt.Sprintf("coordinate %d, %v, %s", n+1, e, wrong)
		}
	}
	return ""
}

// baseMisfit is about the register of an address.
func (c *visible) baseMisfit(space Space, base *Register) string {
	short := space == Shared || space == Local || space == Const || space == Param
	switch {
	case !c.owns(base):
		return "has a base that is no register of the function"
	case fits(B64, base.Type, false) && base.Type != F64:
		return ""
	case short && fits(B32, base.Type, false) && base.Type != F32:
		return ""
	}
	return fmt.Sprintf("has a base of .%v, which is no address in the space .%v", base.Type, space)
}

// placeMisfit is about an address that is a variable's.
func (c *visible) placeMisfit(i *Instruction, space Space, o *Operand) string {
	v := o.Variable
	size := int64(i.accessBytes())
	end := int64(v.Bytes())
	switch {
	case !c.variables[v]:
		return "is no variable of the module or the function"
	case c.isLater(v):
		return "is declared further down"
	case v.Space != space:
		return fmt.Sprintf("is in the space .%v", v.Space)
	case i.Op == OpSt && c.isParam(v):
		return "is a parameter, which is read only"
	case i.Op == OpLd && slices.Contains(c.function.Results, v):
		return "is a result, which is written only"
	case size == 0:
		return ""
	case end > 0 && (o.Offset < 0 || o.Offset+size > end):
		return fmt.Sprintf("reaches past the %d bytes of %s", end, v.Name)
	case o.Offset%size != 0:
		return fmt.Sprintf("is not aligned to %d bytes", size)
	}
	return ""
}

// call splits the operands of a call: the function, the arguments and the results, each nil where the text has none.
func (i *Instruction) call() (target, arguments, results *Operand) {
	if i.Op != OpCall {
		return nil, nil, nil
	}
	rest := i.Operands
	if len(rest) > 0 && rest[0].Kind == OperandList {
		results, rest = &rest[0], rest[1:]
	}
	if len(rest) > 0 {
		target, rest = &rest[0], rest[1:]
	}
	if len(rest) > 0 {
		arguments = &rest[0]
	}
	return target, arguments, results
}

// callMisfit says how a call does not fit the function that it names, or "".
func (c *visible) callMisfit(i *Instruction) string {
	target, arguments, results := i.call()
	switch {
	case target == nil:
		return "the function is missing"
	case target.Kind == OperandRegister:
		return throughRegister
	case target.Kind != OperandFunction || len(c.prototypes[target.Name]) == 0:
		return fmt.Sprintf("function %v is not declared", target)
	}
	f := c.calledFunction(target.Name)
	switch {
	case f.Entry:
		return fmt.Sprintf("%s is an .entry, which only a launch starts", f.Name)
	case f.Body == nil && f.Linkage == Extern && !isSystem(f.Name):
		return fmt.Sprintf("%s is a function without a body", f.Name)
	case i.Pos != (Pos{}) && !c.declaredBefore(f.Name, i.Pos):
		return fmt.Sprintf("%s is declared further down: a call needs a declaration before it", f.Name)
	}
	if wrong := c.passMisfit("argument", arguments, f.Params); wrong != "" {
		return wrong
	}
	return c.passMisfit("result", results, f.Results)
}

// throughRegister is the misfit of a call that the driver may take.
const throughRegister = "calls through a register are not supported"

// passMisfit compares arguments or results with the function's.
func (c *visible) passMisfit(thing string, passed *Operand, formal []*Variable) string {
	var elements []Operand
	if passed != nil {
		elements = passed.Elements
	}
	if len(elements) != len(formal) {
		return fmt.Sprintf("%d %ss, and the function has %d", len(elements), thing, len(formal))
	}
	for n := range elements {
		o, v := &elements[n], formal[n]
		switch {
		case o.Kind == OperandVariable && c.variables[o.Variable] && o.Variable.passes(v):
		case o.Kind == OperandRegister && c.owns(o.Register) && len(v.Dims) == 0 && fits(v.Type, o.Register.Type, false):
		default:
			return fmt.Sprintf("%s %d, %v, is no .param of %d bytes", thing, n+1, o, v.Bytes())
		}
	}
	return ""
}

// passes reports whether a .param variable of a caller is passed for a parameter or a result: both are arrays or
// neither, of one size and alignment.
func (v *Variable) passes(formal *Variable) bool {
	return v.Space == Param && v.Bytes() == formal.Bytes() && (len(v.Dims) > 0) == (len(formal.Dims) > 0) &&
		(len(v.Dims) == 0 || v.Alignment() == formal.Alignment())
}
