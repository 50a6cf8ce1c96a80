package planted

// deadlockBugs are those of requests that nobody can serve: of their refusals, and of who is taken to free.
func deadlockBugs() []Bug {
	return []Bug{
		{
			Name: "all that are under way are searched for at every message", Package: "internal/pool/core", Run: "^TestRefusalsAtOnceSearchNoMoreThanOne$",
			Edits: []Edit{{"internal/pool/core.(*queue).serve", "	if q.searchedAt != inserts() {\n", "	{\n"}},
		},
		{
			Name: "who becomes the first is not searched for", Package: "internal/pool/core", Run: "^TestWhoBecomesTheFirstIsSearchedFor$",
			Edits: []Edit{
				{"internal/pool/core.(*queue).serve", "q.searched > 0 && q.promoted() && grant", "q.searched > 0 && q.promoted() && false && grant"},
				{"internal/pool/core.(*queue).removeOf", "	q.searchAgain()\n	q.refills = slices.DeleteFunc", "	q.refills = slices.DeleteFunc"},
			},
		},
		{
			Name: "a magazine that was handed back is not looked at when memory is short", Package: "internal/stream/magazine", Run: "^TestIdleFindsEveryIdleMagazine$",
			Edits: []Edit{{"internal/stream/magazine.(*Spans).Idle", "m = m.older {\n			note(m)", "m = m.older {\n			_ = m"}},
		},
		{
			Name: "idle accounts keep a deadlock from being seen", Package: "internal/pool/admission", Run: "^TestIdleAccountsCountWhereTheyAreNamed$",
			Edits: []Edit{{"internal/pool/admission.(*Table).stuck", "		return slices.ContainsFunc(holders, goesOn) || t.some", "		return true || slices.ContainsFunc(holders, goesOn) || t.some"}},
		},
		{
			Name: "a stream that says nothing counts as exclusive", Package: "internal/acceptance", Run: "^TestASharedStreamWaitsForItself$",
			Edits: []Edit{{"streams.(*claim).blocked", "return exclusive && c.awaiting.Load() > 0", "return (exclusive || c.tenant == nil) && c.awaiting.Load() > 0"}},
		},
		{
			Name: "a tenant that says nothing counts as exclusive", Package: "internal/acceptance", Run: "^TestASharedStreamWaitsForItself$",
			Edits: []Edit{{"streams.(*claim).blocked", "exclusive = (*pool.TenantControl)(c.tenant).Exclusive()", "exclusive = true"}},
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
			Name: "an answer counts before the report of its memory has arrived", Package: "internal/pool/core", Run: "^TestAnAnswerWaitsForTheReportThatItOvertook$",
			Edits: []Edit{{"internal/pool/core.(*client).note", "cl.arrived < cl.answerAt", "cl.arrived+1 < cl.answerAt"}},
		},
		{
			Name: "a report that memory came home is not counted as sent", Package: "streams", Run: "^TestAnAnswerCountsTheReportBeforeIt$",
			Edits: []Edit{{"streams.(*lentMemory).reportCame", "		l.sent++\n", ""}},
		},
		{
			Name: "who was sent a buffer is not taken to free it", Package: "internal/acceptance", Run: "^TestASentValueIsNoDeadlock$",
			Edits: []Edit{{"streams.(*Handover).Send", "		h.from.suspensions.addFreer(h.receiverID())\n", ""}},
		},
		{
			Name: "who has a buffer by transfer is not taken to free it", Package: "internal/acceptance", Run: "^TestATransferredBufferIsNoDeadlock$",
			Edits: []Edit{{"streams.Buffer.Transfer", "	home.suspensions.addFreer(to.id)\n", ""}},
		},
		{
			Name: "a wait that times out does not say who holds memory", Package: "internal/acceptance", Run: "^TestAWaitEndsWithItsContext$",
			Edits: []Edit{{"streams.watch", "p.Complete(none, c.ended(ctx.Err()))", "p.Complete(none, ctx.Err())"}},
		},
		{
			Name: "nobody is asked whose memory it is where all wait for quotas", Package: "internal/acceptance", Run: "^TestATenantWaitsForItself$",
			Edits: []Edit{
				{"internal/pool/core.(*waiters).park", "	w.unasked = true\n	w.waitCount++\n", "	w.waitCount++\n"},
				{"internal/pool/core.(*waiters).changed", "w.unsettled, w.unasked = false, true", "w.unsettled, w.unasked = false, false"},
				{"internal/pool/core.(*waiters).block", "	w.table.Block(r.id, m.Blocked)\n	w.unasked = true\n", "	w.table.Block(r.id, m.Blocked)\n"},
			},
		},
		{
			Name: "an empty batch waits for its turn", Package: "internal/acceptance", Run: "^TestRequestsForNothing$",
			Edits: []Edit{{"streams.(*Stream).AllocBatchForAsync", "if len(bytes) == 0 { // nothing", "if len(bytes) < 0 { // nothing"}},
		},
		{
			Name: "a value handed over does not end its receiver's wait", Package: "lab/simulation", Run: "^TestCallersBehindEachOtherGoOn$",
			Edits: []Edit{{"streams.endWait", "x != nil && x.need <= done {", "x != nil && x.need < done {"}},
		},
		{
			Name: "a wait in a handover is not announced", Package: "lab/simulation", Run: "^TestCallersBehindEachOtherGoOn$",
			Edits: []Edit{{"streams.waitFor", "	waits.suspensions.suspend(x)\n", ""}},
		},
		{
			Name: "the simulation notes a suspension after the allocator was told", Package: "lab/simulation", Run: "^TestAnAnswerMayOvertakeTheCallThatLeadsToIt$",
			Edits: []Edit{{
				"lab/simulation.(*stream).standStill", "	s.stood = true\n	end := s.Suspend()\n", "	end := s.Suspend()\n	s.stood = true\n",
			}},
		},
		{
			Name: "the simulation notes the close of a stream after the allocator was told", Package: "lab/simulation", Run: "^TestAnAnswerMayOvertakeTheCallThatLeadsToIt$",
			Edits: []Edit{{
				"lab/simulation.(*world).closeStream", "	s.closing = true\n	s.closers++\n", "	s.closers++\n	defer func() { s.closing = true }()\n",
			}},
		},
	}
}
