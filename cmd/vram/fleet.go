package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/core"
	"github.com/go-vram/vram/fleet/directory"
	"github.com/go-vram/vram/internal/units"
)

// ledgerFlags name the ledger of the host.
type ledgerFlags struct {
	Ledger string `placeholder:"FOLDER" help:"The ledger of the host: a folder on a local file system (default $$VRAM_FLEET, or a folder of the user in the folder of temporary files). Users who share a GPU name one that all of them can write."`
}

// open opens the ledger.
func (f ledgerFlags) open() (*directory.Ledger, error) {
	path := cmp.Or(f.Ledger, variable("VRAM_FLEET"))
	if path == "" {
		path = filepath.Join(os.TempDir(), "vram-fleet-"+strconv.Itoa(os.Getuid()))
	}
	return directory.Open(path)
}

// fleetCmd implements the command fleet.
type fleetCmd struct {
	ledgerFlags
	JSON bool `name:"json" help:"Print an object."`
}

// Run prints the devices, and the gangs that hold memory or wait for it.
func (c *fleetCmd) Run(p *program) (err error) {
	l, err := c.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	s, err := fleet.Look(p.ctx, l)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.stdout, s)
	}
	return printFleet(p.stdout, s, time.Now())
}

// printFleet prints a table of each kind that there is.
func printFleet(out io.Writer, s fleet.Status, now time.Time) error {
	devices := newTable(2, "device", "host", "offers", "held", "free", "owner", "waits")
	for _, d := range s.Devices {
		owner, waits := "none", ""
		if d.Owned {
			owner, waits = "a process", strconv.Itoa(d.Load.Waiting)
		}
		devices.add(table.Row{d.Name, d.Host, bytesText(d.OfferBytes), bytesText(d.HeldBytes), bytesText(max(d.OfferBytes-d.HeldBytes, 0)), owner, waits})
	}
	devices.caption("%s", units.Count(len(s.Devices), "device"))
	holding := newTable(2, "ticket", "holder", "bytes", "since", "devices")
	for _, g := range s.Holding {
		holding.add(table.Row{g.Ticket, g.Holder, bytesText(g.Bytes), since(g, now), strings.Join(g.Devices, ", ")})
	}
	holding.caption("holding memory: %s", units.Count(len(s.Holding), "gang"))
	waiting := newTable(2, "ticket", "holder", "bytes", "since", "priority", "passed", "waits for")
	for _, g := range s.Waiting {
		waiting.add(table.Row{g.Ticket, g.Holder, bytesText(g.Bytes), since(g, now), g.Priority, g.Bypassed, waitsFor(g)})
	}
	waiting.caption("waiting, in the order of service: %s", units.Count(len(s.Waiting), "gang"))
	if err := devices.print(out); err != nil || len(s.Holding)+len(s.Waiting) == 0 {
		return err
	}
	if err := holding.print(out); err != nil || len(s.Waiting) == 0 {
		return err
	}
	return waiting.print(out)
}

// since formats how long ago a gang was requested.
func since(g fleet.GangStatus, now time.Time) string {
	return max(now.Sub(g.Since), 0).Round(time.Second).String()
}

// waitsFor names the gangs that a gang waits for.
func waitsFor(g fleet.GangStatus) string {
	switch g.Reason {
	case core.NoDevices:
		return "devices that are large enough"
	case core.Memory:
		return "memory of " + strings.Join(g.Holders, ", ")
	case core.Turn:
		return "its turn after " + strings.Join(g.Before, ", ")
	default:
		return "its process"
	}
}

// leaseCmd implements the command lease.
type leaseCmd struct {
	ledgerFlags
	deviceFlags
	Bytes    sizeFlag      `required:"" placeholder:"SIZE" help:"Memory of the GPU, as \"20GiB\" or \"8GB\"."`
	Device   int           `default:"-1" placeholder:"N" help:"The GPU's number with the driver (default: one with enough free memory). Processes that share a ledger see the same GPUs in the same order."`
	Priority int           `default:"0" placeholder:"N" help:"Higher is served first (default 0)."`
	Timeout  time.Duration `placeholder:"TIME" help:"How long to wait for the memory (default: for ever)."`
	Command  []string      `arg:"" passthrough:"" help:"The command and its arguments, after --."`
}

// guardCmd is how lease runs its command: see Run.
type guardCmd struct {
	Command []string `arg:"" passthrough:"" help:"The command and its arguments, after --."`
}

// sizeFlag is a number of bytes.
type sizeFlag int64

// Validate reports invalid flags.
func (c *leaseCmd) Validate() error {
	switch {
	case c.Bytes < 1 || c.Bytes > core.MostBytes:
		return fmt.Errorf("--bytes: want 1 byte to 2^50 bytes")
	case c.Device < -1:
		return fmt.Errorf("--device %d: want 0 or more", c.Device)
	case c.Priority < -core.MostPriority || c.Priority > core.MostPriority:
		return fmt.Errorf("--priority %d: want -2^20 to 2^20", c.Priority)
	case c.Timeout < 0:
		return fmt.Errorf("--timeout %v: want 0 or more", c.Timeout)
	case len(withoutDashes(c.Command)) == 0:
		return errors.New("a command is missing, after --")
	}
	return nil
}

// exitError is the exit code of a command that was run.
type exitError struct{ code int }

func (e *exitError) Error() string { return "exit code " + strconv.Itoa(e.code) }

// leaseError reports that a lease's command was not run, or not to its end.
type leaseError struct {
	code int
	err  error
}

func (e *leaseError) Error() string { return e.err.Error() }
func (e *leaseError) Unwrap() error { return e.err }
