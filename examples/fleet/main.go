// Command fleet reserves memory for gangs on eight devices of four processes, which share a folder as their ledger. Each process has two
// simulated devices, or parts of GPUs where there are any.
//
//	fleet [-driver auto] [-device 0] [-limit 256MiB]
//
// A service runs on the device that Place names. Gangs of two to four devices of other processes wait for their turn, and their parts draw the
// memory of the grants. A process that holds a grant is killed: the parts see that their grant has ended, and the gang that waits for
// the memory begins. At the end nothing is held, or the program fails. It starts itself once for each member, calls it by net/rpc on
// standard input and output, and needs Linux.
package main

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/examples/internal/command"
)

const (
	letters      = "abcd" // the members
	devicesEach  = 2
	defaultLimit = 256 << 20 // of a device
	leastLimit   = 64 << 20  // the service's eighth is whole pages
)

func main() { os.Exit(command.Interruptible(run)) }

// run executes the program, or a member of the fleet, and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case err != nil:
	case o.member != "":
		err = serve(ctx, o, os.Stdin, stdout)
	default:
		err = demonstrate(ctx, o, args, stdout, stderr)
	}
	return command.Exit(ctx, "fleet", err, stderr)
}

// options are the settings of the command line and the environment.
type options struct {
	config vram.Config
	count  int    // of the driver's devices
	member string // "": the program, which starts the members
	ledger string // the folder, of a member
}

// parse reads the flags over the environment over the defaults. Its error is flag.ErrHelp, a *command.UsageError or the driver's; help goes to
// stderr.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := command.NewFlags("fleet", `"256MiB"`)
	flags.StringVar(&o.member, "member", "", "be the member a, b, c or d, with calls on standard input")
	flags.StringVar(&o.ledger, "ledger", "", "the folder of the ledger, for -member")
	if err := flags.Parse(args, stderr); err != nil {
		return o, err
	}
	if o.config, err = flags.Config(); err != nil {
		return o, err
	}
	if o.config.LimitBytes == 0 {
		o.config.LimitBytes = defaultLimit
	}
	if o.config.LimitBytes < leastLimit || !strings.Contains(letters, o.member) || len(o.member) > 1 {
		return o, command.Misuse("-limit is %d, want %d bytes or more; -member is %q, want a, b, c or d", o.config.LimitBytes, leastLimit, o.member)
	}
	if o.config.Driver.Name() == "sim" {
		o.config.Driver = sim.New(sim.Config{Devices: devicesEach, Clock: sim.Running})
	}
	if o.count, err = o.config.Driver.DeviceCount(); err == nil && o.count == 0 {
		err = vram.ErrNoDevice
	}
	return o, err
}
