package planted

// poolBugs are those of the pool and its core.
func poolBugs() []Bug {
	return []Bug{
		{
			Name: "every denial panics, and the pool goes on", Package: ".", Run: "^TestARefusalHidesNoPanic$",
			Edits: []Edit{{"pool/message.go", "		if !d.quiet {\n			e.observeDenial(d.err)\n		}\n", "		if !d.quiet {\n			e.observeDenial(d.err)\n		}\n		_ = e.asks.all[len(e.denials.all)+len(e.asks.all)]\n"}},
		},
		{
			Name: "a panicking driver goes unreported", Package: ".", Run: "^TestARecoveredPanicIsToldCountedAndLogged$",
			Edits: []Edit{{"pool/driver.go", "			d.pool.panics.Here(\"vram-driver\", value)\n", ""}},
		},
		{
			Name: "the arena has a page that ends beyond 32 bits", Package: "pool/core", Run: "^TestTheEndOfTheLongestArena$",
			Edits: []Edit{{"pool/core/core.go", "maxPages = min(maxPages, heap.MostPages(", "_ = min(maxPages, heap.MostPages("}},
		},
		{
			Name: "what is foreseen is not held", Package: "pool/core", Run: "^TestStepsShorterThanATick$|^TestTranscripts$",
			Edits: []Edit{{"pool/core/forecast.go", "return max(f.last, f.most)", "return 0"}},
		},
		{
			Name: "a step that did not come is waited for without end", Package: "pool/core", Run: "^TestAStepThatDoesNotCome$|^TestForecastKeepsWithinItsBounds$",
			Edits: []Edit{{"pool/core/forecast.go", "f.tick < opens || f.tick > closes", "f.tick < opens && f.tick > closes"}},
		},
		{
			Name: "memory is clean one fence too early", Package: "pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"pool/core/job.go", "table[i].fence <= p.Fence", "table[i].fence <= p.Fence+1"}},
		},
		{
			Name: "merged runs keep the earlier fence", Package: "pool/core", Run: "^TestMergedRunsWaitForTheLatestFence$",
			Edits: []Edit{{"pool/core/pages.go", "r.Pages += t.run\n		f = max(f, t.fence)", "r.Pages += t.run\n		f = min(f, t.fence)"}},
		},
		{
			Name: "handles are unmapped before their fence", Package: "pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{
				{
					"pool/core/window.go", "c.pages.clean.bins.Each(c.pages.links, 1, func(i int32) bool {",
					"c.pages.each(func(i int32) bool {",
				},
				{
					"pool/core/window.go", "type victim struct {",
					"func (p *pages) each(visit func(int32) bool) {\n	p.clean.bins.Each(p.links, 1, visit)\n" +
						"	for _, d := range p.tagged {\n		d.bins.Each(p.links, 1, visit)\n	}\n}\n\ntype victim struct {",
				},
			},
		},
		{
			Name: "handles side by side are unmapped twice", Package: "pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"pool/core/job.go", "j.Ops[n-1].Run.Pages += r.Pages\n			continue", "j.Ops[n-1].Run.Pages += r.Pages"}},
		},
		{
			Name: "an answer is told to the first who waits for it only", Package: "pool/core", Run: "^TestCoreAgreesWithOnePageOneOwner$",
			Edits: []Edit{{
				"pool/core/queue.go", "for _, r := range q.awaiting {\n		if r.looking == look {", "for i, r := range q.awaiting {\n		if i == 0 && r.looking == look {",
			}},
		},
		{
			Name: "segments touch and merge", Package: "pool", Run: "^TestWarmFreesSegmentsThatDoNotFit$",
			Edits: []Edit{{
				"pool/core/segment.go", "c.holes(n + 2)\n	return window{run: Run{run.First + 1, n}", "c.holes(n)\n	return window{run: Run{run.First, n}",
			}},
		},
		{
			Name: "memory changes hands without a wait", Package: "pool", Run: "^TestAClientFollowsAnothersFence$",
			Edits: []Edit{{"pool/follow.go", "return d.waiter.Follow(covering.mark)", "return nil"}},
		},
		{
			Name: "a wait is for the newest fence", Package: "pool", Run: "^TestAClientFollowsAnothersFence$",
			Edits: []Edit{{"pool/follow.go", "s.fence < covering.fence", "s.fence > covering.fence"}},
		},
		{
			Name: "quiet streams count for ever", Package: ".", Run: "^TestNewStreamsAtEachStepDoNotAddUp$",
			Edits: []Edit{{"pool/core/look.go", "		cl.usedBytes = liveBytes\n", ""}},
		},
		{
			Name: "what an idle stream gave back goes home again", Package: "pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"pool/core/client.go", "if !m.Final {", "if m.Fence >= 0 {"}},
		},
		{
			Name: "the limit is off by a page", Package: "pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"pool/core/growth.go", "c.reservedBytes+c.bytes(w.missing) > soft {", "c.reservedBytes+c.bytes(w.missing) > soft+c.pageBytes {"}},
		},
		{
			Name: "a rollback forgets a handle", Package: "pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"pool/core/job.go", "releases = append(releases, Op{", "releases = append(releases[:0], Op{"}},
		},
		{
			Name: "Close skips a handle", Package: "pool", Run: "^TestStreamsThatAreGoneAreForgotten$",
			Edits: []Edit{{"pool/core/background.go", "if !h.live {\n			continue", "if !h.live || id == 1 {\n			continue"}},
		},
		{
			Name: "a mark is given up before it has passed", Package: "pool", Run: "^TestAMarkIsKeptUntilItHasPassed$",
			Edits: []Edit{{"pool/driver.go", "for _, s := range stamps[:n] {", "for _, s := range stamps {"}},
		},
		{
			Name: "the last of several refusals is not told", Package: "internal/simulation", Run: "^TestNoPromiseIsBroken",
			Edits: []Edit{{"pool/turn.go", "range fx.Denials {", "range fx.Denials[:len(fx.Denials)/2] {"}},
		},
	}
}

// aheadBugs are those of what is set aside and of what is mapped ahead.
func aheadBugs() []Bug {
	return []Bug{
		{
			Name: "a reservation is freed once more after a close", Package: "pool/core", Run: "^TestAReservationEndsDuringClose$",
			Edits: []Edit{{"pool/core/background.go", "cl.heldPages, cl.reserved = 0, nil", "cl.heldPages = 0"}},
		},
		{
			Name: "what is drawn stays in the reservation", Package: "pool/core", Run: "^TestCoreAgreesWithOnePageOneOwner$|^FuzzCore$",
			Edits: []Edit{{
				"pool/core/reserve.go", "have.First, have.Pages = have.First+run.Pages, have.Pages-run.Pages; have.Pages == 0", "have.Pages == 0",
			}},
		},
	}
}

// budgetBugs are those of growing and recycling.
func budgetBugs() []Bug {
	return []Bug{
		{
			Name: "growth beyond the budget breaks the limit", Package: "pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"pool/core/recycle.go", "return w, ok && c.reservedBytes+c.bytes(w.missing) <= mostBytes", "return w, ok || c.reservedBytes > mostBytes"}},
		},
		{
			Name: "the shortest handles are recycled first", Package: "pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"pool/core/window.go", "return int(b.pages) - int(a.pages)", "return int(a.pages) - int(b.pages)"}},
		},
		{
			Name: "handles are long from the beginning", Package: "pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"pool/core/standing.go", "recycledBytes > c.reservedBytes/recycledShare", "recycledBytes >= c.reservedBytes/recycledShare"}},
		},
		{
			Name: "clients lie side by side", Package: "pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"pool/core/window.go", "return c.maxPages / zoneShare", "return c.maxPages / zoneShare / c.maxPages"}},
		},
		{
			Name: "short handles move as long ones do", Package: "pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"pool/core/job.go", "k <= n && k >= least {", "k <= n && k > 0*least {"}},
		},
	}
}

// refusalBugs are those of a request to which the driver has refused memory, or of which a part was served.
func refusalBugs() []Bug {
	return []Bug{
		{
			Name: "nobody is asked after the driver's refusal", Package: ".", Run: "^TestNoMemoryOfTheDriversButOurOwn$",
			Edits: []Edit{{"pool/core/refusal.go", "r.rung = rungAskAll", "r.rung = rungPoll"}},
		},
		{
			Name: "what the driver has is taken for what is held", Package: ".", Run: "^TestNoMemoryOfTheDriversButOurOwn$",
			Edits: []Edit{
				{"pool/core/refusal.go", "capBytes := c.reservedBytes + max(0, freeBytes)", "capBytes := c.reservedBytes"},
				{"pool/core/refusal.go", "max(c.reservedBytes, j.startBytes)", "c.reservedBytes"},
			},
		},
		{
			Name: "the driver is not asked what is left", Package: ".", Run: "^TestWhatOthersHaveToGiveBack$",
			Edits: []Edit{{"pool/driver.go", "done.FreeBytes = d.freeBytes()", "done.FreeBytes = min(0, d.freeBytes())"}},
		},
		{
			Name: "growth forgets what the driver can give", Package: "pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"pool/core/recycle.go", "limit := r.within(c.settings.LimitBytes)", "limit := c.settings.LimitBytes"}},
		},
		{
			Name: "the second refusal of the driver is final", Package: "pool/core", Run: "^TestAllThatIsFreeGoesBackBeforeADenial$",
			Edits: []Edit{{"pool/core/refusal.go", "r.refusals < mostRefusals", "!r.capped"}},
		},
		{
			Name: "free handles are kept until a denial", Package: "pool/core", Run: "^TestAllThatIsFreeGoesBackBeforeADenial$",
			Edits: []Edit{{"pool/core/recycle.go", "short = max(short, c.reservedBytes)", "short = max(short, 0)"}},
		},
		{
			Name: "nobody is asked for the second run of a batch", Package: "pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"pool/core/answer.go", "next := rungAskAll", "next := rungGrow"}},
		},
		{
			Name: "a batch is lent what its next run lacks", Package: "pool/core", Run: "^TestABatchLeavesItsNextRunWhatItNeeds$",
			Edits: []Edit{{"pool/core/answer.go", "r.wanted() > uint64(runPages)", "r.wanted() == 0"}},
		},
	}
}
