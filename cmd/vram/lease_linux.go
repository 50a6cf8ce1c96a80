package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// runLeased runs a guard, which runs the command of a lease, to its end, and passes signals on. If this process is killed the guard kills the
// command with all that it has started, and keeps the lease until then. If the guard is killed this process does the same.
func runLeased(guard *exec.Cmd, lease *os.File, lost <-chan struct{}, warn io.Writer) (err error) {
	if err := adopt(); err != nil {
		return &leaseError{exitNotRunning, err}
	}
	read, write, err := os.Pipe()
	if err != nil {
		return &leaseError{exitNotRunning, err}
	}
	defer func() { _ = write.Close() }() // the guard has ended
	guard.ExtraFiles = []*os.File{read, lease}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passedSignals()...)
	defer signal.Stop(signals)
	err = guard.Start()
	_ = read.Close() // the guard's
	if err != nil {
		return &leaseError{exitNotRunning, err}
	}
	ended := make(chan error, 1)
	go func() { ended <- guard.Wait() }()
	for {
		select {
		case err := <-ended:
			if status, ok := guard.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
				return errors.Join(exited(err), endChildren())
			}
			return exited(err)
		case s := <-signals:
			if number, ok := s.(syscall.Signal); ok && !fromTerminal(s) {
				_, _ = write.Write([]byte{byte(number)}) // it may have ended
			}
		case <-lost:
			lost = nil
			_, _ = fmt.Fprintln(warn, "vram: the lease is lost: the folder of the ledger was changed; the command continues without it")
		}
	}
}

// fromTerminal reports whether the terminal has sent a signal to the command, too: it sends these to all processes in the foreground.
func fromTerminal(s os.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT && s != syscall.SIGWINCH {
		return false
	}
	group, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP) //nolint:gosec // a descriptor fits an int
	return err == nil && group == unix.Getpgrp()
}

// exitCode returns the exit code of a process as a shell does.
func exitCode(s *os.ProcessState) int {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return s.ExitCode()
}
