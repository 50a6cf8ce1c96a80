package planted

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Runner runs tests of a module.
type Runner struct {
	Root  string        // of the module: an absolute path
	Limit time.Duration // of the tests of one bug; building them is not counted

	convert string // the path of test2json, where programs are run
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

// PlantAll plants so many bugs at a time, and returns their outcomes in their order. Bugs that the tests of one package find are in
// one program, and each run selects one; a bug that the tests miss so is planted alone: in a program that starts another one without its
// own environment, say. The programs of later packages are built while bugs of earlier ones run; a build counts as a bug at a time. Before its
// bugs, the tests of a program run with nothing selected: an outcome that is not Missed then is of nothing planted, and the only one.
func (r Runner) PlantAll(ctx context.Context, bugs []Bug, atATime int) []Outcome {
	var err error
	if r.convert, err = test2json(ctx); err != nil {
		return []Outcome{{Bug: Bug{Name: Nothing}, Verdict: Broken, Detail: err.Error()}}
	}
	slots := make(chan struct{}, atATime)
	ready := make(chan prepared, programsAhead)
	go func() {
		defer close(ready)
		for _, group := range groups(bugs) {
			slots <- struct{}{}
			p := r.prepare(ctx, bugs, group)
			<-slots
			ready <- p
			if p.failure != nil {
				return // so that it is the last that comes, and no program is left
			}
		}
	}()
	outcomes := make([]Outcome, len(bugs))
	for p := range ready {
		if p.failure != nil {
			return []Outcome{*p.failure}
		}
		inParallel(len(p.group), atATime, func(i int) {
			slots <- struct{}{}
			outcomes[p.group[i]] = p.plant(ctx, i)
			<-slots
		})
		p.remove()
	}
	return outcomes
}

// test2json has the go command build test2json, and returns its path: the go command would load it anew for each bug, which takes a tenth of
// a second of a processor.
func test2json(ctx context.Context) (path string, err error) {
	said, err := exec.CommandContext(ctx, "go", "tool", "-n", "test2json").Output()
	if err != nil {
		return "", fmt.Errorf("planted: go tool -n test2json: %w", err)
	}
	return strings.TrimSpace(string(said)), nil
}

// programsAhead is how many programs wait for their bugs' turn. With fewer, a long package keeps those after it from being built, and nothing
// overlaps the builds of the short ones, which come in a row; more take room: each is some ten megabytes.
const programsAhead = 8

// prepared is the program of a group of bugs whose tests pass with none selected, or what kept it from that.
type prepared struct {
	program
	group   []int // of all bugs
	bugs    []Bug
	apart   []int // of the group: bugs that the program cannot have
	failure *Outcome
}

// prepare builds the program of a group, and runs it with nothing planted. A failure leaves no program.
func (r Runner) prepare(ctx context.Context, bugs []Bug, group []int) prepared {
	p := prepared{group: group, bugs: make([]Bug, len(group))}
	for i, at := range group {
		p.bugs[i] = bugs[at]
	}
	var err error
	if p.program, p.apart, err = r.build(ctx, p.bugs); err != nil {
		p.failure = &Outcome{Bug: control(p.bugs), Verdict: Broken, Detail: err.Error()}
	} else if out := p.unplanted(ctx, p.bugs); out.Verdict != Missed {
		p.failure = &out
		p.remove()
	}
	return p
}

// plant runs the tests of a bug of the group, by itself where the program does not have it or does not find it.
func (p prepared) plant(ctx context.Context, i int) Outcome {
	if !slices.Contains(p.apart, i) {
		if out := p.run(ctx, p.bugs[i], i+1); out.Verdict != Missed && out.Verdict != Broken {
			return out
		}
	}
	return p.Plant(ctx, p.bugs[i])
}

// groups are the indices of the bugs that tests of one package find, built with the same tags.
func groups(bugs []Bug) (all [][]int) {
	at := map[[2]string]int{}
	for i, b := range bugs {
		key := [2]string{b.Package, b.Tags}
		if _, found := at[key]; !found {
			at[key] = len(all)
			all = append(all, nil)
		}
		all[at[key]] = append(all[at[key]], i)
	}
	return all
}

// Nothing is the name of a Bug that is none.
const Nothing = "nothing"

// control is nothing planted, and the tests of all bugs of a group.
func control(bugs []Bug) Bug {
	all := Bug{Name: Nothing, Package: bugs[0].Package, Tags: bugs[0].Tags}
	var runs []string
	for _, b := range bugs {
		if !slices.Contains(runs, b.Run) {
			runs = append(runs, b.Run)
		}
	}
	all.Run = strings.Join(runs, "|")
	return all
}

// inParallel calls f for each number below count, so many at a time.
func inParallel(count, atATime int, f func(i int)) {
	next := make(chan int)
	var all sync.WaitGroup
	for range atATime {
		all.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	all.Wait()
}

// program is a test program with several bugs, of which each run selects one.
type program struct {
	Runner
	dir  string
	path string
}

// build makes the program of a group. apart are the bugs that it cannot have.
func (r Runner) build(ctx context.Context, bugs []Bug) (p program, apart []int, err error) {
	texts, apart, err := together(os.DirFS(r.Root), bugs)
	if err != nil {
		return p, nil, err
	}
	p.Runner = r
	if p.dir, err = os.MkdirTemp("", "planted"); err != nil {
		return p, nil, err //nolint:wrapcheck // names the folder
	}
	p.path = filepath.Join(p.dir, "planted.test")
	overlay, err := overlayOf(texts, r.Root, p.dir)
	if err != nil {
		p.remove()
		return p, nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-ldflags=-s -w", "-overlay="+overlay, "-tags="+bugs[0].Tags, "-o", p.path, "./"+bugs[0].Package)
	cmd.Dir = r.Root
	if said, err := cmd.CombinedOutput(); err != nil {
		p.remove()
		return p, nil, fmt.Errorf("planted: building the tests of %s: %w\n%s", bugs[0].Package, err, tail(string(said)))
	}
	return p, apart, nil
}

// remove removes the program.
func (p program) remove() { _ = os.RemoveAll(p.dir) }

// unplanted runs the tests of all bugs with none selected. They may take three times as long as those of one bug.
func (p program) unplanted(ctx context.Context, bugs []Bug) Outcome {
	p.Limit *= 3
	return p.run(ctx, control(bugs), 0)
}

// run runs the tests of a bug that is selected; 0 is none.
func (p program) run(ctx context.Context, b Bug, selected int) Outcome {
	begin := time.Now()
	folder := filepath.Join(p.Root, filepath.FromSlash(b.Package))
	args := []string{"-p", b.Package, p.path, "-test.v=test2json", "-test.paniconexit0", "-test.timeout=" + p.Limit.String(), "-test.run=" + b.Run}
	if selected > 0 {
		args = append(args, "-test.failfast")
	}
	if searches(folder) {
		args = append(args, rapid()...)
	}
	cmd := exec.CommandContext(ctx, p.convert, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), selection+"="+strconv.Itoa(selected))
	out := Outcome{Bug: b}
	out.Verdict, out.Test, out.Detail = verdictOf(cmd)
	out.Took = time.Since(begin)
	return out
}

// rapid are the flags for tests that search by rapid: what is found once is found always; a failure need not be made small, nor kept.
func rapid() []string { return []string{"-rapid.seed=1", "-rapid.shrinktime=0s", "-rapid.nofailfile"} }

// test runs the tests of a bug and reads what came of them.
func (r Runner) test(ctx context.Context, b Bug, flags ...string) (v Verdict, test, detail string) {
	args := append([]string{"test", "-json", "-count=1", "-vet=off", "-timeout=" + r.Limit.String(), "-run=" + b.Run}, flags...)
	args = append(args, "-tags="+b.Tags, "./"+b.Package)
	if searches(filepath.Join(r.Root, filepath.FromSlash(b.Package))) {
		args = append(args, rapid()...)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.Root
	return verdictOf(cmd)
}

// verdictOf runs a command that tells of tests by events.
func verdictOf(cmd *exec.Cmd) (v Verdict, test, detail string) {
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
