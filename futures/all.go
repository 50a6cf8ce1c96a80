package futures

import (
	"slices"
	"sync/atomic"
)

// All returns the future of all values, in the order of fs, or of the first error.
//
// With a release function the whole owns its parts: once it has failed or was canceled, parts that are still pending
// are canceled, and every value that arrived or still arrives goes to release exactly once, after the last part was
// answered. Without one the parts are only watched: they go on, and their values stay with those who hold
// them. An owned part must not occur twice. Release never runs on a completing goroutine; a panic in it is swallowed and the other values are still released.
func All[T any](release func(T), fs ...Future[T]) Future[[]T] {
	w := &whole[T]{values: make([]T, len(fs)), failed: make([]bool, len(fs)), release: release}
	if len(fs) == 0 {
		return Done(w.values)
	}
	w.left.Store(int64(len(fs)))
	if release != nil {
		w.parts = slices.Clone(fs)
		w.promise.OnCancel(w.cancelParts)
	}
	for i, f := range fs {
		w.join(i, f)
	}
	// Complete already: a value future spares the promise's cost to everybody who passes it on.
	if values, completed, err := w.promise.Future().Poll(); completed && err == nil {
		return Done(values)
	}
	return w.promise.Future()
}

// whole gathers the parts of All. The slot i of each slice belongs to the answer of part i until left
// is zero, then everything belongs to whoever brought it there.
type whole[T any] struct {
	promise Promise[[]T]
	left    atomic.Int64 // Parts without an answer.
	parts   []Future[T]  // For cancelParts: set when the whole owns its parts.
	values  []T
	failed  []bool
	release func(T)
}

func (w *whole[T]) join(i int, f Future[T]) {
	if f.p != nil && !f.p.completed() {
		if f.p.observe(func() { w.settle(i, f.p.val, f.p.err, asynchronously) }) {
			return
		}
	}
	v, _, err := f.Poll()
	w.settle(i, v, err, directly)
}

// settle notes the answer of part i. Foreign functions (release, OnCancel of the parts) run by way of do.
func (w *whole[T]) settle(i int, v T, err error, do func(func())) {
	w.values[i], w.failed[i] = v, err != nil
	failedFirst := err != nil && w.promise.Complete(nil, err)
	last := w.left.Add(-1) == 0
	if failedFirst && !last && w.release != nil {
		do(w.cancelParts)
	}
	if last && !w.deliver() && w.release != nil {
		do(w.releaseAll)
	}
}

// deliver hands the values over unless a part failed or the whole was canceled.
func (w *whole[T]) deliver() bool {
	for _, failed := range w.failed {
		if failed {
			return false
		}
	}
	return w.promise.Complete(w.values, nil)
}

func (w *whole[T]) cancelParts() { cancelPending(w.parts) }

func (w *whole[T]) releaseAll() {
	for i, v := range w.values {
		if !w.failed[i] {
			releaseOne(w.release, v)
		}
	}
}

// directly and asynchronously are the two ways to run a foreign function: on a caller, and away from a completing goroutine.
func directly(fn func())       { fn() }
func asynchronously(fn func()) { go fn() }

func cancelPending[T any](fs []Future[T]) {
	for _, f := range fs {
		f.Cancel()
	}
}

// releaseOne gives one value back; nobody is left to hear of a panic.
func releaseOne[T any](release func(T), v T) {
	defer func() { _ = recover() }()
	release(v)
}
