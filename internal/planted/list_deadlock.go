package planted

// deadlockBugs are those of requests that nobody can serve: of their refusals, and of who is taken to free.
func deadlockBugs() []Bug {
	return []Bug{
		{
			Name: "all that are under way are searched for at every message", Package: "pool/core", Run: "^TestRefusalsAtOnceSearchNoMoreThanOne$",
			Edits: []Edit{{"pool/core/core.go", "	if q.vainInserts != c.pages.inserts {\n", "	{\n"}},
		},
		{
			Name: "who becomes the first is not searched for", Package: "pool/core", Run: "^TestWhoBecomesTheFirstIsSearchedFor$",
			Edits: []Edit{{"pool/core/core.go", "q.vain > 0 && q.promoted() && c", "q.vain > 0 && q.promoted() && false && c"}, {
				"pool/core/client.go", "	c.queue.searchAgain()\n", "",
			}},
		},
		{
			Name: "a magazine that was handed back is not looked at when memory is short", Package: "streams/magazine", Run: "^TestIdleFindsEveryIdleMagazine$",
			Edits: []Edit{{"streams/magazine/spans.go", "m = m.older {\n			note(m)", "m = m.older {\n			_ = m"}},
		},
		{
			Name: "idle accounts keep a deadlock from being seen", Package: "pool/core/admission", Run: "^TestIdleAccountsCountWhereTheyAreNamed$",
			Edits: []Edit{{"pool/core/admission/stuck.go", "		return slices.ContainsFunc(holders, goesOn) || slices", "		return true || slices.ContainsFunc(holders, goesOn) || slices"}},
		},
		{
			Name: "a stream that says nothing counts as exclusive", Package: ".", Run: "^TestASharedStreamWaitsForItself$",
			Edits: []Edit{{"streams/wait.go", "return exclusive && p.awaiting.Load() > 0", "return (exclusive || p.tenant == nil) && p.awaiting.Load() > 0"}},
		},
		{
			Name: "a tenant that says nothing counts as exclusive", Package: ".", Run: "^TestASharedStreamWaitsForItself$",
			Edits: []Edit{{"streams/wait.go", "exclusive = p.tenant.Exclusive()", "exclusive = true"}},
		},
		{
			Name: "a receiver counts as waiting until it comes to run", Package: "streams", Run: "^TestASendEndsTheWaitThatItServes$",
			Edits: []Edit{{"streams/handover.go", "	end(h.to, &h.receiver, h.sent.Add(1))\n", "	h.sent.Add(1)\n"}},
		},
		{
			Name: "a sender ends a wait for a later value", Package: "streams", Run: "^TestASendEndsTheWaitThatItServes$",
			Edits: []Edit{{"streams/handover.go", "x != nil && x.need <= done", "x != nil"}},
		},
		{
			Name: "a suspension begins that is over", Package: "streams", Run: "^TestASendEndsTheWaitThatItServes$",
			Edits: []Edit{{"streams/suspend.go", "		if !x.over.Load() { // else", "		if true { // else"}},
		},
		{
			Name: "who was sent a buffer is not taken to free it", Package: ".", Run: "^TestASentValueIsNoDeadlock$",
			Edits: []Edit{{"streams/handover.go", "		h.from.entrust(h.receiverID())\n", ""}},
		},
		{
			Name: "who has a buffer by transfer is not taken to free it", Package: ".", Run: "^TestATransferredBufferIsNoDeadlock$",
			Edits: []Edit{{"streams/use.go", "		home.entrust(to.id)\n", ""}},
		},
		{
			Name: "a wait that times out does not say who holds memory", Package: ".", Run: "^TestAWaitEndsWithItsContext$",
			Edits: []Edit{{"streams/request.go", "p.Complete(none, s.ended(c, ctx.Err()))", "p.Complete(none, ctx.Err())"}},
		},
		{
			Name: "nobody is asked whose memory it is where all wait for quotas", Package: ".", Run: "^TestATenantWaitsForItself$",
			Edits: []Edit{{"pool/core/waiter.go", "	w.unasked = true\n	w.waitCount++\n", "	w.waitCount++\n"}, {
				"pool/core/waiter.go", "w.unasked = w.futile[:0], false, true", "w.unasked = w.futile[:0], false, false",
			}, {"pool/core/waiter.go", "		c.waiters.unasked = true\n", ""}},
		},
		{
			Name: "an empty batch waits for its turn", Package: ".", Run: "^TestRequestsForNothing$",
			Edits: []Edit{{"streams/batch.go", "if len(bytes) == 0 { // nothing", "if len(bytes) < 0 { // nothing"}},
		},
	}
}
