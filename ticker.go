package vram

import (
	"sync/atomic"
	"time"
)

// ticker calls a function again and again, never twice at once, on a goroutine that lives only as
// long as a call: between calls nothing waits.
type ticker struct {
	timer    *time.Timer
	interval time.Duration
	call     func()
	state    atomic.Uint32
	ended    chan struct{} // closed by the call during which stop was called
}

// The states of a ticker: armed --timer--> calling --> armed; stop ends either.
const (
	armed uint32 = iota
	calling
	stopped
)

func startTicker(interval time.Duration, call func()) *ticker {
	t := &ticker{interval: interval, call: call, ended: make(chan struct{})}
	t.state.Store(calling) // until the timer is in its field
	t.timer = time.AfterFunc(time.Hour, t.fire)
	t.state.Store(armed)
	t.timer.Reset(interval)
	return t
}

func (t *ticker) fire() {
	if !t.state.CompareAndSwap(armed, calling) {
		return
	}
	t.call()
	if !t.state.CompareAndSwap(calling, armed) {
		close(t.ended)
		return
	}
	t.timer.Reset(t.interval)
}

// stop ends the calls and waits for one in progress. Call it once.
func (t *ticker) stop() {
	if t.state.Swap(stopped) == calling {
		<-t.ended
	}
	t.timer.Stop()
}
