package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/examples/gpt/model"
)

// decoder has the methods of a model.Decoder that the engine calls.
type decoder interface {
	NewSequence(ctx context.Context, tokens int, draw model.Draw, tenant *vram.Tenant) (*model.Sequence, error)
	Prefill(s *model.Sequence, prompt []int64) (int64, error)
	Step(all []*model.Sequence) ([]int64, error)
	Sleep(ctx context.Context) error
	Wake(ctx context.Context) error
	Batch() int
	Close() error
}

// engine makes the tokens of all requests. One goroutine prefills, another one makes steps; a request moves from one to the
// other, and its memory is freed by the one that has it. Requests join and leave between two steps.
//
//	handler --prompts--> prefill --ready--> steps --> end
//	            \____________\_______________\______ gone, or an error: end
type engine struct {
	decoder decoder
	broken  func(error) // told of an error of the device

	prompts chan *job // handlers wait here with their memory
	ready   chan *job
	closing chan struct{}
	closed  sync.WaitGroup // of the goroutines

	queued, active atomic.Int64 // jobs that wait for a place in a step; in the last step
}

// job is a request in the engine.
type job struct {
	sequence *model.Sequence
	prompt   []int64
	most     int // tokens to make
	stop     *int64
	gone     <-chan struct{} // the client has left, or the deadline has passed

	tokens chan int64 // to the handler: it has room for all, so that no client delays a step. Closed at the end
	made   int
	last   int64
	err    error // set before tokens is closed; nil also for a job whose client has gone
}

// readyCount is how many prefilled requests may be on the way to the steps, which take them within one step.
const readyCount = 64

func newEngine(d decoder, broken func(error)) *engine {
	e := &engine{decoder: d, broken: broken, prompts: make(chan *job), ready: make(chan *job, readyCount), closing: make(chan struct{})}
	e.closed.Go(func() {
		defer close(e.ready)
		e.prefill()
	})
	e.closed.Go(e.steps)
	return e
}

// submit gives a job, whose sequence the engine frees, to the engine. An error says that the engine does not have it.
func (e *engine) submit(ctx context.Context, j *job) error {
	select {
	case e.prompts <- j:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close ends the goroutines, once the jobs that they have are over. No handler submits.
func (e *engine) close() {
	close(e.closing)
	e.closed.Wait()
}

// prefill prefills one job after the other.
func (e *engine) prefill() {
	for {
		select {
		case j := <-e.prompts:
			if left(j) {
				j.end(nil)
				continue
			}
			token, err := e.decoder.Prefill(j.sequence, j.prompt)
			if err != nil {
				e.failed(err)
				j.end(err)
				continue
			}
			if j.got(token) {
				e.ready <- j
			}
		case <-e.closing:
			return
		}
	}
}

// steps makes steps of the jobs that have a place in one; others wait for a place.
func (e *engine) steps() {
	var active, waiting []*job
	for open := true; open || len(active)+len(waiting) > 0; {
		if len(active) == 0 && len(waiting) == 0 {
			var j *job
			if j, open = <-e.ready; !open {
				return
			}
			waiting = append(waiting, j)
		}
		waiting, open = e.arrived(waiting, open)
		active, waiting = slices.DeleteFunc(active, dropped), slices.DeleteFunc(waiting, dropped)
		joining := min(len(waiting), e.decoder.Batch()-len(active))
		active = append(active, waiting[:joining]...)
		waiting = slices.Delete(waiting, 0, joining)
		e.queued.Store(int64(len(waiting)))
		e.active.Store(int64(len(active)))
		if len(active) > 0 {
			active = e.step(active)
		}
		if len(active) == 0 {
			e.active.Store(0)
		}
	}
}

// arrived appends the jobs that are ready.
func (e *engine) arrived(waiting []*job, open bool) ([]*job, bool) {
	for open {
		select {
		case j, more := <-e.ready:
			if open = more; more {
				waiting = append(waiting, j)
			}
		default:
			return waiting, open
		}
	}
	return waiting, false
}

// step makes a step, and returns the jobs that have another one.
func (e *engine) step(active []*job) []*job {
	sequences := make([]*model.Sequence, len(active))
	for i, j := range active {
		sequences[i] = j.sequence
	}
	tokens, err := e.decoder.Step(sequences)
	if err != nil {
		e.failed(err)
		for _, j := range active {
			j.end(err)
		}
		return nil
	}
	at := 0
	return slices.DeleteFunc(active, func(j *job) bool {
		at++
		return !j.got(tokens[at-1])
	})
}

// failed reports an error of the device: others concern one request.
func (e *engine) failed(err error) {
	if !errors.Is(err, vram.ErrOutOfMemory) {
		e.broken(err)
	}
}

// left reports whether nobody waits for a job.
func left(j *job) bool {
	select {
	case <-j.gone:
		return true
	default:
		return false
	}
}

// dropped ends a job for which nobody waits.
func dropped(j *job) bool {
	gone := left(j)
	if gone {
		j.end(nil)
	}
	return gone
}

// got passes a token to the handler, and reports whether the job has more to come. Else it has ended.
func (j *job) got(token int64) bool {
	j.tokens <- token
	j.made++
	j.last = token
	if j.made == j.most || j.stop != nil && token == *j.stop {
		j.end(nil)
		return false
	}
	return true
}

// end frees the memory and tells the handler.
func (j *job) end(err error) {
	j.err = errors.Join(err, j.sequence.Free())
	close(j.tokens)
}
