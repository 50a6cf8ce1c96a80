package planted

// waitBugs are those of requests that wait for memory.
func waitBugs() []Bug {
	return []Bug{
		{
			Name: "a wait that its context ended is not counted", Package: ".", Run: "^TestCountsOfWhatCameToNothing$",
			Edits: []Edit{{"streams.watch", "c.stream.tally.EndWait()", "_ = c.stream.tally.EndWait"}},
		},
		{
			Name: "an old end of a watch brings a newer watch back", Package: "pool/core", Run: "^TestEndsOfWatchesOvertakeEachOther$",
			Edits: []Edit{{"pool/core.(*fences).ended", "	w.ended = max(w.ended, m.Number)", "	w.ended = m.Number"}},
		},
		{
			Name: "a stream waits on the device for another by default", Package: ".", Run: "^TestNobodyWaitsForAKernelWhileThereIsMemory$",
			Edits: []Edit{{"pool/core.(*ladder).borrow", "l.settings.Waits == WaitsNever || ", ""}},
		},
		{
			Name: "a request that waits for a fence holds up those behind it", Package: ".", Run: "^TestARequestAtTheLimitWaitsForTheFirstFence$",
			Edits: []Edit{{"pool.(*driver).watch", "actors.Go(d.pool.host, \"\", func() { d.awaitMark(w) })", "actors.Yield(d.pool.host)\n			d.awaitMark(w)"}},
		},
		{
			Name: "one client's fences are watched, and no other's", Package: ".", Run: "^TestARequestAtTheLimitWaitsForTheFirstFence$",
			Edits: []Edit{{"pool/core.(*ladder).watch", "	if len(ids) > 0 {\n		l.jobs.watch(r, ids)", "	if ids = ids[:min(len(ids), 1)]; len(ids) > 0 && !l.fences.watching() {\n		l.jobs.watch(r, ids)"}},
		},
		{
			Name: "a request that only a fence keeps from memory is refused", Package: "pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"pool/core.(*ladder).hold", "	l.fences.hold(r)\n	return true", "	r.rung = rungDeny\n	return false"}},
		},
		{
			Name: "memory that a held request waits for goes home meanwhile", Package: "pool/core", Run: "^TestAHeldBatchKeepsNothing$",
			Edits: []Edit{{"pool/core.(*scheduler).advance", "s.waiters.count() == 0 && len(s.fences.held) == 0 {", "s.waiters.count() == 0 {"}},
		},
		{
			Name: "a held batch keeps what it has got", Package: "pool/core", Run: "^TestAHeldBatchKeepsNothing$",
			Edits: []Edit{{"pool/core.(*ladder).hold", "		l.answers.putBack(r)\n", ""}},
		},
		{
			Name: "an excluded stream is waited for", Package: ".", Run: "^TestNobodyWaitsForAnExcludedStream$",
			Edits: []Edit{{"pool/core.(*ladder).watch", "!l.clients.mayBeAwaited(id) || l.fences.watched(id)", "l.fences.watched(id)"}},
		},
		{
			Name: "a use on an excluded stream is waited for", Package: ".", Run: "^TestNobodyWaitsForAnExcludedStream$",
			Edits: []Edit{{"streams.(*Peers).watch", "		if f.line.Excluded.Load() {\n			continue\n		}\n", ""}},
		},
		{
			Name: "a wait for a fence gives up while another goroutine looks at it", Package: "streams", Run: "^TestAWaitOutlastsALookAtItsFence$",
			Edits: []Edit{{"internal/fence.(*Timeline).Wait", "return t.whenSettled(), nil", "return nil, nil //nolint:nilnil // planted"}},
		},
		{
			Name: "one use is waited for, and no other", Package: ".", Run: "^TestARequestWaitsForTheFirstUseThatEnds$",
			Edits: []Edit{{"streams.(*Peers).watch", "			actors.Go(host, \"\", func() { p.awaitFence(s, f, host) })", "			actors.Yield(host)\n			p.awaitFence(s, f, host)"}},
		},
		{
			Name: "a plain segment is freed while streams have work", Package: "pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"pool/core.(*ladder).recycleInto", "l.memory.Plain() && !r.idle", "l.memory.Plain() && false"}},
		},
		{
			Name: "a request that waits is passed without end", Package: "pool/core/admission", Run: "^TestNobodyIsPassedForEver$",
			Edits: []Edit{{"pool/core/admission.(*entry).pass", "e.passedBytes += served.Bytes", "e.passedBytes += 0 * served.Bytes"}},
		},
		{
			Name: "a trial that began before a change counts", Package: "pool/core/admission", Run: "^TestEverySmallWorld$",
			Edits: []Edit{{"pool/core/admission.(*Table).Failed", ".tried = t.tryFrom == t.epoch", ".tried = true"}},
		},
		{
			Name: "a trial that began before a change has later ones left out", Package: "pool/core", Run: "^TestATrialThatWasOvertakenIsRepeated$",
			Edits: []Edit{{"pool/core.(*waiters).attemptFailed", "if w.table.Failed(r.id) && len", "if w.table.Failed(r.id); len"}},
		},
		{
			Name: "a deadlock is declared before all was collected", Package: "pool/core/admission", Run: "^TestEverySmallWorld$",
			Edits: []Edit{{"pool/core/admission.(*Table).Stuck", "	case lifted:\n		return Confirm, 0\n", "	case lifted:\n"}},
		},
		{
			Name: "a deadlock is declared though who is suspended may go on", Package: "pool/core/admission", Run: "^TestEverySmallWorldThatStands$",
			Edits: []Edit{{"pool/core/admission.(*Table).stuck", "			found = true\n", ""}, {
				"pool/core/admission.(*Table).stuck", "			stuck = slices.Delete(stuck, at, at+1)\n", "			_ = at\n",
			}},
		},
		{
			Name: "a trial in vain wakes those that wait", Package: "streams/core", Run: "^TestATrialInVainTellsNobody$",
			Edits: []Edit{{"streams/core.(*Core).Trial", "		c.spans.retireIdle()\n		came = came ||", "		came = came ||"}},
		},
		{
			Name: "memory that came home during a trial wakes nobody", Package: "streams/core", Run: "^TestATrialInVainTellsNobody$",
			Edits: []Edit{{"streams/core.(*Core).Trial", "		came = came || c.spans.units < spanUnits // one of those that were there before\n", "		_ = spanUnits\n"}},
		},
		{
			Name: "a search takes home what others wait for, and nobody hears of it", Package: "streams/core", Run: "^TestASearchInVainTellsWhatItRetired$",
			Edits: []Edit{{"streams/core.(*spans).retireIdle", "s.wanted.on && s.units < before", "s.wanted.on && s.units < before && false"}},
		},
		{
			Name: "a trial in vain is remembered while nobody waits", Package: "pool/core", Run: "^TestAVainTrialIsForgottenWithTheLastThatWaits$",
			Edits: []Edit{{"pool/core.(*Core).park", "		c.waiters.changed()\n		for _, cl", "		for _, cl"}},
		},
		{
			Name: "a stream is suspended for the first wait only", Package: ".", Run: "^TestAStreamIsSuspendedForAllWaits$",
			Edits: []Edit{{"pool/core.(*Core).park", "		for _, cl := range c.clients.all {\n			cl.dirty = true\n", "		for id, cl := range c.clients.all {\n			cl.dirty = true\n			c.waiters.table.Suspend(admission.Account(id), nil)\n"}},
		},
		{
			Name: "a stream goes on unseen while nothing waits", Package: ".", Run: "^TestAStreamIsSuspendedForAllWaits$",
			Edits: []Edit{{"streams.(*suspensions).resume", "s.reported.Load() {", "s.pool.Demand() > 0 {"}},
		},
		{
			Name: "who borrows passes those within their share", Package: "pool/core/admission", Run: "^TestEverySmallWorldOfTenants$",
			Edits: []Edit{{"pool/core/admission.(*line).lets", "(!w.borrows || !l.within) && w.Bytes", "(!w.borrows || !l.within || true) && w.Bytes"}},
		},
		{
			Name: "those that borrow are served by age", Package: "pool/core/admission", Run: "^TestEverySmallWorldOfBorrowers$",
			Edits: []Edit{{"pool/core/admission.ranked", "cmp.Compare(a.fill, b.fill), ", ""}},
		},
		{
			Name: "who has much of its share waits without end", Package: "pool/core/admission", Run: "^TestNobodyIsOutrankedForEver$",
			Edits: []Edit{{"pool/core/admission.(*Table).outrank", "s.outrankedBytes += served.Bytes", "s.outrankedBytes += 0 * served.Bytes"}},
		},
		{
			Name: "a tenant's new request takes what others wait for", Package: ".", Run: "^TestATenantDoesNotJumpTheQueue$",
			Edits: []Edit{{"streams/claims.Queues", "return waits && s.Demand", "return false"}},
		},
		{
			Name: "a free does not wake those that wait", Package: ".", Run: "^TestARequestWaitsForAFree$",
			Edits: []Edit{{"streams/core.(*Core).SetWanted", "	c.owner.Want(on)\n", ""}},
		},
		{
			Name: "what a wait did not use is kept from others", Package: ".", Run: "^TestWhatAWaitDidNotUseServesOthers$",
			Edits: []Edit{{"streams.(*turn).granted", "		t.core.NoteSpare()\n", ""}},
		},
		{
			Name: "what was refused in the end is kept from others", Package: "pool/core", Run: "^TestWhatWasRefusedInTheEndServesOthers$",
			Edits: []Edit{{"pool/core.(*answers).refuse", "		a.clients.all[r.client].dirty = true\n", ""}},
		},
		{
			Name: "a request that is cancelled goes on waiting", Package: ".", Run: "^TestAWaitEndsWithItsContext$",
			Edits: []Edit{{"streams.(*dispatcher).changed", "		d.unpark(c)\n", ""}},
		},
		{
			Name: "a tenant pays for what it did not get", Package: ".", Run: "^TestATenantIsRefunded$",
			Edits: []Edit{{"streams.(*claim).Fail", "	c.Refund()\n", ""}, {
				"streams.(*claim).cancelled", "	c.Refund()\n", "",
			}},
		},
		{
			Name: "a request that a stream has given up is offered memory again and again", Package: "streams", Run: "^TestAnOfferToARequestThatIsGivenUpWithdrawsIt$",
			Edits: []Edit{{"streams.(*dispatcher).serveOffer", "		d.effects().withdrawals.Push(o.Token)\n", ""}},
		},
		{
			Name: "refusals before a fence has passed deny a request", Package: "pool/core", Run: "^TestRefusalsBeforeAFenceHasPassedDenyNothing$",
			Edits: []Edit{{"pool/core.(*fences).takeDue", "		r.rung, r.askedAll = rungAskAll, false\n		r.forgive()\n", "		r.rung, r.askedAll = rungAskAll, false\n"}},
		},
		{
			Name: "a handler is asked for ever", Package: ".", Run: "^TestAHandlerThatNeverEndsIsAskedSixteenTimes$",
			Edits: []Edit{{"streams/claims/claim.go", "const MaxConsults = 16", "const MaxConsults = 17"}},
		},
	}
}
