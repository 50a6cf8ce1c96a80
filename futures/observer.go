package futures

// observer is a node in a promise's stack of parties to notify. It is embedded in its party, so
// that it costs no allocation of its own.
type observer struct {
	next  *observer // Written before the observer is on the stack.
	party party
}

// party is notified of a completion, once, on the goroutine that completes: it must be short and
// call no foreign code.
type party interface{ notify() }

// observe pushes o on the stack: the completion notifies its party. False: the answer is there, and
// no notification comes.
func (p *completion) observe(o *observer) bool {
	for {
		top := p.observers.Load()
		if top == &sealed {
			return false
		}
		o.next = top
		if p.observers.CompareAndSwap(top, o) {
			return true
		}
	}
}

// notifyAll notifies the parties of a stack that was sealed.
func (o *observer) notifyAll() {
	for o != nil {
		next := o.next // Before the notification: the party may drop its observer.
		o.party.notify()
		o = next
	}
}
