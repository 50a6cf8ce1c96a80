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
	model     model
	config    vram.Config
}

// usageError is a mistake on the command line or in the environment.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// most of each number, so that no length of a tensor overflows.
const most = 1 << 20

// parse reads the flags over the environment over the defaults. Its error is flag.ErrHelp or a
// *usageError; help goes to stderr.
func parse(args []string, stderr io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("batch", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	flags.IntVar(&o.stepCount, "steps", 200, "optimizer steps in each manner")
	flags.IntVar(&o.model.layers, "layers", 12, "layers of the model")
	flags.IntVar(&o.model.hidden, "hidden", 768, "width of the model")
	flags.IntVar(&o.model.vocabulary, "vocabulary", 50257, "tokens that the model knows")
	flags.IntVar(&o.model.tokens, "tokens", 1024, "tokens that the model is shown at a time")
	driver := flags.String("driver", "", "auto, dynamic (a GPU) or sim; auto takes a GPU where there is one (default auto)")
	device := flags.Int("device", 0, "the device's number")
	limit := flags.String("limit", "", `most memory to hold, as "2GB" (default all)`)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(stderr)
			flags.Usage()
			return o, flag.ErrHelp
		}
		return o, &usageError{err}
	}
	if flags.NArg() > 0 {
		return o, &usageError{fmt.Errorf("%q: there are no arguments, only flags", flags.Arg(0))}
	}
	err := o.check()
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

// check says which flag cannot be.
func (o *options) check() error {
	for _, f := range []struct {
		name  string
		value int
	}{
		{"steps", o.stepCount},
		{"layers", o.model.layers},
		{"hidden", o.model.hidden},
		{"vocabulary", o.model.vocabulary},
		{"tokens", o.model.tokens},
	} {
		if f.value < 1 || f.value > most {
			return fmt.Errorf("-%s is %d, want 1 to %d", f.name, f.value, most)
		}
	}
	return nil
}
