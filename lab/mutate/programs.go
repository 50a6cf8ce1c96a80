package mutate

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-vram/vram/lab/trial"
)

// program is the compiled tests of a package, with what is known of each.
type program struct {
	*trial.Tests
	reached string // of the files that processes share with this one: the start of their names
	tests   []*test
}

// test is a test, an example, or the seeds of a fuzz target.
type test struct {
	name    string
	took    time.Duration // with no mutant on
	reached []byte        // not zero at the numbers of mutants that it reaches
}

// build compiles the tests of a package. A package without tests has no program.
func build(ctx context.Context, root, dir, overlay, binary string) (*program, error) {
	tests, err := trial.Build(ctx, root, dir, overlay, binary)
	if err != nil {
		return nil, err
	}
	p := &program{Tests: tests, reached: binary + ".reached"}
	names, err := tests.List(ctx)
	for _, name := range names {
		p.tests = append(p.tests, &test{name: name})
	}
	return p, err
}

// procs is GOMAXPROCS of each test process: a verdict is the same on machines of any size, and workers do not take each other's cores.
const procs = 2

// runTests runs tests with a mutant on; 0 for none.
func (p *program) runTests(ctx context.Context, tests []*test, number int, limit time.Duration, env ...string) trial.Outcome {
	return p.Run(ctx, "^("+strings.Join(names(tests), "|")+")$", limit, append(env, "MUTANT="+strconv.Itoa(number), "GOMAXPROCS="+strconv.Itoa(procs)))
}

func names(tests []*test) []string {
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = t.name
	}
	return names
}

// slowest bounds the tests that are used: a slower one costs more than it finds.
const slowest = time.Minute

// record runs each test by itself, with no mutant on, and notes which mutants it reaches: several tests at a time. It returns the
// tests that are not used.
func (p *program) record(ctx context.Context, mutants, atATime int) (left []string) {
	trial.Each(atATime, len(p.tests), func(i int) {
		t, out := p.tests[i], trial.Outcome{End: trial.Failed}
		shared := p.reached + "." + strconv.Itoa(i)
		err := os.WriteFile(shared, make([]byte, mutants+1), 0o600)
		if err == nil {
			out = p.runTests(ctx, []*test{t}, 0, slowest, "MUTANTS_REACHED="+shared)
			t.took = out.Took
			t.reached, err = os.ReadFile(shared)
		}
		if err != nil || out.End != trial.Passed {
			t.reached = nil
		}
		_ = os.Remove(shared) // the folder goes with the run
	})
	for _, t := range p.tests {
		if t.reached == nil {
			left = append(left, p.Dir+testSeparator+t.name)
		}
	}
	return left
}
