package main

import (
	"io"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/examples/internal/command"
)

// options are what the command line and the environment say.
type options struct {
	stepCount int
	speed     float64
	config    vram.Config
}

// Not more steps than that: every operation's time is kept for the table, 8 bytes each.
const mostSteps = 100_000

// parse reads the flags over the environment over the defaults. Its error is flag.ErrHelp or a *command.UsageError; help goes to
// stderr.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := command.NewFlags("pipeline", `"12GB"`)
	flags.IntVar(&o.stepCount, "steps", 300, "training steps")
	flags.Float64Var(&o.speed, "speed", 1, "how many times faster than recorded the device computes")
	footprint := flags.String("footprint", "", "balanced, lean or fast (default balanced)")
	flags.Over("footprint", func(c *vram.Config) (err error) {
		c.Footprint, err = vram.ParseFootprint(*footprint)
		return err
	})
	if err := flags.Parse(args, stderr); err != nil {
		return o, err
	}
	switch {
	case o.stepCount < 1 || o.stepCount > mostSteps:
		return o, command.Misuse("-steps is %d, want 1 to %d", o.stepCount, mostSteps)
	case !(o.speed >= 0.01 && o.speed <= 1000): // also what is no number
		return o, command.Misuse("-speed is %v, want 0.01 to 1000", o.speed)
	}
	o.config, err = flags.Config()
	return o, err
}
