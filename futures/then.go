package futures

import "sync/atomic"

// Then returns the future of fn applied to f's value. An error of f is passed on and fn is not
// called; a value that fn returns with an error is dropped.
//
// When f is complete fn runs before Then returns, on the caller, and Then allocates nothing;
// otherwise it does not wait, and fn runs on a goroutine of its own. A panic of fn becomes a
// *PanicError. The new future can be canceled until fn begins: fn is then not called and the value
// stays with f, which a Cancel of the new future does not touch.
func Then[T, U any](f Future[T], fn func(T) (U, error)) Future[U] {
	if v, completed, err := f.Poll(); completed {
		return thenNow(v, err, fn)
	}
	c := &chain[T, U]{fn: fn}
	c.source.Store(f.p)
	c.link.party = c
	c.derived.On(f.p.core.host)
	c.derived.core.explains = c
	if !f.p.core.observe(&c.link) {
		return thenNow(f.p.val, f.p.core.err, fn)
	}
	return c.derived.Future()
}

// chain waits for the source to be complete. Its fields, except derived and source, belong to the goroutine
// that notifies it.
type chain[T, U any] struct {
	derived Promise[U]
	link    observer
	source  atomic.Pointer[Promise[T]] // nil once it is complete
	fn      func(T) (U, error)
}

// gaveUp implements explainer: the source's error, unless fn runs.
func (c *chain[T, U]) gaveUp(ended error) error {
	if source := c.source.Load(); source != nil && !source.core.completed() {
		return source.core.explain(ended)
	}
	return ended
}

func (c *chain[T, U]) notify() {
	source := c.source.Load()
	if err := source.core.err; err != nil {
		var none U
		c.derived.Complete(none, err)
		c.dropReferences()
		return
	}
	source.core.start(c.run)
}

// run answers derived with fn's result unless it was canceled before. Claiming first makes
// a callback that has begun deliver.
func (c *chain[T, U]) run() {
	v, fn := c.source.Load().val, c.fn
	c.dropReferences()
	if !c.derived.core.claim() {
		return
	}
	var (
		u   U
		err error
	)
	// Deferred: fn may end this goroutine.
	defer func() { c.derived.publish(u, err) }()
	call(v, fn, &u, &err)
}

// dropReferences drops the fields that the derived future does not need: it may be kept for long.
func (c *chain[T, U]) dropReferences() {
	c.source.Store(nil)
	c.fn = nil
}

func thenNow[T, U any](v T, err error, fn func(T) (U, error)) Future[U] {
	if err != nil {
		return Failed[U](err)
	}
	var u U
	call(v, fn, &u, &err)
	if err != nil {
		return Failed[U](err)
	}
	return Done(u)
}

// call stores fn's result: a value without an error, or an error without a value, also when fn does
// not return.
func call[T, U any](v T, fn func(T) (U, error), u *U, err *error) {
	returned := false
	defer func() {
		if !returned {
			*err = newPanicError(recover())
		}
		if *err != nil {
			var none U
			*u = none
		}
	}()
	*u, *err = fn(v)
	returned = true
}
