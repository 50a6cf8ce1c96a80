package planted

// movesBugs are those of memory that moves between clients, of growth that is bought instead, and of memory that goes back for its age.
func movesBugs() []Bug {
	return []Bug{
		{
			Name: "a miss asks all clients for all", Package: "pool/core", Run: "^TestAMissAsksTheRichestForARun$|^TestTheCostOfAMissDoesNotGrowWithTheClients$",
			Edits: []Edit{{"pool/core.(*asks).takeRun", "			a.askOne(r, cl, pages)\n", "			a.ask(r, everyone)\n"}},
		},
		{
			Name: "a miss asks the first client that has anything", Package: "pool/core", Run: "^TestAMissAsksTheRichestForARun$",
			Edits: []Edit{{"pool/core.(*asks).richest", "cmp.Compare((*b).usage.FreePages, (*a).usage.FreePages)", "0"}},
		},
		{
			Name: "a run is asked for of a client that has none so long", Package: "pool/core", Run: "^TestAMissAsksTheRichestForARun$",
			Edits: []Edit{{"pool/core.(*asks).takeRun", "cl.usage.MaxFreePages >= pages", "cl.usage.FreePages >= pages"}},
		},
		{
			Name: "more clients are asked than have what is missing", Package: "pool/core", Run: "^TestAMissThatNoRunServesAsksForThePagesThatAreMissing$",
			Edits: []Edit{{"pool/core.(*asks).collect", "		pages -= min(pages, cl.usage.FreePages)\n", ""}},
		},
		{
			Name: "a request goes without the memory of clients that have published none", Package: "pool/core", Run: "^TestNothingIsRefusedThatIsThere$|^TestAnAnswerWaitsForWhatItOvertook$",
			Edits: []Edit{{"pool/core.(*ladder).asksAll", "cl.id != r.client && cl.mayReturn()", "cl.id != r.client && cl.usage.FreePages > 0"}},
		},
		{
			Name: "what the driver refused is asked for again, and nothing is released", Package: "pool/core", Run: "^TestAllThatIsFreeGoesBackBeforeADenial$",
			Edits: []Edit{
				{"pool/core.(*ladder).growBought", "!ok || r.raised || r.capped || ", "!ok || r.raised || "},
				{"pool/core.(*ladder).buys", "case r.capped || reserved > l.settings.LimitBytes:", "case reserved > l.settings.LimitBytes:"},
			},
		},
		{
			Name: "an ask for all is lost beside one for a run", Package: "pool/core", Run: "^TestAnAskForAllFollowsASmallerOne$",
			Edits: []Edit{{"pool/core.(*Core).takeBack", "if answered && !c.asks.again(cl) {", "if answered {"}},
		},
		{
			Name: "a client is asked after it has left", Package: "pool/core", Run: "^TestAnAskForAllFollowsASmallerOne$",
			Edits: []Edit{{"pool/core.(*asks).again", "!cl.askedAgain || !cl.mayReturn()", "!cl.askedAgain"}},
		},
		{
			Name: "collected memory goes home although others miss", Package: "pool/core", Run: "^TestCollectedMemoryStaysWhileClientsMissInTurns$",
			Edits: []Edit{{"pool/core.(*scheduler).lendHome", "if s.clients.climbs == 0 {", "if s.clients.climbs < contendedClimbs {"}},
		},
		{
			Name: "collected memory never goes home", Package: "pool/core", Run: "^TestCollectedMemoryStaysWhileClientsMissInTurns$",
			Edits: []Edit{{"pool/core.(*contention).contend", "		c.climbs--\n", ""}},
		},
		{
			Name: "a request counts for contention at each step", Package: "pool/core", Run: "^TestARequestCountsOnceForContention$",
			Edits: []Edit{{"pool/core.(*ladder).take", "		r.contended = true\n", ""}},
		},
		{
			Name: "a client that has nothing left is asked again", Package: "pool/core", Run: "^TestEachRunOfABatchIsTaken$|^TestADonorHasLessThanItPublished$",
			Edits: []Edit{{"pool/core.(*Usage).returned", "	u.FreePages -= min(u.FreePages, pages)\n", "	if u.FreePages > 0 {\n		return\n	}\n"}},
		},
		{
			Name: "the second run of a batch is not taken", Package: "pool/core", Run: "^TestEachRunOfABatchIsTaken$",
			Edits: []Edit{{"pool/core.(*answers).grant", "r.rung, r.taking = min(r.rung, next), notTaken", "r.rung = min(r.rung, next)"}},
		},
		{
			Name: "growth is bought at no price", Package: "pool/core", Run: "^TestGrowthIsBoughtAtItsPrice$",
			Edits: []Edit{{"pool/core.(*budget).affords", "b.costNs >= b.priceNs(bytes, reservedBytes)", "b.costNs >= 0"}},
		},
		{
			Name: "growth is bought a moment too early", Package: "pool/core", Run: "^TestGrowthIsBoughtAtItsPrice$",
			Edits: []Edit{{"pool/core.(*budget).affords", "b.costNs >= b.priceNs(bytes, reservedBytes)", "b.costNs+1 >= b.priceNs(bytes, reservedBytes)"}},
		},
		{
			Name: "the price is not taken off", Package: "pool/core", Run: "^TestGrowthIsBoughtAtItsPrice$|^TestMovesAndGrowthPayForEachOther$",
			Edits: []Edit{{"pool/core.(*budget).buy", "		b.costNs -= b.priceNs(bytes, reservedBytes)\n", ""}},
		},
		{
			Name: "a pool that only moves memory buys growth", Package: "pool/core", Run: "^TestGrowthIsBoughtAtItsPrice$",
			Edits: []Edit{{"pool/core.(*budget).affords", "bytes <= 0 || b.settings.Policy.PageWorth > 0 && ", "bytes <= 0 || "}},
		},
		{
			Name: "slack widens a moment too early", Package: "pool/core", Run: "^TestSlackWidensAtItsPrice$",
			Edits: []Edit{{"pool/core.(*budget).widen", "b.costNs < price", "b.costNs+1 < price"}},
		},
		{
			Name: "slack widens for nothing", Package: "pool/core", Run: "^TestSlackWidensAtItsPrice$",
			Edits: []Edit{{"pool/core.(*budget).widen", "	b.costNs -= price\n", ""}},
		},
		{
			Name: "slack widens without end", Package: "pool/core", Run: "^TestSlackWidensAtItsPrice$",
			Edits: []Edit{{"pool/core.(*budget).nextStep", "-p.SharedSlack-b.extraSlack", "-p.SharedSlack"}},
		},
		{
			Name: "a miss does not widen the slack", Package: "pool/core", Run: "^TestSlackWidensAtItsPrice$",
			Edits: []Edit{{"pool/core.(*ladder).take", " || l.budget.widen() && l.mayGrow(r)", ""}},
		},
		{
			Name: "growth that no move could have served is paid for by later moves", Package: "internal/replay", Run: "^TestTheModesAreInOrder$",
			Edits: []Edit{{"pool/core.(*budget).exceed", "		b.force(bytes)\n", "		b.buy(bytes, reservedBytes)\n"}},
		},
		{
			Name: "growth that moves have paid for is free", Package: "pool/core", Run: "^TestMovesAndGrowthPayForEachOther$",
			Edits: []Edit{{"pool/core.(*budget).exceed", "if b.nextStep() == 0 && b.affords(bytes, reservedBytes) {", "if bytes <= 0 {"}},
		},
		{
			Name: "forced growth leaves the slack as it is", Package: "pool/core", Run: "^TestForcedGrowthWidensTheSlack$",
			Edits: []Edit{{"pool/core.(*budget).force", "		b.extraSlack += b.nextStep()\n", ""}},
		},
		{
			Name: "one client widens the slack of several", Package: "pool/core", Run: "^TestOnlySeveralClientsWidenTheSlack$",
			Edits: []Edit{{"pool/core.(*budget).nextStep", " || b.clients.holding < 2", ""}},
		},
		{
			Name: "extra slack is never forgotten", Package: "pool/core", Run: "^TestExtraSlackIsForgotten$",
			Edits: []Edit{{"pool/core.(*budget).roll", "	b.extraSlack /= 2\n", ""}},
		},
		{
			Name: "extra slack outlasts the settings", Package: "pool/core", Run: "^TestExtraSlackIsForgotten$",
			Edits: []Edit{{"pool/core.(*budget).changed", "	b.extraSlack = min(b.extraSlack, max(0, p.MostSharedSlack-p.SharedSlack))\n", ""}},
		},
		{
			Name: "a part of a page is bought for nothing", Package: "pool/core", Run: "^TestAPartOfAPageCostsAPage$",
			Edits: []Edit{{"pool/core.(*budget).priceNs", "(bytes + b.memory.PageBytes() - 1) / b", "bytes / b"}},
		},
		{
			Name: "memory that no client needs is as cheap as any", Package: "pool/core", Run: "^TestGrowthBeyondAllNeedsIsDear$",
			Edits: []Edit{{"pool/core.(*budget).priceNs", "return price * dearFactor", "return price"}},
		},
		{
			Name: "a higher peak does not pay for what was bought", Package: "pool/core", Run: "^TestAHigherPeakPaysForWhatWasBought$",
			Edits: []Edit{{"pool/core.(*budget).raise", "	b.boughtBytes -= refund\n", ""}},
		},
		{
			Name: "the answers to a trim book the cost of moves", Package: "pool/core", Run: "^TestMovesBookTheirCost$",
			Edits: []Edit{{"pool/core.(*asks).askOne", "r.kind == refill && cl.id != r.client", "cl.id != r.client"}},
		},
		{
			Name: "an answer that waited long for its turn books all of it", Package: "pool/core", Run: "^TestAnAnswerBooksItsTime$",
			Edits: []Edit{{"pool/core.(*budget).asked", "min(tookNs, least*lateFactor)", "tookNs"}},
		},
		{
			Name: "what was bought outlasts the settings", Package: "pool/core", Run: "^TestSettingsThatBuyNothingEndWhatWasBought$",
			Edits: []Edit{{"pool/core.(*Core).SetSettings", "	c.budget.changed()\n", ""}},
		},
		{
			Name: "a client that has left counts for ever", Package: "pool/core", Run: "^TestWhoNeedsWhat$",
			Edits: []Edit{{"pool/core.(*Core).SetUsage", "		u.UsedBytes = 0\n", "		u.Stale = false\n"}},
		},
		{
			Name: "reservations need nothing", Package: "pool/core", Run: "^TestWhoNeedsWhat$",
			Edits: []Edit{{"pool/core.(*clients).report", "	cl.ownPeak.note(liveBytes)\n", ""}},
		},
		{
			Name: "the live peak never falls", Package: "pool/core", Run: "^TestPeaksAreForgottenByWindows$",
			Edits: []Edit{{"pool/core.(*peak).roll", "p.before, p.now = p.now, min", "p.before, p.now = p.bytes(), min"}},
		},
		{
			Name: "a window begins with memory that was freed", Package: "pool/core", Run: "^TestPeaksAreForgottenByWindows$",
			Edits: []Edit{{"pool/core.(*peak).roll", "min(bytes, p.bytes())", "bytes"}},
		},
		{
			Name: "the live peak rises before a look", Package: "pool/core", Run: "^TestTheLivePeakRisesAfterALook$",
			Edits: []Edit{{"pool/core.(*ladder).take", "	if l.asks.look(r) {\n", "	if false {\n"}},
		},
		{
			Name: "time stands still in a busy pool", Package: "pool/core", Run: "^TestWindowsEndInABusyPool$|^TestMemoryAgesInABusyPool$",
			Edits: []Edit{{"pool/core.(*Core).tick", "	s.shrinker.tick(&c.budget)\n", "	if s.rests() && c.queue.empty() {\n		s.shrinker.tick(&c.budget)\n	}\n"}},
		},
		{
			Name: "all old memory goes back at one tick", Package: "pool/core", Run: "^TestFreeMemoryAges$",
			Edits: []Edit{{"pool/core/memory.(*Memory).Old", "if len(ids) == maxHandles {", "if len(ids) == -maxHandles {"}},
		},
		{
			Name: "memory goes back without an age", Package: "pool/core", Run: "^TestFreeMemoryAges$",
			Edits: []Edit{{"pool/core.(*shrinker).age", "after == 0 || s.memory.Plain() ||", "s.memory.Plain() ||"}},
		},
		{
			Name: "plain segments go back for their age", Package: "pool/core", Run: "^TestPlainSegmentsDoNotAge$",
			Edits: []Edit{{"pool/core.(*shrinker).age", " || s.memory.Plain()", ""}},
		},
		{
			Name: "memory that was used is as old as before", Package: "pool/core/memory", Run: "^TestNeighboursKeepTheirAge$|^TestOldHandlesAreBounded$",
			Edits: []Edit{{"pool/core/memory.(*table).setState", "p.fence, p.run, p.since = to, client, 0, 0, t.now", "p.fence, p.run = to, client, 0, 0"}},
		},
		{
			Name: "memory that was mapped ahead goes back unused", Package: "pool/core", Run: "^TestWarmedMemoryAgesOnceItWasUsed$",
			Edits: []Edit{{"pool/core.(*warmer).letGo", "			w.memory.Keep(run)\n", ""}},
		},
		{
			Name: "memory that is foreseen goes back for its age", Package: "pool/core", Run: "^TestForeseenMemoryDoesNotAge$",
			Edits: []Edit{{"pool/core.(*shrinker).age", "s.memory.ReservedBytes()-s.keptBytes()", "s.memory.ReservedBytes()"}},
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
