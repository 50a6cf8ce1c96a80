package streams

// reclaims answers the pool's reclaim requests.
type reclaims struct {
	_ [0]func() // is not compared, and programs have no code for it

	state    *turnState
	lent     *lentMemory
	dispatch *dispatcher
	due      *reclaim // waits for runs that the pool has granted; nil: none
}

// handle answers a request immediately, or when the runs that the pool granted before it have arrived. If other
// streams want memory and fences keep some, it queries these before it answers.
func (r *reclaims) handle(a *reclaim) {
	r.dispatch.updateDemand()
	if !r.state.claims.Received(a.runsGranted) {
		r.due = a
		return
	}
	others := r.state.claims.Len() == r.state.claims.ParkedLen()
	if others && a.pages == 0 && !a.looked && !r.state.draining && r.state.core.PendingBytes() > 0 {
		a.looked = true
		r.state.core.Press()
		r.lent.takeOwnFences()
		r.lent.eachLook()
		r.state.effects().reclaim = a
		r.due = nil // last, as below
		return
	}
	r.lent.answerReclaim(a.pages)
	r.due = nil // last: after a panic the request is still to be answered
}

// resume handles the request that waits for runs, if there is one.
func (r *reclaims) resume() {
	if r.due != nil {
		r.handle(r.due)
	}
}
