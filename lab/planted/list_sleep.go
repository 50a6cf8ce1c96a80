package planted

// sleepBugs are those of memory that goes back to the driver while its buffers live.
func sleepBugs() []Bug {
	const pkg, books = "cuda/sleep", "internal/pool/memory"
	return []Bug{
		{
			Name: "bytes of a freed buffer that a graph holds are lost in a sleep", Package: pkg, Run: "^TestContentsThatOnlyAGraphHoldsComeBack$",
			Edits: []Edit{{"streams.Sleeper.Contents", "		x.s.turn.state.core.Pending(add)\n", ""}},
		},
		{
			Name: "the checker forgets who had memory that slept", Package: pkg, Run: "^TestContentsThatOnlyAGraphHoldsComeBack$",
			Edits: []Edit{{"cudadrv/hazard/internal/core.(*Core).Unmapped", "		c.slept(piece.start, piece.end, at.buffer)\n", ""}},
		},
		{
			Name: "work passes a shut gate", Package: pkg, Run: "^TestAllWorkIsRefused$",
			Edits: []Edit{{"streams.(*gate).enter", "g.word.Add(1) >= shutBit", "g.word.Add(1) < 0"}},
		},
		{
			Name: "sleep does not wait for a launch that has begun", Package: pkg, Run: "^TestALaunchThatHasBegunHoldsUpSleep$",
			Edits: []Edit{{"streams.(*gate).shut", "for g.word.Load() != shutBit {", "for false {"}},
		},
		{
			Name: "a sleep that has failed leaves the gate shut", Package: pkg, Run: "^TestNoMemoryOfTheHost$",
			Edits: []Edit{{"cuda/sleep.(*Arena).Sleep", "		a.memory.Open()\n", ""}},
		},
		{
			Name: "sleep does not wait for work", Package: pkg, Run: "^TestSleepIsBehindWorkOfEveryStream$",
			Edits: []Edit{{"streams.Sleeper.Settle", "if users == nil {", "if users == nil || true {"}},
		},
		{
			Name: "sleep waits for one stream alone", Package: pkg, Run: "^TestSleepIsBehindWorkOfEveryStream$",
			Edits: []Edit{{"streams.Sleeper.Settle", "range *users {", "range (*users)[1:] {"}},
		},
		{
			Name: "the wait for work does not end with its context", Package: pkg, Run: "^TestTheContextEndsTheWaitForWork$",
			Edits: []Edit{{"streams.(*cudaStream).settle", "	case <-ctx.Done():\n", "	case <-context.Background().Done():\n"}},
		},
		{
			Name: "a launch of a graph does not look whether its buffers sleep", Package: pkg, Run: "^TestGraphsOfASleepingArena$",
			Edits: []Edit{{"streams.(*Crossing).BeforeStream", "c.gates.enter(home.cuda.gate)", "error(nil)"}},
		},
		{
			Name: "a capture touches a buffer that sleeps", Package: pkg, Run: "^TestGraphsOfASleepingArena$",
			Edits: []Edit{{"cuda.(*capture).touch", "streams.Asleep(home)", "false"}},
		},
		{
			Name: "memory of an arena lies in handles of others", Package: pkg, Run: "^TestHandlesHoldNothingElse$",
			Edits: []Edit{{"internal/pool/core.(*answers).grantFree", "if r.way != nil {", "if false {"}},
		},
		{
			Name: "pages leave an arena", Package: pkg, Run: "^TestPagesStayInTheArena$",
			Edits: []Edit{{"streams.Submitter.NewSleeper", "Keep(true)", "Keep(false)"}},
		},
		{
			Name: "the first block alone comes back", Package: pkg, Run: "^TestRandomPrograms$",
			Edits: []Edit{{"cuda/sleep.(*Arena).restore", "range a.saved {", "range a.saved[:min(1, len(a.saved))] {"}},
		},
		{
			Name: "pieces that are not side by side are joined", Package: pkg, Run: "^TestContentsComeBack$",
			Edits: []Edit{{"cuda/sleep.(*chunk).add", "last.at+cudadrv.Ptr(last.bytes) == at", "last.at < at"}},
		},
		{
			Name: "saved contents stay after a wake", Package: pkg, Run: "^TestContentsComeBack$",
			Edits: []Edit{{"cuda/sleep.(*Arena).Wake", "	a.dropSaved()\n", ""}},
		},
		{
			Name: "a wake that has failed keeps its memory", Package: pkg, Run: "^TestTheContextEndsBetweenBlocks$",
			Edits: []Edit{{"cuda/sleep.(*Arena).Wake", "errors.Join(a.failed(doing, err), a.release(ctx))", "a.failed(doing, err)"}},
		},
		{
			Name: "memory goes while a copy may be under way", Package: pkg, Run: "^TestEveryCallFails$",
			Edits: []Edit{{"cuda/sleep.(*Arena).awaitCopies", "a.copying = err != nil", "a.copying = false"}},
		},
		{
			Name: "work is not behind a copy whose end is not known", Package: pkg, Run: "^TestEveryCallFails$",
			Edits: []Edit{{"streams.(*Crossing).waitHome", "g != nil && !g.copies.Load()", "g != nil"}},
		},
		{
			Name: "a wake passes the limit", Package: pkg, Run: "^TestTheLimitLeavesNoRoomToWake$",
			Edits: []Edit{{"internal/pool/core.wakeWay.climb", "s.settings.LimitBytes", "1<<50"}},
		},
		{
			Name: "a wake asks nobody for memory", Package: pkg, Run: "^TestTheLimitLeavesNoRoomToWake$",
			Edits: []Edit{{"internal/pool/core.wakeWay.climb", "return cl.id != r.client", "return false"}},
		},
		{
			Name: "a wake that the driver refuses is not tried again", Package: pkg, Run: "^TestAWakeReleasesFreeMemory$",
			Edits: []Edit{{"internal/pool/core.wakeWay.climb", "r.refusals == wakeTries", "r.refusals > 0"}},
		},
		{
			Name: "a wake that fails leaves a part awake", Package: books, Run: "^TestASleepFailsAnywhere$",
			Edits: []Edit{{"internal/pool/memory.waking.finish", "		m.PlanSleep(&out.Undo, b.client)\n", ""}},
		},
		{
			Name: "memory that sleeps counts as reserved", Package: books, Run: "^TestOnlyWholeHandlesOfOneClientSleep$",
			Edits: []Edit{{"internal/pool/memory.sleeping.finish", "			m.reservedBytes -= m.Bytes(h.run.Pages)\n", ""}},
		},
		{
			Name: "a handle sleeps that others have pages of", Package: books, Run: "^TestOnlyWholeHandlesOfOneClientSleep$",
			Edits: []Edit{{"internal/pool/memory.(*Memory).eachHandle", "h.run.First == at && m.LentTo(h.run, id)", "h.run.First == at"}},
		},
		{
			Name: "pages without memory are free", Package: books, Run: "^TestSleepingPagesAreFreed$",
			Edits: []Edit{{"internal/pool/memory.sleep.free", "if m.handleOf[number].asleep {", "if false {"}},
		},
		{
			Name: "a pool that closes takes back memory that sleeps", Package: books, Run: "^TestSleepingPagesAreFreed$",
			Edits: []Edit{{"internal/pool/memory.(*Memory).PlanClose", "if m.sleepers != nil {", "if false {"}},
		},
		{
			Name: "the checker forgets whose memory was mapped again", Package: "cudadrv/hazard/internal/core", Run: "^TestMemorySleeps$",
			Edits: []Edit{{"cudadrv/hazard/internal/core.(*Core).SleepEnded", "piece.cell.buffer, piece.cell.managed = o.by, true", "_ = o"}},
		},
	}
}
