package planted

// cudaBugs are those of work on streams, and of graphs.
func cudaBugs() []Bug {
	const pkg, kept = "cuda", "^TestAGraphKeepsFreedBuffers$"
	return []Bug{
		{
			Name: "a stale buffer is launched with", Package: pkg, Run: "^TestLaunchesAreRefused$",
			Edits: []Edit{{"streams.Submitter.Check", "!ok || !b.slot.Live(b.word)", "!ok"}},
		},
		{
			Name: "work is not behind that of the buffer's own stream", Package: pkg, Run: "^TestWorkOnBuffersOfOtherStreams$",
			Edits: []Edit{{"streams.(*Crossing).Before", "if err := c.waitHome(home); err != nil {", "if err := error(nil); err != nil {"}},
		},
		{
			Name: "work of other streams on a buffer is not counted", Package: pkg, Run: "^TestWorkOnBuffersOfOtherStreams$",
			Edits: []Edit{{"streams.(*Crossing).After", "Add(1)", "Add(0)"}},
		},
		{
			Name: "streams wait for each other without a common buffer", Package: pkg, Run: "^TestOtherBuffersAreNotWaitedFor$",
			Edits: []Edit{{"streams.Submitter.Check", "return !b.slot.Shared(), nil", "return false, nil"}, {"streams.(*Crossing).Before", "if !b.slot.Shared() {", "if false {"}},
		},
		{
			Name: "a graph does not announce its use of a buffer", Package: pkg, Run: kept,
			Edits: []Edit{{"cuda.(*capture).touch", "if err := b.RecordStream(p.pool.main.Stream()); err != nil {", "if err := error(nil); err != nil {"}},
		},
		{
			Name: "fences of a hold pass", Package: pkg, Run: kept,
			Edits: []Edit{{"streams.Submitter.NewHold", "	s.cuda.held.Store(true)\n", ""}},
		},
		{
			Name: "pages leave a hold", Package: pkg, Run: kept,
			Edits: []Edit{{"streams.Submitter.NewHold", "Keep(true)", "Keep(false)"}},
		},
		{
			Name: "branches of a capture share a hold", Package: pkg, Run: "^TestBranchesOfACapture$",
			Edits: []Edit{{"cuda.(*Pool).holdFor", "if c == p.on {", "if true {"}},
		},
		{
			Name: "a hold ends before its last launch has finished", Package: pkg, Run: "^TestAGraphIsClosedWhileItRuns$",
			Edits: []Edit{{"streams.Hold.End", "failed = errors.Join(failed, h.s.WaitStream(s))", "_ = s"}},
		},
		{
			Name: "a graph is not behind work that had its memory", Package: pkg, Run: "^TestAGraphIsBehindWorkThatHadItsMemory$",
			Edits: []Edit{{"cuda.(*Graph).before", "range g.holds {", "range g.holds[:0] {"}},
		},
		{
			Name: "work on a result of a graph is not in order with its launches", Package: pkg, Run: "^TestResultsOfAGraph$",
			Edits: []Edit{{"cuda.(*Graph).Launch", "range g.holds {", "range g.holds[:0] {"}},
		},
		{
			Name: "a capture is not seen by other contexts of its stream", Package: pkg, Run: "^TestContextsOfOneStream$",
			Edits: []Edit{{"streams.Submitter.Attached", "return *a", "return first()"}},
		},
		{
			Name: "a module goes while a graph has its kernel", Package: pkg, Run: "^TestWhatAGraphNeedsStays$",
			Edits: []Edit{{"cuda.(*Module).Unload", "m.graphs.Load() > 0", "false"}},
		},
		{
			Name: "the arguments of a kernel are not counted", Package: pkg, Run: "^TestLaunchesAreRefused$",
			Edits: []Edit{{"cuda.(*submission).place", "f.known && len(args) != len(f.params)", "f.known && len(args) > len(f.params)"}},
		},
		{
			Name: "a kernel with many parameters is launched with fewer", Package: pkg, Run: "^TestAKernelWithTooManyParameters$",
			Edits: []Edit{{"cuda.(*Module).Function", "f.known = true", "f.known = f.paramBytes <= maxParamBytes"}},
		},
		{
			Name: "an upload breaks a capture", Package: pkg, Run: "^TestBranchesOfACapture$",
			Edits: []Edit{{"cuda.(*Graph).Upload", "if c.capture.Load() != nil {", "if false {"}},
		},
		{
			Name: "graphs of a pool run at the same time", Package: pkg, Run: "^TestGraphsShareNothingButAPool$",
			Edits: []Edit{{"cuda.(*Graph).Launch", "	crossing.After()\n", ""}},
		},
		{
			Name: "a capture that fails keeps its memory", Package: pkg, Run: "^TestACaptureThatFailsLeavesNothing$",
			Edits: []Edit{{"cuda.(*Context).Capture", "err = errors.Join(err, pool.leave(nil))", "_ = pool"}},
		},
		{
			Name: "a zeroed buffer of a graph is zeroed once", Package: pkg, Run: "^TestAGraphZeroesItsMemoryAtEachLaunch$",
			Edits: []Edit{{"cuda.(*Context).AllocZeroed", "c.Fill8(Whole(b), 0)", "c.device.MemsetD8Async(b.Ptr(), 0, b.Bytes(), 0)"}},
		},
	}
}
