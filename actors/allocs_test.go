//go:build !race && !invariants

package actors

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// plain is a message that costs nothing by itself.
type plain struct {
	Link
	answered chan struct{}
}

func (*plain) Fail(error) {}

// sink receives and signals.
type sink struct{ received int }

func (s *sink) Receive(m Message) {
	s.received++
	if p, ok := m.(*plain); ok && p.answered != nil {
		p.answered <- struct{}{}
	}
}
func (*sink) Detach() Effects      { return nil }
func (*sink) Panicked(Panic) error { return nil }
func (*sink) Stopped(error)        {}

// lasting is an effect that allocates nothing.
type lasting struct{ performed int }

func (e *lasting) Perform() { e.performed++ }

type lastingSink struct {
	sink
	effects lasting
}

func (s *lastingSink) Detach() Effects { return &s.effects }

func TestNothingAllocates(t *testing.T) {
	s := &sink{}
	r := spawn(t, s)
	m := &plain{}
	assert.Zero(t, testing.AllocsPerRun(1000, func() { r.Call(m) }), "call")
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		if r.TryEnter() {
			r.Perform(r.Leave())
		}
	}), "enter and leave")
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		var effects Effects
		func() {
			if r.TryEnter() {
				defer r.Exit(&effects, nil)
			}
		}()
		r.Perform(effects)
	}), "enter and exit")
	told := &plain{answered: make(chan struct{}, 1)}
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		r.Tell(told)
		<-told.answered
	}), "tell")

	e := &lastingSink{}
	r = spawn(t, e)
	assert.Zero(t, testing.AllocsPerRun(1000, func() { r.Call(m) }), "call with effects")
	assert.Equal(t, e.received, 1001)
	assert.GreaterOrEqual(t, e.effects.performed, 1001)
}
