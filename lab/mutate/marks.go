package mutate

import "fmt"

// Mark says why no test can tell a mutant from the original. A mutant is named by its package, function and operator, and by
// the text that Mutant.Text has: the changed line, or the line that is dropped. If a function has several with that text, the
// mark is for all of them.
type Mark struct {
	Package  string
	Function string
	Operator Operator
	Text     string
	Why      string
}

// marked returns the reasons of equivalent mutants.
func marked(marks []Mark, mutants []*Mutant) map[*Mutant]string {
	why := map[string]string{}
	for _, m := range marks {
		why[m.key()] = m.Why
	}
	all := map[*Mutant]string{}
	for _, m := range mutants {
		if reason, ok := why[Mark{m.Package, m.Function, m.Operator, m.Text, ""}.key()]; ok {
			all[m] = reason
		}
	}
	return all
}

func (m Mark) key() string {
	return fmt.Sprintf("%s.%s %s: %s", m.Package, m.Function, m.Operator, m.Text)
}

// stale returns the marks of these packages whose mutants do not exist.
func stale(marks []Mark, mutants []*Mutant) (gone []Mark) {
	there := map[string]bool{}
	for _, m := range mutants {
		there[Mark{m.Package, m.Function, m.Operator, m.Text, ""}.key()] = true
	}
	for _, m := range marks {
		if !there[m.key()] {
			gone = append(gone, m)
		}
	}
	return gone
}

// Marks returns the equivalent mutants of this repository.
func Marks() []Mark {
	const (
		anyHash = "any hash serves: it only spreads, and results do not depend on it"
		anyKey  = "any key serves that differs where the place does"
		nobody  = "the interface of the framework asks for it, and nothing here calls it"

		onlyChecked = "builds with -race or the tag invariants alone have the check; in others it does nothing"
	)
	return []Mark{
		{"actors", "(*linkedFramework).UserMessageCount", ReturnEarly, "func (f *linkedFramework) UserMessageCount() int { return *new(int);", nobody},
		{"actors", "(*linkedFramework).UserMessageCount", PlusOne, "return (0+1)", nobody},
		{"batch", "(*Packing).Runs", PlusOne, "if p.open > (0+1) {", "no span and no block outside the classes has one unit"},
		{"batch", "(*Plan).Make", DropAssign, "bytes = bytes[:min(len(bytes), Width)]", "it saves checks of bounds: a size past the last bit is not wanted"},
		{"batch", "(*Plan).Order", Boundary, "for k := i; k > 0 && groups[k].Units >= groups[k-1].Units; k-- {", "no two groups have blocks of one length"},
		{"internal/heap", "priority", DropAssign, "x = (x ^ x>>13) * 0xc2b2ae35", anyHash},
		{"internal/heap", "priority", PlusOne, "x = (x ^ x>>13) * (0xc2b2ae35+1)", anyHash},
		{"internal/stream/core", "(*arrivals).Drain", PlusOne, "a.takeHome(a.owner.Freed(), (0+1))", "it asks about blocks of a length, and nobody reads the answer"},
		{"internal/stream/core", "(*directory).leave", DropUpdate, "d.occupants[block] = occupant{}", "an entry is read only for a block that the tree finds"},
		{"internal/stream/sampling", "(*Record).appendKey", PlusOne, "key = strconv.AppendUint(key, uint64(x.Stream), (10+1))", anyKey},
		{"internal/stream/sampling", "(*Record).appendKey", PlusOne, "key = strconv.AppendUint(append(key, 0), uint64(counter), (16+1))", anyKey},
		{"internal/stream/sampling", "(*Site).isOf", SwapArgs, "return s.labels == *labels && slices.Equal(stack, s.stack)", "equality is symmetric"},
		{"internal/stream/sampling", "hash", PlusOne, "h := (14695981039346656037+1) ^ uint64(labels.Stream)", anyHash},
		{"internal/stream/sampling", "hash", DropAssign, "h = (h ^ uint64(c)) * prime", anyHash},

		{"actors", "(*Worker).Throughput", ReturnEarly, "func (w *Worker) Throughput() int { return *new(int); return maxWorkerMessages }", nobody},
		{"actors", "(*mailbox).call", DropCall, "checkUnqueued(l)", onlyChecked},
		{"actors", "(*mailbox).push", DropCall, "checkUnqueued(l)", onlyChecked},
		{"actors", "checkUnqueued", ReturnEarly, "func checkUnqueued(l *Link) { return;", onlyChecked},
		{"actors", "checkUnqueued", Negate, "if checked && l.message == nil {", onlyChecked},
		{"actors", "(*Ref).Call", DropCall, "checkNesting(r.box.name)", onlyChecked},
		{"actors", "(*Ref).tryEnterChecked", DropCall, "checkNesting(r.box.name)", onlyChecked},
		{"actors", "(*Ref).tryEnterChecked", DropCall, "enterTurn(r.box.name)", onlyChecked},
		{"actors", "(*mailbox).leaveEntered", DropCall, "leaveTurn()", onlyChecked},
		{"actors", "(*mailbox).turn", DropCall, "enterTurn(b.name)", onlyChecked},
		{"actors", "(*mailbox).abandon", DropCall, "leaveTurn()", onlyChecked},
		{"actors", "(*mailbox).detach", DropCall, "leaveTurn()", onlyChecked},
		{"actors", "(*mailbox).leave", DropCall, "leaveTurn()", onlyChecked},
		{"cudadrv/fault", "(*live).hits", SwapArgs, "return number, r.Probability == 1 || chance(number, r.Seed) < r.Probability", anyHash},
	}
}
