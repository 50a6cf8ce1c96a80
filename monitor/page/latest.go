package page

import (
	"context"
	"time"
)

// latest reads a value for many viewers: once in an interval, by one goroutine at a time.
type latest[T any] struct {
	interval time.Duration
	state    chan reading[T] // the goroutine that has received it owns it
}

// reading is the last value.
type reading[T any] struct {
	value T
	of    int64 // the question that it answers
	at    time.Time
}

func newLatest[T any](interval time.Duration) *latest[T] {
	l := &latest[T]{interval: interval, state: make(chan reading[T], 1)}
	l.state <- reading[T]{}
	return l
}

// get returns the answer to a question: the last one if it is younger than the interval, else a new one.
func (l *latest[T]) get(ctx context.Context, question int64, read func(ctx context.Context) (T, error)) (T, error) {
	var r reading[T]
	select {
	case r = <-l.state:
	case <-ctx.Done():
		return r.value, ctx.Err()
	}
	defer func() { l.state <- r }()
	if !r.at.IsZero() && r.of == question && time.Since(r.at) < l.interval {
		return r.value, nil
	}
	value, err := read(ctx)
	if err == nil {
		r = reading[T]{value, question, time.Now()}
	}
	return value, err
}
