package futures

import (
	"errors"
	"slices"
	"sync/atomic"
)

// First returns the future of the first value that arrives, or of all errors joined when none does.
// Without futures the error is ErrNoFutures. Among futures that are complete already the first in order wins.
//
// With a release function the race owns its parts, of which none occurs twice: once there is a winner or the race was canceled, the others are
// canceled, and a value that arrives all the same goes to release exactly once. Without one they are only watched.
// Release never runs on a completing goroutine; a panic in it is swallowed.
func First[T any](release func(T), fs ...Future[T]) Future[T] {
	if len(fs) == 0 {
		return Failed[T](ErrNoFutures)
	}
	r := &race[T]{errs: make([]error, len(fs)), release: release}
	r.left.Store(int64(len(fs)))
	if release != nil {
		r.parts = slices.Clone(fs)
		r.promise.OnCancel(r.cancelParts)
	}
	for i, f := range fs {
		r.join(i, f)
	}
	if v, completed, err := r.promise.Future().Poll(); completed && err == nil {
		return Done(v)
	}
	return r.promise.Future()
}

// race gathers the parts of First. The slot i of errs belongs to the answer of part i until left is zero.
type race[T any] struct {
	promise Promise[T]
	left    atomic.Int64 // Parts that did not fail yet.
	parts   []Future[T]  // For cancelParts: set when the race owns its parts.
	errs    []error
	release func(T)
}

func (r *race[T]) join(i int, f Future[T]) {
	if f.p != nil && !f.p.completed() {
		if f.p.observe(func() { r.settle(i, f.p.val, f.p.err, asynchronously) }) {
			return
		}
	}
	v, _, err := f.Poll()
	r.settle(i, v, err, directly)
}

func (r *race[T]) settle(i int, v T, err error, do func(func())) {
	switch {
	case err != nil:
		r.errs[i] = err
		if r.left.Add(-1) == 0 {
			var none T
			r.promise.Complete(none, errors.Join(r.errs...))
		}
	case r.promise.Complete(v, nil):
		if len(r.parts) > 1 {
			do(r.cancelParts)
		}
	case r.release != nil:
		do(func() { releaseOne(r.release, v) })
	}
}

func (r *race[T]) cancelParts() { cancelPending(r.parts) }
