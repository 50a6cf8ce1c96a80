package vram

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/go-vram/vram/internal/recovered"
)

// noticeLimit bounds the calls that are due. Not smaller: a loop over a thousand streams may be
// refused at once. Not larger: a reader that is so far behind does not look at each of them.
const noticeLimit = 1000

// notices calls functions one at a time in the order in which they were posted, on a goroutine that
// ends when no call is due.
//
//	top:  nil --post--> notice (the poster starts the goroutine) --take--> busy --nothing more--> nil
//	                    busy --post--> notice --take--> busy
type notices struct {
	_ [0]func() // is not compared, and programs have no code for it

	log     Logger
	panics  *recovered.Log
	top     atomic.Pointer[notice] // posted last
	due     atomic.Int64
	dropped atomic.Uint64
	caller  atomic.Uint64 // the goroutine that makes the calls, or the last that did
	rest    *notice       // taken and not called yet; of the goroutine
}

type notice struct {
	call func()
	next *notice // posted before
}

// busy is at the bottom of the posted notices while the goroutine lives.
var busy notice //nolint:gochecknoglobals // an identity, never written

func newNotices(log Logger, panics *recovered.Log) *notices {
	if log == nil {
		log = noLogger{}
	}
	return &notices{log: log, panics: panics}
}

// post has the function called later, unless too many are due. It does not wait.
func (n *notices) post(call func()) {
	if n.due.Add(1) > noticeLimit {
		n.due.Add(-1)
		n.dropped.Add(1)
		return
	}
	n.push(&notice{call: call})
}

func (n *notices) push(last *notice) {
	for {
		top := n.top.Load()
		if last.next = top; n.top.CompareAndSwap(top, last) {
			if top == nil {
				go n.run()
			}
			return
		}
	}
}

// last has the function called behind all posted ones, however many are due. It does not wait.
func (n *notices) last(call func()) {
	n.due.Add(1)
	n.push(&notice{call: call})
}

// flush waits until all posted functions have been called.
func (n *notices) flush() {
	through := make(chan struct{})
	n.last(func() { close(through) })
	<-through
}

// calling reports whether the caller is in one of the calls: a wait there for the calls that are
// due would wait for itself.
func (n *notices) calling() bool { return n != nil && n.caller.Load() == goroutine() }

// goroutine is the number at the beginning of a stack trace: "goroutine 7 [running]". It costs a
// microsecond, and no two goroutines of a process ever have the same.
func goroutine() (number uint64) {
	const before = "goroutine "
	var stack [64]byte
	for _, c := range stack[len(before):runtime.Stack(stack[:], false)] {
		if c < '0' || c > '9' {
			break
		}
		number = 10*number + uint64(c-'0')
	}
	return number
}

// run makes the calls that are due. A function that ends its goroutine ends no other call: another
// goroutine makes the rest.
func (n *notices) run() {
	done := false
	defer func() {
		if !done {
			go n.run()
		}
	}()
	n.caller.Store(goroutine())
	for n.rest != nil || n.collect() {
		call := n.rest.call
		n.rest = n.rest.next
		n.due.Add(-1)
		n.make(call)
	}
	done = true
}

// collect takes the posted functions, oldest first. It reports whether there is any; if not, the
// goroutine ends.
func (n *notices) collect() bool {
	for {
		for last := n.top.Swap(&busy); last != nil && last != &busy; {
			last, last.next, n.rest = last.next, n.rest, last
		}
		if dropped := n.dropped.Swap(0); dropped > 0 {
			n.make(func() { n.log.Warn("vram: events were not told", "count", dropped) })
		}
		if n.rest != nil {
			return true
		}
		if n.top.CompareAndSwap(&busy, nil) {
			return false
		}
	}
}

// make calls a function of the caller's. A panic there ends nothing else.
func (n *notices) make(call func()) {
	defer func() {
		if value := recover(); value != nil {
			n.panics.Note(recovered.Panic{Place: "event function", Value: value, Stack: debug.Stack()})
			n.logPanic(value)
		}
	}()
	call()
}

// logPanic recovers: the logger itself may have panicked.
func (n *notices) logPanic(value any) {
	defer func() { _ = recover() }()
	n.log.Error("vram: an event function panicked", "value", value)
}
