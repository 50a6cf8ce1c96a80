package vram

import (
	"runtime/debug"
	"sync/atomic"

	"github.com/go-vram/vram/internal/recovered"
)

// noticeLimit bounds the calls that are due. Not smaller: a loop over a thousand streams may be refused at once. Not
// larger: whoever is so far behind does not look at each of them.
const noticeLimit = 1000

// notices calls functions one at a time in the order in which they were posted, on a goroutine that ends when
// nothing is due.
//
//	top:  nil --post--> notice (the poster starts the goroutine) --take--> busy --nothing more--> nil
//	                    busy --post--> notice --take--> busy
type notices struct {
	log     Logger
	panics  *recovered.Log
	top     atomic.Pointer[notice] // posted last
	due     atomic.Int64
	dropped atomic.Uint64
	rest    *notice // taken and not called yet; of the goroutine
}

type notice struct {
	call func()
	next *notice // posted before
}

// busy stands at the bottom of what is posted while the goroutine lives.
var busy notice //nolint:gochecknoglobals // an identity, never written

func newNotices(log Logger, panics *recovered.Log) *notices {
	if log == nil {
		log = noLogger{}
	}
	return &notices{log: log, panics: panics}
}

// post lets the function be called, unless too many are due. It does not wait.
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

// flush waits until everything that was posted has been called.
func (n *notices) flush() {
	through := make(chan struct{})
	n.due.Add(1)
	n.push(&notice{call: func() { close(through) }})
	<-through
}

// run makes the calls that are due. A function that ends its goroutine ends no other call: the rest goes on on
// another.
func (n *notices) run() {
	through := false
	defer func() {
		if !through {
			go n.run()
		}
	}()
	for n.rest != nil || n.collect() {
		call := n.rest.call
		n.rest = n.rest.next
		n.due.Add(-1)
		n.make(call)
	}
	through = true
}

// collect takes what was posted, oldest first. It reports whether there is anything; if not, nobody calls any more
// until the next post.
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

// logPanic is careful: it may have been the logger that panicked.
func (n *notices) logPanic(value any) {
	defer func() { _ = recover() }()
	n.log.Error("vram: an event function panicked", "value", value)
}
