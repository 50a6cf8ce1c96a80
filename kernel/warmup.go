package kernel

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/tensor/layout"
)

// Need is a variant that will be run: a kernel, and the layouts of its tensors, inputs, then outputs. Lowest places are taken to be aligned, as
// tensors of their own memory are.
type Need struct {
	Kernel  *Kernel
	Layouts []layout.Layout
}

// Progress is one Need that is done, for better or worse.
type Progress struct {
	Done, Of int
	Need     int // its number in the list
	Origin   Origin
	Took     time.Duration // from its begin, the wait for a thread included
	Err      error
}

// WarmUp prepares a list of kernels, as many at a time as the compiler has threads, and calls progress, if it is not nil, for each of them, on
// this goroutine, in the order in which they are done. Need errors do not end it. When ctx ends it begins no more, and returns without those
// that are being compiled: they go on. Errors: those of Prepare, joined, each in a *NeedError; ErrNotOpen, cuda.ErrNilContext, ctx's.
func (c *Compiler) WarmUp(ctx context.Context, needs []Need, progress func(Progress)) error {
	if c == nil {
		return ErrNotOpen
	}
	if ctx == nil {
		return cuda.ErrNilContext
	}
	done := make(chan Progress, len(needs)) // with room for all: no goroutine waits for a caller that left
	var next atomic.Int64
	for range min(c.threads, len(needs)) {
		go func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(needs) {
					return
				}
				done <- needs[i].prepare(ctx, i)
			}
		}()
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

// prepare waits until the variant is known.
func (n Need) prepare(ctx context.Context, number int) Progress {
	begin := time.Now()
	p := Progress{Need: number}
	g, err := n.Kernel.geometryOf(n.Layouts)
	if err == nil {
		p.Origin, err = n.Kernel.ready(g).Await(ctx)
	}
	p.Took, p.Err = time.Since(begin), err
	return p
}
