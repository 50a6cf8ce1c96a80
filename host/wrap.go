package host

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/go-vram/vram"
)

// wrapper is the common part of Limit, Track, Log and Zero: the calls that an allocator that
// keeps no memory of its own passes on. Each passes the other calls on to it itself, since a
// method that comes with an embedded struct cannot be called on nil.
type wrapper struct {
	inner      Allocator
	innerOwner *Owner
	owner      *Owner
}

// wrap begins a wrapper; the allocator of its owner is set by own.
func wrap(inner Allocator) wrapper {
	return wrapper{inner: inner, innerOwner: inner.Owner(), owner: &Owner{}}
}

// own completes the owner by the allocator that the wrapper is a part of.
func own[A interface {
	Allocator
	part() *wrapper
}](a A) A {
	a.part().owner.allocator = a
	return a
}

func (w *wrapper) part() *wrapper { return w }

// Owner returns the allocator's identity.
func (w *wrapper) Owner() *Owner {
	if w == nil {
		return nil
	}
	return w.owner
}

// Kind returns the kind of the wrapped allocator.
func (w *wrapper) Kind() Kind { return w.inside().Kind() }

// Stats returns the counters of the wrapped allocator.
func (w *wrapper) Stats() Stats { return w.inside().Stats() }

// Close closes the allocator inside: see Allocator.Close.
func (w *wrapper) Close(ctx context.Context) error { return w.inside().Close(ctx) }

// Trim trims the allocator inside: see Trim.
func (w *wrapper) Trim(ctx context.Context) (releasedBytes int64, err error) {
	return Trim(ctx, w.inside())
}

// alloc requests a block inside for the wrapper that owns it.
func (w *wrapper) alloc(bytes, align int64, zero bool) (Block, error) {
	request := w.inside().Alloc
	if zero {
		request = w.inside().AllocZeroed
	}
	b, err := request(bytes, align)
	if err != nil {
		return Block{}, err
	}
	return b.reown(w.innerOwner, w.owner)
}

// free passes a block of the wrapper on.
func (w *wrapper) free(b Block, shared *batch) error {
	b, err := b.reown(w.owner, w.innerOwner)
	if err != nil {
		return err
	}
	if shared != nil {
		return freeIn(w.inside(), b, shared)
	}
	return w.inside().Free(b)
}

// inside returns the allocator inside; of nil and of a zero value one that refuses everything.
func (w *wrapper) inside() Allocator {
	if w == nil || w.inner == nil {
		return unopened{}
	}
	return w.inner
}

// unopened stands for the allocator inside a zero value.
type unopened struct{}

func (unopened) Alloc(int64, int64) (Block, error)       { return Block{}, notOpen() }
func (unopened) AllocZeroed(int64, int64) (Block, error) { return Block{}, notOpen() }
func (unopened) Free(Block) error                        { return notOpen() }
func (unopened) Kind() Kind                              { return NoMemory }
func (unopened) Owner() *Owner                           { return nil }
func (unopened) Stats() Stats                            { return Stats{} }
func (unopened) Close(context.Context) error             { return notOpen() }
func (unopened) Trim(context.Context) (int64, error)     { return 0, notOpen() }

func notOpen() error {
	return fmt.Errorf("host: the allocator was not made by its function: %w", vram.ErrNotOpen)
}

// closeOnce runs a function once. Concurrent calls do not wait for it.
type closeOnce struct{ begun atomic.Bool }

func (c *closeOnce) done() bool { return c.begun.Load() }

func (c *closeOnce) do(f func() error) error {
	if !c.begun.CompareAndSwap(false, true) {
		return nil
	}
	return f()
}
