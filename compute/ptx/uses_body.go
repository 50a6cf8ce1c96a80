package ptx

import "strings"

// traced is a function of a tracing, with its definitions: each is a register that an instruction writes.
type traced struct {
	function    *Function
	code        *Code
	defined     []origin              // by definition
	definitions [][]int               // of each instruction, in the order of results
	places      []int                 // of the instruction, by definition
	reaching    []map[*Register][]int // definitions that reach an instruction, of registers that have several
	results     [][]*Register         // of each instruction
	single      map[*Register][]int   // all definitions of a register
}

// newTraced prepares a function.
func newTraced(f *Function) *traced {
	b := &traced{function: f, code: f.Code(), single: map[*Register][]int{}}
	for n, i := range b.code.Instructions {
		var definitions []int
		results := i.results()
		b.results = append(b.results, results)
		for _, r := range results {
			definitions = append(definitions, len(b.defined))
			b.single[r] = append(b.single[r], len(b.defined))
			b.defined = append(b.defined, origin{})
			b.places = append(b.places, n)
		}
		b.definitions = append(b.definitions, definitions)
	}
	b.reaching = reachingOf(b)
	return b
}

// results returns the registers that an instruction may write.
func (i *Instruction) results() (registers []*Register) {
	take := func(o *Operand) {
		o.each(func(o *Operand) {
			if o.Kind == OperandRegister && o.Register != nil {
				registers = append(registers, o.Register)
			}
		})
	}
	switch {
	case len(i.Operands) == 0:
	case i.Op == OpCall:
		if _, _, results := i.call(); results != nil {
			take(results)
		}
	case i.Op == UnknownOp && effectOf(i.Name).anyResult:
		for n := range i.Operands {
			if i.Operands[n].Kind != OperandAddress {
				take(&i.Operands[n])
			}
		}
	case i.Op == OpSt || i.Op == OpRed || i.Op == OpBra || i.Operands[0].Kind == OperandAddress:
	case i.Op == OpBarRed || i.Op == OpBarrierRed:
		take(&i.Operands[0])
	case i.Op == OpBarSync || i.Op == OpBarArrive || i.Op == OpBarrierSync || i.Op == OpBarrierArrive || i.Op == OpBarWarpSync || i.Op == OpNanosleep:
	default:
		take(&i.Operands[0])
	}
	return registers
}

// ends reports whether nothing after an instruction follows it.
func (i *Instruction) ends() bool {
	return i.Guard.Kind == OperandNone && (i.Op == OpBra || i.Op == OpRet || i.Op == OpExit || i.Op == OpTrap || strings.HasPrefix(i.Name, "brx"))
}

// targets returns the places that an instruction may branch to.
func (b *traced) targets(i *Instruction) (targets []int) {
	switch {
	case i.Op == OpBra && len(i.Operands) > 0 && i.Operands[0].Kind == OperandLabel:
		return []int{b.code.Targets[i.Operands[0].Label]}
	case i.Op == OpBra || strings.HasPrefix(i.Name, "brx"):
		for _, target := range b.code.Targets {
			targets = append(targets, target)
		}
	}
	return targets
}

// of returns the origin of a register where an instruction reads it.
func (b *traced) of(n int, r *Register) (v origin) {
	definitions, ok := []int(nil), false
	if b.reaching != nil {
		definitions, ok = b.reaching[n][r]
	}
	if !ok {
		definitions = b.single[r]
	}
	if len(definitions) == 1 {
		return b.defined[definitions[0]]
	}
	for _, d := range definitions {
		v.join(b.defined[d])
	}
	return v
}
