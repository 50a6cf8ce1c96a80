package command

import (
	"errors"
	"flag"
	"io"

	"github.com/go-vram/vram"
)

// Flags are a program's flags, with the common ones: -driver, -device and -limit.
type Flags struct {
	*flag.FlagSet
	overs map[string]func(*vram.Config) error
}

// NewFlags returns the common flags, to which a program adds its own. The example is a limit.
func NewFlags(name, exampleLimit string) *Flags {
	f := &Flags{flag.NewFlagSet(name, flag.ContinueOnError), map[string]func(*vram.Config) error{}}
	f.SetOutput(io.Discard) // the caller prints errors
	driver := f.String("driver", "", "auto, dynamic (a GPU) or sim; auto takes a GPU where there is one (default auto)")
	f.Over("driver", func(c *vram.Config) (err error) {
		c.Driver, err = vram.DriverNamed(*driver)
		return err
	})
	device := f.Int("device", 0, "the device's number")
	f.Over("device", func(c *vram.Config) error {
		c.Ordinal = *device
		return nil
	})
	limit := f.String("limit", "", "most memory to hold, as "+exampleLimit+" (default all)")
	f.Over("limit", func(c *vram.Config) (err error) {
		c.LimitBytes, err = vram.ParseBytes(*limit)
		return err
	})
	return f
}

// Over has a given flag change the configuration of the variables. It replaces an earlier Over of the flag.
func (f *Flags) Over(name string, change func(*vram.Config) error) { f.overs[name] = change }

// Parse reads the flags; there are no arguments. Help goes to stderr. Errors: flag.ErrHelp, *UsageError.
func (f *Flags) Parse(args []string, stderr io.Writer) error {
	err := f.FlagSet.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(stderr)
		f.Usage()
		return flag.ErrHelp
	case err != nil:
		return &UsageError{err}
	case f.NArg() > 0:
		return Misuse("%q: there are no arguments, only flags", f.Arg(0))
	}
	return nil
}

// Config returns the configuration of the given flags, else of the variables (VRAM_*), else the defaults. The default driver is
// a GPU's if there is a GPU, else the simulated device's. Errors: *UsageError.
func (f *Flags) Config() (vram.Config, error) {
	c, err := vram.ConfigFromEnv(vram.Config{})
	if err != nil {
		return c, &UsageError{err}
	}
	f.Visit(func(given *flag.Flag) {
		change := f.overs[given.Name]
		if err != nil || change == nil {
			return
		}
		if err = change(&c); err != nil {
			err = Misuse("-%s: %w", given.Name, err)
		}
	})
	if err == nil && c.Driver == nil { // only where none was named: auto looks for a GPU
		c.Driver, err = vram.DriverNamed("auto")
	}
	return c, err
}
