package mutate

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
)

// Plan is the work of a run.
type Plan struct {
	Known []Result  // marked as equivalent, or valid in the cache
	Try   []*Mutant // the rest
}

// Sample says how many mutants of each package are taken, and of all; 0 for no bound. Least of each package come before all others.
type Sample struct {
	Least, Each, All int
	Seed             uint64
}

// of takes a sample. The seed and a mutant's name decide when it is taken, so that a change elsewhere leaves a sample as it is. The part
// of a sample that fits the time is a sample too.
func (s Sample) of(mutants []*Mutant) (taken []*Mutant) {
	order := map[*Mutant]string{}
	for _, m := range mutants {
		order[m] = hashOf(strconv.FormatUint(s.Seed, 10), m.Key())
	}
	mutants = slices.Clone(mutants)
	slices.SortFunc(mutants, func(a, b *Mutant) int { return cmp.Compare(order[a], order[b]) })
	count := map[string]int{}
	var rest []*Mutant
	for _, m := range mutants {
		switch count[m.Package]++; {
		case count[m.Package] <= s.Least:
			taken = append(taken, m)
		case s.Each == 0 || count[m.Package] <= s.Each:
			rest = append(rest, m)
		}
	}
	taken = append(taken, rest...)
	if s.All > 0 && s.All < len(taken) {
		taken = taken[:s.All]
	}
	return taken
}

// NewPlan takes a sample of the mutants. Marked mutants are part of it, and need no run, as those that the cache knows.
func NewPlan(mutants []*Mutant, marks []Mark, cache *Cache, sample Sample) Plan {
	why := marked(marks, mutants)
	mutants = sample.of(mutants)
	var p Plan
	for _, m := range mutants {
		if _, equivalent := why[m]; equivalent {
			p.Known = append(p.Known, Result{Mutant: m, Verdict: Equivalent})
		} else if r, ok := cache.Valid(m); ok {
			p.Known = append(p.Known, r)
		} else {
			p.Try = append(p.Try, m)
		}
	}
	return p
}

// Report writes a row for each package and each operator, and the survivors.
func Report(w io.Writer, results []Result) error {
	slices.SortStableFunc(results, func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.Mutant.Package, b.Mutant.Package), cmp.Compare(a.Mutant.File, b.Mutant.File), cmp.Compare(a.Mutant.Line, b.Mutant.Line))
	})
	for _, by := range []struct {
		title string
		of    func(*Mutant) string
	}{
		{"package", func(m *Mutant) string { return m.Package }},
		{"operator", func(m *Mutant) string { return string(m.Operator) }},
	} {
		if err := table(w, by.title, by.of, results); err != nil {
			return err
		}
	}
	for _, r := range results {
		if r.Verdict != Survived && r.Verdict != Unreached {
			continue
		}
		m := r.Mutant
		after := m.After
		if m.Text == m.Before {
			after = "(dropped)"
		}
		if _, err := fmt.Fprintf(w, "\n%s %s: %s, %s\n-\t%s\n+\t%s\n", m.Place(), m.Function, m.Operator, r.Verdict, m.Before, after); err != nil {
			return err
		}
	}
	return nil
}

// table counts results in groups. Invalid and skipped ones are no mutants.
func table(w io.Writer, title string, of func(*Mutant) string, results []Result) error {
	counts := map[string]map[Verdict]int{}
	const all = "all"
	for _, r := range results {
		for _, group := range []string{of(r.Mutant), all} {
			if counts[group] == nil {
				counts[group] = map[Verdict]int{}
			}
			counts[group][r.Verdict]++
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	_, _ = fmt.Fprintf(t, "| %s\t| mutants\t| killed\t| of these hung\t| survived\t| unreached\t| equivalent\t| killed, %%\t|\n", title) // Flush returns its error
	_, _ = fmt.Fprintf(t, "|---\t|--:\t|--:\t|--:\t|--:\t|--:\t|--:\t|--:\t|\n")
	groups := slices.DeleteFunc(slices.Sorted(maps.Keys(counts)), func(group string) bool { return group == all })
	for _, group := range append(groups, all) {
		c := counts[group]
		killed := c[Killed] + c[Hung]
		tried := killed + c[Survived] + c[Unreached]
		rate := "–"
		if tried > 0 {
			rate = fmt.Sprintf("%.0f", 100*float64(killed)/float64(tried))
		}
		_, _ = fmt.Fprintf(t, "| %s\t| %d\t| %d\t| %d\t| %d\t| %d\t| %d\t| %s\t|\n",
			group, tried+c[Equivalent], killed, c[Hung], c[Survived], c[Unreached], c[Equivalent], rate)
	}
	_, _ = fmt.Fprintln(t)
	return t.Flush()
}
