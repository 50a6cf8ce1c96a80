package ptx

import (
	"fmt"
	"slices"
)

// NewLabel returns a label that Place puts into the body; names of labels are made.
func (k *Kernel) NewLabel() Operand {
	if !k.usable() {
		return Operand{}
	}
	k.labels++
	return Operand{Kind: OperandLabel, Label: &Label{Name: fmt.Sprintf("$L%d", k.labels)}}
}

// Place puts a label here. Each label stands in one place.
func (k *Kernel) Place(label Operand) {
	if !k.usable() {
		return
	}
	if label.Kind != OperandLabel || label.Label == nil {
		k.mistake("%v is no label", label)
		return
	}
	if slices.Contains(k.statements, Statement(label.Label)) {
		k.mistake("label %v is placed twice", label)
		return
	}
	k.statements = append(k.statements, label.Label)
}

// Branch jumps to a label.
func (k *Kernel) Branch(label Operand) { k.Do("bra", label) }

// BranchIf jumps to a label where the predicate holds.
func (k *Kernel) BranchIf(predicate, label Operand) { k.DoIf(predicate, "bra", label) }

// If runs the body in the threads where the predicate holds.
func (k *Kernel) If(predicate Operand, body func()) {
	end := k.NewLabel()
	k.BranchIf(Not(predicate), end)
	if body != nil {
		body()
	}
	k.Place(end)
}

// For runs the body for counters from first, in steps, as long as they are below the limit. The last sum of counter and step
// must fit the type, an integer; the body may not change the counter.
func (k *Kernel) For(t Type, first, limit, step Operand, body func(counter Operand)) {
	if !t.IsInteger() {
		k.mistake("a counter of .%v is no integer", t)
		return
	}
	counter, loop, end := k.Reg(t), k.NewLabel(), k.NewLabel()
	k.Set(t, counter, first)
	k.BranchIf(k.Let("setp.ge."+t.String(), counter, limit), end)
	k.Place(loop)
	if body != nil {
		body(counter)
	}
	k.Do("add."+t.String(), counter, counter, step)
	k.BranchIf(k.Let("setp.lt."+t.String(), counter, limit), loop)
	k.Place(end)
}

// Sync waits for all threads of the block: bar.sync 0.
func (k *Kernel) Sync() { k.Do("bar.sync", Integer(0)) }

// MaxThreads limits the threads of a block, so that the compiler may use more registers for each.
func (k *Kernel) MaxThreads(count int) {
	if !k.usable() {
		return
	}
	k.directives = append(k.directives, Directive{Name: "maxntid", Values: []int{count}})
}

// Special returns the value of a special register.
func (k *Kernel) Special(s Special) Operand {
	return k.Let("mov."+max(s.Type(), U8).String(), Operand{Kind: OperandSpecial, Special: s})
}

// Thread returns the number of the thread in the grid along x, of 32 bits.
func (k *Kernel) Thread() Operand {
	return k.Let("mad.lo.u32", k.Special(CtaidX), k.Special(NtidX), k.Special(TidX))
}

// Threads returns the number of threads in the grid along x, of 32 bits.
func (k *Kernel) Threads() Operand { return k.Let("mul.lo.u32", k.Special(NctaidX), k.Special(NtidX)) }
