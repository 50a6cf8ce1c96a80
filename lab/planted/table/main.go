// Command table plants every bug of lab/planted, and prints who found it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/go-vram/vram/lab/planted"
)

func main() {
	bug := flag.String("bug", "", "plant only bugs whose names contain this")
	atATime := flag.Int("at-a-time", 2, "how many bugs are planted at a time")
	// Some of them take ten seconds on two idle cores; only a bug that keeps its tests from ending takes the whole of it.
	limit := flag.Duration("limit", 3*time.Minute, "how long the tests of one bug may take")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *bug, max(1, *atATime), *limit); err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

func run(ctx context.Context, word string, atATime int, limit time.Duration) error {
	begin := time.Now()
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	bugs := planted.Named(word)
	if len(bugs) == 0 {
		return fmt.Errorf("no bug's name contains %q", word)
	}
	r := planted.Runner{Root: root, Limit: limit}
	outcomes := r.PlantAll(ctx, bugs, atATime)
	if len(outcomes) == 1 && outcomes[0].Bug.Name == planted.Nothing {
		out := outcomes[0]
		return fmt.Errorf("with nothing planted: %s: %s\n%s", out.Bug.Package, out, out.Detail)
	}
	found := show(outcomes)
	fmt.Printf("%d of %d found in %.0f s\n", found, len(outcomes), time.Since(begin).Seconds())
	if found < len(outcomes) {
		return fmt.Errorf("%d bugs were not found", len(outcomes)-found)
	}
	return nil
}

// show prints the table, and what the go command said where a bug was not found. It returns how many were.
func show(outcomes []planted.Outcome) (found int) {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "bug\tpackage\tfound by\tseconds") // like Printf: nobody is left to tell
	for _, out := range outcomes {
		by := out.Test
		if out.Verdict != planted.Found {
			by = "NOT FOUND: " + out.Verdict.String()
		} else {
			found++
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%.1f\n", out.Bug.Name, out.Bug.Package, by, out.Took.Seconds())
	}
	_ = t.Flush()
	for _, out := range outcomes {
		if out.Detail != "" {
			fmt.Printf("\n%s:\n%s\n", out.Bug.Name, out.Detail)
		}
	}
	return found
}
