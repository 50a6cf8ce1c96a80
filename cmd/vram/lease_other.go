//go:build !linux

package main

import (
	"io"
	"os"
	"os/exec"

	"github.com/go-vram/vram/fleet/directory"
)

// runLeased is not reached: the ledger of a host needs Linux.
func runLeased(*exec.Cmd, *os.File, <-chan struct{}, io.Writer) error {
	return directory.ErrUnsupported
}

func exitCode(s *os.ProcessState) int { return s.ExitCode() }

// Run is not reached, either.
func (*guardCmd) Run(*program) error { return directory.ErrUnsupported }
