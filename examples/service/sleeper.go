package main

import (
	"context"
	"sync/atomic"
	"time"
)

// sleeper lets the weights sleep while no request is there, and wakes them for the next one.
type sleeper struct {
	decoder decoder
	idle    time.Duration // without a request until the weights sleep; 0: they never do
	failed  func(error)   // told where they could not be put to sleep

	turn    chan struct{} // of one place: a call that has its token may use the fields below
	present int           // requests
	began   uint64        // of present: changes with each request that comes, and at the end
	closed  bool
	asleep  atomic.Bool
	timer   *time.Timer
	sleeps  atomic.Uint64
}

func newSleeper(d decoder, idle time.Duration, failed func(error)) *sleeper {
	return &sleeper{decoder: d, idle: idle, failed: failed, turn: make(chan struct{}, 1)}
}

// enter notes a request, and waits until the weights are awake. The request calls leave unless there is an error, which is errStopping
// after close.
func (s *sleeper) enter(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	if s.closed {
		return errStopping
	}
	if s.asleep.Load() {
		if err := s.decoder.Wake(ctx); err != nil {
			return err
		}
		s.asleep.Store(false)
	}
	s.present++
	s.began++
	return nil
}

// leave notes the end of a request. The last one starts the time until the weights sleep.
func (s *sleeper) leave() {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.present--; s.present > 0 || s.idle == 0 || s.closed {
		return
	}
	began := s.began
	s.stop()
	s.timer = time.AfterFunc(s.idle, func() { s.sleep(began) })
}

// sleep lets the weights sleep, unless a request has come since.
func (s *sleeper) sleep(began uint64) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.began != began || s.asleep.Load() {
		return
	}
	if err := s.decoder.Sleep(context.Background()); err != nil { // they stay awake, or asleep in part: the next Wake sees
		s.failed(err)
	}
	s.asleep.Store(true)
	s.sleeps.Add(1)
}

func (s *sleeper) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// close ends it: nothing sleeps or wakes any more, also where the time without a request has just passed.
func (s *sleeper) close() {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.stop()
	s.closed = true
	s.began++
}
