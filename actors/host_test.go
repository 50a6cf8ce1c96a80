package actors

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// logged is a host that lists the calls of it, and runs functions at once.
type logged struct{ calls []string }

func (l *logged) Go(name string, f func()) { l.calls = append(l.calls, "go "+name); f() }
func (l *logged) Wait(closed ...<-chan struct{}) {
	l.calls = append(l.calls, "wait")
	for _, c := range closed {
		<-c
	}
}
func (l *logged) Reach(place string) { l.calls = append(l.calls, "reach "+place) }

func (l *logged) Behavior(name string, b Behavior) Behavior {
	l.calls = append(l.calls, "behavior of "+name)
	return &relayed{b, l}
}

// relayed lists the messages of an actor.
type relayed struct {
	Behavior
	to *logged
}

func (r *relayed) Receive(m Message) {
	r.to.calls = append(r.to.calls, "receive")
	r.Behavior.Receive(m)
}

// A host runs, waits and yields for its callers, and its wrapper of a behavior gets the messages.
func TestAHostTakesThePlaceOfTheScheduler(t *testing.T) {
	l := &logged{}
	ran := 0
	closed := make(chan struct{})
	Go(l, "a name", func() { ran++; close(closed) })
	Wait(l, closed)
	Yield(l)
	Yield(nil)
	w := NewWorker(l, "worker")
	w.Start()
	w.Schedule(func() { ran++ })
	w.End()
	<-w.Done()
	assert.Equal(t, []string{"go a name", "wait", "reach yield", "go worker", "go worker"}, l.calls)
	assert.Equal(t, 2, ran)

	l.calls = nil
	p := &probe{}
	r, err := Spawn(l, nil, "probe", p)
	require.NoError(t, err)
	require.Contains(t, l.calls, "behavior of probe")
	l.calls = nil
	r.Call(newJob(func() { ran++ }))
	assert.Contains(t, l.calls, "receive")
	assert.Equal(t, 3, ran)
	assert.Equal(t, 1, p.received)
	r.Stop(nil)
	<-r.Done()
}

// A stretch of a turn receives as many messages as it may, in their order, and leaves the others.
func TestATurnReceivesNoMoreThanItMay(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	b := &r.box
	require.True(t, b.state.CompareAndSwap(idle, running))
	var all []*job
	for range 20 {
		all = append(all, newJob(nil))
		r.Tell(all[len(all)-1])
	}
	for left := 7; p.received < 20; left = 7 {
		before := p.received
		b.turn(&left)
		leaveTurn()
		assert.Equal(t, min(20, before+7), p.received)
		assert.Equal(t, 7-(p.received-before), left)
	}
	d := b.leave()
	assert.False(t, d.more)
	for _, j := range all {
		require.NoError(t, j.wait())
	}
}
