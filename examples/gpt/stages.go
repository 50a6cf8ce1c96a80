package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/safetensors"
	"github.com/go-vram/vram/cudadrv/cpu"
	"github.com/go-vram/vram/examples/gpt/internal/device"
	"github.com/go-vram/vram/examples/gpt/model"
	"github.com/go-vram/vram/examples/internal/command"
)

// learner is a model that is trained: on one stream, or in the stages of a pipeline.
type learner interface {
	Size() int
	Steps() int
	Step(tokens, targets []int64) error
	Loss() (float32, error)
	Save(path string) error
	Load(f *safetensors.File) error
	Resume(f *safetensors.File) error
	Sample(text []int64, n int, s model.Sampling) ([]int64, error)
	Close() error
}

// alone is a model on one stream.
type alone struct{ *model.Trainer }

// newAlone makes the model and its trainer.
func newAlone(d *device.Device, o options) (learner, error) {
	m, err := model.New(d.Context, d.Ops, o.sizes, o.seed)
	if err != nil {
		return nil, err
	}
	o.training.Memory = d.Memory
	x, err := model.NewTrainer(m, o.training)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return alone{x}, nil
}

// Close frees trainer and model.
func (a alone) Close() error { return errors.Join(a.Trainer.Close(), a.Model.Close()) }

// staged is a model in stages. A step is always made as a whole: interrupts are looked for between two steps.
type staged struct {
	*model.Pipeline

	place model.Place // of samples
}

// newStaged makes a pipeline on devices.
func newStaged(ctx context.Context, all []*device.Device, o options) (learner, error) {
	var places []model.Place
	for _, d := range all {
		places = append(places, model.Place{Context: d.Context, Ops: d.Ops})
	}
	p, err := model.NewPipeline(ctx, places, o.sizes, o.training, o.seed, o.copies, o.stages)
	if err != nil {
		return nil, err
	}
	return staged{p, places[0]}, nil
}

// Size returns the number of the parameters' elements.
func (s staged) Size() (n int) {
	for _, p := range s.Parameters() {
		n += p.Param.Len()
	}
	return n
}

// Step makes a step.
func (s staged) Step(tokens, targets []int64) error {
	return s.Pipeline.Step(context.Background(), tokens, targets)
}

// Load replaces the parameters.
func (s staged) Load(f *safetensors.File) error { return s.Pipeline.Load(context.Background(), f) }

// Resume continues a checkpoint.
func (s staged) Resume(f *safetensors.File) error { return s.Pipeline.Resume(context.Background(), f) }

// Sample continues a text by a model in one part.
func (s staged) Sample(text []int64, n int, how model.Sampling) ([]int64, error) {
	m, err := s.Whole(s.place)
	if err != nil {
		return nil, err
	}
	tokens, err := m.Sample(text, n, how)
	return tokens, errors.Join(err, m.Close())
}

// openDevices opens the devices of the stages. The caller closes them, also after an error.
func openDevices(o options) (all []*device.Device, err error) {
	for _, ordinal := range o.devices {
		o.config.Ordinal = ordinal
		d, err := device.Open(o.config)
		if err != nil {
			return all, err
		}
		all = append(all, d)
	}
	return all, reach(all)
}

// reach lets devices access each other's memory where they can: copies between them do not go through the host's memory then.
func reach(all []*device.Device) error {
	for _, d := range all {
		for _, peer := range all {
			can, err := d.Device().CanAccessPeer(peer.Device())
			if err == nil && can && d != peer {
				err = d.Device().EnablePeerAccess(peer.Device())
			}
			if err != nil && !errors.Is(err, vram.ErrNoPeerAccess) { // copies work without it
				return err
			}
		}
	}
	return nil
}

// showStages prints the memory of each stage, and its share of waits.
func (p *program) showStages(ctx context.Context) error {
	s, ok := p.learner.(staged)
	if !ok {
		return nil
	}
	all, err := s.Usage(ctx)
	for _, u := range all {
		name := fmt.Sprintf("stage %d", u.Stage)
		if p.copies > 1 {
			name = fmt.Sprintf("copy %d, stage %d", u.Copy, u.Stage)
		}
		p.printf("  %s on device %d: %s, %s at a time, %s, waits %2.0f %%\n", name, p.devices[u.Device].Info().Ordinal,
			english.Plural(u.Blocks, "block", ""), english.Plural(u.Slots, "micro-batch", "micro-batches"), humanize.IBytes(uint64(u.LiveBytes)), 100*u.Idle) //nolint:gosec // not negative
	}
	return err
}

// stage fills in the options of a pipeline: devices is the flag -devices.
func (o *options) stage(devices string) error {
	o.pipelined = o.stages > 0 || o.copies > 1 || devices != ""
	o.devices = []int{o.config.Ordinal}
	if devices != "" {
		o.devices = nil
		for text := range strings.SplitSeq(devices, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return command.Misuse("-devices is %q: want numbers of devices, separated by commas", devices)
			}
			o.devices = append(o.devices, n)
		}
	}
	switch {
	case o.copies < 1 || len(o.devices)%o.copies != 0:
		return command.Misuse("-copies is %d: want at least 1, and as many -devices for each, not %d in all", o.copies, len(o.devices))
	case o.training.Parts%o.copies != 0:
		return command.Misuse("want -parts that %d -copies can divide, not %d", o.copies, o.training.Parts)
	case !o.pipelined:
		return nil
	}
	each := len(o.devices) / o.copies
	o.stages = max(o.stages, each)
	switch {
	case !o.training.Graph:
		return command.Misuse("-graph=false is for one stream: stages are always graphs")
	case o.stages > o.sizes.Layers:
		return command.Misuse("want 1 to %d -stages, at most one for each layer and at least one for each device", o.sizes.Layers)
	}
	return nil
}

// demonstrate sets the settings of a demonstration of half a minute: on a GPU a model that learns to write, elsewhere
// a few steps of the least one. Both have two stages.
func (o *options) demonstrate() {
	o.stages, o.every = 2, 2
	if _, none := o.config.Driver.(*cpu.Driver); none {
		o.sizes, o.steps, o.most = model.Tiny, 20, 20*time.Second
		o.training.Batch, o.training.Parts, o.training.Length, o.sample = 1, 2, 8, 12
		return
	}
	o.sizes, o.steps, o.every, o.most = model.Char, 2000, 200, 30*time.Second
	o.sizes.Type = tensor.BFloat16
	o.training.Batch, o.training.Parts, o.training.Length, o.sample = 32, 4, o.sizes.Context, 400
	o.training.Schedule.Rate = 1e-3
}
