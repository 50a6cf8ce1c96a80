package planted

// statsBugs are those of the statistics, and of the packages that show them.
func statsBugs() []Bug {
	return []Bug{
		{
			Name: "frees of a slot count at the size that it serves last", Package: "internal/acceptance", Run: "^TestCountsBySize$",
			Edits: []Edit{{"internal/stream/magazine.(*register).refit", "	r.carried[SizeOf(s.Units)] += n\n	r.carried[SizeOf(units)] -= n\n", "	_ = n\n"}},
		},
		{
			Name: "a refused free is counted for the stream alone", Package: "internal/acceptance", Run: "^TestCountsOfWhatCameToNothing$",
			Edits: []Edit{{"pool.(*Tally).BadFree", "	for ; t != nil; t = t.device {\n		t.badFrees.Add(1)\n	}\n", "	t.badFrees.Add(1)\n"}},
		},
		{
			Name: "a driver call that failed counts as one that did not", Package: "internal/acceptance", Run: "^TestDriverCallsByName$",
			Edits: []Edit{{"cudadrv/internal/intercept.(*Device).do", "	failed = err != nil\n", "	failed = false\n"}},
		},
		{
			Name: "a measurement restarts the peaks of the program", Package: "internal/acceptance", Run: "^TestMeasure$",
			Edits: []Edit{{"internal/watermark.(*Mark).closeEpoch", "	m.older = max(m.older, m.epoch)\n", "	m.older = 0\n"}},
		},
		{
			Name: "a reset of the peaks ends the measurements", Package: "internal/acceptance", Run: "^TestMeasure$",
			Edits: []Edit{{"internal/watermark.(*Mark).Reset", "	m.closeEpoch(present)\n", "	m.epoch = present\n"}},
		},
		{
			Name: "a wait is in the bucket below its own", Package: "internal/acceptance", Run: "^TestWaitsByDuration$",
			Edits: []Edit{{"pool.(*durations).NoteWait", "DurationBuckets-1)]", "DurationBuckets-1)-1]"}},
		},
		{
			Name: "a stream that has ended is no part of the peak", Package: "internal/acceptance", Run: "^TestThePeakOfAStreamThatHasEnded$",
			Edits: []Edit{{"vram.(*Device).forget", "				d.gonePeak.Raise(last.PeakLiveBytes)\n", ""}},
		},
		{
			Name: "a reading of the counts may be below the one before", Package: "internal/acceptance", Run: "^TestCountersNeverGoBack$",
			Edits: []Edit{{"internal/stream/core.raise", "	if int64(reading) > int64(*greatest) {", "	if int64(reading) >= 0 {"}},
		},
		{
			Name: "what the driver served is subtracted from what the streams counted earlier", Package: "internal/acceptance", Run: "^TestCountersNeverGoBack$",
			Edits: []Edit{{
				"vram.(*Stats).countPool", "	s.Waits, s.ReclaimCount = WaitStats(p.Waits), p.ReclaimCount\n",
				"	s.Waits, s.ReclaimCount = WaitStats(p.Waits), p.ReclaimCount\n" +
					"	all := s.PoolHits + s.DriverMisses\n	s.DriverMisses = min(p.DriverGrants, all)\n	s.PoolHits = all - s.DriverMisses\n",
			}},
		},
		{
			Name: "statistics that are off forget the counts", Package: "internal/acceptance", Run: "^TestCountersStayWhileStatisticsAreOff$",
			Edits: []Edit{{"vram.(*Device).read", "		s.recall(e, r.open)\n", ""}},
		},
		{
			Name: "a difference keeps the longest free range", Package: "internal/acceptance", Run: "^TestADifferenceOfStates$",
			Edits: []Edit{{"vram.(*Stats).bytes", "&s.NeighbourBytes, &s.LargestFreeBytes,", "&s.NeighbourBytes,"}},
		},
		{
			Name: "a difference has the longest wait of all", Package: "internal/acceptance", Run: "^TestTheLongestWaitOfADifference$",
			Edits: []Edit{{"vram.longestSince", "	if longest > before {", "	if longest >= before {"}},
		},
		{
			Name: "two tenants have one label", Package: "monitor/metrics", Run: "^TestTenantsHaveLabelsOfTheirOwn$",
			Edits: []Edit{{"monitor/metrics.labelOf", "utf8.ValidString(name) && !strings.HasPrefix(name, `\"`)", "utf8.ValidString(name) || strings.HasPrefix(name, `\"`)"}},
		},
		{
			Name: "buckets come with the first wait", Package: "monitor/metrics", Run: "^TestTenantsHaveLabelsOfTheirOwn$",
			Edits: []Edit{{"monitor/metrics.emitter.durations", "h.Bound(i) > 0; i++", "i < len(h.Counts) && h.Bound(i) > 0; i++"}},
		},
		{
			Name: "a negative bound of streams ends the process", Package: "monitor/metrics", Run: "^TestANegativeBoundMeansNone$",
			Edits: []Edit{{"monitor/metrics.bound", "	return max(most, 0)\n", "	return most\n"}},
		},
		{
			Name: "a metric of bytes is 0 while statistics are off", Package: "monitor/metrics", Run: "^TestMetricsWithStatisticsOff$",
			Edits: []Edit{{"monitor/metrics.(*Collector).Collect", "s.Level != vram.StatsOff", "s.Level != 99"}},
		},
		{
			Name: "a buffer is an empty object in JSON", Package: "internal/acceptance", Run: "^TestHandlesAsJSON$",
			Edits: []Edit{{"streams.Buffer.MarshalText", "[]byte(b.String()), nil", "[]byte(\"{}\"), nil"}},
		},
		{
			Name: "an error in the field of another is an object in JSON", Package: "compute/ops", Run: "^TestJSON$",
			Edits: []Edit{{"internal/jsonform.Error", "return err.Error()", "return err"}},
		},
		{
			Name: "a number that JSON does not have is written as one", Package: "internal/acceptance", Run: "^TestTheJSONOfAnError$",
			Edits: []Edit{{"vram.(*ConfigError).MarshalJSON", "math.IsNaN(v) || ", ""}},
		},
		{
			Name: "metrics of two devices have one name", Package: "monitor/metrics", Run: "^TestMetricsOfTwoDevices$",
			Edits: []Edit{{"monitor/metrics.NewWith", "strconv.Itoa(device.Ordinal())", "strconv.Itoa(0 * device.Ordinal())"}},
		},
		{
			Name: "a batch's message does not book its blocks", Package: "streams", Run: "^TestPartsOfABatchOnItsWay$",
			Edits: []Edit{{"streams.(*Stream).batchNow", "		bookParts(s.parts, dst)\n", ""}},
		},
		{
			Name: "a turn does not book the blocks of a batch that misses others", Package: "streams", Run: "^TestPartsOfABatchAreNobodys$",
			Edits: []Edit{{"streams.(*Stream).batchTurn", "	if !whole {\n		book()\n	}\n", ""}},
		},
		{
			Name: "the blocks of a batch that fails count as freed", Package: "streams", Run: "^TestAPanicCountsNoParts$",
			Edits: []Edit{{"streams.(*several).fail", "			r.stream.parts.Drop(units)\n", "			_ = units\n"}},
		},
		{
			Name: "a batch forgets that a reading has counted its blocks", Package: "streams", Run: "^TestAReadingThatSawParts$",
			Edits: []Edit{{"streams.(*several).putBack", "if r.counted {", "if r.counted && s == nil {"}},
		},
		{
			Name: "parts of batches are live bytes", Package: "streams", Run: "^TestPartsOfABatchAreNobodys$",
			Edits: []Edit{{"internal/stream/core.(*Core).Snapshot", "		z.LiveBytes -= parts.units.Load() << sizeclass.UnitShift\n", ""}},
		},
	}
}
