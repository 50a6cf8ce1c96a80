package planted

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Runner runs tests of a module.
type Runner struct {
	Root  string        // of the module: an absolute path
	Limit time.Duration // of the tests of one bug; building them is not counted
}

// Outcome is the result of planting a bug.
type Outcome struct {
	Bug     Bug
	Verdict Verdict
	Test    string // that failed first
	Detail  string // output of the go command, where the bug was not found
	Took    time.Duration
}

// Plant runs the tests of a bug with the bug in the source, and waits for them. An error before they run is Broken.
func (r Runner) Plant(ctx context.Context, b Bug) Outcome {
	begin := time.Now()
	out := Outcome{Bug: b}
	dir, err := os.MkdirTemp("", "planted")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }() // the system clears its temporary files
		var overlay string
		if overlay, err = b.writeOverlay(r.Root, dir); err == nil {
			out.Verdict, out.Test, out.Detail = r.test(ctx, b, "-overlay="+overlay, "-count=1", "-failfast")
		}
	}
	if err != nil {
		out.Verdict, out.Detail = Broken, err.Error()
	}
	out.Took = time.Since(begin)
	return out
}

// PlantAll plants the bugs, atATime of them at a time, and returns their outcomes in the same order. Before the first bug of a
// package, the tests of all its bugs run with nothing planted: where they do not pass, its bugs are Broken. A bug whose turn
// comes after the time until is Skipped; the zero time sets no end.
func (r Runner) PlantAll(ctx context.Context, bugs []Bug, atATime int, until time.Time) []Outcome {
	controls := r.controls(ctx, bugs)
	outcomes := make([]Outcome, len(bugs))
	next := make(chan int)
	var workers sync.WaitGroup
	for range atATime {
		workers.Go(func() {
			for i := range next {
				outcomes[i] = r.plantIn(ctx, bugs[i], controls, until)
			}
		})
	}
	for i := range bugs {
		next <- i
	}
	close(next)
	workers.Wait()
	return outcomes
}

// plantIn plants a bug where there is time left and its control passes.
func (r Runner) plantIn(ctx context.Context, b Bug, controls map[program]func() Outcome, until time.Time) Outcome {
	if !until.IsZero() && time.Now().After(until) {
		return Outcome{Bug: b, Verdict: Skipped}
	}
	if c := controls[b.program()](); c.Verdict != Missed {
		detail := fmt.Sprintf("with nothing planted: %v %s\n%s", c.Verdict, c.Test, c.Detail)
		return Outcome{Bug: b, Verdict: Broken, Detail: detail, Took: c.Took}
	}
	return r.Plant(ctx, b)
}

// program names a test program: a package and the tags that it is built with.
type program struct{ dir, tags string }

func (b Bug) program() program { return program{b.Package, b.Tags} }

// controls returns a function for each program that runs the tests of its bugs once with nothing planted.
func (r Runner) controls(ctx context.Context, bugs []Bug) map[program]func() Outcome {
	runs := map[program][]string{}
	for _, b := range bugs {
		if of := b.program(); !slices.Contains(runs[of], b.Run) {
			runs[of] = append(runs[of], b.Run)
		}
	}
	controls := map[program]func() Outcome{}
	for of, patterns := range runs {
		controls[of] = sync.OnceValue(func() (out Outcome) {
			begin := time.Now()
			all := Bug{Package: of.dir, Tags: of.tags, Run: strings.Join(patterns, "|")}
			out.Verdict, out.Test, out.Detail = r.test(ctx, all)
			out.Took = time.Since(begin)
			return out
		})
	}
	return controls
}

// test runs the tests of a bug in their short form and reads the result.
func (r Runner) test(ctx context.Context, b Bug, flags ...string) (v Verdict, test, detail string) {
	args := append([]string{
		"test", "-json", "-short", "-vet=off", "-ldflags=-s -w", "-timeout=" + r.Limit.String(), "-run=" + b.Run, "-tags=" + b.Tags,
	}, flags...)
	args = append(args, "./"+b.Package)
	if searches(filepath.Join(r.Root, filepath.FromSlash(b.Package))) {
		// A fixed seed finds a bug always or never. A failure need not be made small, nor kept. Rapid divides both numbers by
		// five in the short form: the long form has 100 checks of 30 steps.
		args = append(args, "-rapid.seed=1", "-rapid.checks=500", "-rapid.steps=150", "-rapid.shrinktime=0s", "-rapid.nofailfile")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.Root
	var said, complained bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &complained
	err := cmd.Run()
	return judge(said.Bytes(), complained.String(), err)
}

// searches reports whether the tests of a package use rapid, and so know its flags.
func searches(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return false // no such pattern is malformed
	}
	return slices.ContainsFunc(files, func(path string) bool {
		text, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(text), `"pgregory.net/rapid"`)
	})
}
