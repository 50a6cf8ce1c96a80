package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// runLeased runs a command to its end, and passes signals on. The kernel kills the command, though not its children, if this process is
// killed: nobody counts its memory then.
func runLeased(cmd *exec.Cmd, lost <-chan struct{}, warn io.Writer) error {
	runtime.LockOSThread() // the signal comes at the end of the thread that has started the command
	defer runtime.UnlockOSThread()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT)
	defer signal.Stop(signals)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			return err
		case s := <-signals:
			if !fromTerminal(s) {
				_ = cmd.Process.Signal(s) // it may have ended
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
