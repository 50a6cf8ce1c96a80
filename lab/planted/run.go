package planted

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-vram/vram/lab/trial"
)

// Verdict is the result of planting a bug.
type Verdict string

// The verdicts.
const (
	Broken  Verdict = "broken"      // an edit does not apply, the result does not build, or the tests ended without a verdict
	Missed  Verdict = "missed"      // the tests pass
	Expired Verdict = "out of time" // the tests ran out of time
	Found   Verdict = "found"       // a test failed
	Skipped Verdict = "skipped"     // no time was left
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
	Detail  string // output of the tests or the go command, where the bug was not found
	Took    time.Duration
}

// Plant runs the tests of a bug with the bug in the source, and waits for them. An error before they run is Broken.
func (r Runner) Plant(ctx context.Context, b Bug) Outcome {
	begin := time.Now()
	out := Outcome{Bug: b, Verdict: Broken}
	tests, err := r.test(ctx, b)
	switch {
	case err != nil:
		out.Detail = err.Error()
	case tests.End == trial.Expired:
		out.Verdict, out.Detail = Expired, tail(tests.Said)
	case tests.End == trial.Failed && tests.Test != "":
		out.Verdict, out.Test = Found, tests.Test
	case tests.End == trial.Failed:
		out.Detail = tail(tests.Said)
	case strings.Contains(tests.Said, "testing: warning: no tests to run"):
		out.Detail = "no test has that name"
	default:
		out.Verdict = Missed
	}
	out.Took = time.Since(begin)
	return out
}

// test builds and runs the tests of a bug.
func (r Runner) test(ctx context.Context, b Bug) (out trial.Outcome, err error) {
	texts, err := b.Planted(os.DirFS(r.Root))
	if err != nil {
		return out, err
	}
	absolute := map[string]string{}
	for path, text := range texts {
		absolute[filepath.Join(r.Root, filepath.FromSlash(path))] = text
	}
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return out, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system clears its temporary files
	overlay, err := trial.Overlay(dir, absolute)
	if err != nil {
		return out, err
	}
	tests, err := trial.Build(ctx, r.Root, b.Package, overlay, filepath.Join(dir, "tests"))
	if err != nil {
		return out, err
	}
	var often []string
	if tests.Searches {
		// Rapid divides both numbers by five in the short form: the long form has 100 checks of 30 steps.
		often = []string{"-rapid.checks=500", "-rapid.steps=150"}
	}
	return tests.Run(ctx, b.Run, r.Limit, nil, often...), nil
}

// PlantAll plants the bugs, atATime of them at a time, and returns their outcomes in the same order. Before the first bug of a
// package, the tests of all its bugs run with nothing planted: where they do not pass, its bugs are Broken. A bug whose turn
// comes after the time until is Skipped; the zero time sets no end.
func (r Runner) PlantAll(ctx context.Context, bugs []Bug, atATime int, until time.Time) []Outcome {
	patterns := map[string][]string{} // of a package
	for _, b := range bugs {
		if !slices.Contains(patterns[b.Package], b.Run) {
			patterns[b.Package] = append(patterns[b.Package], b.Run)
		}
	}
	controls := map[string]func() Outcome{}
	for dir, of := range patterns {
		controls[dir] = sync.OnceValue(func() Outcome {
			return r.Plant(ctx, Bug{Package: dir, Run: strings.Join(of, "|")})
		})
	}
	outcomes := make([]Outcome, len(bugs))
	trial.Each(atATime, len(bugs), func(i int) {
		b := bugs[i]
		if !until.IsZero() && time.Now().After(until) {
			outcomes[i] = Outcome{Bug: b, Verdict: Skipped}
			return
		}
		if c := controls[b.Package](); c.Verdict != Missed {
			detail := fmt.Sprintf("with nothing planted: %s %s\n%s", c.Verdict, c.Test, c.Detail)
			outcomes[i] = Outcome{Bug: b, Verdict: Broken, Detail: detail, Took: c.Took}
			return
		}
		outcomes[i] = r.Plant(ctx, b)
	})
	return outcomes
}

// tail returns the end of a text: a screen of it.
func tail(text string) string {
	const most = 2000
	if len(text) <= most {
		return text
	}
	return "…" + text[len(text)-most:]
}
