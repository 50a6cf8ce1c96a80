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
	"time"
)

// Runner runs tests of a module.
type Runner struct {
	Root  string        // of the module: an absolute path
	Limit time.Duration // of the tests of one bug; building them is not counted
}

// Outcome is what came of a bug.
type Outcome struct {
	Bug     Bug
	Verdict Verdict
	Test    string // that failed first
	Detail  string // what the go command said, where the bug was not found
	Took    time.Duration
}

// Plant runs the tests of a bug with it. It waits for them. What keeps it from running is Broken.
func (r Runner) Plant(ctx context.Context, b Bug) Outcome {
	begin := time.Now()
	out := Outcome{Bug: b}
	dir, err := os.MkdirTemp("", "planted")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }() // the system's folder for what nobody misses
		var overlay string
		if overlay, err = b.writeOverlay(r.Root, dir); err == nil {
			out.Verdict, out.Test, out.Detail = r.test(ctx, b, "-overlay="+overlay, "-failfast")
		}
	}
	if err != nil {
		out.Verdict, out.Detail = Broken, err.Error()
	}
	out.Took = time.Since(begin)
	return out
}

// Control runs the tests of all the bugs with nothing planted, one package after the other. The result has a Bug for each
// package and build tags, and says Missed, as it must, where there was nothing to find.
func (r Runner) Control(ctx context.Context, bugs []Bug) []Outcome {
	var all []Bug
	for _, b := range bugs {
		if i := slices.IndexFunc(all, func(a Bug) bool { return a.Package == b.Package && a.Tags == b.Tags }); i >= 0 {
			all[i].Run += "|" + b.Run
			continue
		}
		all = append(all, Bug{Name: "nothing", Package: b.Package, Run: b.Run, Tags: b.Tags})
	}
	var outcomes []Outcome
	for _, b := range all {
		begin := time.Now()
		out := Outcome{Bug: b}
		out.Verdict, out.Test, out.Detail = r.test(ctx, b)
		out.Took = time.Since(begin)
		outcomes = append(outcomes, out)
	}
	return outcomes
}

// test runs the tests of a bug and reads what came of them.
func (r Runner) test(ctx context.Context, b Bug, flags ...string) (v Verdict, test, detail string) {
	args := append([]string{"test", "-json", "-count=1", "-vet=off", "-timeout=" + r.Limit.String(), "-run=" + b.Run}, flags...)
	args = append(args, "-tags="+b.Tags, "./"+b.Package)
	if searches(filepath.Join(r.Root, filepath.FromSlash(b.Package))) {
		// What is found once is found always; a failure need not be made small, nor kept.
		args = append(args, "-rapid.seed=1", "-rapid.shrinktime=0s", "-rapid.nofailfile")
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

// String is one line.
func (o Outcome) String() string {
	return fmt.Sprintf("%s: %s %s after %.1f s", o.Bug.Name, o.Verdict, o.Test, o.Took.Seconds())
}
