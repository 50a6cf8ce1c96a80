package ptx

import "strings"

// traced is a function of a tracing, with its definitions: each is a register that an instruction writes.
type traced struct {
	function    *Function
	code        *Code
	defined     []origin              // by definition
	definitions [][]int               // of each instruction, in the order of results
	reaching    []map[*Register][]int // definitions that reach an instruction, of registers that have several
	results     [][]*Register         // of each instruction
	single      map[*Register][]int   // all definitions of a register
}

// The definitions of a register are told apart up to these sizes; else all of them reach each use.
const (
	maxDefinitions  = 256     // of a register
	maxReachingBits = 1 << 28 // of all sets, 32 MiB
)

func newTraced(f *Function) *traced {
	b := &traced{function: f, code: f.Code(), single: map[*Register][]int{}}
	for _, i := range b.code.Instructions {
		var definitions []int
		results := i.results()
		b.results = append(b.results, results)
		for _, r := range results {
			definitions = append(definitions, len(b.defined))
			b.single[r] = append(b.single[r], len(b.defined))
			b.defined = append(b.defined, origin{})
		}
		b.definitions = append(b.definitions, definitions)
	}
	b.reach()
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

// branches reports whether an instruction may go to the label, or to any.
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

// definitionSet is a set of definitions.
type definitionSet []uint64

func (s definitionSet) has(n int) bool { return s[n>>6]>>(n&63)&1 != 0 }
func (s definitionSet) put(n int)      { s[n>>6] |= 1 << (n & 63) }
func (s definitionSet) drop(n int)     { s[n>>6] &^= 1 << (n & 63) }

// add reports whether others were new.
func (s definitionSet) add(others definitionSet) (grown bool) {
	for n, o := range others {
		if o&^s[n] != 0 {
			s[n], grown = s[n]|o, true
		}
	}
	return grown
}

// reach finds the definitions that reach each use of a register with several of them.
func (b *traced) reach() {
	number := map[int]int{} // of such definitions
	var registers []*Register
	for _, r := range b.function.Registers {
		if len(b.single[r]) > 1 && len(b.single[r]) <= maxDefinitions {
			registers = append(registers, r)
			for _, d := range b.single[r] {
				number[d] = len(number)
			}
		}
	}
	starts := b.starts()
	words := (len(number) + 63) / 64 //nolint:mnd // bits of a word
	if len(registers) == 0 || len(starts)*words*64 > maxReachingBits {
		return
	}
	several := map[*Register]bool{}
	for _, r := range registers {
		several[r] = true
	}
	in := map[int]definitionSet{}
	for start := range starts {
		in[start] = make(definitionSet, words)
	}
	b.reaching = make([]map[*Register][]int, len(b.code.Instructions))
	flow := func(start int, now definitionSet, visit func(n int, now definitionSet)) {
		for n := start; n < len(b.code.Instructions); n++ {
			if n > start && starts[n] {
				visit(n, now)
				return
			}
			i := b.code.Instructions[n]
			visit(-n-1, now)
			for which, d := range b.definitions[n] {
				k, ok := number[d]
				if !ok {
					continue
				}
				if i.Guard.Kind == OperandNone && i.Op != UnknownOp {
					for _, other := range b.single[b.results[n][which]] {
						now.drop(number[other])
					}
				}
				now.put(k)
			}
			for _, target := range b.targets(i) {
				visit(target, now)
			}
			if i.ends() {
				return
			}
		}
	}
	work := []int{0}
	done := map[int]bool{}
	for len(work) > 0 {
		start := work[len(work)-1]
		work = work[:len(work)-1]
		done[start] = true
		flow(start, append(definitionSet(nil), in[start]...), func(n int, now definitionSet) {
			if n >= 0 && n < len(b.code.Instructions) && (in[n].add(now) || !done[n]) {
				work = append(work, n)
			}
		})
	}
	for start := range starts {
		flow(start, append(definitionSet(nil), in[start]...), func(n int, now definitionSet) {
			if n >= 0 {
				return
			}
			n = -n - 1
			b.code.Instructions[n].uses(func(r *Register) {
				if !several[r] {
					return
				}
				if b.reaching[n] == nil {
					b.reaching[n] = map[*Register][]int{}
				}
				reaching := []int{}
				for _, d := range b.single[r] {
					if now.has(number[d]) {
						reaching = append(reaching, d)
					}
				}
				b.reaching[n][r] = reaching
			})
		})
	}
}

// uses calls visit for each register that an instruction names.
func (i *Instruction) uses(visit func(*Register)) {
	for n := range i.Operands {
		i.Operands[n].each(func(o *Operand) {
			if o.Register != nil {
				visit(o.Register)
			}
		})
	}
}

// starts are the instructions that a block of instructions begins with.
func (b *traced) starts() map[int]bool {
	starts := map[int]bool{0: true}
	for _, target := range b.code.Targets {
		if target < len(b.code.Instructions) {
			starts[target] = true
		}
	}
	return starts
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
