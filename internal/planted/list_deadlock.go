package planted

// deadlockBugs are those of requests that nobody can serve: of their refusals, and of who is taken to free.
func deadlockBugs() []Bug {
	return []Bug{
		{
			Name: "all that are under way are searched for at every message", Package: "pool/core", Run: "^TestRefusalsAtOnceSearchNoMoreThanOne$",
			Edits: []Edit{{"pool/core.(*Core).serveFree", "	if q.vainInserts != c.pages.inserts {\n", "	{\n"}},
		},
		{
			Name: "who becomes the first is not searched for", Package: "pool/core", Run: "^TestWhoBecomesTheFirstIsSearchedFor$",
			Edits: []Edit{{"pool/core.(*Core).serveFree", "q.vain > 0 && q.promoted() && c", "q.vain > 0 && q.promoted() && false && c"}, {
				"pool/core.(*Core).leave", "	c.queue.searchAgain()\n", "",
			}},
		},
		{
			Name: "a magazine that was handed back is not looked at when memory is short", Package: "streams/magazine", Run: "^TestIdleFindsEveryIdleMagazine$",
			Edits: []Edit{{"streams/magazine.(*Owner).Idle", "		for m := o.ready[class]; m != nil; m = m.Older {\n			note(m)", "		for m := o.ready[class]; m != nil; m = m.Older {\n			note(nil)"}},
		},
		{
			Name: "idle accounts keep a deadlock from being seen", Package: "pool/core/admission", Run: "^TestIdleAccountsCountWhereTheyAreNamed$",
			Edits: []Edit{{"pool/core/admission.(*Table).stuck", "		return slices.ContainsFunc(holders, goesOn) || slices", "		return true || slices.ContainsFunc(holders, goesOn) || slices"}},
		},
		{
			Name: "a stream that says nothing counts as exclusive", Package: ".", Run: "^TestASharedStreamWaitsForItself$",
			Edits: []Edit{{"streams.(*claim).blocked", "return exclusive && c.awaiting.Load() > 0", "return (exclusive || c.tenant == nil) && c.awaiting.Load() > 0"}},
		},
		{
			Name: "a tenant that says nothing counts as exclusive", Package: ".", Run: "^TestASharedStreamWaitsForItself$",
			Edits: []Edit{{"streams.(*claim).blocked", "exclusive = c.tenant.Exclusive()", "exclusive = true"}},
		},
		{
			Name: "a receiver counts as waiting until it comes to run", Package: "streams", Run: "^TestASendEndsTheWaitThatItServes$",
			Edits: []Edit{{"streams.(*Handover).Send", "	endWait(h.to, &h.receiver, h.sent.Add(1))\n", "	h.sent.Add(1)\n"}},
		},
		{
			Name: "a sender ends a wait for a later value", Package: "streams", Run: "^TestASendEndsTheWaitThatItServes$",
			Edits: []Edit{{"streams.endWait", "x != nil && x.need <= done", "x != nil"}},
		},
		{
			Name: "a suspension begins that is over", Package: "streams", Run: "^TestASendEndsTheWaitThatItServes$",
			Edits: []Edit{{"streams.(*suspensions).suspend", "		if !x.over.Load() { // else", "		if true { // else"}},
		},
		{
			Name: "who was sent a buffer is not taken to free it", Package: ".", Run: "^TestASentValueIsNoDeadlock$",
			Edits: []Edit{{"streams.(*Handover).Send", "		h.from.suspensions.entrust(h.receiverID())\n", ""}},
		},
		{
			Name: "who has a buffer by transfer is not taken to free it", Package: ".", Run: "^TestATransferredBufferIsNoDeadlock$",
			Edits: []Edit{{"streams.Buffer.Transfer", "		home.suspensions.entrust(to.id)\n", ""}},
		},
		{
			Name: "a wait that times out does not say who holds memory", Package: ".", Run: "^TestAWaitEndsWithItsContext$",
			Edits: []Edit{{"streams.watch", "p.Complete(none, c.ended(ctx.Err()))", "p.Complete(none, ctx.Err())"}},
		},
		{
			Name: "nobody is asked whose memory it is where all wait for quotas", Package: ".", Run: "^TestATenantWaitsForItself$",
			Edits: []Edit{{"pool/core.(*Core).park", "	w.unasked = true\n	w.waitCount++\n", "	w.waitCount++\n"}, {
				"pool/core.(*waiters).stir", "w.unasked = w.futile[:0], false, true", "w.unasked = w.futile[:0], false, false",
			}, {"pool/core.(*Core).block", "		c.waiters.unasked = true\n", ""}},
		},
		{
			Name: "an empty batch waits for its turn", Package: ".", Run: "^TestRequestsForNothing$",
			Edits: []Edit{{"streams.(*Stream).AllocBatchForAsync", "if len(bytes) == 0 { // nothing", "if len(bytes) < 0 { // nothing"}},
		},
	}
}
