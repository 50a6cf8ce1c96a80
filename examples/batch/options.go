package main

import (
	"io"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/examples/internal/command"
)

// options are the settings of the command line and the environment.
type options struct {
	stepCount int
	model     model
	config    vram.Config
}

// most of each number, so that no length of a tensor overflows.
const most = 1 << 20

// parse reads the flags over the environment over the defaults. Its error is flag.ErrHelp or a *command.UsageError; help goes
// to stderr.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := command.NewFlags("batch", `"2GB"`)
	flags.IntVar(&o.stepCount, "steps", 200, "optimizer steps in each manner")
	flags.IntVar(&o.model.layers, "layers", 12, "layers of the model")
	flags.IntVar(&o.model.hidden, "hidden", 768, "width of the model")
	flags.IntVar(&o.model.vocabulary, "vocabulary", 50257, "tokens that the model knows")
	flags.IntVar(&o.model.tokens, "tokens", 1024, "tokens that the model is shown at a time")
	if err := flags.Parse(args, stderr); err != nil {
		return o, err
	}
	if err := o.check(); err != nil {
		return o, err
	}
	o.config, err = flags.Config()
	return o, err
}

// check reports an invalid flag.
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
			return command.Misuse("-%s is %d, want 1 to %d", f.name, f.value, most)
		}
	}
	return nil
}
