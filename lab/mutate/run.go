package mutate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-vram/vram/lab/trial"
)

// Verdict is the result of a mutant's tests.
type Verdict string

// The verdicts.
const (
	Killed     Verdict = "killed"
	Hung       Verdict = "hung" // a kill, too
	Survived   Verdict = "survived"
	Unreached  Verdict = "unreached" // a survivor, too
	Equivalent Verdict = "equivalent"
	Invalid    Verdict = "invalid" // it does not compile
	Skipped    Verdict = "skipped" // no time was left
)

// Result is a mutant with its verdict.
type Result struct {
	Mutant  *Mutant
	Verdict Verdict
	Test    string // that killed it, or all that ran if none says so: "internal/heap:TestBins"
	Cached  bool
	Took    time.Duration
}

// Runner tries mutants.
type Runner struct {
	Root    string
	Workers int
	Effort  time.Duration                    // time of tests that a mutant gets of each other package, fast tests first; 0 for no bound
	Until   time.Time                        // no mutant is begun later; zero for no end
	Users   func(dir string) []string        // other packages whose tests run for a package
	Known   *Cache                           // a mutant runs no program that it is known to survive; nil: nothing is known
	Done    func(Result)                     // called for each mutant, one call at a time
	Log     func(format string, args ...any) // progress
}

// A test of a mutant that runs patience times as long as without it, and floor longer, hangs.
const (
	patience = 8
	floor    = 3 * time.Second
)

// Run tries the mutants of a schemata. Left are tests that fail, or take too long, with no mutant on.
func (r Runner) Run(ctx context.Context, s *Schemata) (results []Result, left []string, err error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system clears its temporary files
	overlay, err := trial.Overlay(dir, s.Texts)
	if err != nil {
		return nil, nil, err
	}
	if err := compile(ctx, r.Root, overlay, s.Mutants); err != nil {
		return nil, nil, err
	}
	programs := map[string]func() (*program, error){}
	var lock sync.Mutex // of left, err, and calls of Done
	for _, m := range s.Mutants {
		for _, of := range r.programsOf(m.Package) {
			if programs[of] != nil {
				continue
			}
			binary := filepath.Join(dir, fmt.Sprintf("%d.test", len(programs)))
			programs[of] = sync.OnceValues(func() (*program, error) { // many mutants need no other than their own
				r.Log("build and run the tests of %s with no mutant on", of)
				p, err := build(ctx, r.Root, of, overlay, binary)
				if err != nil {
					return nil, err
				}
				unused := p.record(ctx, len(s.Mutants), max(1, r.Workers/atATime))
				lock.Lock()
				defer lock.Unlock()
				left = append(left, unused...)
				return p, nil
			})
		}
	}
	known := make([]earlier, len(s.Mutants))
	for i, m := range s.Mutants {
		if r.Known != nil {
			known[i].reached, known[i].passed = r.Known.survived(m)
		}
	}
	results = make([]Result, len(s.Mutants))
	trial.Each(r.Workers, len(s.Mutants), func(i int) {
		m := s.Mutants[i]
		result, failed := Result{Mutant: m, Verdict: Invalid}, error(nil)
		if !slices.Contains(s.Dropped, m) {
			result, failed = r.try(ctx, m, i+1, programs, known[i])
		}
		results[i] = result
		lock.Lock()
		defer lock.Unlock()
		if err = cmp.Or(err, failed); err == nil && ctx.Err() == nil {
			r.Done(result)
		}
	})
	slices.Sort(left)
	return results, left, cmp.Or(err, ctx.Err())
}

// atATime of the workers' programs are built at a time, in most runs: the others' tests share the cores.
const atATime = 4

// compile compiles the tests of all changed packages by one go command: programs that were built at the same time would each compile the
// packages that they share.
func compile(ctx context.Context, root, overlay string, mutants []*Mutant) error {
	dirs := map[string]bool{}
	for _, m := range mutants {
		dirs["./"+m.Package] = true
	}
	_, err := trial.Go(ctx, root, append([]string{"list", "-test", "-export", "-deps", "-overlay=" + overlay, "--"}, slices.Sorted(maps.Keys(dirs))...)...)
	return err
}

func (r Runner) programsOf(dir string) []string { return append([]string{dir}, r.Users(dir)...) }

// earlier is the earlier result of a mutant that survived.
type earlier struct {
	reached bool
	passed  map[string]bool // by the folders of programs
}

// try runs the tests that reach a mutant, in batches that take twice as long each.
func (r Runner) try(ctx context.Context, m *Mutant, number int, programs map[string]func() (*program, error), known earlier) (Result, error) {
	begin := time.Now()
	result := Result{Mutant: m, Verdict: Unreached}
	if known.reached {
		result.Verdict = Survived
	}
	if !r.Until.IsZero() && begin.After(r.Until) {
		result.Verdict = Skipped
		return result, ctx.Err()
	}
	for _, of := range r.programsOf(m.Package) {
		if known.passed[of] {
			continue
		}
		p, err := programs[of]()
		if err != nil {
			return Result{Mutant: m, Verdict: Skipped}, err
		}
		reach := p.reaching(number)
		if len(reach) > 0 {
			result.Verdict = Survived
		}
		if of != m.Package { // its own tests all run: many slow ones fail fast
			reach = within(reach, r.Effort)
		}
		for enough := 100 * time.Millisecond; len(reach) > 0; enough *= 2 {
			batch, clean := 1, reach[0].took
			for batch < len(reach) && clean+reach[batch].took <= enough {
				clean += reach[batch].took
				batch++
			}
			out := p.runTests(ctx, reach[:batch], number, floor+patience*clean)
			if out.End != trial.Passed {
				result.Verdict, result.Took = Killed, time.Since(begin)
				if out.End == trial.Expired {
					result.Verdict = Hung
				}
				result.Test = of + testSeparator + cmp.Or(out.Test, strings.Join(names(reach[:batch]), ","))
				return result, nil
			}
			reach = reach[batch:]
		}
	}
	result.Took = time.Since(begin)
	return result, nil
}

// reaching returns the tests that reach a mutant, fast ones first.
func (p *program) reaching(number int) (all []*test) {
	for _, t := range p.tests {
		if t.reached != nil && t.reached[number] != 0 {
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b *test) int { return cmp.Compare(a.took, b.took) })
	return all
}

// within returns the first tests that take no longer together, and one at least.
func within(tests []*test, effort time.Duration) []*test {
	var sum time.Duration
	for i, t := range tests {
		if sum += t.took; effort > 0 && sum > effort && i > 0 {
			return tests[:i]
		}
	}
	return tests
}

// testSeparator is between the folder of a test and its name; a folder may be ".".
const testSeparator = ":"
