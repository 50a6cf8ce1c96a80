package futures

import "sync/atomic"

// parts are the futures that All or First combines. A part and its answer belong to the goroutine that brings the answer until
// left is zero, then all belong to the goroutine that brought it there.
type parts[T any] struct {
	by      combiner[T]
	left    atomic.Int64 // without an answer that counts
	all     []part[T]
	release func(T) // nil: the parts are only watched
}

// combiner takes the answers of parts. Foreign functions (release, OnCancel of the parts) run by way of part.do.
type combiner[T any] interface {
	settle(p *part[T], v T, err error, notified bool)
}

type part[T any] struct {
	link   observer
	of     *parts[T]
	source *Promise[T] // Nil for a value future.
	index  int
	err    error
}

// combine has a promise wait for its parts.
func combine[T, R any](ps *parts[T], promise *Promise[R], by combiner[T], release func(T), fs []Future[T]) {
	promise.On(hostOf(fs))
	promise.core.explains = ps
	ps.by, ps.release, ps.all = by, release, make([]part[T], len(fs))
	ps.left.Store(int64(len(fs)))
	for i, f := range fs { // All of them first: one may cancel the others.
		ps.all[i] = part[T]{of: ps, source: f.p, index: i}
	}
	if release != nil {
		promise.OnCancel(ps.cancel)
	}
	for i, f := range fs {
		p := &ps.all[i]
		p.link.party = p
		if f.p != nil && f.p.core.observe(&p.link) {
			continue
		}
		v, _, err := f.Poll()
		by.settle(p, v, err, false)
	}
}

func (p *part[T]) notify() { p.of.by.settle(p, p.source.val, p.source.core.err, true) }

// do calls a foreign function: on a goroutine of its own if the part's future has just been completed.
func (p *part[T]) do(notified bool, f func()) {
	if notified {
		p.source.core.start(f)
	} else {
		f()
	}
}

// gaveUp implements explainer: the error of the first part that is not complete.
func (ps *parts[T]) gaveUp(ended error) error {
	for i := range ps.all {
		if source := ps.all[i].source; source != nil && !source.core.completed() {
			return source.core.explain(ended)
		}
	}
	return ended
}

func (ps *parts[T]) cancel() {
	each(len(ps.all), func(i int) {
		if source := ps.all[i].source; source != nil {
			source.Cancel(ErrCanceled)
		}
	})
}
