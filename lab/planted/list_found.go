package planted

// foundBugs survived the tests once when they were planted: in what is given back on a path that fails, in what is told twice or not
// at all, and in what is forgotten from one try to the next.
func foundBugs() []Bug { return append(foundPoolBugs(), foundOtherBugs()...) }

func foundPoolBugs() []Bug {
	return []Bug{
		{
			Name: "a trial remembers what the driver refused in the last", Package: "internal/pool/core", Run: "^TestATrialAsksTheDriverAnew$",
			Edits: []Edit{{"internal/pool/core.(*request).restart", "	r.ascent = ascent{rung: rungOffer}\n", "	r.rung = rungOffer\n"}},
		},
		{
			Name: "who has no quota yet is passed", Package: "internal/pool/admission", Run: "^TestNobodyPassesWhoHasNoQuota$",
			Edits: []Edit{{"internal/pool/admission.(*entry).pass", "	if behind && !e.Unready {", "	if behind {"}},
		},
		{
			Name: "what is served counts at the next message", Package: "internal/pool/admission", Run: "^TestWhatIsServedCountsAtOnce$",
			Edits: []Edit{{
				"internal/pool/admission.(*Table).Served", "		s.usedBytes += e.ChargedBytes\n	}\n	t.drop(at)", "		_ = s\n	}\n	t.drop(at)",
			}},
		},
		{
			Name: "a deadlock is believed though a quota came", Package: "internal/pool/admission", Run: "^TestQuotaAndServiceEndAStandstill$",
			Edits: []Edit{{
				"internal/pool/admission/table.go", "	t.insert(e)\n	t.stage = moving\n}\n\n// Suspend", "	t.insert(e)\n}\n\n// Suspend",
			}},
		},
		{
			Name: "a request is refused for whose answer nobody waits", Package: "internal/pool/admission", Run: "^TestWhoIsRefusedIsWaitedFor$",
			Edits: []Edit{{"internal/pool/admission.(*Table).youngest", "if e.Blocked && (best == nil", "if (best == nil"}},
		},
		{
			Name: "a larger quota lets nobody go on", Package: "internal/acceptance", Run: "^TestAQuotaThatGrowsLetsOthersGoOn$",
			Edits: []Edit{{"pool.(*Tenant).SetQuota", "	t.quota.Store(&q)\n	t.recharge()", "	t.quota.Store(&q)"}},
		},
		{
			Name: "an easier request is spared by a trial in vain", Package: "internal/pool/core", Run: "^TestATrialInVainSparesThoseThatAreNoEasier$",
			Edits: []Edit{{"internal/pool/core.(*failedAttempts).skips", " && a.align <= r.place.Align", ""}},
		},
		{
			Name: "an old word on who waits is believed", Package: "internal/pool/core", Run: "^TestWhatIsSaidLateIsOld$",
			Edits: []Edit{{"internal/pool/core.(*waiters).block", "r == nil || m.Number <= r.blocks {", "r == nil {"}},
		},
		{
			Name: "a window awaits the last fence and not the latest", Package: "internal/pool/memory", Run: "^TestAWindowAwaitsTheLatestFenceOfEachClient$",
			Edits: []Edit{{"internal/pool/memory.Parts.latest", "fences[at].Fence = max(fences[at].Fence, p.Tag.Fence)", "fences[at].Fence = p.Tag.Fence"}},
		},
		{
			Name: "the pool counts for streams that are gone", Package: "pool", Run: "^TestStreamsThatAreGoneAreForgotten$",
			Edits: []Edit{{"pool.(*Pool).collect", "		delete(p.granted, id)\n", ""}},
		},
		{
			Name: "an old word on who stands is believed", Package: "internal/pool/core", Run: "^TestWhatIsSaidLateIsOld$",
			Edits: []Edit{{"internal/pool/core.(*noProgress).suspend", "cl == nil || m.Number <= cl.suspended {", "cl == nil {"}},
		},
		{
			Name: "effects that were carried out are kept", Package: "internal/effect", Run: "^TestAListKeepsNothing$",
			Edits: []Edit{{"internal/effect.(*List).Reset", "	clear(l.all)\n", ""}},
		},
	}
}

func foundOtherBugs() []Bug {
	return []Bug{

		{
			Name: "a closed stream sets memory to zero", Package: "streams", Run: "^TestNothingIsZeroedOnceCloseHasBegun$",
			Edits: []Edit{{"streams.(*Stream).finish", "	if s.cuda.begin() { // from here on", "	if s.cuda.order(); true { // from here on"}},
		},
		{
			Name: "a stream that ends owes the pool an answer", Package: "streams", Run: "^TestWhatIsOwedIsAnsweredAtTheEnd$",
			Edits: []Edit{{"streams.(*ending).stopped", "	if e.reclaims.due != nil {\n		e.reclaims.due.Fail(cause)\n	}\n", ""}},
		},
		{
			Name: "memory without an address is in use", Package: "cudadrv/sim", Run: "^TestNoAddressNoMemory$",
			Edits: []Edit{{"cudadrv/sim.(*gpu).allocate", "		g.usedBytes -= physicalBytes\n		return nil, fail", "		return nil, fail"}},
		},
		{
			Name: "memory is set without the context", Package: "cudadrv/dynamic", Run: "^TestWorkIsSubmittedWithItsContext$",
			Edits: []Edit{{"cudadrv/dynamic.(*device).MemsetD8Async", "if r := d.callCurrent(cuMemsetD8Async, f, 4)", "if r := d.callOn(s, cuMemsetD8Async, f, 4)"}},
		},
		{
			Name: "a device that has no pages stays open", Package: "internal/acceptance", Run: "^TestAFirstUseThatFailsLeavesNothingOpen$",
			Edits: []Edit{{"vram.(*Device).openDevice", "		return nil, badField(", "		opened = true\n		return nil, badField("}},
		},
		{
			Name: "a device that has no pool stays open", Package: "internal/acceptance", Run: "^TestAFirstUseThatFailsLeavesNothingOpen$",
			Edits: []Edit{{
				"vram.(*Device).openDevice", "		return nil, failed(\"\", err)\n	}\n	opened = true",
				"		opened = true\n		return nil, failed(\"\", err)\n	}\n	opened = true",
			}},
		},
		{
			Name: "what is made of a future leaves its host", Package: "futures", Run: "^TestWhatIsMadeOfAFutureIsOnItsHost$",
			Edits: []Edit{{"futures.First", "	r.promise.On(hostOf(fs))\n", ""}},
		},
		{
			Name: "a queue goes on with what another stream was asked", Package: "internal/stream/core", Run: "^TestAQueueBeginsAnew$",
			Edits: []Edit{{
				"internal/stream/core.(*inFlight).queue", "	*q = queue{line: line, groups: q.groups[:0]}",
				"	*q = queue{line: line, groups: q.groups[:0], wanted: q.wanted, rest: q.rest}",
			}},
		},
		{
			Name: "a wait that was in vain is never repeated", Package: "streams", Run: "^TestAWaitThatHelpsIsRepeated$",
			Edits: []Edit{{"internal/stream/claims.(*FenceWait).Resumed", "failed: !passed}", "failed: w.failed || !passed}"}},
		},
		{
			Name: "a wait in vain is never over", Package: "streams", Run: "^TestAWaitThatHelpsIsRepeated$",
			Edits: []Edit{{"internal/stream/claims.(*FenceWait).Resumed", "failed: !passed}", "waits: true, failed: !passed}"}},
		},
		{
			Name: "an answer loses against the end of the context", Package: "futures", Run: "^TestAnAnswerComesBeforeTheEndOfTheContext$",
			Edits: []Edit{{
				"futures.(*completion).await", "	end()\n	return p.completed()\n", "	end()\n	return p.completed() && ctx.Err() == nil\n",
			}},
		},
		{
			Name: "an actor is through before its last effects", Package: "actors", Run: "^TestTheLastEffectsComeBeforeDone$",
			Edits: []Edit{{"actors.(*mailbox).finish", "		defer b.worker.End()\n", "		b.worker.End()\n"}},
		},
		{
			Name: "Close tells the last refusal", Package: "internal/fence", Run: "^TestCloseTellsTheFirstRefusal$",
			Edits: []Edit{{"internal/fence.(*Events).Close", "err != nil && first == nil {", "err != nil {"}},
		},
		{
			Name: "two halves of a cell share their reads", Package: "cudadrv/hazard/internal/core", Run: "^TestHalvesOfACellHaveStoriesOfTheirOwn$",
			Edits: []Edit{{"cudadrv/hazard/internal/core.(*memory).split", "	upper.reads = slices.Clone(c.reads)\n", ""}},
		},
		{
			Name: "a request that panicked goes on waiting", Package: "streams", Run: "^TestAPanicWithdrawsARequestThatWaits$",
			Edits: []Edit{{
				"streams.(*ending).panicked", "		e.dispatch.unpark(c) // answered now\n		e.dispatch.endWaiting(c)\n",
				"",
			}},
		},
		{
			Name: "a warm-up rounds down", Package: "internal/acceptance", Run: "^TestWarmRoundsUp$",
			Edits: []Edit{{"vram.warmRuns", "spans := (int64(w.Count) + blocks - 1) / blocks", "spans := int64(w.Count) / blocks"}},
		},
		{
			Name: "time before an overlapping call is nobody's", Package: "cudadrv/meter", Run: "^TestTimeOfOverlappingCallsIsSomebodys$",
			Edits: []Edit{{"cudadrv/meter.(*counter).Before", "c.underWay.Add(1) == 1 {", "c.underWay.Add(1) >= 1 {"}},
		},
		{
			Name: "a device asks others for memory that its own limit refuses", Package: "internal/acceptance", Run: "^TestOnlyTheDriversRefusalAsksNeighbours$",
			Edits: []Edit{{"vram.(*Device).askNeighbours", "short.Cause == nil", "false"}},
		},
		{
			Name: "a reservation asks no other device", Package: "internal/acceptance", Run: "^TestADeviceReleasesWhatAnotherOnItsGPUNeeds$",
			Edits: []Edit{{"vram.(*Device).Reserve", "!d.askNeighbours(ctx, short)", "true"}},
		},
		{
			Name: "a device releases all for another", Package: "internal/acceptance", Run: "^TestANeighbourReleasesNoMoreThanIsMissing$",
			Edits: []Edit{{"vram.(*Device).releaseFree", "books.ReservedBytes-bytes", "0*books.ReservedBytes"}},
		},
	}
}
