package ptx

import "fmt"

// limits bounds a constant where a register is also allowed. The zero value has no bounds.
type limits struct {
	low, high int64
	multiple  int64 // the constant is a multiple of it; 0 of none
	operand   int   // the constant is at most the one that is this operand, counted from 1; 0 of none
	fraction  bool  // a number above 0 and up to 1
	set       bool
}

// misfit says how a constant breaks the limits, or "". A register does not.
func (l *limits) misfit(i *Instruction, o *Operand) string {
	if !l.set {
		return ""
	}
	if l.fraction {
		if x := o.Float(); (o.Kind == OperandFloat32 || o.Kind == OperandFloat64) && !(x > 0 && x <= 1) {
			return "is not above 0 and up to 1"
		}
		return ""
	}
	if o.Kind != OperandInteger {
		return ""
	}
	high := l.high
	if l.operand > 0 && l.operand <= len(i.Operands) {
		high = int64(i.Operands[l.operand-1].Value) // in two's complement
	}
	value := int64(o.Value) // in two's complement
	switch {
	case value < l.low || value > high:
		return fmt.Sprintf("is not in %d..%d", l.low, high)
	case l.multiple > 0 && value%l.multiple != 0:
		return fmt.Sprintf("is no multiple of %d", l.multiple)
	}
	return ""
}
