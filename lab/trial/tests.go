package trial

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
	"strings"
	"syscall"
	"time"
)

// Tests is the compiled tests of a package.
type Tests struct {
	Dir      string // of the package, from the module's root
	Searches bool   // they use rapid, and so know its flags
	folder   string // absolute: tests run there
	binary   string
}

// Build compiles the tests of a package, with an overlay of Overlay, into a file.
func Build(ctx context.Context, root, dir, overlay, binary string) (*Tests, error) {
	_, err := Go(ctx, root, "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+overlay, "-o="+binary, "./"+dir)
	if err != nil {
		return nil, err
	}
	t := &Tests{Dir: dir, folder: filepath.Join(root, filepath.FromSlash(dir)), binary: binary}
	files, err := filepath.Glob(filepath.Join(t.folder, "*_test.go"))
	t.Searches = err == nil && slices.ContainsFunc(files, func(path string) bool {
		text, err := os.ReadFile(path)
		return err == nil && bytes.Contains(text, []byte(`"pgregory.net/rapid"`))
	})
	return t, nil
}

// List returns the names of tests, fuzz targets and examples; none of a package without tests.
func (t *Tests) List(ctx context.Context) (names []string, err error) {
	if _, err := os.Stat(t.binary); err != nil {
		return nil, nil //nolint:nilerr // the go command writes none if there are no tests
	}
	out := t.process(ctx, nil, time.Minute, "-test.list=.")
	if out.End != Passed {
		return nil, fmt.Errorf("trial: the tests of %s cannot be listed:\n%s", t.Dir, out.Said)
	}
	testName := regexp.MustCompile(`^(Test|Fuzz|Example)\w*$`) // no benchmark
	for line := range strings.Lines(out.Said) {
		if name := strings.TrimSpace(line); testName.MatchString(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// End is how tests end.
type End uint8

// The ends.
const (
	Passed End = iota
	Failed
	Expired // no time was left
)

// Outcome is a run of tests.
type Outcome struct {
	End  End
	Test string // that failed first: of subtests the innermost; "" if the process says of none that it failed
	Said string
	Took time.Duration
}

// Run runs the tests that a pattern selects, in their short form and until one fails. It waits for them, for the limit and a
// little more at most. Random tests have a fixed seed, and so find a fault always or never.
func (t *Tests) Run(ctx context.Context, pattern string, limit time.Duration, env []string, args ...string) Outcome {
	args = append([]string{"-test.short", "-test.failfast", "-test.run=" + pattern}, args...)
	if t.Searches { // a failure need not be made small, nor kept
		args = append(args, "-rapid.seed=1", "-rapid.shrinktime=0s", "-rapid.nofailfile")
	}
	return t.process(ctx, env, limit, args...)
}

// memoryKiB bounds the memory that a test process may write to: changed code may allocate without end. Addresses that it only
// reserves do not count: simulated devices reserve more.
const memoryKiB = 16 << 20

// process starts the program and waits for it.
func (t *Tests) process(ctx context.Context, env []string, limit time.Duration, args ...string) Outcome {
	begin := time.Now()
	ctx, stop := context.WithTimeout(ctx, limit+10*time.Second) // the test's own time-out comes first, also on a busy machine: it prints less
	defer stop()
	script := fmt.Sprintf(`ulimit -d %d; exec "$0" "$@"`, memoryKiB)
	args = append([]string{"-c", script, t.binary, "-test.timeout=" + limit.String(), "-test.paniconexit0"}, args...)
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir, cmd.Env = t.folder, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	said, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // processes that a test has started and left; mostly there are none
	}
	out := Outcome{Said: string(said), Took: time.Since(begin)}
	switch {
	case ctx.Err() != nil || strings.Contains(out.Said, "panic: test timed out after"):
		out.End = Expired
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		out.End, out.Test = Failed, failed(out.Said)
		out.Said += err.Error() // all that is known of a process that dies in silence
	}
	return out
}

// failed returns the first test that a program reports as failed.
func failed(said string) (test string) {
	for _, found := range regexp.MustCompile(`--- FAIL: (\S+) \(`).FindAllStringSubmatch(said, -1) {
		if name := found[1]; test == "" || strings.HasPrefix(name, test+"/") {
			test = name
		}
	}
	return test
}
