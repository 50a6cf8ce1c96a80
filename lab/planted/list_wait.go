package planted

// waitBugs are those of requests that wait for memory.
func waitBugs() []Bug {
	return []Bug{
		{
			Name: "a wait that its context ended is not counted", Package: "internal/acceptance", Run: "^TestCountsOfWhatCameToNothing$",
			Edits: []Edit{{"streams.watch", "c.stream.tally.EndWait()", "_ = c.stream.tally.EndWait"}},
		},
		{
			Name: "an old end of a watch brings a newer watch back", Package: "internal/pool/core", Run: "^TestEndsOfWatchesOvertakeEachOther$",
			Edits: []Edit{{"internal/pool/core.(*fences).ended", "	w.ended = max(w.ended, m.Number)", "	w.ended = m.Number"}},
		},
		{
			Name: "a stream waits on the device for another by default", Package: "internal/acceptance", Run: "^TestNobodyWaitsForAKernelWhileThereIsMemory$",
			Edits: []Edit{{"internal/pool/core.(*grower).lend", "g.settings.Waits == WaitsNever || ", ""}},
		},
		{
			Name: "a request that waits for a fence holds up those behind it", Package: "internal/acceptance", Run: "^TestARequestAtTheLimitWaitsForTheFirstFence$",
			Edits: []Edit{{"pool.(*driver).watch", "actors.Go(d.pool.host, \"\", func() { d.awaitMark(w) })", "actors.Yield(d.pool.host)\n			d.awaitMark(w)"}},
		},
		{
			Name: "one client's fences are watched, and no other's", Package: "internal/acceptance", Run: "^TestARequestAtTheLimitWaitsForTheFirstFence$",
			Edits: []Edit{{"internal/pool/core.(*ladder).wait", "	if len(ids) > 0 {\n", "	if ids = ids[:min(len(ids), 1)]; len(ids) > 0 && !l.fences.watching() {\n"}},
		},
		{
			Name: "a request that only a fence keeps from memory is refused", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/core.(*ladder).hold", "	l.fences.held = append(l.fences.held, r)\n	return leave", "	return onward"}},
		},
		{
			Name: "memory that a held request waits for goes home meanwhile", Package: "internal/pool/core", Run: "^TestAHeldBatchKeepsNothing$",
			Edits: []Edit{{"internal/pool/core.(*scheduler).advance", "s.waiters.count() == 0 && len(s.fences.held) == 0 {", "s.waiters.count() == 0 {"}},
		},
		{
			Name: "a held batch keeps what it has got", Package: "internal/pool/core", Run: "^TestAHeldBatchKeepsNothing$",
			Edits: []Edit{{"internal/pool/core.(*ladder).hold", "		l.answers.putBack(r)\n", ""}},
		},
		{
			Name: "an excluded stream is waited for", Package: "internal/acceptance", Run: "^TestNobodyWaitsForAnExcludedStream$",
			Edits: []Edit{{"internal/pool/core.(*ladder).wait", "!l.clients.mayBeAwaited(id) || l.fences.watched(id)", "l.fences.watched(id)"}},
		},
		{
			Name: "a use on an excluded stream is waited for", Package: "internal/acceptance", Run: "^TestNobodyWaitsForAnExcludedStream$",
			Edits: []Edit{{"streams.(*Peers).watch", "		if f.line.Excluded.Load() {\n			continue\n		}\n", ""}},
		},
		{
			Name: "a wait for a fence gives up while another goroutine looks at it", Package: "streams", Run: "^TestAWaitOutlastsALookAtItsFence$",
			Edits: []Edit{{"internal/fence.(*Timeline).Wait", "return t.whenSettled(), nil", "return nil, nil //nolint:nilnil // planted"}},
		},
		{
			Name: "one use is waited for, and no other", Package: "internal/acceptance", Run: "^TestARequestWaitsForTheFirstUseThatEnds$",
			Edits: []Edit{{"streams.(*Peers).watch", "			actors.Go(host, \"\", func() { p.awaitFence(s, f, host) })", "			actors.Yield(host)\n			p.awaitFence(s, f, host)"}},
		},
		{
			Name: "a plain segment is freed while streams have work", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/core.(*grower).recycleInto", "g.memory.Plain() && !r.idle", "g.memory.Plain() && false"}},
		},
		{
			Name: "a request that waits is passed without end", Package: "internal/pool/admission", Run: "^TestNobodyIsPassedForEver$",
			Edits: []Edit{{"internal/pool/admission.(*entry).pass", "e.passedBytes += served.Bytes", "e.passedBytes += 0 * served.Bytes"}},
		},
		{
			Name: "a trial that began before a change counts", Package: "internal/pool/admission", Run: "^TestEverySmallWorld$",
			Edits: []Edit{{"internal/pool/admission.(*Table).Failed", ".tried = t.tryFrom == t.epoch", ".tried = true"}},
		},
		{
			Name: "a trial that began before a change has later ones left out", Package: "internal/pool/core", Run: "^TestATrialThatWasOvertakenIsRepeated$",
			Edits: []Edit{{"internal/pool/core.(*waiters).attemptFailed", "if w.table.Failed(r.id) && len", "if w.table.Failed(r.id); len"}},
		},
		{
			Name: "a deadlock is declared before all was collected", Package: "internal/pool/admission", Run: "^TestEverySmallWorld$",
			Edits: []Edit{{"internal/pool/admission.(*Table).Stuck", "	case lifted:\n		return Confirm, 0\n", "	case lifted:\n"}},
		},
		{
			Name: "a deadlock is declared though who is suspended may go on", Package: "internal/pool/admission", Run: "^TestEverySmallWorldThatStands$",
			Edits: []Edit{{"internal/pool/admission.(*Table).stuck", "			found = true\n", ""}, {
				"internal/pool/admission.(*Table).stuck", "			stuck = slices.Delete(stuck, at, at+1)\n", "			_ = at\n",
			}},
		},
		{
			Name: "a trial in vain wakes those that wait", Package: "internal/stream/core", Run: "^TestATrialInVainTellsNobody$",
			Edits: []Edit{{"internal/stream/core.(*Core).Trial", "		c.spans.retireIdle()\n		came = came ||", "		came = came ||"}},
		},
		{
			Name: "memory that came home during a trial wakes nobody", Package: "internal/stream/core", Run: "^TestATrialInVainTellsNobody$",
			Edits: []Edit{{"internal/stream/core.(*Core).Trial", "		came = came || c.spans.units < spanUnits // one of those that were there before\n", "		_ = spanUnits\n"}},
		},
		{
			Name: "a search takes home what others wait for, and nobody hears of it", Package: "internal/stream/core", Run: "^TestASearchInVainTellsWhatItRetired$",
			Edits: []Edit{{"internal/stream/core.(*spans).retireIdle", "s.wanted.on && s.units < before", "s.wanted.on && s.units < before && false"}},
		},
		{
			Name: "a trial in vain is remembered while nobody waits", Package: "internal/pool/core", Run: "^TestAVainTrialIsForgottenWithTheLastThatWaits$",
			Edits: []Edit{{"internal/pool/core.(*Core).park", "		c.waiters.changed()\n		for _, cl", "		for _, cl"}},
		},
		{
			Name: "a stream is suspended for the first wait only", Package: "internal/acceptance", Run: "^TestAStreamIsSuspendedForAllWaits$",
			Edits: []Edit{{"internal/pool/core.(*Core).park", "		for _, cl := range c.clients.all {\n			cl.dirty = true\n", "		for id, cl := range c.clients.all {\n			cl.dirty = true\n			c.waiters.table.Suspend(admission.Account(id), nil)\n"}},
		},
		{
			Name: "a stream goes on unseen while nothing waits", Package: "internal/acceptance", Run: "^TestAStreamIsSuspendedForAllWaits$",
			Edits: []Edit{{"streams.(*suspensions).resume", "s.reported.Load() {", "s.pool.Demand() > 0 {"}},
		},
		{
			Name: "who borrows passes those within their share", Package: "internal/pool/admission", Run: "^TestEverySmallWorldOfTenants$",
			Edits: []Edit{{"internal/pool/admission.(*line).lets", "(!w.borrows || !l.within) && w.Bytes", "(!w.borrows || !l.within || true) && w.Bytes"}},
		},
		{
			Name: "those that borrow are served by age", Package: "internal/pool/admission", Run: "^TestEverySmallWorldOfBorrowers$",
			Edits: []Edit{{"internal/pool/admission.ranked", "cmp.Compare(a.fill, b.fill), ", ""}},
		},
		{
			Name: "who has much of its share waits without end", Package: "internal/pool/admission", Run: "^TestNobodyIsOutrankedForEver$",
			Edits: []Edit{{"internal/pool/admission.(*Table).outrank", "s.outrankedBytes += served.Bytes", "s.outrankedBytes += 0 * served.Bytes"}},
		},
		{
			Name: "a tenant's new request takes what others wait for", Package: "internal/acceptance", Run: "^TestATenantDoesNotJumpTheQueue$",
			Edits: []Edit{{"internal/stream/claims.Queues", "return waits && s.Demand", "return false"}},
		},
		{
			Name: "a free does not wake those that wait", Package: "internal/acceptance", Run: "^TestARequestWaitsForAFree$",
			Edits: []Edit{{"internal/stream/core.(*Core).SetWanted", "	c.owner.Want(on)\n", ""}},
		},
		{
			Name: "what a wait did not use is kept from others", Package: "internal/acceptance", Run: "^TestWhatAWaitDidNotUseServesOthers$",
			Edits: []Edit{{"streams.(*turn).granted", "		t.state.core.NoteSpare()\n", ""}},
		},
		{
			Name: "what was refused in the end is kept from others", Package: "internal/pool/core", Run: "^TestWhatWasRefusedInTheEndServesOthers$",
			Edits: []Edit{{"internal/pool/core.(*answers).refuse", "		a.clients.all[r.client].dirty = true\n", ""}},
		},
		{
			Name: "a request that is cancelled goes on waiting", Package: "internal/acceptance", Run: "^TestAWaitEndsWithItsContext$",
			Edits: []Edit{{"streams.(*dispatcher).changed", "		d.unpark(c)\n", ""}},
		},
		{
			Name: "a tenant pays for what it did not get", Package: "internal/acceptance", Run: "^TestATenantIsRefunded$",
			Edits: []Edit{{"streams.(*claim).Fail", "	c.Refund()\n", ""}, {
				"streams.(*claim).cancelled", "	c.Refund()\n", "",
			}},
		},
		{
			Name: "a request that a stream has given up is offered memory again and again", Package: "streams", Run: "^TestAnOfferToARequestThatIsGivenUpWithdrawsIt$",
			Edits: []Edit{{"streams.(*dispatcher).serveOffer", "		d.state.effects().withdrawals.Push(o.Token)\n", ""}},
		},
		{
			Name: "refusals before a fence has passed deny a request", Package: "internal/pool/core", Run: "^TestRefusalsBeforeAFenceHasPassedDenyNothing$",
			Edits: []Edit{{"internal/pool/core.(*fences).takeDue", "		r.rung, r.askedAll = rungAskAll, false\n		r.forgive()\n", "		r.rung, r.askedAll = rungAskAll, false\n"}},
		},
		{
			Name: "a handler is asked for ever", Package: "internal/acceptance", Run: "^TestAHandlerThatNeverEndsIsAskedSixteenTimes$",
			Edits: []Edit{{"internal/stream/claims/claim.go", "const MaxConsults = 16", "const MaxConsults = 17"}},
		},
	}
}
