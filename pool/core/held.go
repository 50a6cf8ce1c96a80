package core

import "slices"

// Requests that only pending memory can serve wait for fences. The wait is nobody else's: it is made off the turn and off the
// driver goroutine, one for each client with pending memory, so that one kernel that never ends keeps nobody from
// memory behind another's. Meanwhile the request is held: out of the queue, so that later requests are served.
//
//	queue --rungWait--> Watch job --nothing passed--> held --fence passed, pages returned--> queue, asking everybody anew
//	                              --nothing to watch--> denied

// watch has the fences of pending memory watched for a request that nothing else can serve. A client whose kernels need not
// end is not waited for.
func (c *Core) watch(r *request) {
	r.rung = rungHold
	r.heard = c.progress
	var ids []Client // that are not watched yet: the fences of all were polled just now
	for _, id := range c.taggedClients() {
		if w := c.watches[id]; !c.isExcluded(id) && w.begun <= w.ended {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		c.start(&Job{Watch: ids, purpose: forQuery, request: r})
	}
}

// hold ends a climb at fences that are watched. It reports whether the request has left the queue.
func (c *Core) hold(r *request) bool {
	switch {
	case r.heard != c.progress: // something has passed, or came home, meanwhile
		r.rung = rungRecycle
		r.forgiveRefusals()
		return false
	case !c.watching() || r.patience == Patient: // a patient one waits in the order of those that wait
		r.rung = rungDeny
		return false
	case r.id != 0: // it is tried again once a fence has passed
		c.letWait(r)
		return true
	}
	if len(r.wants) > 0 { // two that had parts could keep each other from the rest
		c.putBack(r)
		r.pages, r.more = r.wants[0], slices.Clone(r.wants[1:])
	}
	r.waited = true
	c.held = append(c.held, r)
	return true
}

// unhold puts the requests that are held back into the queue, in front, once there is anything new.
func (c *Core) unhold() {
	if len(c.held) == 0 || c.held[0].heard == c.progress || c.closing {
		return
	}
	for _, r := range c.held {
		r.rung, r.askedAll = rungAskAll, false
		r.forgiveRefusals()
	}
	c.queue.refills = slices.Concat(c.held, c.queue.refills)
	c.queue.searchAgain()
	c.held = nil
}

// watch is the newest watch over a fence of one client, by its number, and the newest of which the end was told.
type watch struct{ begun, ended uint64 }

func (c *Core) watchesBegun(all []Watch) {
	for _, m := range all {
		w := c.watches[m.Client]
		w.begun = max(w.begun, m.Number)
		c.watches[m.Client] = w
	}
}

// watching reports whether the end of any watch is still to be told.
func (c *Core) watching() bool {
	for _, w := range c.watches {
		if w.begun > w.ended {
			return true
		}
	}
	return false
}

func (c *Core) watchOver(m WatchOver) {
	w := c.watches[m.Client]
	w.ended = max(w.ended, m.Number) // ends overtake each other
	c.watches[m.Client] = w
	if m.Err == nil {
		c.progress++
		c.waiters.stir()
	} else {
		for _, r := range c.held { // as if a query had failed
			c.deny(r, m.Err)
		}
		c.held = nil
	}
	c.advance()
}
