package planted

// adviceBugs are those of what is said of traces: their analysis, the advice on them, comparisons, drawings and snapshots.
func adviceBugs() []Bug {
	return []Bug{
		{
			Name: "a long integer loses the byte of its sign", Package: "internal/pickle", Run: "^TestEachValueHasItsOperation$",
			Edits: []Edit{{"internal/pickle.(*encoder).long", " && digits[last-1]&0x80 == sign", " && sign >= 0"}},
		},
		{
			Name: "a list is added in one piece", Package: "internal/pickle", Run: "^TestLongListsComeInPieces$",
			Edits: []Edit{{"internal/pickle.(*encoder).list", "open == batch", "open < 0"}},
		},
		{
			Name: "a free of memory that is in use fits into a history", Package: "monitor/snapshot", Run: "^TestCheckFinds$",
			Edits: []Edit{{"monitor/snapshot.(*rewind).takeBack", "if active {", "if false {"}},
		},
		{
			Name: "segments that overlap are shown", Package: "monitor/snapshot", Run: "^TestCheckFinds$",
			Edits: []Edit{{"monitor/snapshot.checkSegments", "s.Address < ends[s.Device]", "false"}},
		},
		{
			Name: "neighbours are not joined when an unmapping is taken back", Package: "monitor/snapshot", Run: "^TestHistoriesFit$",
			Edits: []Edit{{"monitor/snapshot.(*rewind).remap", "w.mapped[i-1].to == x.from && ", "false && "}},
		},
		{
			Name: "a freed buffer stays live in a recording", Package: "lab/replay/recorder", Run: "^TestAFailureIsRecorded$",
			Edits: []Edit{{"lab/replay/recorder.(*Recorder).freed", "delete(r.live, uint64(e.Ptr))", ""}},
		},
		{
			Name: "a replay maps ahead no demands of its options", Package: "lab/replay", Run: "^TestDemandsAreMappedAhead$",
			Edits: []Edit{{"lab/replay.(*session).warm", "len(want) == 0 && !o.Warm", "!o.Warm"}},
		},
		{
			Name: "a buffer counts with the stream that frees it", Package: "lab/analysis", Run: "^TestManyStreams$",
			Edits: []Edit{{"lab/analysis.streamsOf", "owner := all[e.ID].stream", "owner := e.Stream"}},
		},
		{
			Name: "the shortest distance is the step", Package: "lab/analysis", Run: "^TestRecordedTraces$",
			Edits: []Edit{{"lab/analysis.strongest", "weight > bestWeight", "bestWeight == 0"}},
		},
		{
			Name: "a buffer that is held counts with the long-lived ones", Package: "lab/analysis", Run: "^TestSumsHold$",
			Edits: []Edit{{"lab/analysis.(*Lifetimes).classOf", "return held", "return long"}},
		},
		{
			Name: "a floor that rises a little less counts as growth no more", Package: "lab/analysis", Run: "^TestALeak$",
			Edits: []Edit{{"lab/analysis.rising", "floors[i+1].bytes > floors[i].bytes", "floors[i+1].bytes > 2*floors[i].bytes"}},
		},
		{
			Name: "a warm-up is recommended that no trial favoured", Package: "lab/advice", Run: "^TestAWarmUpMustHelp$",
			Edits: []Edit{{"lab/advice.effect.starts", "e.once >= leastNet && ", ""}},
		},
		{
			Name: "a limit is recommended under which allocations failed", Package: "lab/advice", Run: "^TestALimitMustHold$",
			Edits: []Edit{{"lab/advice.limit", " && t.trial.FailedCount == 0", ""}},
		},
		{
			Name: "a limit is recommended that holds in the recorded order alone", Package: "lab/advice", Run: "^TestALimitMustHold$",
			Edits: []Edit{{"lab/advice.limit", " && t.failedCount <= 0", ""}},
		},
		{
			Name: "a limit that brings nothing hides its price", Package: "lab/advice", Run: "^TestALimitMustHold$",
			Edits: []Edit{{"lab/advice.limit", "r.Gain, r.Price = s.differences", "r.Gain, _ = s.differences"}},
		},
		{
			Name: "half a millisecond is worth any memory", Package: "lab/advice", Run: "^TestTheModeFollowsFromTheTrials$",
			Edits: []Edit{{"lab/advice.effect.lasting", "return e.memory + timeWeight*e.each", "return max(e.memory, timeWeight*e.each)"}},
		},
		{
			Name: "a change stays that the whole is worse with", Package: "lab/advice", Run: "^TestTheWholeIsTried$",
			Edits: []Edit{{"lab/advice.(*builder).thin", "!b.taken[i].keep(b.scale.effect(&t, &b.trial))", "false"}},
		},
		{
			Name: "a limit stays that failed in parallel without a dropped change", Package: "lab/advice", Run: "^TestALimitMustHoldInTheWhole$",
			Edits: []Edit{{"lab/advice.(*builder).settle", "err != nil || failedCount <= 0", "err != nil || failedCount >= 0"}},
		},
		{
			Name: "what comes before the first spike is a stretch to release memory in", Package: "lab/advice", Run: "^TestTheQuietStretch$",
			Edits: []Edit{{"lab/advice.quietest", "q.from > 0 && ", ""}},
		},
		{
			Name: "memory of a spike is kept without a word", Package: "lab/advice", Run: "^TestASpike$",
			Edits: []Edit{{"lab/advice.tryQuiet", "s.config.ReleaseAfter = tick", "s.config.ReleaseAfter = 0"}},
		},
		{
			Name: "a bound of caches is recommended at the price of driver calls", Package: "lab/advice", Run: "^TestACacheBoundMustHelp$",
			Edits: []Edit{{"lab/advice.cacheBound", "e.pays() && e.net() > most", "e.memory > most"}},
		},
		{
			Name: "a race is won by its median alone", Package: "lab/advice", Run: "^TestARaceMustBeWon$",
			Edits: []Edit{{"lab/advice.raced", " && wins >= len(laps)-1", " && wins >= 0"}},
		},
		{
			Name: "a mode is recommended in which allocations failed", Package: "lab/advice", Run: "^TestTheModeFollowsFromTheTrials$",
			Edits: []Edit{{"lab/advice.scale.effect", "is.FailedCount > was.FailedCount", "false"}},
		},
		{
			Name: "both sides of a comparison play the first one's configuration", Package: "lab/compare", Run: "^TestTwoSides$",
			Edits: []Edit{{"lab/compare.Run", "options(side.setup, &o)", "options(&a, &o)"}},
		},
		{
			Name: "a comparison leaves the work behind the frees out", Package: "lab/compare", Run: "^TestWhatNeedsKernelsOrPauses$",
			Edits: []Edit{{"lab/compare.options", " Lag: o.Lag,", ""}},
		},
		{
			Name: "two configurations that come out the same are not named", Package: "lab/compare", Run: "^TestTheSameTwice$",
			Edits: []Edit{{"lab/compare.Run", "r.Identical = r.A.same(&r.B)", "r.Identical = false"}},
		},
		{
			Name: "a configuration sets a name twice", Package: "lab/compare", Run: "^TestWrongSetups$",
			Edits: []Edit{{"lab/compare.ParseSetup", "if seen[key] {", "if false {"}},
		},
		{
			Name: "a drawing has its texts as they are", Package: "lab/plot", Run: "^TestADrawing$",
			Edits: []Edit{{"lab/plot.(*canvas).text", "html.EscapeString(words)", "words"}},
		},
	}
}
