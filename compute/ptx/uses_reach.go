package ptx

import "slices"

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

// reach finds the definitions that reach each instruction, of registers with several definitions.
type reach struct {
	*traced

	number map[int]int           // of a definition in the sets
	starts map[int]bool          // instructions that a label precedes, and the first
	in     map[int]definitionSet // at each start
}

// The definitions of a register are told apart up to these sizes; else all of them reach each use.
const (
	maxDefinitions  = 256     // of a register
	maxReachingBits = 1 << 28 // of all sets, 32 MiB
)

// reachingOf returns the definitions that reach each instruction, by register; nil where they are not told apart.
func reachingOf(b *traced) []map[*Register][]int {
	r := &reach{b, map[int]int{}, b.starts(), map[int]definitionSet{}}
	for _, register := range b.function.Registers {
		if definitions := b.single[register]; len(definitions) > 1 && len(definitions) <= maxDefinitions {
			for _, d := range definitions {
				r.number[d] = len(r.number)
			}
		}
	}
	words := (len(r.number) + 63) / 64 //nolint:mnd // bits of a word
	if len(r.number) == 0 || len(r.starts)*words*64 > maxReachingBits {
		return nil
	}
	for start := range r.starts {
		r.in[start] = make(definitionSet, words)
	}
	r.spread()
	all := make([]map[*Register][]int, len(b.code.Instructions))
	for start := range r.starts {
		r.walk(start, func(n int, now definitionSet) { all[n] = r.of(n, now) }, func(int, definitionSet) {})
	}
	return all
}

// spread fills the sets at the starts.
func (r *reach) spread() {
	done := map[int]bool{}
	for work := []int{0}; len(work) > 0; {
		start := work[len(work)-1]
		work = work[:len(work)-1]
		done[start] = true
		r.walk(start, func(int, definitionSet) {}, func(to int, now definitionSet) {
			if to < len(r.code.Instructions) && (r.in[to].add(now) || !done[to]) {
				work = append(work, to)
			}
		})
	}
}

// walk follows the instructions from a start to the next one. It calls visit before each, and leave for each place that follows.
func (r *reach) walk(start int, visit, leave func(n int, now definitionSet)) {
	now := slices.Clone(r.in[start])
	for n := start; n < len(r.code.Instructions); n++ {
		if n > start && r.starts[n] {
			leave(n, now)
			return
		}
		visit(n, now)
		r.pass(n, now)
		i := r.code.Instructions[n]
		for _, target := range r.targets(i) {
			leave(target, now)
		}
		if i.ends() {
			return
		}
	}
}

// pass changes the set as an instruction does. One with a guard, or one that is not known, may leave its registers as they were.
func (r *reach) pass(n int, now definitionSet) {
	i := r.code.Instructions[n]
	for which, d := range r.definitions[n] {
		own, ok := r.number[d]
		if !ok {
			continue
		}
		if i.Guard.Kind == OperandNone && i.Op != UnknownOp {
			for _, other := range r.single[r.results[n][which]] {
				now.drop(r.number[other])
			}
		}
		now.put(own)
	}
}

// of returns the definitions in a set of the registers that an instruction names.
func (r *reach) of(n int, now definitionSet) (reaching map[*Register][]int) {
	r.code.Instructions[n].uses(func(register *Register) {
		definitions := r.single[register]
		if len(definitions) == 0 {
			return
		}
		if _, several := r.number[definitions[0]]; !several {
			return
		}
		if reaching == nil {
			reaching = map[*Register][]int{}
		}
		found := []int{}
		for _, d := range definitions {
			if now.has(r.number[d]) {
				found = append(found, d)
			}
		}
		reaching[register] = found
	})
	return reaching
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
