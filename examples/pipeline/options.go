package main

import (
	"io"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/examples/internal/command"
	"github.com/go-vram/vram/lab/replay"
)

// options are the settings of the command line and the environment.
type options struct {
	stepCount int
	speed     float64
	mostAhead int
	devices   int          // for the stages in turn; 0: 1
	patient   bool         // stages wait for memory
	limit     replay.Limit // if given
	config    vram.Config
}

// Not more steps than that: every operation's time is kept for the table, 8 bytes each.
const mostSteps = 100_000

// parse reads defaults, environment and flags, in this order. Its error is flag.ErrHelp or a *command.UsageError; help goes to
// stderr.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := command.NewFlags("pipeline", `"12GB", or "0.9x" of what lived at most in the recording`)
	flags.IntVar(&o.stepCount, "steps", 300, "training steps")
	flags.Float64Var(&o.speed, "speed", 1, "how many times faster than recorded the device computes")
	footprint := flags.String("footprint", "", "balanced, lean or fast (default balanced)")
	flags.Over("footprint", func(c *vram.Config) (err error) {
		c.Footprint, err = vram.ParseFootprint(*footprint)
		return err
	})
	flags.IntVar(&o.mostAhead, "ahead", fullAhead, "forwards that a stage begins with before its first backward, at most")
	flags.IntVar(&o.devices, "devices", 1, "devices that the stages run on, from -device on")
	flags.BoolVar(&o.patient, "wait", false, "wait for memory that other stages have, rather than fail")
	flags.Over("limit", func(*vram.Config) (err error) {
		o.limit, err = replay.ParseLimit(flags.Lookup("limit").Value.String())
		return err
	})
	if err := flags.Parse(args, stderr); err != nil {
		return o, err
	}
	switch {
	case o.stepCount < 1 || o.stepCount > mostSteps:
		return o, command.Misuse("-steps is %d, want 1 to %d", o.stepCount, mostSteps)
	case o.devices < 1 || o.devices > stageCount:
		return o, command.Misuse("-devices is %d, want 1 to %d", o.devices, stageCount)
	case o.mostAhead < 0:
		return o, command.Misuse("-ahead is %d, want 0 or more", o.mostAhead)
	case !(o.speed >= 0.01 && o.speed <= 1000): // NaN, too
		return o, command.Misuse("-speed is %v, want 0.01 to 1000", o.speed)
	}
	o.config, err = flags.Config()
	if _, simulated := o.config.Driver.(*sim.Driver); simulated && o.devices > 1 {
		o.config.Driver = sim.New(sim.Config{Clock: sim.Running, Devices: o.config.Ordinal + o.devices})
	}
	return o, err
}
