// Command measure measures the model of package model, and writes a file with which another implementation compares itself. The
// programs lab/peers/gpt_parity.py and gpt_speed.py read its output.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/examples/gpt/internal/device"
	"github.com/go-vram/vram/examples/gpt/model"
	"github.com/go-vram/vram/examples/internal/command"
)

func main() { os.Exit(command.Interruptible(run)) }

// run executes the program and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if err == nil {
		err = open(ctx, o, stdout)
	}
	return command.Exit(ctx, "measure", err, stderr)
}

// options are the settings of the command line and the environment.
type options struct {
	config   vram.Config
	name     string
	sizes    model.Config
	training model.Training
	what     string
	file     string
	steps    int
	warm     int
	seed     uint64
}

// parse reads defaults, environment and flags, in this order. Its error is flag.ErrHelp or a *command.UsageError; help goes
// to stderr.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := command.NewFlags("measure", `"8GB"`)
	flags.StringVar(&o.what, "what", "speed", "speed: time, memory and allocations of a step; parts: time of each kernel; parity: a file for gpt_parity.py")
	flags.StringVar(&o.name, "model", "tiny", model.Names()+": the model's sizes")
	of := flags.String("type", "float32", "float32 or bfloat16: the type that the network computes with")
	flags.IntVar(&o.training.Batch, "batch", 4, "sequences that are computed at once")
	flags.IntVar(&o.training.Parts, "parts", 1, "batches in a step, whose gradients are added")
	flags.IntVar(&o.training.Length, "length", 0, "positions in a sequence (default all that the model has)")
	flags.BoolVar(&o.training.Graph, "graph", true, "launch a step as a CUDA graph")
	flags.IntVar(&o.steps, "steps", 20, "steps to measure, or to write")
	flags.IntVar(&o.warm, "warm", 5, "steps before, for -what speed")
	flags.StringVar(&o.file, "file", "", "the file to write, for -what parity")
	flags.Uint64Var(&o.seed, "seed", 1, "of weights and tokens")
	if err := flags.Parse(args, stderr); err != nil {
		return o, err
	}
	var known bool
	if o.sizes, known = model.Named(o.name); !known {
		return o, command.Misuse("-model is %q: want %s", o.name, model.Names())
	}
	switch *of {
	case "float32":
	case "bfloat16":
		o.sizes.Type = tensor.BFloat16
	default:
		return o, command.Misuse("-type is %q: want float32 or bfloat16", *of)
	}
	if o.training.Length == 0 {
		o.training.Length = o.sizes.Context
	}
	switch {
	case o.what != "speed" && o.what != "parts" && o.what != "parity":
		return o, command.Misuse("-what is %q: want speed, parts or parity", o.what)
	case o.what == "parity" && o.file == "":
		return o, command.Misuse("-what parity needs a -file")
	case o.steps < 1 || o.warm < 0:
		return o, command.Misuse("want -steps from 1 and -warm from 0")
	}
	o.training.Graph = o.training.Graph && o.what != "parts"
	o.training.Clip, o.training.Decay = 1, 0.1
	o.training.Schedule = model.Schedule{Rate: 6e-4, Warmup: 2, Steps: 10}
	o.config, err = device.Config(flags)
	return o, err
}

// open opens the device, and measures.
func open(ctx context.Context, o options, out io.Writer) (err error) {
	d, err := device.Open(o.config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close(ctx)) }()
	m, err := model.New(d.Context, d.Ops, o.sizes, o.seed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	o.training.Memory = d.Memory
	t, err := model.NewTrainer(m, o.training)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	x := &measured{Trainer: t, options: o, random: rand.New(rand.NewPCG(o.seed, 1))} //nolint:gosec // no secret
	x.tokens = make([]int64, max(o.training.Parts, 1)*o.training.Batch*o.training.Length)
	x.targets = make([]int64, len(x.tokens))
	switch o.what {
	case "parts":
		return x.parts(out)
	case "parity":
		return x.parity()
	}
	s, err := x.speed(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(s)
}

// measured is a trainer that is measured, with random tokens.
type measured struct {
	*model.Trainer
	options

	random          *rand.Rand
	tokens, targets []int64
}

// draw draws the next batch.
func (m *measured) draw() {
	for i := range m.tokens {
		m.tokens[i], m.targets[i] = m.random.Int64N(int64(m.sizes.Vocabulary)), m.random.Int64N(int64(m.sizes.Vocabulary))
	}
}
