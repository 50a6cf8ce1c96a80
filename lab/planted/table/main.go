// Command table plants the bugs of lab/planted, and prints which test found each.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/go-vram/vram/lab/planted"
	"github.com/go-vram/vram/lab/trial"
)

func main() {
	bug := flag.String("bug", "", "plant only bugs whose names contain this")
	since := flag.String("since", "", "plant only bugs of packages that changed since this commit")
	budget := flag.Duration("budget", 0, "start no bug after this time, and take them in a random order; 0 plants all")
	seed := flag.Uint64("seed", 0, "the seed of the random order")
	atATime := flag.Int("at-a-time", 2, "how many bugs are planted at a time")
	// Some of them take ten seconds on two idle cores; only a bug that keeps its tests from ending takes all of it.
	limit := flag.Duration("limit", 3*time.Minute, "how long the tests of one bug may take")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	bugs, err := chosen(ctx, *bug, *since)
	if err == nil {
		err = plant(ctx, bugs, *budget, *seed, max(1, *atATime), *limit)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

// chosen returns the bugs that are to be planted.
func chosen(ctx context.Context, word, since string) ([]planted.Bug, error) {
	bugs, err := planted.Named(word)
	switch {
	case err != nil:
		return nil, err
	case len(bugs) == 0:
		return nil, fmt.Errorf("no bug's name contains %q", word)
	case since == "":
		return bugs, nil
	}
	files, err := trial.Changed(ctx, ".", since)
	return planted.Touched(bugs, files), err
}

// plant plants the bugs and prints the table. Errors: a bug was not found.
func plant(ctx context.Context, bugs []planted.Bug, budget time.Duration, seed uint64, atATime int, limit time.Duration) error {
	begin := time.Now()
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	var until time.Time
	if budget > 0 {
		until = begin.Add(budget)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(bugs), func(i, j int) { bugs[i], bugs[j] = bugs[j], bugs[i] })
	}
	outcomes := planted.Runner{Root: root, Limit: limit}.PlantAll(ctx, bugs, atATime, until)
	found, skipped := show(outcomes)
	fmt.Printf("%d of %d found in %.0f s, %d skipped for want of time\n", found, len(outcomes), time.Since(begin).Seconds(), skipped)
	if missing := len(outcomes) - found - skipped; missing > 0 {
		return fmt.Errorf("%d bugs were not found", missing)
	}
	return nil
}

// show prints the table, and the output of the go command where a bug was not found. It returns the numbers of found and
// skipped bugs.
func show(outcomes []planted.Outcome) (found, skipped int) {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "bug\tpackage\tfound by\tseconds") // like Printf: nobody reads the error
	for _, out := range outcomes {
		by := out.Test
		switch out.Verdict {
		case planted.Skipped:
			skipped++
			continue
		case planted.Found:
			found++
		case planted.Broken, planted.Missed, planted.Expired:
			by = "NOT FOUND: " + string(out.Verdict)
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%.1f\n", out.Bug.Name, out.Bug.Package, by, out.Took.Seconds())
	}
	_ = t.Flush()
	for _, out := range outcomes {
		if out.Detail != "" {
			fmt.Printf("\n%s:\n%s\n", out.Bug.Name, out.Detail)
		}
	}
	return found, skipped
}
