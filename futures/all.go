package futures

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
	w := &gathered[T]{values: make([]T, len(fs))}
	combine(&w.parts, &w.promise, w, release, fs)
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

// gathered has the parts of All, and their values, which belong as the parts do.
type gathered[T any] struct {
	promise Promise[[]T]
	parts   parts[T]
	values  []T
}

// settle stores the answer of a part. Foreign functions (release, OnCancel of the parts) run by way
// of part.do.
func (w *gathered[T]) settle(part *part[T], v T, err error, notified bool) {
	w.values[part.index], part.err = v, err
	failedFirst := err != nil && w.promise.Complete(nil, err)
	last := w.parts.left.Add(-1) == 0
	if failedFirst && !last && w.parts.release != nil {
		part.do(notified, w.parts.cancel)
	}
	if last && !w.promise.Complete(w.values, nil) && w.parts.release != nil { // a part failed, or it was canceled
		part.do(notified, w.releaseAll)
	}
}

func (w *gathered[T]) releaseAll() {
	each(len(w.values), func(i int) {
		if w.parts.all[i].err == nil {
			w.parts.release(w.values[i])
		}
	})
}
