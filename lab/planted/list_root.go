package planted

// rootBugs are those that tests of the whole device find.
func rootBugs() []Bug {
	return []Bug{
		{
			Name: "statistics forget the pool after Close", Package: "internal/acceptance", Run: "^TestStatsAfterClose$",
			Edits: []Edit{{"vram.(*Device).closeEngine", "	_, _ = e.pool.Snapshot(context.Background()) // for Stats: see engine.books\n", ""}},
		},
		{
			Name: "a change forgets the tuning", Package: "internal/acceptance", Run: "^TestReconfigureReplacesTheTuning$",
			Edits: []Edit{{"vram.(*Settings).appliedTo", "	set(&c.Tuning, s.Tuning)\n", ""}},
		},
		{
			Name: "parts of a refused batch count as live", Package: "internal/acceptance", Run: "^TestWhatIsRefusedNeverLived$",
			Edits: []Edit{{"internal/stream/core.(*Core).AllocMany", "	c.usage.noteUse() // whether", "	c.usage.notePeak() // whether"}},
		},
		{
			Name: "what a stream asks for counts as live", Package: "internal/acceptance", Run: "^TestWhatIsRefusedNeverLived$",
			Edits: []Edit{{"streams.(*claim).refill", "LiveBytes: s.state.core.LiveBytes(), OpenBytes: s.state.core.OpenBytes(),", "LiveBytes: s.state.core.LiveBytes(),"}},
		},
		{
			Name: "parts of a batch that waits are somebody's", Package: "internal/acceptance", Run: "^TestWhatIsRefusedNeverLived$",
			Edits: []Edit{{"internal/stream/core.(*Parts).add", "			p.units.Add(by * s[i].units)\n", ""}},
		},
		{
			Name: "a peak that starts anew begins with what was freed", Package: "internal/acceptance", Run: "^TestPeaksOfWhatWasJustFreed$",
			Edits: []Edit{{"internal/stream/core.(*usage).resetPeak", "u.givenPeak.Reset(int64(givenUnits))", "u.givenPeak.Reset(int64(max(givenUnits, u.ranges.usedUnits())))"}},
		},
		{
			Name: "the pool is not told what lives when peaks start anew", Package: "internal/acceptance", Run: "^TestPeaksOfWhatWasJustFreed$",
			Edits: []Edit{{"vram.(*Device).ResetPeaks", "	liveBytes, pendingBytes := liveOf(ctx, open)\n", "	_, pendingBytes := liveOf(ctx, open)\n	var liveBytes map[poolcore.Client]int64\n"}},
		},
		{
			Name: "a number of bytes wraps where it becomes pages", Package: "pool", Run: "^TestPagesForSizesAtTheEndsOfNumbers$",
			Edits: []Edit{{"pool.(*arena).pagesFor", "	if bytes > a.bytes {", "	if bytes > bytes {"}},
		},
		{
			Name: "a stream that opens during a change keeps the old settings", Package: "internal/acceptance", Run: "^TestAStreamThatOpensDuringAChange$",
			Edits: []Edit{{"vram.(*Device).openBy", "	d.applyTo(control, c)\n", ""}},
		},
		{
			Name: "a device that is closed is started once more", Package: "internal/acceptance", Run: "^TestAFirstUseThatFailsDuringClose$",
			Edits: []Edit{{"vram.(*Device).begin", "d.started.CompareAndSwap(s, nil)", "d.started.Store(nil)"}},
		},
		{
			Name: "an event that is posted while the last ends is never called", Package: "internal/acceptance", Run: "^TestAnEventThatIsPostedAtTheEnd$",
			Edits: []Edit{{"vram.(*notices).collect", "		if n.top.CompareAndSwap(&busy, nil) {\n			return false\n		}", "		n.top.Store(nil)\n		return false"}},
		},
	}
}
