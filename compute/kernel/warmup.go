package kernel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/futures"
)

// Need is a variant that will be run: a kernel, and the layouts of its tensors, inputs, then outputs. Lowest places are taken
// to be aligned, as tensors of their own memory are. Or it is a text of PTX: one for RawPTX, or of a product, as
// matmul.Multiplier.Needs lists them.
type Need struct {
	Kernel  *Kernel
	Layouts []layout.Layout
	Text    string // "": the kernel's
}

// Progress reports one Need that is done, or has failed.
type Progress struct {
	Done, Of int
	Need     int // its number in the list
	Origin   Origin
	Took     time.Duration // from when a thread began with it
	Err      error
}

// WarmUp prepares a list of kernels on the threads of the compiler, and calls progress, if it is not nil, for each of them, on
// this goroutine, in the order in which they are done. Need errors do not end it. Texts that Run and Prepare wait for go before
// the rest of the list. When ctx ends, WarmUp starts no more and returns; compilations that have started are completed. Errors:
// the errors of Prepare, joined, each in a *NeedError; ErrNotOpen, cuda.ErrNilContext, ctx's.
func (c *Compiler) WarmUp(ctx context.Context, needs []Need, progress func(Progress)) error {
	if c == nil || c.on == nil {
		return ErrNotOpen
	}
	if ctx == nil {
		return cuda.ErrNilContext
	}
	done := make(chan Progress, len(needs)) // room for all: no goroutine waits for a caller that returned
	jobs := make([]job, len(needs))
	for i, n := range needs {
		jobs[i] = job{func() {
			if ctx.Err() == nil {
				n.prepare(c, i, done) //nolint:contextcheck // a compilation that has started is completed
			}
		}, func(err error) { done <- Progress{Need: i, Err: err} }}
	}
	c.mu.Lock()
	if !c.closed {
		c.later = append(c.later, jobs...)
		c.startWorkers(len(jobs))
		jobs = nil
	}
	c.mu.Unlock()
	for _, j := range jobs {
		j.refuse(ErrClosed)
	}
	var failed []error
	for n := range needs {
		select {
		case p := <-done:
			p.Done, p.Of = n+1, len(needs)
			if p.Err != nil {
				failed = append(failed, &NeedError{p.Need, p.Err})
			}
			if progress != nil {
				progress(p)
			}
		case <-ctx.Done():
			return errors.Join(append(failed, ctx.Err())...)
		}
	}
	return errors.Join(failed...)
}

// prepare loads the variant or the text on this goroutine, a worker, unless another one does.
func (n Need) prepare(by *Compiler, number int, done chan<- Progress) {
	begin := time.Now()
	tell := func(from Origin, err error) {
		done <- Progress{Need: number, Origin: from, Took: time.Since(begin), Err: err}
	}
	origin := futures.Failed[Origin](errEnded)
	defer func() {
		if from, completed, err := origin.Poll(); completed {
			tell(from, err)
			return
		}
		go func() { tell(origin.Await(context.Background())) }()
	}()
	origin = n.origin(by)
}

// origin returns where the code came from.
func (n Need) origin(by *Compiler) futures.Future[Origin] {
	if n.Text != "" {
		return originOf(by.moduleHere(nil, n.Text))
	}
	f := takeFrame()
	defer f.release()
	if err := f.fitLayouts(n.Kernel, n.Layouts); err != nil {
		return futures.Failed[Origin](err)
	}
	if n.Kernel.by != by {
		return n.Kernel.load(n.Kernel.by.module, &f.own)
	}
	return n.Kernel.load(by.moduleHere, &f.own)
}

// originOf returns the origin of loaded code.
func originOf(loaded futures.Future[*code], known bool) futures.Future[Origin] {
	return futures.Then(loaded, func(m *code) (Origin, error) {
		if known {
			return Known, nil
		}
		return m.origin, nil
	})
}

// NeedError is a Need of WarmUp that was not prepared.
type NeedError struct {
	Need int // its number in the list
	Err  error
}

// Error has the number and the reason.
func (e *NeedError) Error() string {
	return fmt.Sprintf("kernel: number %d of the list: %v", e.Need, e.Err)
}

// Unwrap is the reason.
func (e *NeedError) Unwrap() error { return e.Err }
