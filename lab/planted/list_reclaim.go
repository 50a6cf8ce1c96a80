package planted

// reclaimBugs are those of reclaim requests, of what a stream publishes for them, and of what it returns unasked.
func reclaimBugs() []Bug {
	return []Bug{
		{
			Name: "free pages are not published", Package: "streams", Run: "^TestUsageIsThatOfTheCore$",
			Edits: []Edit{{"streams.(*peer).publish", "		s.freePages.Store(free)\n", "		_ = free\n"}},
		},
		{
			Name: "published figures count as outdated for ever", Package: "streams", Run: "^TestAnAllocationOutdatesUsage$",
			Edits: []Edit{{"streams.(*peer).publish", "		s.outdated.Store(false)\n", "		_ = s.outdated.Load()\n"}},
		},
		{
			Name: "an allocation does not mark the published figures as stale", Package: "streams", Run: "^TestAnAllocationOutdatesUsage$",
			Edits: []Edit{{"streams.(*turn).outdate", "	t.wiring.peer.outdate()\n", ""}},
		},
		{
			Name: "a loop of allocations in their callers' turns loses its pages", Package: "streams", Run: "^TestALoopKeepsItsPagesPastTheWindow$",
			Edits: []Edit{{"streams.(*turn).outdate", "	t.state.core.NoteMinFree()\n", ""}},
		},
		{
			Name: "a reclaim request for some pages takes all", Package: "internal/stream/core", Run: "^TestReleaseSome$",
			Edits: []Edit{{"internal/stream/core.(*Core).ReleaseSome", "takeLongest(pages,", "takeLongest(pages|1<<31,"}},
		},
		{
			Name: "a reclaim request for some pages cuts a run in two", Package: "internal/stream/core", Run: "^TestReleaseSome$",
			Edits: []Edit{{"internal/stream/core.(*Core).ReleaseSome", "pages, true,", "pages, false,"}},
		},
		{
			Name: "a reclaim request for some pages finds nothing that was just freed", Package: "internal/stream/core", Run: "^TestReleaseSomeLeavesMagazinesOpen$",
			Edits: []Edit{{"internal/stream/core.(*Core).ReleaseSome", "	c.Drain()\n", ""}},
		},
		{
			Name: "a reclaim request for some pages takes uncovered ones", Package: "streams", Run: "^TestAnAdoptedDonorAnswers$",
			Edits: []Edit{{"streams.(*lentMemory).answerReclaim", "ReleaseSome(pages, covered)", "ReleaseSome(pages, false)"}},
		},
		{
			Name: "a donor with work in flight records no fence", Package: "streams", Run: "^TestDonorsMakeNoHazard$",
			Edits: []Edit{{"streams.(*effects).record", "r.Answer && h.idle()", "r.Answer"}},
		},
		{
			Name: "an idle donor records a fence", Package: "streams", Run: "^TestAnIdleDonorRecordsNoFence$",
			Edits: []Edit{{"streams.(*effects).record", "r.Answer && h.idle()", "r.Answer && h.idle() && false"}},
		},
		{
			Name: "a closing stream returns pages without a fence", Package: "streams", Run: "^TestAClosingDonorAnswers$",
			Edits: []Edit{{"streams.(*lentMemory).answerReclaim", "!l.state.draining || l.wiring.cuda.synced.Load()", "!l.state.draining || l.wiring.cuda.closing.Load()"}},
		},
		{
			Name: "the runs of an answer that panics are lost", Package: "streams", Run: "^TestAPanicOfADonorLosesNoRuns$",
			Edits: []Edit{{"streams.(*lentMemory).pushReturn", "	l.state.inTransit.runs = runs\n", ""}},
		},
		{
			Name: "surplus is what is free now", Package: "internal/stream/core", Run: "^TestSurplusIsTheLeastThatWasFree$",
			Edits: []Edit{{"internal/stream/core.(*surplus).note", "min(s.minFreeUnits, freeUnits)", "freeUnits"}},
		},
		{
			Name: "a window goes on with the least of the one before", Package: "internal/stream/core", Run: "^TestSurplusIsTheLeastThatWasFree$",
			Edits: []Edit{{"internal/stream/core.(*surplus).tick", "	*s = newSurplus(s.windowTicks)\n", "	s.ticks = 0\n"}},
		},
		{
			Name: "surplus takes whole runs, and more than that", Package: "internal/stream/core", Run: "^TestALoopKeepsWhatItNeeds$",
			Edits: []Edit{{"internal/stream/core.(*Core).Surplus", "pages, false,", "pages, true,"}},
		},
		{
			Name: "surplus is lent back to its stream", Package: "streams", Run: "^TestSurplusIsReturnedForGood$",
			Edits: []Edit{{"streams.(*lentMemory).age", "poolcore.Return{Final: true, Surplus: true}", "poolcore.Return{Surplus: true}"}},
		},
	}
}
