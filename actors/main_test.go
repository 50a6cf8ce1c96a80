package actors

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// probe is a behavior whose messages bring their own code. Its fields belong to the turn unless
// they are atomic.
type probe struct {
	received     int
	panics       []Panic
	onPanic      func(Panic) error
	onDetach     func() Effects
	onStopped    func()
	stoppedCause error
	stoppedCount atomic.Int64
}

func (p *probe) Receive(m Message) {
	p.received++
	if j, ok := m.(*job); ok {
		j.receivedCount.Add(1)
		if j.run != nil {
			j.run()
		}
		j.answer()
	}
}

func (p *probe) Detach() Effects {
	if p.onDetach != nil {
		return p.onDetach()
	}
	return nil
}

func (p *probe) Panicked(crash Panic) error {
	p.panics = append(p.panics, crash)
	if p.onPanic != nil {
		return p.onPanic(crash)
	}
	return nil
}

func (p *probe) Stopped(cause error) {
	p.stoppedCount.Add(1)
	p.stoppedCause = cause
	if p.onStopped != nil {
		p.onStopped()
	}
}

// job is a message that keeps count of its answers.
type job struct {
	Link
	run           func()
	looked        func() // is called where a mailbox looks at the link, before it is queued
	err           error
	answered      chan struct{}
	receivedCount atomic.Int64
	failedCount   atomic.Int64
	answerCount   atomic.Int64
}

func newJob(run func()) *job { return &job{run: run, answered: make(chan struct{})} }

func (j *job) link() *Link {
	if j.looked != nil {
		j.looked()
	}
	return j.Link.link()
}

func (j *job) Fail(err error) {
	j.failedCount.Add(1)
	j.err = err
	j.answer()
}

func (j *job) answer() {
	if j.answerCount.Add(1) == 1 && j.answered != nil {
		close(j.answered)
	}
}

func (j *job) wait() error {
	<-j.answered
	return j.err
}

// effect is a function to be performed.
type effect func()

func (e effect) Perform() { e() }

// once makes a Detach that returns e one time.
func once(e effect) func() Effects {
	return func() Effects {
		if e == nil {
			return nil
		}
		given := e
		e = nil
		return given
	}
}

func spawn(tb testing.TB, p Behavior) *Ref {
	tb.Helper()
	r, err := Spawn(nil, nil, "probe", p)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		r.Stop(nil)
		<-r.Done()
	})
	return r
}

// occupy keeps the actor busy inside a turn until the returned function is called.
func occupy(r *Ref) (release func()) {
	entered, leave := make(chan struct{}), make(chan struct{})
	left := make(chan struct{})
	go func() {
		defer close(left)
		r.Call(newJob(func() {
			close(entered)
			<-leave
		}))
	}()
	<-entered
	return func() {
		close(leave)
		<-left
	}
}

// enter enters a turn, if need be after others.
func enter(r *Ref) {
	for !r.TryEnter() {
		runtime.Gosched()
	}
}
