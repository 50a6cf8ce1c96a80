package planted

// mapBugs are faults of the map of a device's memory, and of the page that shows it.
func mapBugs() []Bug {
	const pure = "internal/memorymap"
	return []Bug{
		{
			Name: "a memory map loses the last short ranges", Package: pure, Run: "^TestListsKeepWhatWasAdded$",
			Edits: []Edit{{"internal/memorymap.(*Builder).List", "	b.flush()\n", ""}},
		},
		{
			Name: "a memory map puts a long range before the short ones at its left", Package: pure, Run: "^TestListsKeepWhatWasAdded$",
			Edits: []Edit{{"internal/memorymap.(*Builder).place", "	case r.Bytes >= b.ResolutionBytes:\n		b.flush()\n", "	case r.Bytes >= b.ResolutionBytes:\n"}},
		},
		{
			Name: "a memory map mixes ranges over a gap", Package: pure, Run: "^TestListsKeepWhatWasAdded$",
			Edits: []Edit{{"internal/memorymap.(*Builder).place", "b.small.Bytes > 0 && r.Start == b.small.End() &&", "b.small.Bytes > 0 &&"}},
		},
		{
			Name: "a memory map has ranges beyond the run that they were lent with", Package: pure, Run: "^TestRunsAreCoveredOnce$",
			Edits: []Edit{{"internal/memorymap.(*Range).within", "min(r.End(), run.End())", "r.End()"}},
		},
		{
			Name: "a memory map leaves out what a stream has not reported", Package: pure, Run: "^TestRunsAreCoveredOnce$",
			Edits: []Edit{{"internal/memorymap.Within", "		if r.Start > at {\n			add(run.part(at, r.Start))\n		}\n", ""}},
		},
		{
			Name: "a memory map calls pending blocks live", Package: "internal/acceptance", Run: "^TestMemoryMap(HasEveryState|AgreesWithStats)$",
			Edits: []Edit{{"internal/stream/core.(*mapper).slot", "case m.pending[s]:", "case m.pending[s] && !s.Magazine().IsLive(s):"}},
		},
		{
			Name: "a memory map calls free blocks of magazines live", Package: "internal/acceptance", Run: "^TestMemoryMap(HasEveryState|AgreesWithStats)$",
			Edits: []Edit{{"internal/stream/core.(*mapper).slot", "case s.Magazine().IsLive(s):", "case s != nil:"}},
		},
		{
			Name: "a memory map calls reservations lent", Package: "internal/acceptance", Run: "^TestMemoryMap(HasEveryState|AgreesWithStats)$",
			Edits: []Edit{{"internal/pool/core.(*Core).Map", "cl != nil && cl.reserves", "cl != nil && cl.gone"}},
		},
		{
			Name: "a memory map joins segments over a hole", Package: "internal/acceptance", Run: "^TestMemoryMapAgreesWithStats$",
			Edits: []Edit{{"vram.(*mapMaker).add", "m.segment.Bytes == 0 || r.First != m.end", "m.segment.Bytes == 0"}},
		},
		{
			Name: "a memory map forgets that memory sleeps", Package: "cuda/sleep", Run: "^TestTheMemoryMapHasWhatSleeps$",
			Edits: []Edit{{"internal/pool/memory.(*Memory).asleep", "return h.asleep && !h.live", "return h.asleep && h.live"}},
		},
		{
			Name: "a page reads on after its last viewer", Package: "monitor/page", Run: "^TestViewersShareASampler$",
			Edits: []Edit{{"monitor/page.(*sampler).leave", "		st.stop()\n", "		_ = st.stop\n"}},
		},
		{
			Name: "a page has the newest sample first", Package: "monitor/page", Run: "^TestTheHistoryIsBounded$",
			Edits: []Edit{{"monitor/page.(*sampling).history", "append(append([]Point{}, st.points[st.oldest:]...), st.points[:st.oldest]...)", "append([]Point{}, st.points...)"}},
		},
		{
			Name: "a page is read by other origins", Package: "monitor/page", Run: "^TestThePageIsSafe$",
			Edits: []Edit{{"monitor/page.(*Page).ServeHTTP", `site == "cross-site" || site == "same-site"`, `site == "same-site"`}},
		},
		{
			Name: "a page forgets the name of a closed device", Package: "monitor/page", Run: "^TestClosedDevicesKeepTheirNames$",
			Edits: []Edit{{"monitor/page.(*sampling).add", `d.Name == ""`, `d.Name != ""`}},
		},
		{
			Name: "a page lists a place once for each record of the profile", Package: "monitor/page", Run: "^TestCallStacks$",
			Edits: []Edit{{"monitor/page.callsOf", "if !found {", "if !found || r.Stream > 0 {"}},
		},
		{
			Name: "a page has the call stack with the fewest bytes first", Package: "monitor/page", Run: "^TestCallStacks$",
			Edits: []Edit{{"monitor/page.callsOf", "cmp.Compare(b.LiveBytes, a.LiveBytes)", "cmp.Compare(a.LiveBytes, b.LiveBytes)"}},
		},
		{
			Name: "a page counts waits for a tenant's quota as waits for memory", Package: "monitor/page", Run: "^TestWaitingAndRefusedRequests$",
			Edits: []Edit{{"monitor/page.(*Device).readWaiters", "r.Tenant == t.Name && r.For == vram.WaitForMemory", "r.Tenant == t.Name"}},
		},
		{
			Name: "a page does not count the requests that ran out of memory", Package: "monitor/page", Run: "^TestWaitingAndRefusedRequests$",
			Edits: []Edit{{"monitor/page.Read", "OutOfMemoryCount: s.OutOfMemoryCount, ", ""}},
		},
		{
			Name: "free memory hardly stands out from the card", Package: "monitor/page", Run: "^TestColoursStandOutFromTheCard$",
			Edits: []Edit{{"monitor/page/static/page.css", "--free: #87919c;", "--free: #c3ccd6;"}},
		},
		{
			Name: "two states of memory differ in hue alone", Package: "monitor/page", Run: "^TestNeighboursAreToldApart$",
			Edits: []Edit{{"monitor/page/static/states.js", `colour: "pending", pattern: "stripes"`, `colour: "pending", pattern: "solid"`}},
		},
		{
			Name: "a stream has the colour of live memory", Package: "monitor/page", Run: "^TestAColourHasOneMeaning$",
			Edits: []Edit{{"monitor/page/static/page.css", "--stream-3: #0d6f92;", "--stream-3: #1b3d98;"}},
		},
	}
}
