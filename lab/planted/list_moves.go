package planted

// movesBugs are those of memory that moves between clients, of growth that is bought instead, and of memory that goes back for its age.
func movesBugs() []Bug {
	return []Bug{
		{
			Name: "a miss asks all clients for all", Package: "internal/pool/core", Run: "^TestAMissAsksTheRichestForARun$|^TestTheCostOfAMissDoesNotGrowWithTheClients$",
			Edits: []Edit{{"internal/pool/core.(*asks).take", "				a.ask(r, cl, r.pages)\n", "				a.askEach(r, everyone)\n"}},
		},
		{
			Name: "a miss asks the first client that has anything", Package: "internal/pool/core", Run: "^TestAMissAsksTheRichestForARun$",
			Edits: []Edit{{"internal/pool/core.(*asks).richest", "cmp.Compare(b.usage.FreePages, a.usage.FreePages)", "0"}},
		},
		{
			Name: "a run is asked for of a client that has none so long", Package: "internal/pool/core", Run: "^TestAMissAsksTheRichestForARun$",
			Edits: []Edit{{"internal/pool/core.(*asks).take", "cl.usage.MaxFreePages >= r.pages", "cl.usage.FreePages >= r.pages"}},
		},
		{
			Name: "more clients are asked than have what is missing", Package: "internal/pool/core", Run: "^TestAMissThatNoRunServesAsksForThePagesThatAreMissing$",
			Edits: []Edit{{"internal/pool/core.(*asks).collect", "		pages -= min(pages, cl.usage.FreePages)\n", ""}},
		},
		{
			Name: "a request goes without the memory of clients that have published none", Package: "internal/pool/core", Run: "^TestNothingIsRefusedThatIsThere$|^TestAnAnswerWaitsForWhatItOvertook$",
			Edits: []Edit{{"internal/pool/core.(*grower).asksAll", "cl.id != r.client && cl.mayReturn()", "cl.id != r.client && cl.usage.FreePages > 0"}},
		},
		{
			Name: "what the driver refused is asked for again, and nothing is released", Package: "internal/pool/core", Run: "^TestAllThatIsFreeGoesBackBeforeADenial$",
			Edits: []Edit{
				{"internal/pool/core.(*grower).mayBuy", "!r.raised && !r.capped && ", "!r.raised && "},
				{"internal/pool/core.(*budget).buys", "case r.capped || reserved > b.settings.LimitBytes:", "case reserved > b.settings.LimitBytes:"},
			},
		},
		{
			Name: "an ask for all is lost beside one for a run", Package: "internal/pool/core", Run: "^TestAnAskForAllFollowsASmallerOne$",
			Edits: []Edit{{"internal/pool/core.(*Core).takeBack", "if answered && !c.asks.again(cl) {", "if answered {"}},
		},
		{
			Name: "a client is asked after it has left", Package: "internal/pool/core", Run: "^TestAnAskForAllFollowsASmallerOne$",
			Edits: []Edit{{"internal/pool/core.(*asks).again", "!cl.askedAgain || !cl.mayReturn()", "!cl.askedAgain"}},
		},
		{
			Name: "collected memory goes home although others miss", Package: "internal/pool/core", Run: "^TestCollectedMemoryStaysWhileClientsMissInTurns$",
			Edits: []Edit{{"internal/pool/core.(*scheduler).lendHome", "if s.clients.climbs == 0 {", "if s.clients.climbs < contendedClimbs {"}},
		},
		{
			Name: "collected memory never goes home", Package: "internal/pool/core", Run: "^TestCollectedMemoryStaysWhileClientsMissInTurns$",
			Edits: []Edit{{"internal/pool/core.(*contention).contend", "		c.climbs--\n", ""}},
		},
		{
			Name: "a request counts for contention at each step", Package: "internal/pool/core", Run: "^TestARequestCountsOnceForContention$",
			Edits: []Edit{{"internal/pool/core.(*asks).take", "		r.contended = true\n", ""}},
		},
		{
			Name: "a client that has nothing left is asked again", Package: "internal/pool/core", Run: "^TestEachRunOfABatchIsTaken$|^TestADonorHasLessThanItPublished$",
			Edits: []Edit{{"internal/pool/core.(*Usage).returned", "	u.FreePages -= min(u.FreePages, pages)\n", "	if u.FreePages > 0 {\n		return\n	}\n"}},
		},
		{
			Name: "the second run of a batch is not taken", Package: "internal/pool/core", Run: "^TestEachRunOfABatchIsTaken$",
			Edits: []Edit{{"internal/pool/core.(*answers).grant", "r.rung, r.taking = next, notTaken", "r.rung = next"}},
		},
		{
			Name: "growth is bought at no price", Package: "internal/pool/core", Run: "^TestGrowthIsBoughtAtItsPrice$",
			Edits: []Edit{{"internal/pool/core.(*budget).affords", "b.costNs >= b.priceNs(bytes, reservedBytes)", "b.costNs >= 0"}},
		},
		{
			Name: "growth is bought a moment too early", Package: "internal/pool/core", Run: "^TestGrowthIsBoughtAtItsPrice$",
			Edits: []Edit{{"internal/pool/core.(*budget).affords", "b.costNs >= b.priceNs(bytes, reservedBytes)", "b.costNs+1 >= b.priceNs(bytes, reservedBytes)"}},
		},
		{
			Name: "the price is not taken off", Package: "internal/pool/core", Run: "^TestGrowthIsBoughtAtItsPrice$|^TestMovesAndGrowthPayForEachOther$",
			Edits: []Edit{{"internal/pool/core.(*budget).buy", "		b.costNs -= b.priceNs(bytes, reservedBytes)\n", ""}},
		},
		{
			Name: "a pool that only moves memory buys growth", Package: "internal/pool/core", Run: "^TestGrowthIsBoughtAtItsPrice$",
			Edits: []Edit{{"internal/pool/core.(*budget).affords", "bytes <= 0 || b.settings.Policy.PageWorth > 0 && ", "bytes <= 0 || "}},
		},
		{
			Name: "slack widens a moment too early", Package: "internal/pool/core", Run: "^TestSlackWidensAtItsPrice$",
			Edits: []Edit{{"internal/pool/core.(*budget).widen", "b.costNs < price", "b.costNs+1 < price"}},
		},
		{
			Name: "slack widens for nothing", Package: "internal/pool/core", Run: "^TestSlackWidensAtItsPrice$",
			Edits: []Edit{{"internal/pool/core.(*budget).widen", "	b.costNs -= price\n", ""}},
		},
		{
			Name: "slack widens without end", Package: "internal/pool/core", Run: "^TestSlackWidensAtItsPrice$",
			Edits: []Edit{{"internal/pool/core.(*budget).nextStep", "-p.SharedSlack-b.extraSlack", "-p.SharedSlack"}},
		},
		{
			Name: "a miss does not widen the slack", Package: "internal/pool/core", Run: "^TestSlackWidensAtItsPrice$",
			Edits: []Edit{{"internal/pool/core.(*asks).take", " || a.budget.widen() && a.budget.fits(r, r.pages)", ""}},
		},
		{
			Name: "growth that no move could have served is paid for by later moves", Package: "lab/replay", Run: "^TestTheModesAreInOrder$",
			Edits: []Edit{{"internal/pool/core.(*budget).exceed", "		b.force(bytes)\n", "		b.buy(bytes, reservedBytes)\n"}},
		},
		{
			Name: "growth that moves have paid for is free", Package: "internal/pool/core", Run: "^TestMovesAndGrowthPayForEachOther$",
			Edits: []Edit{{"internal/pool/core.(*budget).exceed", "if b.nextStep() == 0 && b.affords(bytes, reservedBytes) {", "if bytes <= 0 {"}},
		},
		{
			Name: "forced growth leaves the slack as it is", Package: "internal/pool/core", Run: "^TestForcedGrowthWidensTheSlack$",
			Edits: []Edit{{"internal/pool/core.(*budget).force", "		b.extraSlack += b.nextStep()\n", ""}},
		},
		{
			Name: "one client widens the slack of several", Package: "internal/pool/core", Run: "^TestOnlySeveralClientsWidenTheSlack$",
			Edits: []Edit{{"internal/pool/core.(*budget).nextStep", " || b.clients.holding < 2", ""}},
		},
		{
			Name: "extra slack is never forgotten", Package: "internal/pool/core", Run: "^TestExtraSlackIsForgotten$",
			Edits: []Edit{{"internal/pool/core.(*budget).roll", "	b.extraSlack /= 2\n", ""}},
		},
		{
			Name: "extra slack outlasts the settings", Package: "internal/pool/core", Run: "^TestExtraSlackIsForgotten$",
			Edits: []Edit{{"internal/pool/core.(*budget).changed", "	b.extraSlack = min(b.extraSlack, max(0, p.MostSharedSlack-p.SharedSlack))\n", ""}},
		},
		{
			Name: "a part of a page is bought for nothing", Package: "internal/pool/core", Run: "^TestAPartOfAPageCostsAPage$",
			Edits: []Edit{{"internal/pool/core.(*budget).priceNs", "(bytes + b.memory.PageBytes() - 1) / b", "bytes / b"}},
		},
		{
			Name: "memory that no client needs is as cheap as any", Package: "internal/pool/core", Run: "^TestGrowthBeyondAllNeedsIsDear$",
			Edits: []Edit{{"internal/pool/core.(*budget).priceNs", "return price * dearFactor", "return price"}},
		},
		{
			Name: "a higher peak does not pay for what was bought", Package: "internal/pool/core", Run: "^TestAHigherPeakPaysForWhatWasBought$",
			Edits: []Edit{{"internal/pool/core.(*budget).raise", "	b.boughtBytes -= refund\n", ""}},
		},
		{
			Name: "the answers to a trim book the cost of moves", Package: "internal/pool/core", Run: "^TestMovesBookTheirCost$",
			Edits: []Edit{{"internal/pool/core.(*asks).ask", "r.kind == refill && cl.id != r.client", "cl.id != r.client"}},
		},
		{
			Name: "an answer that waited long for its turn books all of it", Package: "internal/pool/core", Run: "^TestAnAnswerBooksItsTime$",
			Edits: []Edit{{"internal/pool/core.(*budget).asked", "min(tookNs, least*lateFactor)", "tookNs"}},
		},
		{
			Name: "what was bought outlasts the settings", Package: "internal/pool/core", Run: "^TestSettingsThatBuyNothingEndWhatWasBought$",
			Edits: []Edit{{"internal/pool/core.(*Core).SetSettings", "	c.budget.changed()\n", ""}},
		},
		{
			Name: "a client that has left counts for ever", Package: "internal/pool/core", Run: "^TestWhoNeedsWhat$",
			Edits: []Edit{{"internal/pool/core.(*Core).SetUsage", "		u.UsedBytes = 0\n", "		u.Stale = false\n"}},
		},
		{
			Name: "reservations need nothing", Package: "internal/pool/core", Run: "^TestWhoNeedsWhat$",
			Edits: []Edit{{"internal/pool/core.(*clients).report", "	cl.ownPeak.note(liveBytes)\n", ""}},
		},
		{
			Name: "the live peak never falls", Package: "internal/pool/core", Run: "^TestPeaksAreForgottenByWindows$",
			Edits: []Edit{{"internal/pool/core.(*peak).roll", "p.before, p.now = p.now, min", "p.before, p.now = p.bytes(), min"}},
		},
		{
			Name: "a window begins with memory that was freed", Package: "internal/pool/core", Run: "^TestPeaksAreForgottenByWindows$",
			Edits: []Edit{{"internal/pool/core.(*peak).roll", "min(bytes, p.bytes())", "bytes"}},
		},
		{
			Name: "the live peak rises before a look", Package: "internal/pool/core", Run: "^TestTheLivePeakRisesAfterALook$",
			Edits: []Edit{{"internal/pool/core.(*ladder).table", "when: a.needsOthers, try: a.look}", "when: (*request).waits, try: a.look}"}},
		},
		{
			Name: "time stands still in a busy pool", Package: "internal/pool/core", Run: "^TestWindowsEndInABusyPool$|^TestMemoryAgesInABusyPool$",
			Edits: []Edit{{"internal/pool/core.(*Core).tick", "	s.shrinker.tick(&c.budget)\n", "	if s.rests() && c.queue.empty() {\n		s.shrinker.tick(&c.budget)\n	}\n"}},
		},
		{
			Name: "all old memory goes back at one tick", Package: "internal/pool/core", Run: "^TestFreeMemoryAges$",
			Edits: []Edit{{"internal/pool/memory.(*Memory).Old", "if len(ids) == maxHandles {", "if len(ids) == -maxHandles {"}},
		},
		{
			Name: "memory goes back without an age", Package: "internal/pool/core", Run: "^TestFreeMemoryAges$",
			Edits: []Edit{{"internal/pool/core.(*shrinker).age", "after == 0 || s.memory.Plain() ||", "s.memory.Plain() ||"}},
		},
		{
			Name: "plain segments go back for their age", Package: "internal/pool/core", Run: "^TestPlainSegmentsDoNotAge$",
			Edits: []Edit{{"internal/pool/core.(*shrinker).age", " || s.memory.Plain()", ""}},
		},
		{
			Name: "memory that was used is as old as before", Package: "internal/pool/memory", Run: "^TestNeighboursKeepTheirAge$|^TestOldHandlesAreBounded$",
			Edits: []Edit{{"internal/pool/memory.(*table).setState", "p.fence, p.run, p.since = to, client, 0, 0, t.now", "p.fence, p.run = to, client, 0, 0"}},
		},
		{
			Name: "memory that was mapped ahead goes back unused", Package: "internal/pool/core", Run: "^TestWarmedMemoryAgesOnceItWasUsed$",
			Edits: []Edit{{"internal/pool/core.(*warmer).letGo", "		w.memory.Keep(run)\n", ""}},
		},
		{
			Name: "the first free blocks are taken for the longest", Package: "internal/heap", Run: "^TestTakeLongestFollowsTheReference$",
			Edits: []Edit{{"internal/heap.(*Heap).TakeLongest", "h.bins.EachLongest(", "h.bins.Each("}},
		},
		{
			Name: "a request for no pages takes a block", Package: "internal/heap", Run: "^TestTakeLongestFollowsTheReference$",
			Edits: []Edit{{"internal/heap.(*Heap).TakeLongest", "	if pages == 0 {\n", "	if false {\n"}},
		},
	}
}
