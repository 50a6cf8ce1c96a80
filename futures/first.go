package futures

import "errors"

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
	r := new(race[T])
	combine(&r.parts, &r.promise, r, release, fs)
	if v, completed, err := r.promise.Future().Poll(); completed && err == nil {
		return Done(v)
	}
	return r.promise.Future()
}

// race has the parts of First. The ones that are left did not fail yet.
type race[T any] struct {
	promise Promise[T]
	parts   parts[T]
}

func (r *race[T]) settle(part *part[T], v T, err error, notified bool) { //nolint:unused // called as a combiner
	switch {
	case err != nil:
		part.err = err
		if r.parts.left.Add(-1) == 0 {
			var none T
			r.promise.Complete(none, r.joined())
		}
	case r.promise.Complete(v, nil):
		if r.parts.release != nil && len(r.parts.all) > 1 {
			part.do(notified, r.parts.cancel)
		}
	case r.parts.release != nil:
		part.do(notified, func() { containPanic(func() { r.parts.release(v) }) })
	}
}

// joined returns all errors, in the order of the parts.
func (r *race[T]) joined() error { //nolint:unused // a combiner calls it
	errs := make([]error, len(r.parts.all))
	for i := range r.parts.all {
		errs[i] = r.parts.all[i].err
	}
	return errors.Join(errs...)
}
