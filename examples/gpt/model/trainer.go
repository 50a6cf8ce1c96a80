package model

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/host"
)

// The settings of AdamW.
const (
	Beta1   = 0.9
	Beta2   = 0.95
	Epsilon = 1e-8
)

// Schedule is the learning rate by step: it rises to Rate in Warmup steps, and falls on half a cosine to a tenth of it at
// step Steps.
type Schedule struct {
	Rate          float64
	Warmup, Steps int
}

// At returns the rate of a step, from 1 on.
func (s Schedule) At(step int) float64 {
	if step <= s.Warmup {
		return s.Rate * float64(step) / float64(s.Warmup)
	}
	part := min(1, float64(step-s.Warmup)/float64(max(1, s.Steps-s.Warmup)))
	return s.Rate * (0.1 + 0.9*(1+math.Cos(math.Pi*part))/2)
}

// Training says how a Trainer trains.
type Training struct {
	Batch    int // sequences that are computed at once
	Parts    int // batches in a step, whose gradients are added; 0 for 1
	Length   int // positions in a sequence
	Schedule Schedule
	Clip     float64 // greatest norm of all gradients together, with which a step with Inf or NaN changes nothing; 0: no bound
	Decay    float64 // of weights that are multiplied with; the other parameters do not decay
	Graph    bool    // capture a step as a graph after the first one

	// Memory is page-locked memory from which batches are copied while the step before computes, as host.ByName("cuda:0/pinned")
	// has it. It outlives the trainer. nil: batches are copied from Go's heap, in the order of steps.
	Memory host.Allocator
}

// check returns a *ConfigError for batches that a model cannot have.
func (t Training) check(c Config) error {
	if t.Batch < 1 || t.Length < 1 || t.Length > c.Context || t.Batch > mostOf || t.Parts > mostOf || t.Batch*t.Parts > mostOf {
		return &ConfigError{fmt.Sprintf("want a batch of 1 to %d sequences of 1 to %d positions", mostOf, c.Context)}
	}
	return nil
}

// Trainer trains a model. It is for one goroutine at a time.
type Trainer struct {
	*Model

	training Training
	scope    *tensor.Scope
	feed     *feed

	tokens, targets *tensor.Tensor // of a step: (parts, batch, positions), (parts, rows)
	rate, count     *tensor.Tensor // of the step
	losses          *tensor.Tensor // of the step's rows: (parts, rows)
	loss            *tensor.Tensor // mean of the last step
	norm, scale     *tensor.Tensor // of the last step: of all gradients, and their factor
	endless         *tensor.Tensor // whether the norm is infinite or NaN: the step changes nothing
	gradients       []*tensor.Tensor
	decayed, others []ops.AdamWState

	step  int
	graph *cuda.Graph
}

// NewTrainer makes a trainer. Close frees it, before the model. Errors: *ConfigError, and errors of memory.
func NewTrainer(m *Model, t Training) (*Trainer, error) {
	t.Parts = max(t.Parts, 1)
	if err := t.check(m.config); err != nil {
		return nil, err
	}
	scope, err := tensor.NewScope(m.scope.Context())
	if err != nil {
		return nil, err
	}
	rows := t.Batch * t.Length
	feed, err := newFeed(m.scope.Context(), t.Parts*rows, t.Memory)
	if err != nil {
		return nil, errors.Join(err, scope.Close())
	}
	x := &Trainer{Model: m, training: t, scope: scope, feed: feed}
	p := pass{scope: scope}
	p.in("step")
	var all []*tensor.Tensor // a graph's memory ends with it: these outlive it
	zeros := func(of tensor.Type, shape ...int) *tensor.Tensor {
		all = append(all, p.got(tensor.Zeros(scope, of, shape...)))
		return all[len(all)-1]
	}
	x.tokens, x.targets, x.rate, x.count = feed.views(&p, []int{t.Parts, t.Batch, t.Length}, []int{t.Parts, rows})
	x.losses = zeros(tensor.Float32, t.Parts, rows)
	x.loss, x.norm, x.scale, x.endless = zeros(tensor.Float32), zeros(tensor.Float32), zeros(tensor.Float32), zeros(tensor.Bool)
	for _, a := range m.all {
		if a.Param.Rank() > 1 {
			x.decayed = append(x.decayed, a.AdamWState)
		} else {
			x.others = append(x.others, a.AdamWState)
		}
		x.gradients = append(x.gradients, a.Grad)
		all = append(all, a.Param, a.Value, a.Grad, a.First, a.Second)
	}
	for _, t := range all {
		if p.err == nil {
			p.did(t.Allocate())
		}
	}
	p.in("")
	if p.err != nil {
		return nil, errors.Join(p.err, x.Close())
	}
	return x, nil
}

// Close frees the trainer, and leaves the model.
func (t *Trainer) Close() (err error) {
	if t.graph != nil {
		err = t.graph.Close()
	}
	return errors.Join(err, t.scope.Close(), t.feed.close())
}

// Steps returns the number of steps that were made.
func (t *Trainer) Steps() int { return t.step }

// Step trains with a batch: sequences of Length tokens, one after the other, and for each token the next one. There are as many
// as all parts have. It submits the work and does not wait for it. Errors: *ConfigError for a batch of another size, and errors of
// the device.
func (t *Trainer) Step(tokens, targets []int64) error {
	if len(tokens) != t.tokens.Len() || len(targets) != t.targets.Len() {
		return &ConfigError{fmt.Sprintf("want %d tokens and targets, not %d and %d", t.tokens.Len(), len(tokens), len(targets))}
	}
	next := t.step + 1
	err := t.feed.put(tokens, targets, float32(t.training.Schedule.At(next)), float32(next))
	if err == nil {
		err = t.launch()
	}
	if err == nil {
		t.step = next
	}
	return err
}

// launch runs a step, or the graph that has it. The first step compiles the kernels: the second one is captured.
func (t *Trainer) launch() (err error) {
	c := t.scope.Context()
	if t.graph == nil && t.training.Graph && t.step > 0 {
		if err := t.compact(); err != nil {
			return err
		}
		if t.graph, err = c.Capture(t.submit); err != nil {
			return err
		}
	}
	if t.graph != nil {
		return t.graph.Launch(c)
	}
	return t.submit()
}

// compact returns the free memory of the first step to the driver: in other pieces it serves the graph. A context that cuda.Open
// has not made knows no device: its memory returns to the pool.
func (t *Trainer) compact() error {
	c, ctx := t.scope.Context(), context.Background()
	if err := c.Synchronize(ctx); err != nil {
		return err
	}
	d := c.Device()
	if d == nil {
		return c.Stream().Trim(ctx)
	}
	_, err := d.Trim(ctx, 0)
	return err
}

// submit submits a step, operation by operation.
func (t *Trainer) submit() error {
	return tensor.Scoped(t.scope, func(s *tensor.Scope) error {
		p := &pass{Ops: t.ops, scope: s}
		for part := range t.training.Parts {
			p.adds = part > 0
			t.differentiate(p, part)
		}
		if p.err != nil {
			return p.err
		}
		p.did(p.MeanInto(s, t.loss, t.losses))
		t.change(p)
		return p.err
	})
}

// differentiate computes losses and gradients of a part of the batch.
func (t *Trainer) differentiate(p *pass, part int) {
	of := func(x *tensor.Tensor) *tensor.Tensor {
		if p.err != nil {
			return nil
		}
		return p.got(x.Index(0, part))
	}
	tokens, targets, losses := of(t.tokens), of(t.targets), of(t.losses)
	if p.err != nil {
		return
	}
	r := t.forward(p, tokens)
	logits := t.head(p, r.normed)
	view := t.vocabulary(p, logits)
	if p.err != nil {
		return
	}
	p.did(p.CrossEntropyGradientInto(p.scope, nil, losses, view, targets, ops.LossGradient{Scale: 1 / float64(t.losses.Len())}))
	t.backward(p, logits, r)
}

// change makes a step of AdamW with the gradients, which it clips.
func (t *Trainer) change(p *pass) {
	p.in("optimizer")
	step, config := ops.AdamWStep{RateAt: t.rate, StepAt: t.count}, ops.AdamWConfig{Beta1: Beta1, Beta2: Beta2, Epsilon: Epsilon}
	if t.training.Clip > 0 {
		p.did(p.GradNormInto(p.scope, t.norm, t.scale, t.endless, t.gradients, t.training.Clip))
		step.ScaleAt, step.SkipAt = t.scale, t.endless
	}
	if p.err == nil {
		p.did(p.AdamWAll(p.scope, t.others, step, config))
	}
	config.Decay = t.training.Decay
	if p.err == nil {
		p.did(p.AdamWAll(p.scope, t.decayed, step, config))
	}
}

// Loss waits for the last step, and returns the mean of the losses of its positions.
func (t *Trainer) Loss() (float32, error) { return tensor.Item[float32](t.loss) }

// Norm waits for the last step, and returns the norm of its gradients before they were clipped; 0 without Training.Clip.
func (t *Trainer) Norm() (float32, error) { return tensor.Item[float32](t.norm) }
