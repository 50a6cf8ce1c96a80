package model

import (
	"errors"
	"fmt"
	"math"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
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
	Batch    int // sequences in a step
	Length   int // positions in a sequence
	Schedule Schedule
	Clip     float64 // greatest norm of all gradients together; 0: no bound
	Decay    float64 // of weights that are multiplied with; the other parameters do not decay
	Graph    bool    // capture a step as a graph after the first one
}

// Trainer trains a model. It is for one goroutine at a time.
type Trainer struct {
	*Model

	training Training
	scope    *tensor.Scope

	tokens, targets *tensor.Tensor // of a batch
	rate, count     *tensor.Tensor // of the step
	each            *tensor.Tensor // gradient of the loss for the loss of each position: 1/rows
	loss, norm      *tensor.Tensor // of the last step
	limit           *tensor.Tensor // greatest norm
	decayed, others []ops.AdamWState

	step  int
	graph *cuda.Graph
}

// NewTrainer makes a trainer. Close frees it, before the model. Errors: *ConfigError, and errors of memory.
func NewTrainer(m *Model, t Training) (*Trainer, error) {
	if t.Batch < 1 || t.Batch > mostOf || t.Length < 1 || t.Length > m.config.Context {
		return nil, &ConfigError{fmt.Sprintf("want a batch of 1 to %d sequences of 1 to %d positions", mostOf, m.config.Context)}
	}
	scope, err := tensor.NewScope(m.scope.Context())
	if err != nil {
		return nil, err
	}
	x := &Trainer{Model: m, training: t, scope: scope}
	p := pass{scope: scope}
	zeros := func(of tensor.Type, shape ...int) *tensor.Tensor { return p.got(tensor.Zeros(scope, of, shape...)) }
	rows := t.Batch * t.Length
	x.tokens, x.targets = zeros(tensor.Int64, t.Batch, t.Length), zeros(tensor.Int64, rows)
	x.rate, x.count, x.loss, x.norm = zeros(tensor.Float32), zeros(tensor.Float32), zeros(tensor.Float32), zeros(tensor.Float32)
	x.each = p.got(tensor.Full(scope, float32(1/float64(rows)), rows))
	x.limit = p.got(tensor.Full(scope, float32(t.Clip)))
	for _, a := range m.all {
		if a.Param.Rank() > 1 {
			x.decayed = append(x.decayed, a.AdamWState)
		} else {
			x.others = append(x.others, a.AdamWState)
		}
		for _, t := range []*tensor.Tensor{a.Grad, a.First, a.Second} { // a graph's memory ends with it: these outlive it
			p.did(t.Allocate())
		}
	}
	for _, t := range []*tensor.Tensor{x.tokens, x.targets, x.rate, x.count, x.loss, x.norm} {
		p.did(t.Allocate())
	}
	if p.err != nil {
		return nil, errors.Join(p.err, scope.Close())
	}
	return x, nil
}

// Close frees the trainer, and leaves the model.
func (t *Trainer) Close() (err error) {
	if t.graph != nil {
		err = t.graph.Close()
	}
	return errors.Join(err, t.scope.Close())
}

// Steps returns the number of steps that were made.
func (t *Trainer) Steps() int { return t.step }

// Step trains with a batch: sequences of Length tokens, one after the other, and for each token the next one. It submits
// the work and does not wait for it. Errors: *ConfigError for a batch of another size, and errors of the device.
func (t *Trainer) Step(tokens, targets []int64) error {
	if len(tokens) != t.tokens.Len() || len(targets) != t.targets.Len() {
		return &ConfigError{fmt.Sprintf("want %d tokens and targets, not %d and %d", t.tokens.Len(), len(tokens), len(targets))}
	}
	next := t.step + 1
	err := errors.Join(
		tensor.Write(t.tokens, tokens), tensor.Write(t.targets, targets),
		tensor.Fill(t.scope, t.rate, float32(t.training.Schedule.At(next))), tensor.Fill(t.scope, t.count, float32(next)))
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
		if t.graph, err = c.Capture(t.submit); err != nil {
			return err
		}
	}
	if t.graph != nil {
		return t.graph.Launch(c)
	}
	return t.submit()
}

// submit submits a step, operation by operation.
func (t *Trainer) submit() error {
	return tensor.Scoped(t.scope, func(s *tensor.Scope) error {
		p := &pass{Ops: t.ops, scope: s}
		for _, x := range t.all {
			p.did(p.FillInto(s, x.Grad, 0))
		}
		r := t.forward(p, t.tokens)
		losses := p.got(p.CrossEntropy(s, r.logits, t.targets))
		p.did(p.MeanInto(s, t.loss, losses))
		dlogits := p.got(p.CrossEntropyBackward(s, t.each, r.logits, t.targets))
		p.free(r.logits, losses)
		t.backward(p, dlogits, r)
		t.clip(p)
		step, config := ops.AdamWStep{RateAt: t.rate, StepAt: t.count}, ops.AdamWConfig{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8}
		p.did(p.AdamWAll(s, t.others, step, config))
		config.Decay = t.training.Decay
		p.did(p.AdamWAll(s, t.decayed, step, config))
		p.did(t.refresh())
		return p.err
	})
}

// clip divides all gradients so that their norm is at most the limit.
func (t *Trainer) clip(p *pass) {
	if t.training.Clip == 0 {
		return
	}
	squares := p.got(tensor.Zeros(p.scope, tensor.Float32))
	for _, x := range t.all {
		square := p.got(p.Mul(p.scope, x.Grad, x.Grad))
		of := p.got(p.Sum(p.scope, square, false))
		p.did(p.AddInto(p.scope, squares, squares, of))
		p.free(square, of)
	}
	p.did(p.SqrtInto(p.scope, t.norm, squares))
	scale := p.got(p.Div(p.scope, t.limit, t.norm))
	p.did(p.ClampInto(p.scope, scale, scale, math.Inf(-1), 1))
	for _, x := range t.all {
		p.did(p.MulInto(p.scope, x.Grad, x.Grad, scale))
	}
}

// Loss waits for the last step, and returns the mean of the losses of its positions.
func (t *Trainer) Loss() (float32, error) { return tensor.Item[float32](t.loss) }

// Norm waits for the last step, and returns the norm of its gradients before they were divided; 0 without Training.Clip.
func (t *Trainer) Norm() (float32, error) { return tensor.Item[float32](t.norm) }
