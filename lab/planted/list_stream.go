package planted

// streamBugs are those of streams and their core.
func streamBugs() []Bug {
	return []Bug{
		{
			Name: "an order is answered before its memory has gone", Package: "streams", Run: "^TestAnOrderIsAnsweredWhenItsMemoryHasGone$",
			Edits: []Edit{{"streams.(*effects).performReturn", "	w := e.stream\n", "	w := e.stream\n	if e.reply(nil) {\n		return true\n	}\n"}},
		},
		{
			Name: "idle spans keep pages over the budget", Package: "internal/stream/core", Run: "^TestIdleSpansGoWhereTheirPagesAreOverTheBudget$",
			Edits: []Edit{{"internal/stream/core.(*Core).Tick", "if c.spans.units > 0 && c.limits.overBytes() > 0 {", "if c.spans.units > 0 && c.limits.overBytes() < 0 {"}},
		},
		{
			Name: "a device is closed while a stream is made", Package: "internal/acceptance", Run: "^TestAStreamThatLosesAgainstCloseIsDestroyed$",
			Edits: []Edit{{"vram.(*callGate).close", "	for g.count.Load() > 0 {", "	for g.count.Load() > 0 && !g.closed.Load() {"}},
		},
		{
			Name: "idle spans stay where the pool is asked", Package: "internal/stream/core", Run: "^TestIdleSpansGoBackBeforeThePoolIsAsked$",
			Edits: []Edit{{"internal/stream/core.(*room).make", "	r.spans.retireIdle() // else", "	// else"}},
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
			Name: "a single run goes back without a fence", Package: "streams", Run: "^TestPagesWithoutAFenceStayWithTheirStream$",
			Edits: []Edit{{"streams.(*lentMemory).returned", "case len(g.Runs) == 0 || ", "case len(g.Runs) < 2 || "}},
		},
		{
			Name: "a grant is lost while others wait", Package: "lab/simulation", Run: "^TestNoPromiseIsBroken",
			Edits: []Edit{{"streams.(*turn).granted", "c != nil {\n		t.dispatch.endWaiting(c)", "c != nil && t.state.claims.Len() < 2 {\n		t.dispatch.endWaiting(c)"}},
		},
		{
			Name: "magazines keep their part under pressure", Package: "internal/stream/core", Run: "^TestPressureEmptiesMagazines$|^TestKeptBlocksFollowTheReference$",
			Edits: []Edit{{"internal/stream/core.(*Core).Tick", "	c.retention.shrink()\n", ""}},
		},
		{
			Name: "a cancelled request keeps its block", Package: "streams", Run: "^TestCancelWhenTheBlockIsTaken$",
			Edits: []Edit{{"streams.(*single).undo", "s.state.core.Undo(slot)", "_ = slot"}},
		},
		{
			Name: "a cancelled batch keeps half", Package: "streams", Run: "^TestABatchThatIsCancelledInItsTurn$",
			Edits: []Edit{{
				"streams.(*several).putBack", "for i := range r.dst {\n",
				"for i := range r.dst[len(r.dst)/2:] {\n",
			}},
		},
		{
			Name: "the budget counts what is kept twice", Package: "internal/stream/core", Run: "^TestCheckSeesWhatIsWrong$|^TestLengthThatComesBackIsKept$",
			Edits: []Edit{{"internal/stream/core.(*retention).keep", "r.units += uint64(units)", "r.units += 2 * uint64(units)"}},
		},
		{
			Name: "the background records on adopted handles", Package: "streams", Run: "^TestTheBackgroundMakesNoCallOnAnAdoptedHandle$",
			Edits: []Edit{{"streams.(*lentMemory).coveredOnly", "return l.wiring.cuda.adopted && !caller && ", "return false && "}},
		},
		{
			Name: "what comes home behind a fence counts as covered", Package: "internal/stream/core", Run: "^TestOnlyCoveredPagesLeave$",
			Edits: []Edit{{"internal/stream/core.(*coverage).Covered", "c.sealed.clear()", "c.sealed.clear(); c.open.clear()"}},
		},
		{
			Name: "granted pages count as covered", Package: "internal/stream/core", Run: "^TestGrantedPagesAreNotCovered$",
			Edits: []Edit{{"internal/stream/core.(*coverage).begin", "	c.ranges.onGrant = append(c.ranges.onGrant, c.open.add)\n", ""}},
		},
		{
			Name: "an idle stream keeps its magazines", Package: "internal/stream/core", Run: "^TestAnIdleCoreDecays$",
			Edits: []Edit{{"internal/stream/core.(*Core).Decay", "runs = c.Release(^uint32(0), covered)", "runs = c.takeOut(^uint32(0), covered)"}},
		},
		{
			Name: "a captured stream is recorded on", Package: "internal/acceptance", Run: "^TestFreesDuringACapture$",
			Edits: []Edit{{"streams.(*cudaStream).captured", "return err == nil && status != cudadrv.CaptureNone, err", "return err == nil && status > cudadrv.CaptureInvalidated, err"}},
		},
		{
			Name: "memory that shall be zero is not", Package: "streams", Run: "^TestZeroIsOneMemset$",
			Edits: []Edit{{"streams.(*Stream).finish", "if !want.Zero || b.bytes == 0 {", "if !want.Zero || b.bytes >= 0 {"}},
		},
	}
}
