package planted

// useBugs are those of memory that several streams use.
func useBugs() []Bug {
	return []Bug{
		{
			Name: "a fence has its number from after its mark", Package: "internal/fence", Run: "^TestFenceCoversWhatCameBefore$",
			Edits: []Edit{{"internal/fence/line.(*Line).Begin", "return l.next.Add(1) - 1 }", "return l.next.Load() }"}},
		},
		{
			Name: "a look goes on behind a fence that has not passed", Package: "internal/fence", Run: "^TestNumbersPassWithWhatTheyCover$",
			Edits: []Edit{{"internal/fence.(*Timeline).Look", "			passed, err = t.ask(c, number)\n", "			passed, err = t.ask(c, number)\n			t.Pass(number)\n"}},
		},
		{
			Name: "a use is not noted", Package: "streams", Run: "^TestAnnouncedUseKeepsMemory$",
			Edits: []Edit{{"internal/stream/magazine.nextRecord", "return word | user | uint64(Announced), false, true", "return word | uint64(Announced), false, true"}},
		},
		{
			Name: "a second use is not noted", Package: "streams", Run: "^TestEachOfSeveralUsesKeepsMemory$",
			Edits: []Edit{{"internal/stream/magazine.(*Slot).Record", "s.noted().bits.Or(1 << number)", "s.noted().bits.Or(0)"}},
		},
		{
			Name: "a pile that others use is left in the list", Package: "internal/stream/magazine", Run: "^TestUsedSlotsWaitForAPile$",
			Edits: []Edit{{"internal/stream/magazine.(*Owner).Used", "top == 0 || pile && !o.home.isPile(top) {", "top == 0 || pile {"}},
		},
		{
			Name: "a use that is open counts as ended", Package: "streams", Run: "^TestUseEndsWithDone$",
			Edits: []Edit{{"internal/stream/magazine.(*Slot).TakeUses", "u.recorded.Load() || u.state.Load()&endedBit == 0", "u.recorded.Load()"}},
		},
		{
			Name: "a use ends by the fence of its free", Package: "streams", Run: "^TestUseEndsWithDone$",
			Edits: []Edit{{"internal/stream/magazine.(*Slot).TakeUses", "u.recorded.Load() || u.state.Load()&endedBit == 0", "true"}},
		},
		{
			Name: "a stream is said to wait that does not", Package: "internal/acceptance", Run: "^TestMemoryFreedBehindAWaitComesHomeAtOnce$",
			Edits: []Edit{{"streams.(*Stream).WaitStream", "s.cuda.follow(other.cuda.line, \"waiting for a stream\")", "other.cuda.line.TakeNow(), error(nil)"}},
		},
		{
			Name: "a wait covers uses behind it", Package: "internal/acceptance", Run: "^TestAWaitCoversWhatEndedBefore$",
			Edits: []Edit{{"internal/stream/core.(*inFlight).passed", "j.line == line && number <= j.number", "j.line == line"}},
		},
		{
			Name: "a wait covers uses of other streams", Package: "internal/acceptance", Run: "^TestAWaitCoversWhatEndedBefore$",
			Edits: []Edit{{"internal/stream/core.(*inFlight).passed", "j.line == line && number <= j.number", "number <= j.number"}},
		},
		{
			Name: "a buffer that was handed over is live", Package: "streams", Run: "^TestTransfer$",
			Edits: []Edit{{"internal/stream/magazine.matches", "return word>>flagBits == handle>>flagBits }", "return word>>generationShift == handle>>generationShift }"}},
		},
		{
			Name: "the receiver of a buffer does not wait", Package: "streams", Run: "^TestTransfer$",
			Edits: []Edit{{"internal/fence.(*Timeline).Order", "t.take(func(m Mark) error { return t.source.Precede(m, later) })", "t.take(func(Mark) error { return nil })"}},
		},
		{
			Name: "one use that has passed is enough", Package: "internal/stream/core", Run: "^TestPendingBlocksComeHomeWhenTheirUsesHavePassed$",
			Edits: []Edit{{"internal/stream/core.(*inFlight).pass", "b.left > 1 {", "b.slot == nil {"}},
		},
		{
			Name: "a request is refused though only fences keep memory", Package: "streams", Run: "^TestPendingMemoryIsWaitedForBeforeARefusal$",
			Edits: []Edit{{"streams.(*dispatcher).refuse", "!last && d.wiring.peers.anyPending()", "!last && !d.wiring.peers.anyPending()"}},
		},
		{
			Name: "what waits for fences has no bound", Package: "internal/stream/core", Run: "^TestSlackKeepsWithinItsBounds$",
			Edits: []Edit{{"internal/stream/core.(*Allowance).take", "sizeclass.UnitShift/slackShare-lent)", "sizeclass.UnitShift-lent)"}},
		},
		{
			Name: "what fences keep is nobody else's though they have passed", Package: "streams", Run: "^TestSlackEndsWhereOthersWantMemory$",
			Edits: []Edit{{"streams.(*reclaims).handle", "others && a.pages == 0", "!others && a.pages == 0"}},
		},
		{
			Name: "a handle of a move that has not ended can be looked up", Package: "internal/stream/magazine", Run: "^TestAMoveIsSettledWhenItsHolderStands$",
			Edits: []Edit{{"internal/stream/magazine.(*Slot).Settled", "return n != nil && n.moved.Load() == handle", "return n != nil"}},
		},
		{ // without the check of the books, which finds it first: by what Lookup answers
			Name: "the addresses of pages that were returned lead to buffers", Package: "lab/simulation", Run: "^TestNoPromiseIsBroken",
			Edits: []Edit{
				{"internal/stream/core.newDirectory", "	r.onReturn = append(r.onReturn, d.leavePages)\n", ""},
				{"internal/stream/core.(*directory).check", "return d.checkPages()", "return nil"},
			},
		},
		{
			Name: "a new budget does not count what was just freed", Package: "streams", Run: "^TestABudgetCountsWhatWasJustFreed$",
			Edits: []Edit{{"streams.(*turn).configure", "	t.state.core.Drain() // frees since", "	// frees since"}},
		},
		{
			Name: "a batch is counted by the turn that panicked, too", Package: "streams", Run: "^TestAPanicBehindACountedBatch$",
			Edits: []Edit{{"streams.(*Stream).batchTurn", "t.state.core.UnservedMany(f.byRanges)", "t.state.core.UnservedMany(0)"}},
		},
		{
			Name: "a use is ended by the fence before its last work", Package: "streams", Run: "^TestAUseWhoseFencePanicsEndsWithTheNext$",
			Edits: []Edit{{"streams.Use.Done", "number := u.line.Next()\n", "number := u.line.Next() - 1\n"}},
		},
		{
			Name: "a second user is announced before it is noted", Package: "internal/stream/magazine", Run: "^TestAUseIsNotedBeforeItIsAnnounced$",
			Edits: []Edit{{
				"internal/stream/magazine.(*Slot).Record", "			s.noted().bits.Or(1 << number)\n			return s.Announce(handle, Announced)\n",
				"			err := s.Announce(handle, Announced)\n			s.noted().bits.Or(1 << number)\n			return err\n",
			}},
		},
		{
			Name: "ticks take fences on streams of callers", Package: "streams", Run: "^TestTicksLeaveAdoptedStreamsAlone$",
			Edits: []Edit{{"streams.(*lentMemory).takeOwnFences", "		if !t.Lent() {\n", "		if t != nil {\n"}},
		},
	}
}
