package planted

func graphMemory() Promise {
	return Promise{"a graph holds the memory and the modules that it uses until its last launch has finished", []Bug{
		{
			Name: "a graph does not announce its use of a buffer", Package: "cuda", Run: "^TestAGraphKeepsFreedBuffers$",
			Edits: []Edit{{"cuda.(*capture).touch", "if err := p.keep(b); err != nil {", "if err := error(nil); err != nil {"}},
		},
		{
			Name: "fences of a hold pass", Package: "cuda", Run: "^TestAGraphKeepsFreedBuffers$",
			Edits: []Edit{{"streams.Submitter.NewHold", "\ts.cuda.held.Store(true)\n", ""}},
		},
		{
			Name:    "a branch of a capture gets memory of a free that it does not follow",
			Package: "cuda", Run: "^TestBranchesUseMemoryAgainBehindAJoin$",
			Edits: []Edit{{"cuda.(*capture).take", "|| !p.order.free(stream, memory)", ""}},
		},
		{
			Name:    "work of a branch may be before the allocation of its buffer",
			Package: "cuda", Run: "^TestABranchIsBehindTheAllocationOfItsBuffers$",
			Edits: []Edit{{"cuda.(*capture).touch", "!p.order.behind(stream, one.by, one.count)", "false"}},
		},
		{
			Name: "a hold ends before its last launch has finished", Package: "cuda", Run: "^TestAGraphIsClosedWhileItRuns$",
			Edits: []Edit{{"streams.Hold.End", "failed = errors.Join(failed, h.s.WaitStream(s))", "_ = s"}},
		},
		{
			Name: "a module unloads while a graph has its kernel", Package: "cuda", Run: "^TestWhatAGraphNeedsStays$",
			Edits: []Edit{{"cuda.(*Module).Unload", "m.graphs.Load() > 0", "false"}},
		},
		{
			Name:    "a captured copy of pageable memory has none at the launch",
			Package: "cuda", Run: "^TestAGraphCopiesPageableMemory$",
			Edits: []Edit{
				{
					"cudadrv/sim.(*gpu).submit",
					"w.pageable = w.host != nil",
					"w.pageable = st.capture == nil && w.host != nil",
				},
			},
		},
		{
			Name: "sleep does not wait for work", Package: "cuda/sleep", Run: "^TestSleepIsBehindWorkOfEveryStream$",
			Edits: []Edit{{"streams.Sleeper.Settle", "if users == nil {", "if users == nil || true {"}},
		},
		{
			Name: "saved contents stay after a wake", Package: "cuda/sleep", Run: "^TestContentsComeBack$",
			Edits: []Edit{{"cuda/sleep.(*Arena).Wake", "\ta.dropSaved()\n", ""}},
		},
	}}
}
