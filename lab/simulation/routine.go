package simulation

import (
	"iter"

	"github.com/go-vram/vram/internal/recovered"
)

// errAbandoned is the intended panic of a task that is still held up when its world ends.
var errAbandoned = recovered.Planted("simulation: abandoned")

// routine is a goroutine that runs tasks one after the other, and runs only while the scheduler waits for it: a
// coroutine.
type routine struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	work  func() // set by the scheduler
	ended bool   // work has returned
}

func newRoutine() *routine {
	r := &routine{}
	r.next, r.stop = iter.Pull(func(yield func(struct{}) bool) {
		r.yield = yield
		for {
			r.work()
			r.ended = true
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return r
}

// pause yields to the scheduler until it resumes the routine.
func (r *routine) pause() {
	if !r.yield(struct{}{}) {
		panic(errAbandoned)
	}
}
