package simulation

// letter is a message to an actor: what it does when received, and what answers it in the place of an
// actor that has ended.
type letter struct {
	name    string
	receive func()
	fail    func()
}

// actor is a queue of letters and what the present turn leaves.
type actor struct {
	name string
	mail []letter
	over bool
	left []func() // effects of the turn, in order
}

// performer is whoever performs the effects of a turn.
type performer struct {
	name string
	left []func()
}

// post puts a letter into the queue of an actor.
func (w *world) post(a *actor, l letter) {
	if a.over {
		w.note("%s fails at %s", l.name, a.name)
		if l.fail != nil {
			l.fail()
		}
		return
	}
	a.mail = append(a.mail, l)
}

// receive runs a turn of an actor over some of what waits for it.
func (w *world) receive(a *actor) {
	for n := 1 + w.random.IntN(3); n > 0 && len(a.mail) > 0 && !a.over; n-- {
		l := a.mail[0]
		a.mail = a.mail[1:]
		w.note("%s receives %s", a.name, l.name)
		l.receive()
	}
	w.detach(a)
}

// detach leaves the effects of a turn to be performed.
func (w *world) detach(a *actor) {
	if len(a.left) > 0 {
		w.performers = append(w.performers, &performer{a.name, a.left})
		a.left = nil
	}
}

// perform performs the next effect of a turn.
func (w *world) perform(i int) {
	p := w.performers[i]
	next := p.left[0]
	p.left = p.left[1:]
	if len(p.left) == 0 {
		w.performers = append(w.performers[:i], w.performers[i+1:]...)
	}
	next()
}

// end closes an actor: what is queued fails.
func (w *world) end(a *actor) {
	if a.over {
		return
	}
	a.over = true
	mail := a.mail
	a.mail = nil
	for _, l := range mail {
		if l.fail != nil {
			l.fail()
		}
	}
}
