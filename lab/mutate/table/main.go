// Command table changes the source of packages in small ways, and prints which changes no test notices: package lab/mutate.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-vram/vram/lab/mutate"
	"github.com/go-vram/vram/lab/trial"
)

type flags struct {
	packages  string
	since     string
	operators string
	sample    mutate.Sample
	workers   int
	budget    time.Duration
	effort    time.Duration
	cache     string
	own       bool
	yields    bool
	list      bool
	quiet     bool
}

// users returns the other packages whose tests run for a package.
func (f flags) users() func(dir string) []string {
	if f.own {
		return func(string) []string { return nil }
	}
	return mutate.Users
}

func main() {
	var f flags
	flag.StringVar(&f.packages, "packages", "./...", "packages whose source is changed, as the go command names them")
	flag.StringVar(&f.since, "since", "", "only packages that changed since this commit")
	flag.StringVar(&f.operators, "operators", "", "only mutants of these operators, named with commas between them; \"\" for all")
	flag.IntVar(&f.sample.All, "sample", 0, "how many mutants, taken at random; 0 for all")
	flag.IntVar(&f.sample.Least, "least", 0, "how many mutants of each package come first in the sample")
	flag.IntVar(&f.sample.Each, "each", 0, "how many mutants of a package at most; 0 for all")
	flag.Uint64Var(&f.sample.Seed, "seed", 0, "the seed of the sample")
	flag.IntVar(&f.workers, "workers", max(1, runtime.NumCPU()/2), "how many mutants are tried at a time")
	flag.DurationVar(&f.budget, "budget", 0, "begin no mutant after this time; 0 for no end")
	flag.DurationVar(&f.effort, "effort", 0, "the time of tests that a mutant gets of each package but its own, fast tests first; 0 for all tests")
	flag.BoolVar(&f.own, "own", false, "run only the tests of a mutant's own package: the rate is a lower bound")
	flag.BoolVar(&f.yields, "yields", false, "yield at each use of an atomic variable or a lock; results of such runs need a cache of their own")
	flag.StringVar(&f.cache, "cache", ".mutants/results.json", "the file of results; they are used as long as they are valid")
	flag.BoolVar(&f.list, "list", false, "print the mutants, and try none")
	flag.BoolVar(&f.quiet, "quiet", false, "print no progress")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

func run(ctx context.Context, f flags) error {
	begin := time.Now()
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	program, err := mutate.Load(ctx, root, strings.Fields(f.packages)...)
	if err != nil {
		return err
	}
	mutants := program.Mutants()
	if f.since != "" {
		files, err := trial.Changed(ctx, root, f.since)
		if err != nil {
			return err
		}
		mutants = slices.DeleteFunc(mutants, func(m *mutate.Mutant) bool {
			return !slices.ContainsFunc(files, func(file string) bool { return path.Ext(file) == ".go" && path.Dir(file) == m.Package })
		})
	}
	if f.operators != "" {
		all := strings.Split(f.operators, ",")
		for _, name := range all {
			if !slices.Contains(mutate.Operators(), mutate.Operator(name)) {
				return fmt.Errorf("-operators: %q is none of %q", name, mutate.Operators())
			}
		}
		mutants = slices.DeleteFunc(mutants, func(m *mutate.Mutant) bool { return !slices.Contains(all, string(m.Operator)) })
	}
	if f.list {
		for _, m := range mutants {
			fmt.Printf("%s %s: %s\n-\t%s\n+\t%s\n", m.Place(), m.Function, m.Operator, m.Before, m.After)
		}
		return nil
	}
	cache, err := mutate.OpenCache(root, f.cache, f.users(), f.effort)
	if err != nil {
		return err
	}
	plan := mutate.NewPlan(mutants, mutate.Marks(), cache, f.sample)
	results, left, err := try(ctx, f, root, program, plan, cache, begin)
	if err := errors.Join(err, cache.Save()); err != nil {
		return err
	}
	if err := mutate.Report(os.Stdout, append(results, plan.Known...)); err != nil {
		return err
	}
	if len(left) > 0 {
		fmt.Printf("\ntests that were not used, since they fail or take too long with no mutant on:\n%s\n", strings.Join(left, "\n"))
	}
	fmt.Printf("\n%d of %d mutants in %.0f s, %d of them known\n", len(results)+len(plan.Known), len(mutants), time.Since(begin).Seconds(), len(plan.Known))
	return nil
}

// savedEvery is how much of a run is lost if it is stopped.
const savedEvery = 30 * time.Second

// try runs the mutants that the cache does not know.
func try(ctx context.Context, f flags, root string, p *mutate.Program, plan mutate.Plan, cache *mutate.Cache, begin time.Time) ([]mutate.Result, []string, error) {
	if len(plan.Try) == 0 {
		return nil, nil, nil
	}
	schemata, err := p.Schemata(plan.Try)
	if err != nil {
		return nil, nil, err
	}
	if f.yields {
		if schemata.Texts, err = p.Yields(schemata.Texts); err != nil {
			return nil, nil, err
		}
	}
	log := func(format string, args ...any) {
		if !f.quiet {
			fmt.Fprintf(os.Stderr, "%5.0f s "+format+"\n", append([]any{time.Since(begin).Seconds()}, args...)...)
		}
	}
	done, saved := 0, begin
	r := mutate.Runner{Root: root, Workers: f.workers, Effort: f.effort, Users: f.users(), Known: cache, Log: log, Done: func(r mutate.Result) {
		done++
		cache.Put(r)
		if time.Since(saved) > savedEvery { // a run that is stopped keeps most results
			saved = time.Now()
			if err := cache.Save(); err != nil {
				log("%v", err)
			}
		}
		log("%d of %d: %s %s, %s in %.1f s: %s", done, len(plan.Try), r.Mutant.Place(), r.Mutant.Operator, r.Verdict, r.Took.Seconds(), r.Mutant.Text)
	}}
	if f.budget > 0 {
		r.Until = begin.Add(f.budget)
	}
	return r.Run(ctx, schemata)
}
