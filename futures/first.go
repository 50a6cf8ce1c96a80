package futures

import (
	"errors"
	"sync/atomic"
)

// First returns the future of the first value that arrives, or of all errors joined when none does.
// It does not wait. Without futures the error is ErrNoFutures. Among futures that are complete
// already the first in order wins.
//
// With a release function the race owns its parts, of which none occurs twice: once there is a
// winner or the race was canceled, the others are canceled, and a value that arrives all the same
// goes to release exactly once. Without one they are only watched. Release never runs on a
// completing goroutine; a panic in it is swallowed.
func First[T any](release func(T), fs ...Future[T]) Future[T] {
	if len(fs) == 0 {
		return Failed[T](ErrNoFutures)
	}
	if release == nil {
		for _, f := range fs {
			if v, completed, err := f.Poll(); completed && err == nil {
				return Done(v)
			}
		}
	}
	r := &race[T]{parts: make([]racePart[T], len(fs)), release: release}
	r.promise.On(hostOf(fs))
	r.promise.explains = r
	r.left.Store(int64(len(fs)))
	for i, f := range fs { // All of them first: the one that wins cancels the others.
		r.parts[i] = racePart[T]{race: r, source: f.p}
	}
	if release != nil {
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

// race gathers the parts of First. The error of a part belongs to its answer until left is zero.
type race[T any] struct {
	promise Promise[T]
	left    atomic.Int64 // Parts that did not fail yet.
	parts   []racePart[T]
	release func(T)
}

// gaveUp implements explainer: the error of the first part that is not complete.
func (r *race[T]) gaveUp(ended error) error {
	for i := range r.parts {
		if source := r.parts[i].source; source != nil && !source.completed() {
			return source.explain(ended)
		}
	}
	return ended
}

type racePart[T any] struct {
	link   observer
	race   *race[T]
	source *Promise[T] // Nil for a value future.
	err    error
}

func (r *race[T]) join(i int, f Future[T]) {
	part := &r.parts[i]
	part.link.party = part
	if f.p != nil && f.p.observe(&part.link) {
		return
	}
	v, _, err := f.Poll()
	r.settle(part, v, err, directly)
}

func (part *racePart[T]) notify() {
	part.race.settle(part, part.source.val, part.source.err, part.source.start)
}

func (r *race[T]) settle(part *racePart[T], v T, err error, do func(func())) {
	switch {
	case err != nil:
		part.err = err
		if r.left.Add(-1) == 0 {
			var none T
			r.promise.Complete(none, r.joined())
		}
	case r.promise.Complete(v, nil):
		if r.release != nil && len(r.parts) > 1 {
			do(r.cancelParts)
		}
	case r.release != nil:
		do(func() { containPanic(func() { r.release(v) }) })
	}
}

// joined returns all errors, in the order of the parts.
func (r *race[T]) joined() error {
	errs := make([]error, len(r.parts))
	for i := range r.parts {
		errs[i] = r.parts[i].err
	}
	return errors.Join(errs...)
}

func (r *race[T]) cancelParts() {
	each(len(r.parts), func(i int) {
		if source := r.parts[i].source; source != nil {
			source.Cancel(ErrCanceled)
		}
	})
}
