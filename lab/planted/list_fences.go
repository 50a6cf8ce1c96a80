package planted

func fencedMemory() Promise {
	return Promise{"memory serves no other use before every announced use of it has finished on the device", []Bug{
		{
			Name: "an event passes before its work", Package: "internal/fence", Run: "^TestMarkPassesWithTheWorkBeforeIt$",
			Edits: []Edit{
				{"cudadrv/sim.(*Device).EventRecord", "ev.passes = st.drained", "ev.passes = min(st.drained, g.time())"},
			},
		},
		{
			Name: "memory is clean one fence too early", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/memory.(*table).pass", "t.pages[i].fence <= f {", "t.pages[i].fence <= f+1 {"}},
		},
		{
			Name:    "merged runs keep the earlier fence",
			Package: "internal/pool/memory", Run: "^TestMergedRunsWaitForTheLatestFence$",
			Edits: []Edit{
				{
					"internal/pool/memory.(*table).addFree",
					"r.Pages += have.run\n\t\ttag.Fence = max(",
					"r.Pages += have.run\n\t\ttag.Fence = min(",
				},
			},
		},
		{
			Name: "handles are unmapped before their fence", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{
				{
					"internal/pool/memory.(*Memory).victims",
					"m.clean.bins.Each(m.links, 1, func(i int32) bool {",
					"m.each(func(i int32) bool {",
				},
				{
					"internal/pool/memory/memory.go",
					"type victim struct {",
					"func (m *Memory) each(visit func(int32) bool) {\n" +
						"\tm.clean.bins.Each(m.links, 1, visit)\n" +
						"\tfor _, x := range m.tagged {\n" +
						"\t\tx.bins.Each(m.links, 1, visit)\n" +
						"\t}\n" +
						"}\n" +
						"\n" +
						"type victim struct {",
				},
			},
		},
		{
			Name: "memory changes hands without a wait", Package: "pool", Run: "^TestAClientFollowsAnothersFence$",
			Edits: []Edit{{"pool.(*driver).follow", "return d.waiter.Follow(covering.mark)", "return nil"}},
		},
		{
			Name: "the fence is taken before the memory", Package: "lab/simulation", Run: "^TestNoPromiseIsBroken",
			Edits: []Edit{
				{"streams/cudastream.go", "	calls          atomic.Int64 ", "	early          fence.Mark\n	calls          atomic.Int64 "},
				{
					"streams.(*poolClient).Asked", "	c.wiring.ref.Call(&reclaim{stream: c.wiring, runsGranted: runsGranted, pages: pages})",
					"	c.wiring.cuda.early, _ = c.wiring.cuda.fences.Record(c.wiring.cuda.stream)\n	c.wiring.ref.Call(&reclaim{stream: c.wiring, runsGranted: runsGranted, pages: pages})",
				},
				{
					"streams.(*cudaStream).record", "	err = h.guard(func() (err error) {\n		mark, err",
					"	if !h.early.Zero() {\n		mark, h.early = h.early, fence.Mark{}\n		return mark, nil\n	}\n	err = h.guard(func() (err error) {\n		mark, err",
				},
			},
		},
		{
			Name:    "a single run goes back without a fence",
			Package: "streams", Run: "^TestPagesWithoutAFenceStayWithTheirStream$",
			Edits: []Edit{{"streams.(*lentMemory).returned", "case len(g.Runs) == 0 || ", "case len(g.Runs) < 2 || "}},
		},
		{
			Name:    "memory that returns after a fence counts as covered",
			Package: "internal/stream/core", Run: "^TestOnlyCoveredPagesLeave$",
			Edits: []Edit{{"internal/stream/core.(*coverage).Covered", "clear(c.sealed.words)", "clear(c.sealed.words); clear(c.open.words)"}},
		},
		{
			Name: "granted pages count as covered", Package: "internal/stream/core", Run: "^TestGrantedPagesAreNotCovered$",
			Edits: []Edit{
				{"internal/stream/core.(*coverage).begin", "\tc.ranges.onGrant = append(c.ranges.onGrant, c.open.add)\n", ""},
			},
		},
		{
			Name:    "a fence has its number from after its mark",
			Package: "internal/fence", Run: "^TestFenceCoversWhatCameBefore$",
			Edits: []Edit{{"internal/fence/line.(*Line).Begin", "return l.next.Add(1) - 1 }", "return l.next.Load() }"}},
		},
		{
			Name:    "a look continues past a fence that has not passed",
			Package: "internal/fence", Run: "^TestNumbersPassWithWhatTheyCover$",
			Edits: []Edit{
				{
					"internal/fence.(*Timeline).Look",
					"\t\t\tpassed, err = t.ask(c, number)\n",
					"\t\t\tpassed, err = t.ask(c, number)\n\t\t\tt.Pass(number)\n",
				},
			},
		},
		{
			Name: "a use is not noted", Package: "streams", Run: "^TestAnnouncedUseKeepsMemory$",
			Edits: []Edit{
				{
					"internal/stream/magazine.nextRecord",
					"return word | user | uint64(Announced), false, true",
					"return word | uint64(Announced), false, true",
				},
			},
		},
		{
			Name: "a use that is open counts as ended", Package: "streams", Run: "^TestUseEndsWithDone$",
			Edits: []Edit{
				{
					"internal/stream/magazine.(*Slot).TakeUses",
					"u.recorded.Load() || u.state.Load()&endedBit == 0",
					"u.recorded.Load()",
				},
			},
		},
		{
			Name: "a wait covers later uses", Package: "internal/acceptance", Run: "^TestAWaitCoversWhatEndedBefore$",
			Edits: []Edit{{"internal/stream/core.(*inFlight).passed", "j.line == line && number <= j.number", "j.line == line"}},
		},
		{
			Name: "the receiver of a buffer does not wait", Package: "streams", Run: "^TestTransfer$",
			Edits: []Edit{
				{
					"internal/fence.(*Timeline).Order",
					"t.take(func(m Mark) error { return t.source.Precede(m, later) })",
					"t.take(func(Mark) error { return nil })",
				},
			},
		},
		{
			Name:    "one use that has passed is enough",
			Package: "internal/stream/core", Run: "^TestPendingBlocksComeHomeWhenTheirUsesHavePassed$",
			Edits: []Edit{{"internal/stream/core.(*inFlight).pass", "b.left > 1 {", "b.slot == nil {"}},
		},
		{
			Name: "a donor with work in flight records no fence", Package: "streams", Run: "^TestDonorsMakeNoHazard$",
			Edits: []Edit{{"streams.(*effects).record", "r.Answer && h.idle()", "r.Answer"}},
		},
		{
			Name:    "the rest before a part is under no fence",
			Package: "internal/pool/memory", Run: "^TestFreePagesKeepTheirTags$",
			Edits: []Edit{
				{
					"internal/pool/memory.(*table).takeFree",
					"Pages: r.First - first}, tag)",
					"Pages: r.First - first}, Tag{tag.Client, 0})",
				},
			},
		},
	}}
}
