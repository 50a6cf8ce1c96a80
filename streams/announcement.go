package streams

import (
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/actors"
)

// announcement separates the captures of a stream from driver calls on it. A call enters before it queries
// whether the stream is being captured, and leaves after its last query. A capture announces itself, which
// refuses calls from then on, and begins once the calls that have entered have left. So no capture begins
// between a query and the call.
type announcement struct {
	word    atomic.Int64               // calls that have entered; those that have entered as quick, from quickShift on; and announcedBit
	waiting atomic.Pointer[quietening] // a capture that waits for them; nil: none does
}

// quietening is a wait until no call is left.
type quietening struct {
	over chan struct{}
	late bool // read once over is closed
}

const (
	announcedBit = int64(1) << 62
	quickShift   = 32
	quickCall    = int64(1)<<quickShift + 1
)

// captureTimeout bounds how long a capture waits for driver calls in progress on its stream. Not shorter: one
// of them may wait for the stream's work. Not longer: a goroutine that begins a capture inside such a call
// waits for itself.
const captureTimeout = 10 * time.Second

// beforeWaiting is a place where a host may hold up a capture.
const beforeWaiting = "calls are in progress, and the capture does not wait for them yet"

// enter begins a call, which leave ends. It is false while a capture is announced, and then the call must not be made.
func (a *announcement) enter() bool {
	if a.word.Add(1) < announcedBit {
		return true
	}
	a.leave()
	return false
}

// enterQuick begins a launch that calls nothing but the driver, for which awaitQuick waits; leaveQuick ends it. It is false while
// a capture is announced: then the launch must be ended without the driver's call.
func (a *announcement) enterQuick() bool { return a.word.Add(quickCall) < announcedBit }

func (a *announcement) leaveQuick() {
	if a.word.Add(-quickCall) == announcedBit {
		a.release()
	}
}

// awaitQuick waits until a moment at which no quick launch is being submitted: those that had begun have ended. It must not be
// called within one.
func (a *announcement) awaitQuick(host actors.Host) {
	for a.word.Load()&^announcedBit>>quickShift != 0 {
		actors.Yield(host)
	}
}

// join begins a call that is to be part of an announced capture. It returns false if none is announced.
func (a *announcement) join() bool {
	if a.word.Add(1) > announcedBit {
		return true
	}
	a.leave()
	return false
}

func (a *announcement) leave() {
	if a.word.Add(-1) == announcedBit {
		a.release()
	}
}

// release ends the wait for calls. Of several callers one does.
func (a *announcement) release() {
	if q := a.waiting.Swap(nil); q != nil {
		close(q.over)
	}
}

// expire ends a wait that has lasted too long, and no later one.
func (a *announcement) expire(q *quietening) {
	if a.waiting.CompareAndSwap(q, nil) {
		q.late = true
		close(q.over)
	}
}

// busy reports whether calls have entered.
func (a *announcement) busy() bool { return a.word.Load()&^announcedBit != 0 }

// announced reports whether a capture is announced.
func (a *announcement) announced() bool { return a.word.Load() >= announcedBit }

// announce refuses calls from now on. It returns false if a capture is announced already.
func (a *announcement) announce() bool { return a.word.Or(announcedBit)&announcedBit == 0 }

// withdraw lets calls enter again.
func (a *announcement) withdraw() { a.word.And(^announcedBit) }

// await waits, after announce, until the calls that have entered have left. It returns false after
// captureTimeout.
func (a *announcement) await(host actors.Host) bool {
	if a.word.Load() == announcedBit {
		return true
	}
	q := &quietening{over: make(chan struct{})}
	if host != nil {
		host.Reach(beforeWaiting)
	}
	a.waiting.Store(q)
	if a.word.Load() == announcedBit { // the last one may have left before it could see q
		a.release()
	}
	timer := time.AfterFunc(captureTimeout, func() { a.expire(q) })
	defer timer.Stop()
	actors.Wait(host, q.over)
	return !q.late
}
