package simulation

import (
	"context"
	"time"
)

// deadline is the context of a request: it ends when an action says so.
type deadline struct {
	w     *world
	ended chan struct{}
	err   error
	after []*watcher
}

type watcher struct {
	f     func()
	ended bool // called, or stopped
}

var _ context.Context = (*deadline)(nil)

func (w *world) newDeadline() *deadline { return &deadline{w: w, ended: make(chan struct{})} }

// Deadline implements context.Context: nobody knows when it ends.
func (d *deadline) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context. Others may run before it answers.
func (d *deadline) Done() <-chan struct{} {
	d.w.reach("context asked for its end")
	return d.ended
}

// Err implements context.Context. Others may run before it answers.
func (d *deadline) Err() error {
	d.w.reach("context asked for its error")
	return d.err
}

// Value implements context.Context.
func (d *deadline) Value(any) any { return nil }

// AfterFunc is context.AfterFunc for tasks.
func (d *deadline) AfterFunc(f func()) (stop func() bool) {
	a := &watcher{f: f}
	if d.err != nil {
		a.ended = true
		d.w.spawn("", f)
	}
	d.after = append(d.after, a)
	return func() bool {
		stopped := !a.ended
		a.ended = true
		return stopped
	}
}

// expire ends the context.
func (d *deadline) expire() {
	if d.err != nil {
		return
	}
	d.err = context.DeadlineExceeded
	close(d.ended)
	for _, a := range d.after {
		if !a.ended {
			a.ended = true
			d.w.spawn("", a.f)
		}
	}
}
