package planted

// streamBugs are those of streams and their core.
func streamBugs() []Bug {
	return []Bug{
		{
			Name: "an order is answered before its memory has gone", Package: "streams", Run: "^TestAnOrderIsAnsweredWhenItsMemoryHasGone$",
			Edits: []Edit{{"streams.(*effects).giveBack", "	defer e.reply(nil)\n", "	e.reply(nil)\n"}},
		},
		{
			Name: "idle spans keep pages over the budget", Package: "streams/core", Run: "^TestIdleSpansGoWhereTheirPagesAreOverTheBudget$",
			Edits: []Edit{{"streams/core.(*Core).Tick", "if c.spans.units > 0 && c.limits.overBytes() > 0 {", "if c.spans.units > 0 && c.limits.overBytes() < 0 {"}},
		},
		{
			Name: "a device is closed while a stream is made", Package: ".", Run: "^TestAStreamThatLosesAgainstCloseIsDestroyed$",
			Edits: []Edit{{"vram.(*guests).close", "	for g.count.Load() > 0 {", "	for g.count.Load() > 0 && !g.closed.Load() {"}},
		},
		{
			Name: "idle spans stay where the pool is asked", Package: "streams/core", Run: "^TestIdleSpansGoBackBeforeThePoolIsAsked$",
			Edits: []Edit{{"streams/core.(*room).make", "	r.spans.retireIdle() // else", "	// else"}},
		},
		{
			Name: "the fence is taken before the memory", Package: "internal/simulation", Run: "^TestNoPromiseIsBroken",
			Edits: []Edit{
				{"streams/stream.go", "	ref      *actors.Ref\n", "	early    fence.Mark\n	ref      *actors.Ref\n"},
				{
					"streams.(*Stream).Asked", "	s.ref.Call(&asked{stream: s, runsGranted: runsGranted})",
					"	s.early, _ = s.fences.Record(s.handle)\n	s.ref.Call(&asked{stream: s, runsGranted: runsGranted})",
				},
				{
					"streams.(*Stream).mark", "	err = s.guard(func() (err error) {\n		mark, err",
					"	if !s.early.Zero() {\n		mark, s.early = s.early, fence.Mark{}\n		return mark, nil\n	}\n	err = s.guard(func() (err error) {\n		mark, err",
				},
			},
		},
		{
			Name: "a single run goes back without a fence", Package: "streams", Run: "^TestPagesWithoutAFenceStayWithTheirStream$",
			Edits: []Edit{{"streams.(*giving).number", "case len(r.Runs) == 0 || s.synced.Load():", "case len(r.Runs) < 2 || s.synced.Load():"}},
		},
		{
			Name: "a grant is lost while others wait", Package: "internal/simulation", Run: "^TestNoPromiseIsBroken",
			Edits: []Edit{{"streams.(*Stream).granted", "	if r != nil {\n		r.serve(s)", "	if r != nil && len(s.waiting) == 0 {\n		r.serve(s)"}},
		},
		{
			Name: "magazines keep their part under pressure", Package: "streams/core", Run: "^TestPressureEmptiesMagazines$|^TestKeptBlocksFollowTheReference$",
			Edits: []Edit{{"streams/core.(*Core).Tick", "	c.retention.shrink()\n", ""}},
		},
		{
			Name: "a cancelled request keeps its block", Package: "streams", Run: "^TestCancelWhenTheBlockIsTaken$",
			Edits: []Edit{{"streams.(*request).complete", "s.core.Undo(slot) // cancelled meanwhile", "_ = slot"}},
		},
		{
			Name: "a cancelled batch keeps half", Package: "streams", Run: "^TestABatchThatIsCancelledInItsTurn$",
			Edits: []Edit{{
				"streams.(*batching).drop", "for i := range r.dst {\n		if slot := r.dst[i].slot; slot != nil {\n			s.core.",
				"for i := range r.dst[len(r.dst)/2:] {\n		if slot := r.dst[i].slot; slot != nil {\n			s.core.",
			}},
		},
		{
			Name: "the budget counts what is kept twice", Package: "streams/core", Run: "^TestCheckSeesWhatIsWrong$|^TestLengthThatComesBackIsKept$",
			Edits: []Edit{{"streams/core.(*retention).keep", "r.units += uint64(units)", "r.units += 2 * uint64(units)"}},
		},
		{
			Name: "lanes are not asked back", Package: "streams", Run: "^TestLaneIsAskedBack$",
			Edits: []Edit{{"streams.(*Stream).surrender", "	s.core.AskLanes()\n	r := ", "	r := "}},
		},
		{
			Name: "the background records on adopted handles", Package: "streams", Run: "^TestTheBackgroundMakesNoCallOnAnAdoptedHandle$",
			Edits: []Edit{{"streams.(*Stream).covered", "return s.adopted && !caller && ", "return false && "}},
		},
		{
			Name: "what comes home behind a fence counts as covered", Package: "streams/core", Run: "^TestOnlyCoveredPagesLeave$",
			Edits: []Edit{{"streams/core.(*coverage).Covered", "c.sealed.clear()", "c.sealed.clear(); c.open.clear()"}},
		},
		{
			Name: "granted pages count as covered", Package: "streams/core", Run: "^TestGrantedPagesAreNotCovered$",
			Edits: []Edit{{"streams/core.(*coverage).begin", "	c.ranges.onGrant = append(c.ranges.onGrant, c.open.add)\n", ""}},
		},
		{
			Name: "an idle stream keeps its magazines", Package: "streams/core", Run: "^TestAnIdleCoreDecays$",
			Edits: []Edit{{"streams/core.(*Core).Decay", "runs = c.Release(^uint32(0), covered)", "runs = c.takeOut(^uint32(0), covered)"}},
		},
		{
			Name: "a captured stream is recorded on", Package: ".", Run: "^TestFreesDuringACapture$",
			Edits: []Edit{{"streams.(*Stream).uncaptured", "captured := err == nil && status != cudadrv.CaptureNone ||", "captured := err == nil && status > cudadrv.CaptureInvalidated ||"}},
		},
		{
			Name: "memory that shall be zero is not", Package: "streams", Run: "^TestZeroIsOneMemset$",
			Edits: []Edit{{"streams.(*Stream).finish", "if !want.Zero || b.bytes == 0 {", "if !want.Zero || b.bytes >= 0 {"}},
		},
	}
}
