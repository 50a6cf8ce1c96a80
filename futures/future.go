package futures

import (
	"context"
	"fmt"
)

// Future is an answer that is there or will be. The zero value is complete with the zero value of
// T.
//
// It is a value: copies name one answer, and any number of goroutines may use them.
type Future[T any] struct {
	p   *Promise[T] // Nil: complete with val.
	val T
}

// Done returns a future that is complete with v. It allocates nothing.
func Done[T any](v T) Future[T] { return Future[T]{val: v} }

// Failed returns a future that is complete with err.
func Failed[T any](err error) Future[T] {
	p := new(Promise[T])
	var none T
	p.Complete(none, err)
	return Future[T]{p: p}
}

// Await waits for the answer and returns it. The end of ctx ends only the waiting: the request stays pending, and a later Await gets
// its value. The error is the context's, or one that wraps it where the producer says more (Promise.OnGiveUp). A future of
// Then, All or First has the error of the first of those that it is made from which is not complete. An answer that is there is
// returned with any ctx; else a nil ctx is refused with ErrNilContext.
func (f Future[T]) Await(ctx context.Context) (T, error) {
	if f.p == nil {
		return f.val, nil
	}
	if ctx == nil {
		if value, completed, err := f.Poll(); completed {
			return value, err
		}
		var none T
		return none, ErrNilContext
	}
	return f.p.await(ctx)
}

// String formats the answer, or returns "pending".
func (f Future[T]) String() string {
	value, completed, err := f.Poll()
	switch {
	case !completed:
		return "pending"
	case err != nil:
		return fmt.Sprintf("failed: %v", err)
	default:
		return fmt.Sprintf("completed: %v", value)
	}
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (f Future[T]) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// Completed reports whether the answer is there, so that Await will not wait.
func (f Future[T]) Completed() bool { return f.p == nil || f.p.core.completed() }

// Poll returns the answer when it is there and does not wait. While completed is false the other
// results say nothing.
func (f Future[T]) Poll() (value T, completed bool, err error) {
	if f.p == nil {
		return f.val, true, nil
	}
	if !f.p.core.completed() {
		return value, false, nil
	}
	return f.p.val, true, f.p.core.err
}

// Done returns a channel that is closed when the answer is there.
func (f Future[T]) Done() <-chan struct{} {
	if f.p == nil {
		return opened.open
	}
	return f.p.core.done()
}

// Cancel ends the request if it is still pending: the answer is ErrCanceled for all holders of this
// future, and a value that the producer finds later stays with the producer. It reports whether it
// did; false means that there is an answer, or will be in a moment, and that the caller must
// release a value in it. It does not wait.
func (f Future[T]) Cancel() bool { return f.p != nil && f.p.Cancel(ErrCanceled) }

func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
