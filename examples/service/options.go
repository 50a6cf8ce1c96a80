package main

import (
	"io"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cudadrv/cpu"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/examples/gpt/model"
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

// Not more clients: each has a connection, and both of its ends are files of this process.
const mostClients = 4096

// parse reads defaults, environment and flags, in this order. Its error is flag.ErrHelp or a *command.UsageError; help goes to
// stderr.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := command.NewFlags("service", `"12GB"`)
	flags.StringVar(&o.address, "addr", "127.0.0.1:8080", "address to listen on")
	sizes := flags.String("model", "tiny", model.Names()+": the model's sizes")
	of := flags.String("type", "", "float32 or bfloat16: the type that the network computes with (default float32 for tiny, else bfloat16)")
	flags.StringVar(&o.settings.Checkpoint, "checkpoint", "", "file of weights, as examples/gpt writes it, or of a published GPT-2 (default random weights)")
	flags.StringVar(&o.settings.Tokenizer, "tokenizer", "", "folder with the model's vocab.json and merges.txt (default each byte is a token)")
	flags.Uint64Var(&o.settings.Seed, "seed", 1, "seed of random weights, and of the requests of -load")
	flags.IntVar(&o.settings.Decoding.Batch, "batch", 64, "most sequences in a step")
	flags.IntVar(&o.settings.Decoding.PageRows, "page", 16, "positions of a page of keys and values, a power of 2")
	flags.DurationVar(&o.settings.Timeout, "timeout", 30*time.Second, "most time that a request may take, waits for memory included")
	flags.DurationVar(&o.settings.Idle, "idle", 0, "time without a request until the weights leave the GPU (default never)")
	flags.DurationVar(&o.shutdown.Linger, "linger", 0, "time to continue to serve with readiness off, for load balancers to notice")
	flags.DurationVar(&o.shutdown.Deadline, "deadline", 10*time.Second, "time for the requests in flight when stopped")
	tenants := flags.String("tenants", "", `tenants and their weights, as "gold=4,silver=2,bronze=1" (default one for all)`)
	flags.BoolVar(&o.settings.Hard, "hard", false, "a tenant may have its part of the memory and borrow nothing")
	flags.BoolVar(&o.loaded, "load", false, "load the service, print what each tenant got, and stop")
	flags.IntVar(&o.loading.ClientCount, "clients", 64, "clients of -load, spread evenly over the tenants")
	flags.DurationVar(&o.loading.Duration, "duration", 10*time.Second, "how long -load lasts")
	flags.BoolVar(&o.loading.Equal, "equal", false, "all requests of -load are of the mean size")
	if err := flags.Parse(args, stderr); err != nil {
		return o, err
	}
	if o.settings.Tenants, err = parseTenants(*tenants); err != nil {
		return o, command.Misuse("-tenants: %w", err)
	}
	if o.settings.Model, err = sized(*sizes, *of); err != nil {
		return o, err
	}
	if err := o.check(); err != nil {
		return o, err
	}
	if o.settings.Config, err = flags.Config(); err != nil {
		return o, err
	}
	if _, simulated := o.settings.Config.Driver.(*sim.Driver); simulated { // one that executes kernels
		if o.settings.Config.Driver, err = vram.DriverNamed(cpu.Name); err != nil {
			return o, err
		}
	}
	if o.loaded {
		o.loading.Seed = o.settings.Seed
		err = o.loading.defaults(&o.settings)
	}
	return o, err
}

// sized returns the sizes of a model by name, and the type by name.
func sized(name, of string) (model.Config, error) {
	c, known := model.Named(name)
	if !known {
		return c, command.Misuse("-model is %q: want %s", name, model.Names())
	}
	switch {
	case of == "float32", of == "" && name == "tiny":
	case of == "bfloat16", of == "":
		c.Type = tensor.BFloat16
	default:
		return c, command.Misuse("-type is %q: want float32 or bfloat16", of)
	}
	return c, nil
}

// check reports an invalid flag.
func (o *options) check() error {
	switch {
	case o.settings.Timeout <= 0:
		return command.Misuse("-timeout is %v, want more than 0", o.settings.Timeout)
	case o.settings.Idle < 0:
		return command.Misuse("-idle is %v, want 0 or more", o.settings.Idle)
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
