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
	return []Mark{}
}
