package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/tensor/safetensors"
	"github.com/go-vram/vram/examples/internal/command"
)

var stepLine = regexp.MustCompile(`(?m)^step +(\d+): loss (\S+), `)

// rehearsal is a training that processes continue after each other, and what it comes to without an interruption.
type rehearsal struct {
	*testing.T

	args   []string
	steps  int
	losses []string // by step
	states [][]byte // the checkpoint after a step
	path   string   // of the checkpoint
	took   time.Duration
}

// rehearse trains without an interruption.
func rehearse(t *testing.T, stages, steps int) *rehearsal {
	t.Helper()
	t.Setenv("VRAM_MEMORY_LIMIT", "")
	r := &rehearsal{T: t, steps: steps, path: filepath.Join(t.TempDir(), "checkpoint"), losses: make([]string, 1), states: make([][]byte, 1)}
	r.args = []string{
		"-driver", "sim", "-batch", "1", "-parts", "2", "-length", "3", "-bytes", "10000", "-every", "1", "-sample", "0", "-save", "1",
		"-steps", strconv.Itoa(steps), "-stages", strconv.Itoa(stages), "-checkpoint", r.path,
	}
	var stderr bytes.Buffer
	began := time.Now()
	code := least(t.Context(), r.args, writer(func(b []byte) {
		if line := stepLine.FindSubmatch(b); line != nil {
			r.losses = append(r.losses, string(line[2]))
		} else if !bytes.HasPrefix(b, []byte("saved ")) {
			return
		}
		if state, err := os.ReadFile(r.path); err == nil { // of the step before a line of progress; of the last step at the end
			r.states = append(r.states, state)
		}
	}), &stderr)
	r.took = time.Since(began)
	require.Equal(t, command.OK, code, "%s", &stderr)
	require.Len(t, r.losses, steps+1)
	require.Len(t, r.states, steps+1)
	require.NoError(t, os.Remove(r.path))
	return r
}

// saved returns the number of steps of the checkpoint, which is as the training without an interruption had it; 0 without a checkpoint.
func (r *rehearsal) saved() int {
	r.Helper()
	state, err := os.ReadFile(r.path)
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(r, err)
	f, err := safetensors.OpenFile(r.path)
	require.NoError(r, err, "a checkpoint is whole")
	step, err := strconv.Atoi(f.Metadata()["step"])
	require.NoError(r, err)
	require.NoError(r, f.Close())
	require.Equal(r, r.states[step], state, "step %d", step)
	return step
}

// check compares the lines of a process with the training without an interruption. The process began with a checkpoint.
func (r *rehearsal) check(output []byte, before int) {
	r.Helper()
	last := before
	for _, line := range stepLine.FindAllSubmatch(output, -1) {
		last++
		require.Equal(r, strconv.Itoa(last), string(line[1]), "%s", output)
		require.Equal(r, r.losses[last], string(line[2]), "%s", output)
	}
	assert.GreaterOrEqual(r, r.saved(), max(before, last-1), "a step was saved before the next one began")
}

// continues runs a process that continues the training, and kills it at a moment. It reports whether the process was killed, and did
// not end before.
func (r *rehearsal) continues(moment <-chan struct{}, after time.Duration) (killed bool) {
	r.Helper()
	before := r.saved()
	process, stdout, stderr := r.process()
	require.NoError(r, process.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = process.Wait() // the state has it
	}()
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-moment:
	case <-timer.C:
	case <-ended:
	}
	_ = process.Process.Kill() // SIGKILL; it may have ended
	<-ended
	status := process.ProcessState.Sys().(syscall.WaitStatus)
	if killed = status.Signaled(); !killed {
		require.Equal(r, command.OK, status.ExitStatus(), "%s%s", stdout, stderr)
	}
	r.check(stdout.Bytes(), before)
	return killed
}

// process makes a process of the program.
func (r *rehearsal) process() (p *exec.Cmd, stdout, stderr *bytes.Buffer) {
	p, stdout, stderr = exec.Command(os.Args[0], r.args...), &bytes.Buffer{}, &bytes.Buffer{} //nolint:gosec // this program
	p.Env = append(os.Environ(), programVariable+"=1")
	p.Stdout, p.Stderr = stdout, stderr
	return p, stdout, stderr
}

// changes closes moment at a number of changes of files in a folder: each file that is made, written, closed or renamed is one, and
// several writes may be one. ended waits for the end of the watch.
func changes(t *testing.T, folder string, count int) (moment <-chan struct{}, ended func()) {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	require.NoError(t, err)
	_, err = syscall.InotifyAddWatch(fd, folder, syscall.IN_CREATE|syscall.IN_MODIFY|syscall.IN_CLOSE_WRITE|syscall.IN_MOVED_TO)
	require.NoError(t, err)
	events := os.NewFile(uintptr(fd), "inotify") //nolint:gosec // not negative
	came, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, syscall.SizeofInotifyEvent+syscall.NAME_MAX+1) // one event at least
		for left := count; left > 0; {
			n, err := events.Read(b)
			if err != nil {
				return // closed
			}
			for at := 0; at < n; left-- {
				at += syscall.SizeofInotifyEvent + int(b[at+12]) // the length of the name is less than 256
			}
		}
		close(came)
	}()
	return came, func() {
		require.NoError(t, events.Close())
		<-done
	}
}

// A process that is killed at any moment of training and of writing a checkpoint leaves the old checkpoint or the new one, and the
// next process has the losses and the checkpoints of a training without an interruption, bit for bit.
func TestKilled(t *testing.T) {
	stages, kills, least, steps := []int{1, 2}, 20, 1, 8
	if testing.Short() {
		stages, kills, least, steps = []int{2}, 1, 0, 3
	}
	for _, stages := range stages {
		t.Run(fmt.Sprint(stages), func(t *testing.T) {
			r := rehearse(t, stages, steps)
			random := rand.New(rand.NewPCG(5, uint64(stages))) //nolint:gosec // no secret
			killed, halves := 0, 0
			for attempt := 0; killed < kills || halves < least; attempt++ {
				require.Less(t, attempt, 10*kills, "%d killed, %d of them while they wrote", killed, halves)
				if attempt%2 == 0 {
					moment, ended := changes(t, filepath.Dir(r.path), 1+random.IntN(12*steps))
					if r.continues(moment, time.Hour) {
						killed++
					}
					ended()
				} else if r.continues(nil, time.Duration(1+random.Int64N(int64(r.took)))) {
					killed++
				}
				if _, err := os.Stat(r.path + ".tmp"); err == nil {
					halves++
				}
				if r.saved() == r.steps { // a training ends: the next one begins
					require.NoError(t, os.Remove(r.path))
				}
			}
			if r.saved() == 0 {
				require.NoError(t, os.WriteFile(r.path, r.states[1], 0o600))
			}
			r.fails()
			require.False(t, r.continues(nil, time.Hour))
			assert.Equal(t, steps, r.saved())
		})
	}
}

// fails runs a process that cannot write a checkpoint, as on a full disk: it fails, and leaves the old one.
func (r *rehearsal) fails() {
	before := r.saved()
	require.NoError(r, os.RemoveAll(r.path+".tmp"))
	require.NoError(r, os.Symlink("/dev/full", r.path+".tmp"))
	process, stdout, stderr := r.process()
	require.Error(r, process.Run())
	assert.Equal(r, command.Failed, process.ProcessState.ExitCode())
	assert.Contains(r, stderr.String(), "write "+r.path+".tmp: no space left on device")
	r.check(stdout.Bytes(), before)
	assert.Equal(r, before, r.saved())
	_, err := os.Lstat(r.path + ".tmp")
	require.ErrorIs(r, err, os.ErrNotExist)
}
