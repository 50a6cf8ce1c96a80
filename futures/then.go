package futures

// Then returns the future of fn applied to f's value. An error of f is passed on and fn is not called; a value that fn
// returns beside an error is dropped.
//
// When f is complete fn runs before Then returns, on the caller; otherwise on a goroutine of its own. A panic of fn
// becomes a *PanicError. The new future can be canceled until fn begins: fn is then not called
// and the value stays with f, which a Cancel of the new future does not touch.
func Then[T, U any](f Future[T], fn func(T) (U, error)) Future[U] {
	if v, completed, err := f.Poll(); completed {
		return thenNow(v, err, fn)
	}
	derived := new(Promise[U])
	waits := f.p.observe(func() {
		if f.p.err != nil {
			var none U
			derived.Complete(none, f.p.err)
			return
		}
		go publishCall(derived, f.p.val, fn)
	})
	if !waits {
		return thenNow(f.p.val, f.p.err, fn)
	}
	return derived.Future()
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

// publishCall answers derived with fn's result unless it was canceled before. Claiming first is what makes a callback
// that has begun deliver.
func publishCall[T, U any](derived *Promise[U], v T, fn func(T) (U, error)) {
	if !derived.claim() {
		return
	}
	var (
		u   U
		err error
	)
	// Deferred: fn may end this goroutine.
	defer func() { derived.publish(u, err) }()
	call(v, fn, &u, &err)
}

// call stores fn's result: a value without an error, or an error without a value, also when fn does not return.
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
