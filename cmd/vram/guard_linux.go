package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// The files that a guard inherits: a pipe that the lease's process writes signals to, and the locked file of the lease.
const (
	guardPipe  = 3
	guardLease = 4
)

// Run runs the command of a lease. All processes that the command starts are the guard's to end, also those that leave their parent: it ends
// when none is left, and kills them when the command ends, or the lease's process. It has the lease's locked file, so the lease lives until then.
func (c *guardCmd) Run(p *program) error {
	runtime.LockOSThread() // the command is killed at the end of the thread that has started it
	defer runtime.UnlockOSThread()
	if err := adopt(); err != nil {
		return &leaseError{exitNotRunning, err}
	}
	unix.CloseOnExec(guardPipe)
	unix.CloseOnExec(guardLease)
	args := withoutDashes(c.Command)
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // the caller's command, which signals end
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.stdin, p.stdout, p.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	lease := os.NewFile(guardLease, "lease")
	defer func() { _ = lease.Close() }() // not earlier
	cmd.ExtraFiles = []*os.File{lease}   // what it starts keeps the lease where this process and the lease's are killed, too
	heard := make(chan os.Signal, 64)
	signal.Notify(heard, append(passedSignals(), syscall.SIGCHLD)...) // the terminal's reach the command, too
	defer signal.Stop(heard)
	if err := cmd.Start(); err != nil {
		return notStarted(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	orders := make(chan syscall.Signal)
	go readOrders(os.NewFile(guardPipe, "orders"), orders)
	for {
		select {
		case err := <-ended:
			return errors.Join(exited(err), endChildren())
		case s := <-heard:
			if s == syscall.SIGCHLD {
				reap(cmd.Process.Pid)
			}
		case order, lives := <-orders:
			if lives {
				_ = cmd.Process.Signal(order) // it may have ended
				continue
			}
			err := endChildren()
			<-ended
			return errors.Join(&exitError{128 + int(syscall.SIGKILL)}, err)
		}
	}
}

// passedSignals are those that the command gets from the lease's process.
func passedSignals() []os.Signal {
	return []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT}
}

// readOrders reads signals until the writer has ended.
func readOrders(from *os.File, orders chan<- syscall.Signal) {
	defer close(orders)
	one := make([]byte, 1)
	for {
		if n, err := from.Read(one); n == 0 || err != nil {
			return
		}
		orders <- syscall.Signal(one[0])
	}
}

// adopt makes this process the parent of descendants whose own parents end.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// endChildren kills all descendants of a process that has adopted them, and returns when they have ended. One that it may not kill is waited for.
func endChildren() error {
	for {
		all, err := children()
		if err != nil {
			return err
		}
		for _, pid := range all {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		switch _, err := unix.Wait4(-1, nil, 0, nil); {
		case errors.Is(err, unix.ECHILD):
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		}
	}
}

// reap takes the ends of adopted processes, but leaves one child.
func reap(but int) {
	all, _ := children() // the next signal tries again
	for _, pid := range all {
		if pid != but {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// children returns the numbers of this process's children.
func children() (all []int, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		text, err := os.ReadFile(name) //nolint:gosec // of the kernel
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrPermission) {
			continue // it has ended, or is another user's
		}
		if err != nil {
			return nil, err
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // state, parent
		if len(fields) < 2 || string(fields[1]) != strconv.Itoa(os.Getpid()) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, pid)
	}
	return all, nil
}
