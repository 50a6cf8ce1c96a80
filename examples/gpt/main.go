// Command gpt trains GPT-2's decoder on text, in pure Go, on a GPU, or on the processor where there is none, and prints a text
// that it continues. It begins with random weights or with published ones. Package model has the network; its gradient is written
// out next to each part. With -stages or -devices it trains in the stages of a pipeline, on one GPU or on several, and
// with -copies in several copies of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/safetensors"
	"github.com/go-vram/vram/examples/gpt/bpe"
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
	return command.Exit(ctx, "gpt", err, stderr)
}

// options are the settings of the command line and the environment.
type options struct {
	config     vram.Config
	sizes      model.Config
	training   model.Training
	steps      int
	every      int // steps between two lines
	seed       uint64
	data       []string
	mostBytes  int64
	checkpoint string
	save       int           // steps between two checkpoints; 0: one at the end
	most       time.Duration // of training; 0: no bound
	stages     int           // of a pipeline; 0: one for each of several devices, or none
	copies     int           // of the pipeline
	devices    []int         // of the stages of all copies
	pipelined  bool
	weights    string
	tokenizer  string
	prompt     string
	sample     int
	sampling   model.Sampling
}

// parse reads defaults, environment and flags, in this order. Its error is flag.ErrHelp or a *command.UsageError; help goes
// to stderr.
func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := command.NewFlags("gpt", `"8GB"`)
	sizes := flags.String("model", "tiny", model.Names()+": the model's sizes")
	of := flags.String("type", "float32", "float32 or bfloat16: the type that the network computes with")
	data := flags.String("data", "", "files to learn from, separated by commas (default Go's source tree)")
	flags.Int64Var(&o.mostBytes, "bytes", 8<<20, "most bytes to learn from")
	flags.IntVar(&o.steps, "steps", 100, "training steps in all, with the steps of the checkpoint")
	flags.IntVar(&o.every, "every", 10, "steps between two lines of progress")
	flags.IntVar(&o.training.Batch, "batch", 4, "sequences that are computed at once")
	flags.IntVar(&o.training.Parts, "parts", 1, "batches in a step, whose gradients are added")
	flags.IntVar(&o.training.Length, "length", 0, "positions in a sequence (default all that the model has)")
	flags.Float64Var(&o.training.Schedule.Rate, "rate", 3e-3, "highest learning rate")
	flags.Uint64Var(&o.seed, "seed", 1, "of weights, batches and the sample: one seed has one result, bit for bit")
	flags.BoolVar(&o.training.Graph, "graph", true, "launch a step as a CUDA graph")
	flags.StringVar(&o.checkpoint, "checkpoint", "", "file to continue from, if it is there, and to save to at the end")
	flags.IntVar(&o.save, "save", 0, "steps between two checkpoints (default one at the end)")
	flags.DurationVar(&o.most, "for", 0, "end after this time, as 30s (default after -steps)")
	flags.IntVar(&o.stages, "stages", 0, "train in so many stages of a pipeline, with -parts as micro-batches (default one stream)")
	flags.IntVar(&o.copies, "copies", 1, "train with so many copies of the pipeline, which divide -parts and -devices")
	devices := flags.String("devices", "", "devices of the stages, separated by commas, as 0,1 (default -device); of several copies, the devices of each after each other")
	demo := flags.Bool("demo", false, "train for half a minute, in two stages, with settings for the device: others of the model are ignored")
	flags.StringVar(&o.weights, "weights", "", "file of a published GPT-2 to begin with, in the format of safetensors")
	flags.StringVar(&o.tokenizer, "tokenizer", "", "folder with the model's vocab.json and merges.txt (default each byte is a token)")
	flags.StringVar(&o.prompt, "prompt", "func ", "beginning of the text at the end")
	flags.IntVar(&o.sample, "sample", 200, "tokens to add to the prompt")
	flags.Float64Var(&o.sampling.Temperature, "temperature", 0.8, "of the sample: less is more certain, and 0 takes the most probable token")
	flags.IntVar(&o.sampling.Top, "top", 50, "draw only so many of the most probable tokens; 0 for all")
	if err := flags.Parse(args, stderr); err != nil {
		return o, err
	}
	var known bool
	if o.sizes, known = model.Named(*sizes); !known {
		return o, command.Misuse("-model is %q: want %s", *sizes, model.Names())
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
	if *data != "" {
		o.data = strings.Split(*data, ",")
	}
	if o.steps < 0 || o.every < 1 || o.sample < 0 || o.prompt == "" || o.mostBytes < 1 || o.training.Parts < 1 {
		return o, command.Misuse("want -steps and -sample from 0, -every, -bytes and -parts from 1, and a -prompt")
	}
	if o.save < 0 || o.save > 0 && o.checkpoint == "" || o.most < 0 || o.stages < 0 {
		return o, command.Misuse("want -save with a -checkpoint, and -save, -for and -stages from 0")
	}
	if !(o.sampling.Temperature >= 0) || o.sampling.Top < 0 {
		return o, command.Misuse("want -temperature and -top from 0")
	}
	if o.config, err = device.Config(flags); err != nil {
		return o, err
	}
	if *demo {
		o.demonstrate()
	}
	o.training.Clip, o.training.Decay = 1, 0.1
	o.training.Schedule.Steps, o.training.Schedule.Warmup = o.steps, max(1, o.steps/20)
	return o, o.stage(*devices)
}

// open opens the device, and trains on it.
func open(ctx context.Context, o options, out io.Writer) (err error) {
	var code coder
	if o.tokenizer != "" {
		if code.Tokenizer, err = bpe.Open(o.tokenizer); err != nil {
			return err
		}
	}
	if code.size() > o.sizes.Vocabulary {
		return command.Misuse("the tokenizer has %d tokens, and the model %d", code.size(), o.sizes.Vocabulary)
	}
	var t text
	if o.steps > 0 {
		if t, err = load(o.mostBytes, o.data, code); err != nil {
			return err
		}
		if shorter := min(len(t.lessons), len(t.tests)); shorter <= o.training.Length {
			return command.Misuse("the text's parts have %d tokens: too few for sequences of %d", shorter, o.training.Length)
		}
	}
	all, err := openDevices(o)
	defer func() {
		for _, d := range slices.Backward(all) {
			err = errors.Join(err, d.Close(ctx))
		}
	}()
	if err != nil {
		return err
	}
	var x learner
	if o.pipelined {
		x, err = newStaged(ctx, all, o)
	} else {
		x, err = newAlone(all[0], o)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	p := program{options: o, coder: code, text: t, devices: all, learner: x, out: out}
	return p.run(ctx)
}

// program trains a model with a text.
type program struct {
	learner
	options

	coder   coder
	text    text
	batch   drawn
	devices []*device.Device
	out     io.Writer
}

func (p *program) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }

// run trains, saves and samples.
func (p *program) run(ctx context.Context) error {
	info := p.devices[0].Info()
	p.printf("%s, driver %s\n%d parameters of %v; %s of text\n", info.Name, info.Driver, p.Size(), p.sizes.Type,
		humanize.IBytes(uint64(p.text.bytes))) //nolint:gosec // not negative
	if err := p.begin(); err != nil {
		return err
	}
	trained := p.train(ctx)
	if p.checkpoint != "" && (trained == nil || ctx.Err() != nil) { // an interrupt loses nothing
		if err := p.Save(p.checkpoint); err != nil {
			return errors.Join(trained, err)
		}
		p.printf("saved step %d to %s\n", p.Steps(), p.checkpoint)
	}
	if trained != nil || p.sample == 0 {
		return trained
	}
	p.sampling.Random = rand.New(rand.NewPCG(p.seed, 1)) //nolint:gosec // no secret
	tokens, err := p.Sample(p.coder.encode([]byte(p.prompt)), p.sample, p.sampling)
	if err != nil {
		return err
	}
	p.printf("---\n%s\n", strings.ToValidUTF8(string(p.coder.decode(tokens)), "?"))
	return nil
}

// begin reads the weights, if they are named, and continues from the checkpoint, if it is there.
func (p *program) begin() error {
	if p.weights != "" {
		f, err := safetensors.OpenFile(p.weights)
		if err != nil {
			return err
		}
		if err := errors.Join(p.Load(f), f.Close()); err != nil {
			return err
		}
		p.printf("weights of %s\n", p.weights)
	}
	return p.resume()
}

// resume continues from the checkpoint, if it is there.
func (p *program) resume() error {
	if p.checkpoint == "" {
		return nil
	}
	f, err := safetensors.OpenFile(p.checkpoint)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if err := p.Resume(f); err != nil {
		return errors.Join(err, f.Close())
	}
	p.printf("continues after step %d of %s\n", p.Steps(), p.checkpoint)
	return f.Close()
}

// train makes the steps that are left, and prints the progress.
func (p *program) train(ctx context.Context) error {
	began := time.Now()
	start, made, saved := began, 0, p.Steps()
	for over := false; p.Steps() < p.steps && !over; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.save > 0 && p.Steps() >= saved+p.save {
			if err := p.Save(p.checkpoint); err != nil {
				return err
			}
			saved = p.Steps()
		}
		p.batch.draw(p.text.lessons, p.seed, p.Steps(), p.training.Batch*p.training.Parts, p.training.Length)
		if err := p.Step(p.batch.tokens, p.batch.targets); err != nil {
			return err
		}
		over = p.most > 0 && time.Since(began) >= p.most
		if made++; p.Steps()%p.every != 0 && p.Steps() != p.steps && !over {
			continue
		}
		loss, err := p.Loss() // waits
		if err != nil {
			return err
		}
		var reserved, live int64
		for _, d := range p.devices {
			stats := d.Device().Stats()
			reserved, live = reserved+stats.ReservedBytes, live+stats.LiveBytes
		}
		p.printf("step %4d: loss %.9g, %s tokens/s, %s reserved, %s live\n", p.Steps(), loss,
			humanize.CommafWithDigits(float64(made*len(p.batch.tokens))/time.Since(start).Seconds(), 1),
			humanize.IBytes(uint64(reserved)), humanize.IBytes(uint64(live))) //nolint:gosec // not negative
		if err := p.showStages(ctx); err != nil {
			return err
		}
		start, made = time.Now(), 0
	}
	return nil
}
