package main

import (
	"io"
	"time"

	"github.com/go-vram/vram/examples/internal/command"
)

// options are the settings of the command line and the environment.
type options struct {
	address  string
	settings settings
	shutdown shutdown
	loaded   bool // the program is its own client
	loading  loading
}

// Not more streams: a device runs at most 128 kernels at the same time.
const mostWorkers = 128

// Not more clients: each has a connection, and both of its ends are files of this process.
const mostClients = 4096

// parse reads defaults, environment and flags, in this order. Its error is flag.ErrHelp or a *command.UsageError; help goes to
// stderr.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := command.NewFlags("service", `"12GB"`)
	flags.StringVar(&o.address, "addr", "127.0.0.1:8080", "address to listen on")
	flags.IntVar(&o.settings.WorkerCount, "workers", 128, "streams; requests share them, and each runs one kernel at a time")
	flags.IntVar(&o.settings.BacklogCount, "backlog", 1024, "requests that may wait for memory")
	flags.DurationVar(&o.settings.Timeout, "timeout", 30*time.Second, "time that a request may take")
	flags.DurationVar(&o.shutdown.Linger, "linger", 0, "time to go on serving with readiness off, for load balancers to notice")
	flags.DurationVar(&o.shutdown.Deadline, "deadline", 10*time.Second, "time for the requests in flight when stopped")
	tenants := flags.String("tenants", "", `tenants and their weights, as "gold=4,silver=2,bronze=1" (default one for all)`)
	flags.BoolVar(&o.settings.Hard, "hard", false, "a tenant may have its part of the memory and borrow nothing")
	flags.BoolVar(&o.loaded, "load", false, "load the service, print what each tenant got, and stop")
	flags.IntVar(&o.loading.ClientCount, "clients", 512, "clients of -load, spread evenly over the tenants")
	flags.DurationVar(&o.loading.Duration, "duration", 10*time.Second, "how long -load lasts")
	flags.BoolVar(&o.loading.Equal, "equal", false, "all requests of -load are of the mean size")
	flags.Uint64Var(&o.loading.Seed, "seed", 1, "seed of the sizes that -load asks for")
	if err := flags.Parse(args, stderr); err != nil {
		return o, err
	}
	if o.settings.Tenants, err = parseTenants(*tenants); err != nil {
		return o, command.Misuse("-tenants: %w", err)
	}
	if err := o.check(); err != nil {
		return o, err
	}
	o.settings.Config, err = flags.Config()
	if err == nil && o.loaded {
		err = o.loading.defaults(&o.settings)
	}
	return o, err
}

// check reports an invalid flag.
func (o *options) check() error {
	switch {
	case o.settings.WorkerCount < 1 || o.settings.WorkerCount > mostWorkers:
		return command.Misuse("-workers is %d, want 1 to %d", o.settings.WorkerCount, mostWorkers)
	case o.settings.BacklogCount < 1:
		return command.Misuse("-backlog is %d, want 1 or more", o.settings.BacklogCount)
	case o.settings.Timeout <= 0:
		return command.Misuse("-timeout is %v, want more than 0", o.settings.Timeout)
	case o.shutdown.Linger < 0:
		return command.Misuse("-linger is %v, want 0 or more", o.shutdown.Linger)
	case o.loading.ClientCount < 1 || o.loading.ClientCount > mostClients:
		return command.Misuse("-clients is %d, want 1 to %d", o.loading.ClientCount, mostClients)
	case o.loading.Duration <= 0:
		return command.Misuse("-duration is %v, want more than 0", o.loading.Duration)
	case o.shutdown.Deadline < 0:
		return command.Misuse("-deadline is %v, want 0 or more", o.shutdown.Deadline)
	}
	return nil
}
