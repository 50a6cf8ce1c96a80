package futures

// observer is a place in a promise's stack of those who are told of the completion. It is part of whoever is told, so that
// being told costs no allocation of its own.
type observer struct {
	next *observer // Written before the observer is on the stack.
	who  party
}

// party is told of a completion, once, on the goroutine that completes: it must be short and call no foreign code.
type party interface{ told() }

// observe puts o on the stack: its party is told by the completion. False means that the answer is there and that nobody
// will be told.
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

// tellAll tells the parties of a stack that was sealed.
func (o *observer) tellAll() {
	for o != nil {
		next := o.next // Before telling: the party may let go of its observer.
		o.who.told()
		o = next
	}
}
