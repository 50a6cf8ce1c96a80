package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/go-vram/vram"
)

// options are what the command line and the environment say.
type options struct {
	address  string
	settings settings
	shutdown shutdown
	loaded   bool // the program sends the requests itself
	loading  loading
}

// usageError is a mistake on the command line or in the environment.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Not more streams than that: a device runs at most 128 kernels at the same time.
const mostWorkers = 128

// Not more clients than that: each has a connection, and both of its ends are files of this process.
const mostClients = 4096

// parse reads the flags over the environment over the defaults. Its error is flag.ErrHelp or a
// *usageError; help goes to stderr.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("service", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	flags.StringVar(&o.address, "addr", "127.0.0.1:8080", "address to listen on")
	flags.IntVar(&o.settings.WorkerCount, "workers", 128, "streams; requests share them, and each runs one kernel at a time")
	flags.IntVar(&o.settings.BacklogCount, "backlog", 1024, "requests that may wait for memory")
	flags.DurationVar(&o.settings.Timeout, "timeout", 30*time.Second, "time that a request may take")
	flags.DurationVar(&o.shutdown.Linger, "linger", 0, "time to go on serving with readiness off, for load balancers to notice")
	flags.DurationVar(&o.shutdown.Deadline, "deadline", 10*time.Second, "time for the requests in flight when stopped")
	tenants := flags.String("tenants", "", `tenants and their weights, as "gold=4,silver=2,bronze=1" (default one for all)`)
	flags.BoolVar(&o.loaded, "load", false, "load the service, print what each tenant got, and stop")
	flags.IntVar(&o.loading.ClientCount, "clients", 512, "clients of -load, spread evenly over the tenants")
	flags.DurationVar(&o.loading.Duration, "duration", 10*time.Second, "how long -load lasts")
	flags.Uint64Var(&o.loading.Seed, "seed", 1, "seed of the sizes that -load asks for")
	driver := flags.String("driver", "", "auto, dynamic (a GPU) or sim; auto takes a GPU where there is one (default auto)")
	device := flags.Int("device", 0, "the device's number")
	limit := flags.String("limit", "", `most memory to hold, as "12GB" (default all)`)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(stderr)
			flags.Usage()
			return o, flag.ErrHelp
		}
		return o, &usageError{err}
	}
	var err error
	if o.settings.Tenants, err = parseTenants(*tenants); err != nil {
		return o, &usageError{fmt.Errorf("-tenants: %w", err)}
	}
	err = o.check(flags.Args())
	if err != nil {
		return o, &usageError{err}
	}
	if o.settings.Config, err = vram.ConfigFromEnv(vram.Config{}); err != nil {
		return o, &usageError{err}
	}
	flags.Visit(func(f *flag.Flag) {
		if err != nil {
			return
		}
		switch f.Name {
		case "driver":
			o.settings.Config.Driver, err = vram.DriverNamed(*driver)
		case "device":
			o.settings.Config.Ordinal = *device
		case "limit":
			o.settings.Config.LimitBytes, err = vram.ParseBytes(*limit)
		}
		if err != nil {
			err = &usageError{fmt.Errorf("-%s: %w", f.Name, err)}
		}
	})
	if err == nil && o.settings.Config.Driver == nil { // only where none was named: auto looks for a GPU
		o.settings.Config.Driver, err = vram.DriverNamed("auto")
	}
	if err == nil && o.loaded {
		err = o.loading.defaults(&o.settings)
	}
	return o, err
}

// check says which flag cannot be.
func (o *options) check(arguments []string) error {
	switch {
	case len(arguments) > 0:
		return fmt.Errorf("%q: there are no arguments, only flags", arguments[0])
	case o.settings.WorkerCount < 1 || o.settings.WorkerCount > mostWorkers:
		return fmt.Errorf("-workers is %d, want 1 to %d", o.settings.WorkerCount, mostWorkers)
	case o.settings.BacklogCount < 1:
		return fmt.Errorf("-backlog is %d, want 1 or more", o.settings.BacklogCount)
	case o.settings.Timeout <= 0:
		return fmt.Errorf("-timeout is %v, want more than 0", o.settings.Timeout)
	case o.shutdown.Linger < 0:
		return fmt.Errorf("-linger is %v, want 0 or more", o.shutdown.Linger)
	case o.loading.ClientCount < 1 || o.loading.ClientCount > mostClients:
		return fmt.Errorf("-clients is %d, want 1 to %d", o.loading.ClientCount, mostClients)
	case o.loading.Duration <= 0:
		return fmt.Errorf("-duration is %v, want more than 0", o.loading.Duration)
	case o.shutdown.Deadline < 0:
		return fmt.Errorf("-deadline is %v, want 0 or more", o.shutdown.Deadline)
	}
	return nil
}
