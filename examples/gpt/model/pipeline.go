package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/safetensors"
	"github.com/go-vram/vram/cuda"
)

// Place is a device on which stages of a pipeline compute: any context of it, which outlives the pipeline, and its operations.
type Place struct {
	Context *cuda.Context
	Ops     ops.Ops
}

// Pipeline trains a model in stages: each has a part of the blocks, the first one the tables and the last one the head and the
// loss. The head costs as much as several blocks of a small model, so the last stage has fewer. The batches of a step are
// micro-batches, which the stages compute in the order 1F1B. Losses and parameters are the same, bit for bit, for any number of
// stages. It is for one goroutine at a time.
//
// A pipeline may have several copies, each on devices of its own, which divide the micro-batches of a step in order. The gradients of the
// copies are added up in the order of their numbers, and the state of training of each block is with one copy: it computes the new
// values, and the others get them. So one number of copies has one result, bit for bit. Another number has another order of additions:
// a copy adds up the gradients of its own micro-batches first. The losses of the first step are the same for any number.
type Pipeline struct {
	config   Config
	training Training
	stages   []*stage // of the first copy, and of each other one
	links    []*link
	step     int
	failed   error
}

// NewPipeline makes a model with random parameters, as New does, in a number of copies, of a number of stages each. The places are
// divided over the copies in order, and the places of a copy over its stages. Their work is captured as graphs. Where memory is short a
// stage keeps the activations of fewer micro-batches, at least one, and waits for others more often. It waits for the device.
// Training.Graph has no meaning here. Close frees the pipeline, before the places. Errors: *ConfigError, as for places or micro-batches
// that the copies cannot divide, and errors of operations and memory.
func NewPipeline(ctx context.Context, places []Place, config Config, t Training, seed uint64, copies, stages int) (p *Pipeline, err error) {
	t.Parts = max(t.Parts, 1)
	if err := errors.Join(config.check(), t.check(config)); err != nil {
		return nil, err
	}
	if stages < 1 || stages > config.Layers || len(places) < 1 || len(places) > max(copies, 1)*stages {
		return nil, &ConfigError{fmt.Sprintf("want 1 to %d stages, one for each layer at most, and for each device at least", config.Layers)}
	}
	if err := divide(places, t, copies); err != nil {
		return nil, err
	}
	made := &Pipeline{config: config, training: t}
	defer func() {
		if p == nil { // also after a panic
			err = errors.Join(err, made.Close())
		}
	}()
	each := len(places) / copies
	for i := range copies * stages {
		where := position{number: i % stages, of: stages, copy: i / stages, copies: copies}
		place := where.copy*each + where.number*each/stages
		st, err := newStage(places[place], place, config, t, seed, where)
		if err != nil {
			return nil, where.failed(err)
		}
		made.stages = append(made.stages, st)
	}
	made.connect()
	if err := made.share(ctx); err != nil {
		return nil, err
	}
	for _, st := range made.stages {
		if err := errors.Join(st.prepare(), st.context().Synchronize(ctx), st.stream().Trim(ctx)); err != nil {
			return nil, st.failed(err)
		}
	}
	if err := made.capture(ctx); err != nil {
		return nil, err
	}
	return made, nil
}

// capture captures the slots of all stages. First each stage has one, then the first stages more, as long as there is memory: no
// stage has fewer than a later one, which would wait for it for ever. Memory for parcels is left.
func (p *Pipeline) capture(ctx context.Context) (err error) {
	var left []vram.Batch
	defer func() {
		for _, b := range left {
			err = errors.Join(err, b.Free())
		}
	}()
	for depth := range p.stages[0].of {
		for _, st := range p.stages {
			if depth >= min(st.of-st.number, st.share()) {
				continue
			}
			failed := st.capture()
			if depth > 0 && errors.Is(failed, vram.ErrOutOfMemory) {
				return nil
			}
			if failed != nil {
				return st.failed(failed)
			}
		}
		if depth == 0 {
			if left, err = p.leave(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// share brings the values of parameters to the other copies, and the values of the token table to the head.
func (p *Pipeline) share(ctx context.Context) error {
	for _, st := range p.stages {
		if err := st.announce(ctx); err != nil {
			return st.failed(err)
		}
	}
	for _, st := range p.stages {
		err := st.await(ctx)
		if err == nil {
			err = st.pullValues()
		}
		if err != nil {
			return st.failed(err)
		}
	}
	for _, st := range p.stages {
		if err := st.context().Synchronize(ctx); err != nil {
			return st.failed(err)
		}
	}
	for _, stages := range p.copies() {
		first, last := stages[0], stages[len(stages)-1]
		if first == last {
			continue
		}
		if err := errors.Join(first.table.send(ctx, false, first.Model.table.Value), last.table.receive(ctx, last.head.table.Value),
			last.work.drain(), first.work.drain()); err != nil {
			return err
		}
	}
	return nil
}

// Close frees the pipeline. It waits for the device.
func (p *Pipeline) Close() (err error) {
	for _, st := range p.stages {
		err = errors.Join(err, st.context().Synchronize(context.Background()))
	}
	for _, l := range p.links {
		err = errors.Join(err, l.release())
	}
	for _, st := range p.stages {
		err = errors.Join(err, st.releaseMarks())
	}
	for _, st := range slices.Backward(p.stages) {
		err = errors.Join(err, st.close())
	}
	p.stages, p.links = nil, nil
	return err
}

// Step trains with the micro-batches of a step, as Trainer.Step does. Each stage is a goroutine during the step, which ends when
// the device has finished. After an error, also of ctx's end, the parameters are in the middle of a step: only Close is left.
// Errors: *ConfigError for another number of tokens, with which nothing has changed; errors of the device and of memory.
func (p *Pipeline) Step(ctx context.Context, tokens, targets []int64) error {
	if want := p.training.Parts * p.training.Batch * p.training.Length; len(tokens) != want || len(targets) != want {
		return &ConfigError{fmt.Sprintf("want %d tokens and targets, not %d and %d", want, len(tokens), len(targets))}
	}
	if p.failed != nil {
		return p.failed
	}
	in := input{tokens, targets, float32(p.training.Schedule.At(p.step + 1)), float32(p.step + 1)}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for _, st := range p.stages {
		running.Go(func() {
			if err := st.step(ctx, in); err != nil {
				cancel(st.failed(err)) // the others stop; the first cause stays
			}
		})
	}
	running.Wait()
	if p.failed = context.Cause(ctx); p.failed == nil {
		p.step++
	}
	return p.failed
}

// Steps returns the number of steps that were made.
func (p *Pipeline) Steps() int { return p.step }

// Loss returns the mean of the losses of the last step's positions.
func (p *Pipeline) Loss() (float32, error) {
	return tensor.Item[float32](p.stages[p.stages[0].of-1].loss)
}

// Norm returns the norm of all gradients of the last step before they were clipped; 0 without Training.Clip.
func (p *Pipeline) Norm() (float32, error) { return tensor.Item[float32](p.stages[0].norm) }

// Parameters returns the parameters of all stages, in the order of the checkpoint.
func (p *Pipeline) Parameters() (all []*Parameter) {
	for _, st := range p.stages[:p.stages[0].of] {
		for i := range st.all {
			for _, peer := range st.peers {
				if x := peer.all[i]; x.Param != nil {
					all = append(all, x)
				}
			}
		}
	}
	return all
}

// Save writes a checkpoint: the same file as a Trainer's, for any number of stages and copies.
func (p *Pipeline) Save(path string) error { return save(path, p.config, p.step, p.Parameters()) }

// Resume continues the training of a checkpoint of a Trainer, or of a pipeline with any number of stages and copies. Errors: as Trainer.Resume.
func (p *Pipeline) Resume(ctx context.Context, f *safetensors.File) error {
	step, err := restore(f, p.Parameters())
	if err != nil {
		return err
	}
	p.step = step
	return p.refresh(ctx)
}

// Load replaces the parameters, as Model.Load does.
func (p *Pipeline) Load(ctx context.Context, f *safetensors.File) error {
	if err := load(f, p.Parameters()); err != nil {
		return err
	}
	return p.refresh(ctx)
}

// refresh brings the parameters to all that computes with them.
func (p *Pipeline) refresh(ctx context.Context) error {
	for _, st := range p.stages {
		if err := st.refresh(); err != nil {
			return err
		}
	}
	return p.share(ctx)
}

// Whole makes a model in one part with the parameters of the pipeline, as for samples. The caller closes it.
func (p *Pipeline) Whole(at Place) (_ *Model, err error) {
	m, err := New(at.Context, at.Ops, p.config, 0)
	if err != nil {
		return nil, err
	}
	for i, from := range p.Parameters() {
		values, err := tensor.Read[float32](from.Param)
		if err == nil {
			err = tensor.Write(m.all[i].Param, values)
		}
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	if err := m.refresh(); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Usage has the memory and the waits of a stage.
type Usage struct {
	Copy      int     // of the pipeline
	Stage     int     // of the copy
	Device    int     // its place
	Blocks    int     // of the model
	Slots     int     // micro-batches whose activations it can keep
	Idle      float64 // share of the time since the last Usage in which its stream did not compute
	LiveBytes int64   // of its stream and of its graphs
}

// Usage returns the usage of each stage. On a device whose kernels take no time Idle is the share in which the stage's goroutine
// waited for others.
func (p *Pipeline) Usage(ctx context.Context) ([]Usage, error) {
	all := make([]Usage, len(p.stages))
	for i, st := range p.stages {
		stats, err := st.stream().Stats(ctx)
		if err != nil {
			return nil, err
		}
		all[i] = Usage{Copy: st.copy, Stage: st.number, Device: st.place, Blocks: len(st.blocks), Slots: len(st.slots), LiveBytes: stats.LiveBytes}
		for _, s := range st.slots {
			held, err := s.pool.HeldBytes(ctx)
			if err != nil {
				return nil, err
			}
			all[i].LiveBytes += held
		}
		if all[i].Idle, err = st.work.share(); err != nil {
			return nil, err
		}
	}
	return all, nil
}
