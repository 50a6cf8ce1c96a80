package kernel

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/tensor/layout"
)

// Need is a variant that will be run: a kernel, and the layouts of its tensors, inputs, then outputs. Lowest places are taken to be aligned, as
// tensors of their own memory are. Or it is a text of PTX: one for RawPTX, or of a product, as matmul.Multiplier.Needs lists them.
type Need struct {
	Kernel  *Kernel
	Layouts []layout.Layout
	Text    string // "": the kernel's
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
				done <- needs[i].prepare(ctx, c, i)
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

// prepare waits until the variant is known, or the text is loaded.
func (n Need) prepare(ctx context.Context, by *Compiler, number int) Progress {
	begin := time.Now()
	p := Progress{Need: number}
	if n.Text != "" {
		p.Origin, p.Err = by.origin(n.Text).Await(ctx)
	} else if g, err := n.Kernel.geometryOf(n.Layouts); err != nil {
		p.Err = err
	} else {
		p.Origin, p.Err = n.Kernel.ready(g).Await(ctx)
	}
	p.Took = time.Since(begin)
	return p
}

// origin compiles a text, and says where its code came from.
func (c *Compiler) origin(text string) futures.Future[Origin] {
	loaded, known := c.module("", text)
	return futures.Then(loaded, func(m *code) (Origin, error) {
		if known {
			return Known, nil
		}
		return m.origin, nil
	})
}
