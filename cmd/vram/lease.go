package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/core"
)

// Exit codes of lease when the command has none: env and timeout have the same.
const (
	exitNoLease    = 125
	exitNotRunning = 126
	exitNotFound   = 127
)

// UnmarshalText reads a size.
func (f *sizeFlag) UnmarshalText(text []byte) error {
	n, err := vram.ParseBytes(string(text))
	*f = sizeFlag(n)
	return err
}

// leasePage is the unit of leases: MPS reads limits in it.
const leasePage = 1 << 20

// Run waits for the memory, and runs the command while the lease holds.
func (c *leaseCmd) Run(p *program) (err error) {
	grant, files, end, err := c.reserve(p)
	if err != nil {
		return &leaseError{exitNoLease, err}
	}
	defer func() { err = errors.Join(err, end()) }()
	self, err := os.Executable()
	if err != nil {
		return &leaseError{exitNotRunning, err}
	}
	cmd := exec.Command(self, append([]string{"guard", "--"}, withoutDashes(c.Command)...)...) //nolint:gosec,noctx // the caller's command, which signals end
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.stdin, p.stdout, p.stderr
	cmd.Env = append(os.Environ(), leaseVariables(grant.Parts()[0], os.LookupEnv)...)
	return runLeased(cmd, files[0], grant.Done(), p.stderr)
}

// exited returns the exit code of a process as an error; nil: it succeeded.
func exited(err error) error {
	if exit, ended := errors.AsType[*exec.ExitError](err); ended {
		return &exitError{exitCode(exit.ProcessState)}
	}
	return err
}

// notStarted returns the error of a command that was not started, with its exit code.
func notStarted(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &leaseError{exitNotFound, err}
	}
	return &leaseError{exitNotRunning, err}
}

// withoutDashes returns a command without the dashes before it.
func withoutDashes(command []string) []string {
	if len(command) > 0 && command[0] == "--" {
		return command[1:]
	}
	return command
}

// reserve waits for the memory. The function ends the lease, whose locked file is returned, too.
func (c *leaseCmd) reserve(p *program) (grant *fleet.Grant, files []*os.File, end func() error, err error) {
	l, err := c.open()
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	name, err := c.announce(p, l)
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := p.ctx, context.CancelFunc(func() {})
	if c.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
	}
	defer cancel()
	m, err := fleet.Join(ctx, l)
	if err != nil {
		return nil, nil, nil, err
	}
	holder := fmt.Sprintf("%d: %s", os.Getpid(), strings.Join(withoutDashes(c.Command), " "))
	grant, err = m.Reserve(ctx, fleet.Request{
		Wants: []fleet.Want{{Bytes: int64(c.Bytes), Device: name}}, Priority: c.Priority, Holder: clip(holder, core.MostName/4),
	})
	if err != nil {
		return nil, nil, nil, errors.Join(err, m.Close())
	}
	return grant, l.LeaseFiles(), func() error { return errors.Join(grant.Release(), m.Close(), l.Close()) }, nil
}

// announce makes GPUs known that the ledger does not have: the named one, or all. It opens only those, and returns the name of the named one.
func (c *leaseCmd) announce(p *program, l fleet.Ledger) (name string, err error) {
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	named := func(ordinal int) string { return host[:min(len(host), core.MostName-8)] + "-" + strconv.Itoa(ordinal) }
	s, err := fleet.Look(p.ctx, l)
	if err != nil {
		return "", err
	}
	known := map[string]bool{}
	for _, d := range s.Devices {
		known[d.Name] = true
	}
	if c.Device >= 0 && known[named(c.Device)] {
		return named(c.Device), nil
	}
	_, newDriver, err := c.device(p)
	if err != nil {
		return "", err
	}
	return c.announceMissing(p.ctx, l, newDriver(), known, host, named)
}

// announceMissing makes the GPUs of a driver known that are not.
func (c *leaseCmd) announceMissing(ctx context.Context, l fleet.Ledger, driver cudadrv.Driver, known map[string]bool, host string,
	named func(ordinal int) string,
) (name string, err error) {
	count, err := driver.DeviceCount()
	if err != nil {
		return "", err
	}
	if count == 0 || c.Device >= count {
		return "", fmt.Errorf("device %d: the driver has %d: %w", max(c.Device, 0), count, vram.ErrNoDevice)
	}
	for ordinal := range count {
		if known[named(ordinal)] || c.Device >= 0 && ordinal != c.Device {
			continue
		}
		gpu, err := driver.Open(ordinal)
		if err != nil {
			return "", err
		}
		info := gpu.Info()
		if err := gpu.Close(); err != nil {
			return "", err
		}
		err = fleet.Plain(ctx, l, core.Device{Name: named(ordinal), Host: host, Ordinal: ordinal, OfferBytes: info.TotalBytes, PageBytes: leasePage})
		if err != nil {
			return "", err
		}
	}
	if c.Device < 0 {
		return "", nil
	}
	return named(c.Device), nil
}

// leaseVariables are the variables of the command: it sees the GPU of the lease alone, as number 0, with the limit that vram, MPS and others
// read.
func leaseVariables(part fleet.Part, lookup func(string) (string, bool)) []string {
	const visible = "CUDA_VISIBLE_DEVICES"
	gpu := strconv.Itoa(part.Ordinal)
	if list, ok := lookup(visible); ok { // the driver counts in this list
		if all := strings.Split(list, ","); part.Ordinal < len(all) {
			gpu = strings.TrimSpace(all[part.Ordinal])
		}
	}
	return []string{
		visible + "=" + gpu,
		fmt.Sprintf("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=%dM", part.Bytes/leasePage),
	}
}
