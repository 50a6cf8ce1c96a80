package planted

// poolBugs are those of the pool and its core.
func poolBugs() []Bug {
	return []Bug{
		{
			Name: "every denial panics, and the pool goes on", Package: "internal/acceptance", Run: "^TestARefusalHidesNoPanic$",
			Edits: []Edit{{"pool.(*effects).deliver", "		if !d.quiet {\n			e.observeDenial(d.err)\n		}\n", "		if !d.quiet {\n			e.observeDenial(d.err)\n		}\n		_ = e.reclaims.Left()[len(e.reclaims.Left())]\n"}},
		},
		{
			Name: "a panicking driver goes unreported", Package: "internal/acceptance", Run: "^TestARecoveredPanicIsToldCountedAndLogged$",
			Edits: []Edit{{"pool.(*driver).guard", "			d.pool.panics.Here(\"vram-driver\", value)\n", ""}},
		},
		{
			Name: "the arena has a page that ends beyond 32 bits", Package: "internal/pool/memory", Run: "^TestTheEndOfTheLongestArena$",
			Edits: []Edit{{"internal/pool/memory.New", "maxPages = min(maxPages, heap.MostPages(", "_ = min(maxPages, heap.MostPages("}},
		},
		{
			Name: "memory is clean one fence too early", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/memory.(*table).pass", "t.pages[i].fence <= f {", "t.pages[i].fence <= f+1 {"}},
		},
		{
			Name: "merged runs keep the earlier fence", Package: "internal/pool/memory", Run: "^TestMergedRunsWaitForTheLatestFence$",
			Edits: []Edit{{"internal/pool/memory.(*table).addFree", "r.Pages += have.run\n		tag.Fence = max(", "r.Pages += have.run\n		tag.Fence = min("}},
		},
		{
			Name: "handles are unmapped before their fence", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{
				{"internal/pool/memory.(*Memory).victims", "m.clean.bins.Each(m.links, 1, func(i int32) bool {", "m.each(func(i int32) bool {"},
				{"internal/pool/memory/memory.go", "type victim struct {", "func (m *Memory) each(visit func(int32) bool) {\n	m.clean.bins.Each(m.links, 1, visit)\n	for _, x := range m.tagged {\n		x.bins.Each(m.links, 1, visit)\n	}\n}\n\ntype victim struct {"},
			},
		},
		{
			Name: "handles side by side are unmapped twice", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/memory.(*Memory).unmapOps", "j.Ops[n-1].Run.Pages += r.Pages\n			continue", "j.Ops[n-1].Run.Pages += r.Pages"}},
		},
		{
			Name: "an answer is told to the first who waits for it only", Package: "internal/pool/core", Run: "^TestCoreAgreesWithOnePageOneOwner$",
			Edits: []Edit{{
				"internal/pool/core.(*queue).answered", "for _, r := range q.awaiting {\n		r.awaits = slices", "for i, r := range q.awaiting {\n		if i > 0 {\n			kept = append(kept, r)\n			continue\n		}\n		r.awaits = slices",
			}},
		},
		{
			Name: "segments touch and merge", Package: "pool", Run: "^TestWarmFreesSegmentsThatDoNotFit$",
			Edits: []Edit{{"internal/pool/memory.(*finder).place", "f.holes(count + 2)\n	return Window{Run: Run{First: run.First + 1,", "f.holes(count)\n	return Window{Run: Run{First: run.First,"}},
		},
		{
			Name: "memory changes hands without a wait", Package: "pool", Run: "^TestAClientFollowsAnothersFence$",
			Edits: []Edit{{"pool.(*driver).follow", "return d.waiter.Follow(covering.mark)", "return nil"}},
		},
		{
			Name: "a wait is for the newest fence", Package: "pool", Run: "^TestAClientFollowsAnothersFence$",
			Edits: []Edit{{"pool.(*driver).follow", "s.fence < covering.fence", "s.fence > covering.fence"}},
		},
		{
			Name: "quiet streams count for ever", Package: "internal/pool/core", Run: "^TestTheLivePeakRisesAfterALook$",
			Edits: []Edit{{"internal/pool/core.(*Core).SetUsage", "	cl.usage = u\n", "	u.UsedBytes = max(u.UsedBytes, cl.usage.UsedBytes)\n	cl.usage = u\n"}},
		},
		{
			Name: "what an idle stream gave back goes home again", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/core.(*Core).takeBack", "if !m.Final {", "if m.Fence >= 0 {"}},
		},
		{
			Name: "the limit is off by a page", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/core.(*grower).growBy", "if !ok || !g.budget.fits(r, w.Missing) {", "if !ok || !g.budget.fits(r, max(w.Missing, 1)-1) {"}},
		},
		{
			Name: "a rollback forgets a handle", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/memory.(*Memory).undoOps", "releases = append(releases, Op{", "releases = append(releases[:0], Op{"}},
		},
		{
			Name: "Close skips a handle", Package: "pool", Run: "^TestStreamsThatAreGoneAreForgotten$",
			Edits: []Edit{{"internal/pool/memory.(*Memory).PlanClose", "if !h.live {\n			continue", "if !h.live || id == 1 {\n			continue"}},
		},
		{
			Name: "a mark is given up before it has passed", Package: "pool", Run: "^TestAMarkIsKeptUntilItHasPassed$",
			Edits: []Edit{{"pool.(*driver).look", "for _, s := range marked[:n] {", "for _, s := range marked {"}},
		},
		{
			Name: "the last of several refusals is not told", Package: "lab/simulation", Run: "^TestNoPromiseIsBroken",
			Edits: []Edit{{"pool.(*Pool).collect", "for d := range fx.Denials.Popped() {\n", "for d := range fx.Denials.Popped() {\n		if len(fx.Denials.Left()) == 0 {\n			break\n		}\n"}},
		},
	}
}

// aheadBugs are those of what is set aside and of what is mapped ahead.
func aheadBugs() []Bug {
	return []Bug{
		{
			Name: "a reservation is freed once more after a close", Package: "internal/pool/core", Run: "^TestAReservationEndsDuringClose$",
			Edits: []Edit{{"internal/pool/core.(*Core).finishClose", "			cl.reserved = nil\n", ""}},
		},
		{
			Name: "what is drawn stays in the reservation", Package: "internal/pool/core", Run: "^TestCoreAgreesWithOnePageOneOwner$|^FuzzCore$",
			Edits: []Edit{{"internal/pool/core.(*answers).draw", "if from.reserved[i] = rest; rest.Pages == 0 {", "if rest.Pages == 0 {"}},
		},
	}
}

// budgetBugs are those of growing and recycling.
func budgetBugs() []Bug {
	return []Bug{
		{
			Name: "growth beyond the budget breaks the limit", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/core.(*grower).overgrown", "return w, ok && g.budget.reservedWith(w.Missing) <= maxBytes", "return w, ok || g.budget.reservedWith(w.Missing) > maxBytes"}},
		},
		{
			Name: "the shortest handles are recycled first", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/memory.(*Memory).victims", "cmp.Compare(b.pages, a.pages)", "cmp.Compare(a.pages, b.pages)"}},
		},
		{
			Name: "handles are long from the beginning", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/core.(*budget).maxHandlePages", "b.recycledBytes > b.memory", "b.recycledBytes >= 0*b.memory"}},
		},
		{
			Name: "clients lie side by side", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/memory.(*finder).zonePages", "return f.maxPages / zoneShare", "return f.maxPages / zoneShare / f.maxPages"}},
		},
		{
			Name: "short handles move as long ones do", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/memory.(*Memory).fillOps", "k > rest.Pages || k < least {", "k > rest.Pages || k < 0*least {"}},
		},
	}
}

// refusalBugs are those of a request to which the driver has refused memory, or of which a part was served.
func refusalBugs() []Bug {
	return []Bug{
		{
			Name: "nobody is asked after the driver's refusal", Package: "internal/acceptance", Run: "^TestNoMemoryOfTheDriversButOurOwn$",
			Edits: []Edit{{"internal/pool/core.(*ladder).jobFailed", "		r.rung = rungAskAll\n	}\n}", "		r.rung = rungPoll\n	}\n}"}},
		},
		{
			Name: "what the driver has is taken for what is held", Package: "internal/acceptance", Run: "^TestNoMemoryOfTheDriversButOurOwn$",
			Edits: []Edit{
				{"internal/pool/core.(*ladder).cap", "capBytes := reserved + max(0, freeBytes)", "capBytes := reserved"},
				{"internal/pool/core.(*ladder).cap", "max(reserved, startBytes)", "min(reserved, max(reserved, startBytes))"},
			},
		},
		{
			Name: "the driver is not asked what is left", Package: "internal/acceptance", Run: "^TestWhatOthersHaveToGiveBack$",
			Edits: []Edit{{"pool.(*driver).run", "done.FreeBytes = d.freeBytes()", "done.FreeBytes = min(0, d.freeBytes())"}},
		},
		{
			Name: "growth forgets what the driver can give", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/core.(*grower).recycleInto", "limit := r.within(g.settings.LimitBytes)", "limit := g.settings.LimitBytes"}},
		},
		{
			Name: "the second refusal of the driver is final", Package: "internal/pool/core", Run: "^TestAllThatIsFreeGoesBackBeforeADenial$",
			Edits: []Edit{{"internal/pool/core.(*ladder).jobFailed", "r.refusals < maxRefusals", "!r.capped"}},
		},
		{
			Name: "free handles are kept until a denial", Package: "internal/pool/core", Run: "^TestAllThatIsFreeGoesBackBeforeADenial$",
			Edits: []Edit{{"internal/pool/core.(*grower).recycleInto", "short = max(short, g.memory.ReservedBytes())", "short = max(short, 0)"}},
		},
		{
			Name: "nobody is asked for the second run of a batch", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/core.(*answers).grant", "next := rungLook", "next := rungJoin"}},
		},
		{
			Name: "a batch is lent what its next run lacks", Package: "internal/pool/core", Run: "^TestABatchLeavesItsNextRunWhatItNeeds$",
			Edits: []Edit{{"internal/pool/core.(*answers).lendPages", "r.wanted() > uint64(runPages)", "r.wanted() == 0"}},
		},
	}
}
