package futures

import "sync/atomic"

// All returns the future of all values, in the order of fs, or of the first error. It does not
// wait. All that await it share one slice of values.
//
// With a release function the new future owns its parts: once it has failed or was canceled, parts
// that are still pending are canceled, and every value that arrived or still arrives goes to
// release exactly once, after the last part was answered. Without one the parts are only watched:
// they continue, and their values stay with the holders of their futures. An owned part must not occur
// twice. Release never runs on a completing goroutine; a panic in it is swallowed and the other
// values are still released.
func All[T any](release func(T), fs ...Future[T]) Future[[]T] {
	if values, ok := allDone(fs); ok {
		return Done(values)
	}
	w := &gathered[T]{values: make([]T, len(fs)), parts: make([]gatheredPart[T], len(fs)), release: release}
	w.promise.On(hostOf(fs))
	w.promise.explains = w
	w.left.Store(int64(len(fs)))
	for i, f := range fs { // All of them first: the failure of one cancels the others.
		w.parts[i] = gatheredPart[T]{gathered: w, source: f.p}
	}
	if release != nil {
		w.promise.OnCancel(w.cancelParts)
	}
	for i, f := range fs {
		w.join(i, f)
	}
	// Complete already: a value future saves the promise's cost wherever it is passed on.
	if values, completed, err := w.promise.Future().Poll(); completed && err == nil {
		return Done(values)
	}
	return w.promise.Future()
}

// allDone is the values of value futures, if all are.
func allDone[T any](fs []Future[T]) ([]T, bool) {
	for i := range fs {
		if fs[i].p != nil {
			return nil, false
		}
	}
	values := make([]T, len(fs))
	for i := range fs {
		values[i] = fs[i].val
	}
	return values, true
}

// gathered has the parts of All. A part and its value belong to the answer of that part until left
// is zero, then all belong to the goroutine that brought it there.
type gathered[T any] struct {
	promise Promise[[]T]
	left    atomic.Int64 // Parts without an answer.
	parts   []gatheredPart[T]
	values  []T
	release func(T)
}

// gaveUp implements explainer: the error of the first part that is not complete.
func (w *gathered[T]) gaveUp(ended error) error {
	for i := range w.parts {
		if source := w.parts[i].source; source != nil && !source.completed() {
			return source.explain(ended)
		}
	}
	return ended
}

type gatheredPart[T any] struct {
	link     observer
	gathered *gathered[T]
	source   *Promise[T] // Nil for a value future.
	index    int
	failed   bool
}

func (w *gathered[T]) join(i int, f Future[T]) {
	part := &w.parts[i]
	part.index, part.link.party = i, part
	if f.p != nil && f.p.observe(&part.link) {
		return
	}
	v, _, err := f.Poll()
	w.settle(part, v, err, directly)
}

func (part *gatheredPart[T]) notify() {
	part.gathered.settle(part, part.source.val, part.source.err, part.source.start)
}

// settle stores the answer of a part. Foreign functions (release, OnCancel of the parts) run by way
// of do.
func (w *gathered[T]) settle(part *gatheredPart[T], v T, err error, do func(func())) {
	w.values[part.index], part.failed = v, err != nil
	failedFirst := err != nil && w.promise.Complete(nil, err)
	last := w.left.Add(-1) == 0
	if failedFirst && !last && w.release != nil {
		do(w.cancelParts)
	}
	if last && !w.deliver() && w.release != nil {
		do(w.releaseAll)
	}
}

// deliver completes the promise with the values unless a part failed or it was canceled.
func (w *gathered[T]) deliver() bool {
	for i := range w.parts {
		if w.parts[i].failed {
			return false
		}
	}
	return w.promise.Complete(w.values, nil)
}

func (w *gathered[T]) cancelParts() {
	each(len(w.parts), func(i int) {
		if source := w.parts[i].source; source != nil {
			source.Cancel(ErrCanceled)
		}
	})
}

func (w *gathered[T]) releaseAll() {
	each(len(w.values), func(i int) {
		if !w.parts[i].failed {
			w.release(w.values[i])
		}
	})
}
