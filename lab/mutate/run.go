package mutate

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
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
	Test    string // that killed it: "internal/heap:TestBins"
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
	Done    func(Result)                     // called for each mutant, one call at a time
	Log     func(format string, args ...any) // progress
}

// slowest bounds the tests that are used: a slower one costs more than it finds. A test of a mutant that runs patience times as
// long as without it, and floor longer, hangs.
const (
	slowest  = time.Minute
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
	overlay, err := s.WriteOverlay(dir)
	if err != nil {
		return nil, nil, err
	}
	programs := map[string]*program{}
	for _, m := range s.Mutants {
		for _, of := range r.programsOf(m.Package) {
			if programs[of] != nil {
				continue
			}
			r.Log("build the tests of %s", of)
			binary := filepath.Join(dir, fmt.Sprintf("%d.test", len(programs)))
			if programs[of], err = build(ctx, r.Root, of, overlay, binary); err != nil {
				return nil, nil, err
			}
		}
	}
	left = r.record(ctx, programs, len(s.Mutants), dir)
	results = make([]Result, len(s.Mutants))
	var lock sync.Mutex
	r.each(len(s.Mutants), func(i int) {
		m := s.Mutants[i]
		results[i] = Result{Mutant: m, Verdict: Invalid}
		if !slices.Contains(s.Dropped, m) {
			results[i] = r.try(ctx, m, i+1, programs)
		}
		if ctx.Err() == nil {
			lock.Lock()
			defer lock.Unlock()
			r.Done(results[i])
		}
	})
	return results, left, ctx.Err()
}

func (r Runner) programsOf(dir string) []string { return append([]string{dir}, r.Users(dir)...) }

// each calls a function for 0 to count-1, several at a time.
func (r Runner) each(count int, do func(i int)) {
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(1, r.Workers) {
		workers.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	workers.Wait()
}

// record runs each test by itself, with no mutant on, and notes which mutants it reaches. It returns the names of tests that
// are not used.
func (r Runner) record(ctx context.Context, programs map[string]*program, mutants int, dir string) (left []string) {
	var tests []*test
	for _, p := range programs {
		tests = append(tests, p.tests...)
	}
	r.Log("run %d tests with no mutant on", len(tests))
	var lock sync.Mutex
	r.each(len(tests), func(i int) {
		t := tests[i]
		path := filepath.Join(dir, fmt.Sprintf("reached%d", i))
		out := outcome{verdict: Killed}
		err := os.WriteFile(path, make([]byte, mutants+1), 0o600)
		if err == nil {
			out = t.program.runTests(ctx, []*test{t}, 0, slowest, "MUTANTS_REACHED="+path)
			t.took = out.took
			t.reached, err = os.ReadFile(path)
			_ = os.Remove(path) // the folder is removed at the end
		}
		if err != nil || out.verdict != Survived {
			t.reached = nil
			lock.Lock()
			defer lock.Unlock()
			left = append(left, fmt.Sprintf("%s%s%s", t.program.dir, testSeparator, t.name))
		}
	})
	slices.Sort(left)
	return left
}

// try runs the tests that reach a mutant, in batches that take twice as long each.
func (r Runner) try(ctx context.Context, m *Mutant, number int, programs map[string]*program) Result {
	begin := time.Now()
	result := Result{Mutant: m, Verdict: Unreached}
	if ctx.Err() != nil || !r.Until.IsZero() && begin.After(r.Until) {
		result.Verdict = Skipped
		return result
	}
	for _, of := range r.programsOf(m.Package) {
		p := programs[of]
		var reach []*test
		for _, t := range p.tests {
			if t.reached != nil && t.reached[number] != 0 {
				reach = append(reach, t)
			}
		}
		slices.SortStableFunc(reach, func(a, b *test) int { return cmp.Compare(a.took, b.took) })
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
			if out.verdict != Survived {
				result.Verdict, result.Test = out.verdict, of+testSeparator+killer(out.said, reach[:batch])
				result.Took = time.Since(begin)
				return result
			}
			reach = reach[batch:]
		}
	}
	result.Took = time.Since(begin)
	return result
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

// killer names the test that failed: the one that says so, or all that ran.
func killer(said string, ran []*test) string {
	if name := failed(said); name != "" {
		return name
	}
	names := make([]string, len(ran))
	for i, t := range ran {
		names[i] = t.name
	}
	return strings.Join(names, ",")
}
