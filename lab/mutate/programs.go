package mutate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// program is the compiled tests of a package.
type program struct {
	dir    string // of the package, from the root
	folder string // absolute: tests run there
	binary string
	flags  []string
	tests  []*test
}

// test is a test, an example, or the seeds of a fuzz target.
type test struct {
	program *program
	name    string
	took    time.Duration // with no mutant on
	reached []byte        // not zero at the numbers of mutants that it reaches
}

// build compiles the tests of a package. A package without tests has no program.
func build(ctx context.Context, root, dir, overlay, binary string) (*program, error) {
	p := &program{dir: dir, folder: filepath.Join(root, filepath.FromSlash(dir)), binary: binary}
	_, err := goCommand(ctx, root, "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+overlay, "-o="+binary, "./"+dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(binary); err != nil {
		return p, nil //nolint:nilerr // the go command writes none if there are no tests
	}
	if searches(p.folder) {
		// A fixed seed finds a mutant always or never. A failure need not be made small, nor kept.
		p.flags = []string{"-rapid.seed=1", "-rapid.shrinktime=0s", "-rapid.nofailfile"}
	}
	out := p.run(ctx, nil, time.Minute, "-test.list=.")
	if out.verdict != Survived {
		return nil, fmt.Errorf("mutate: the tests of %s cannot be listed:\n%s", dir, out.said)
	}
	testName := regexp.MustCompile(`^(Test|Fuzz|Example)\w*$`) // no benchmark
	for line := range strings.Lines(out.said) {
		if name := strings.TrimSpace(line); testName.MatchString(name) {
			p.tests = append(p.tests, &test{program: p, name: name})
		}
	}
	return p, nil
}

// searches reports whether the tests of a package use rapid, and so know its flags.
func searches(folder string) bool {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	return err == nil && slices.ContainsFunc(files, func(path string) bool {
		text, err := os.ReadFile(path)
		return err == nil && bytes.Contains(text, []byte(`"pgregory.net/rapid"`))
	})
}

// outcome is how a process ended.
type outcome struct {
	verdict Verdict // Survived, Killed or Hung
	said    string
	took    time.Duration
}

// memoryKiB bounds the data of a test process: a mutant may allocate without end. It does not bound address space, of which the
// simulated device reserves as much as a real one.
const memoryKiB = 16 << 20

// run starts the program and waits for it, for the limit and a little more at most.
func (p *program) run(ctx context.Context, env []string, limit time.Duration, args ...string) outcome {
	begin := time.Now()
	ctx, stop := context.WithTimeout(ctx, limit+2*time.Second) // the test's own time-out comes first: it prints less
	defer stop()
	script := fmt.Sprintf(`ulimit -d %d; exec "$0" "$@"`, memoryKiB)
	args = append([]string{"-c", script, p.binary, "-test.timeout=" + limit.String(), "-test.paniconexit0"}, args...)
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir, cmd.Env = p.folder, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	said, err := cmd.CombinedOutput()
	out := outcome{said: string(said), took: time.Since(begin), verdict: Survived}
	switch {
	case ctx.Err() != nil || strings.Contains(out.said, "panic: test timed out after"):
		out.verdict = Hung
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		out.verdict = Killed
	}
	return out
}

// runTests runs tests of one program with a mutant on; 0 for none.
func (p *program) runTests(ctx context.Context, tests []*test, number int, limit time.Duration, env ...string) outcome {
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = t.name
	}
	args := append([]string{"-test.short", "-test.failfast", "-test.run=^(" + strings.Join(names, "|") + ")$"}, p.flags...)
	return p.run(ctx, append(env, "MUTANT="+strconv.Itoa(number)), limit, args...)
}

// failed returns the first test that a program reports as failed.
func failed(said string) string {
	for line := range strings.Lines(said) {
		if rest, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			name, _, _ := strings.Cut(rest, " ")
			return name
		}
	}
	return ""
}

// slowest bounds the tests that are used: a slower one costs more than it finds.
const slowest = time.Minute

// record runs each test by itself, with no mutant on, and notes which mutants it reaches. It returns the tests that are not
// used.
func (p *program) record(ctx context.Context, mutants int) (left []string) {
	path := p.binary + ".reached"
	for _, t := range p.tests {
		out := outcome{verdict: Killed}
		err := os.WriteFile(path, make([]byte, mutants+1), 0o600)
		if err == nil {
			out = p.runTests(ctx, []*test{t}, 0, slowest, "MUTANTS_REACHED="+path)
			t.took = out.took
			t.reached, err = os.ReadFile(path)
		}
		if err != nil || out.verdict != Survived {
			t.reached = nil
			left = append(left, p.dir+testSeparator+t.name)
		}
	}
	return left
}
