package main

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/go-vram/vram"
)

// options are what the command line and the environment say.
type options struct {
	stepCount int
	speed     float64
	config    vram.Config
}

// usageError is a mistake on the command line or in the environment.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Not more steps than that: every operation's time is kept for the table, 8 bytes each.
const mostSteps = 100_000

// parse reads the flags over the environment over the defaults. Its error is flag.ErrHelp or a
// *usageError; help goes to stderr.
func parse(args []string, stderr io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("pipeline", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	flags.IntVar(&o.stepCount, "steps", 300, "training steps")
	flags.Float64Var(&o.speed, "speed", 1, "how many times faster than recorded the device computes")
	driver := flags.String("driver", "", "auto, dynamic (a GPU) or sim; auto takes a GPU where there is one (default auto)")
	device := flags.Int("device", 0, "the device's number")
	footprint := flags.String("footprint", "", "balanced, lean or fast (default balanced)")
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
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("%q: there are no arguments, only flags", flags.Arg(0))
	case o.stepCount < 1 || o.stepCount > mostSteps:
		err = fmt.Errorf("-steps is %d, want 1 to %d", o.stepCount, mostSteps)
	case !(o.speed >= 0.01 && o.speed <= 1000): // also what is no number
		err = fmt.Errorf("-speed is %v, want 0.01 to 1000", o.speed)
	}
	if err != nil {
		return o, &usageError{err}
	}
	if o.config, err = vram.ConfigFromEnv(vram.Config{}); err != nil {
		return o, &usageError{err}
	}
	flags.Visit(func(f *flag.Flag) {
		if err != nil {
			return
		}
		switch f.Name {
		case "driver":
			o.config.Driver, err = vram.DriverNamed(*driver)
		case "device":
			o.config.Ordinal = *device
		case "footprint":
			o.config.Footprint, err = vram.ParseFootprint(*footprint)
		case "limit":
			o.config.LimitBytes, err = vram.ParseBytes(*limit)
		}
		if err != nil {
			err = &usageError{fmt.Errorf("-%s: %w", f.Name, err)}
		}
	})
	if err == nil && o.config.Driver == nil { // only where none was named: auto looks for a GPU
		o.config.Driver, err = vram.DriverNamed("auto")
	}
	return o, err
}
