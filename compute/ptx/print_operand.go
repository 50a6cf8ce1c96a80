package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// String returns the operand as the text has it.
func (o Operand) String() string {
	switch o.Kind {
	case OperandRegister:
		return o.negation() + o.Register.name()
	case OperandSpecial:
		return o.Special.String()
	case OperandInteger:
		return strconv.FormatInt(int64(o.Value), 10) // in two's complement
	case OperandFloat32:
		return fmt.Sprintf("0f%08X", o.Value)
	case OperandFloat64:
		return fmt.Sprintf("0d%016X", o.Value)
	case OperandAddress:
		if len(o.Elements) > 0 {
			return "[" + o.base() + ", " + elementTexts(o.Elements, ", ") + "]"
		}
		return "[" + o.base() + "]"
	case OperandLabel:
		return o.Label.name()
	case OperandVariable, OperandName:
		if o.Generic {
			return "generic(" + o.named() + ")" + offsetText(o.Offset)
		}
		return o.negation() + o.named() + offsetText(o.Offset)
	case OperandFunction:
		return o.Name
	case OperandVector:
		return "{" + elementTexts(o.Elements, ", ") + "}"
	case OperandPair:
		return elementTexts(o.Elements, "|")
	case OperandList:
		return "(" + elementTexts(o.Elements, ", ") + ")"
	case OperandSink:
		return "_"
	case OperandNone:
	}
	return ""
}

func (o Operand) negation() string {
	if o.Negated {
		return "!"
	}
	return ""
}

// name also names a missing register, which Check reports.
func (r *Register) name() string {
	if r == nil {
		return "(no register)"
	}
	return r.Name
}

func (l *Label) name() string {
	if l == nil {
		return "(no label)"
	}
	return l.Name
}

// named returns the name of the variable, or the name that is not declared.
func (o Operand) named() string {
	if o.Variable != nil {
		return o.Variable.Name
	}
	return o.Name
}

// base returns an address without its brackets.
func (o Operand) base() string {
	switch {
	case o.Register != nil:
		return o.Register.Name + offsetText(o.Offset)
	case o.named() != "":
		return o.named() + offsetText(o.Offset)
	}
	return strconv.FormatInt(o.Offset, 10)
}

// offsetText returns a sum, also where the offset is below zero: the assembler reads no difference.
func offsetText(offset int64) string {
	if offset == 0 {
		return ""
	}
	return fmt.Sprintf("+%d", offset)
}

func elementTexts(elements []Operand, between string) string {
	var texts []string
	for _, e := range elements {
		texts = append(texts, e.String())
	}
	return strings.Join(texts, between)
}
