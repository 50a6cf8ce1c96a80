package planted

// captureBugs are those about streams that are being captured into graphs. The simulation finds most of them.
func captureBugs() []Bug {
	const run = "^TestNoPromiseIsBroken"
	return []Bug{
		{
			Name: "pages that a capture keeps are waited for", Package: "lab/simulation", Run: run,
			Edits: []Edit{{"streams.(*effects).record", "!errors.As(err, &captured) && h.", "(errors.As(err, &captured) || err != nil) && h."}},
		},
		{
			Name: "a captured stream is made to wait for another", Package: "lab/simulation", Run: run,
			Edits: []Edit{{"streams.(*cudaStream).precede", "err != nil {\n		return err", "err != nil && !h.adopted {\n		return err"}},
		},
		{
			Name: "a fence that a capture forbids counts as taken", Package: "lab/simulation", Run: run,
			Edits: []Edit{{
				"internal/fence.(*Timeline).take", "	if err != nil {\n		return 0, false, err\n	}\n	defer access",
				"	if err != nil {\n		t.Took(t.Begin())\n		return 0, false, err\n	}\n	defer access",
			}},
		},
		{
			Name: "a fence that a capture forbids counts as passed", Package: "lab/simulation", Run: run,
			Edits: []Edit{{
				"internal/fence.(*Timeline).take", "	if err != nil {\n		return 0, false, err\n	}\n	defer access",
				"	if err != nil {\n		number = t.Begin()\n		t.Took(number)\n		t.Pass(number)\n		return 0, false, err\n	}\n	defer access",
			}},
		},
		{
			Name: "what a capture has forbidden is blamed on it for ever", Package: "lab/simulation", Run: run,
			Edits: []Edit{{"streams.(*cudaStream).shortage", "h.forbiddenCalls.Load() != forbiddenCalls {", "h.forbiddenCalls.Load() != 0 {"}},
		},
		{
			Name: "the zeroing of a captured stream's memory is part of its graph", Package: "lab/simulation", Run: run,
			Edits: []Edit{{"streams.(*cudaStream).zero", "enter(\"cuMemsetD8Async\"); err != nil {", "enter(\"cuMemsetD8Async\"); err != nil && !h.adopted {"}},
		},
		{
			Name: "a look stops at a fence that went into a graph", Package: "internal/fence", Run: "^TestAFenceThatWentIntoAGraphIsOwedAgain$",
			Edits: []Edit{{"internal/fence.(*Timeline).Look", "		case errors.Is(err, ErrCaptured):\n			advanced = true\n", "		case errors.Is(err, ErrCaptured):\n			return advanced, err\n"}},
		},
		{
			Name: "a fence that went into a graph counts as taken", Package: "internal/fence", Run: "^TestAFenceThatWentIntoAGraphIsOwedAgain$",
			Edits: []Edit{{"internal/fence.(*Timeline).settle", "		t.Lose(number)\n", ""}},
		},
		{
			Name: "a fence of a graph that is complete is not known for one", Package: "internal/fence", Run: "^TestAFenceThatWentIntoAGraphIsOwedAgain$",
			Edits: []Edit{{"internal/fence.failed", "errors.Is(err, cudadrv.CapturedEvent) || errors.Is(err, cudadrv.InvalidValue)", "errors.Is(err, cudadrv.CapturedEvent)"}},
		},
		{
			Name: "nobody asks behind a record whether a capture has begun", Package: "internal/fence", Run: "^TestACaptureThatBeginsAtARecordGoesOn$",
			Edits: []Edit{{"internal/fence.(*Timeline).mark", "	if err := access.Check(); err != nil {", "	if err := error(nil); err != nil {"}},
		},
		{
			Name: "an order without room does not ask whether it may record", Package: "internal/fence", Run: "^TestAnOrderWithoutRoomAsksBeforeItRecords$",
			Edits: []Edit{{"internal/fence.(*Timeline).Order", "	access, err := t.enter()\n", "	access, err := Recording(unrestricted{}), error(nil)\n"}},
		},
		{
			Name: "the fence of a return is asked about though a capture may have it", Package: "internal/acceptance", Run: "^TestACaptureThatBeginsAtAFence$",
			Edits: []Edit{{"streams.(*cudaStream).record", "	if err = h.uncaptured(\"cuEventRecord\"); err != nil { // a capture", "	if err = nil; err != nil { // a capture"}},
		},
		{
			Name: "a capture begins while calls are made on its stream", Package: "lab/simulation", Run: run,
			Edits: []Edit{{"streams.Submitter.BeginCapture", "case !h.announcement.await(x.s.host):", "case false && !h.announcement.await(x.s.host):"}},
		},
		{
			Name: "a capture that is announced turns no call away", Package: "lab/simulation", Run: run,
			Edits: []Edit{{"streams.(*announcement).enter", "a.word.Add(1) < announcedBit", "a.word.Add(1) != 0"}},
		},
		{
			Name: "a launch waits for a fence that a capture has", Package: "cuda", Run: "^TestCapturesPastTheModule$",
			Edits: []Edit{{
				"streams.(*cudaStream).follows", "	m, err := other.record()\n",
				"	m, err := fence.Mark{}, error(nil)\n	err = other.guard(func() (err error) { m, err = other.fences.Record(other.stream); return err })\n",
			}},
		},
		{
			Name: "a stream whose join panicked is waited for", Package: "cuda", Run: "^TestAStreamWhoseJoinPanickedIsFree$",
			Edits: []Edit{{
				"cuda.(*capture).join", "			if !joined {\n",
				"			if p := recover(); p != nil {\n				panic(p)\n			}\n			if !joined {\n",
			}},
		},
		{
			Name: "a stream joins a capture while calls are made on it", Package: "cuda", Run: "^TestAJoiningStreamIsAnnounced$",
			Edits: []Edit{{
				"cuda.(*capture).join", "	return c.work.BeginCapture(func() error {", "	begin := func(f func() error) error { return f() }\n	return begin(func() error {",
			}},
		},
		{
			Name: "work that began before a capture becomes part of it", Package: "cuda", Run: "^TestACaptureBeginsBehindCalls$",
			Edits: []Edit{{"streams.Submitter.Enter", "		entered = h.announcement.enter()\n", "		entered = h.announcement.enter() || h.announcement.word.Add(1) != 0\n"}},
		},
		{
			Name: "a capture ends while work is submitted for it", Package: "cuda", Run: "^TestACaptureEndsBehindCalls$",
			Edits: []Edit{{"cuda.(*capture).settleStreams", "one.work.SettleCapture()", "_ = one"}},
		},
		{
			Name: "a blocking stream is captured while a call is made on the default stream", Package: "cuda", Run: "^TestABlockingStreamIsCaptured",
			Edits: []Edit{{"streams.Submitter.holdDefault", "	if !x.s.cuda.adopted {\n", "	if x.s.cuda.adopted {\n"}},
		},
		{
			Name: "the close of a device ends captures of others", Package: "cuda", Run: "^TestTheCloseOfADeviceSparesCapturesOfOthers$",
			Edits: []Edit{{"vram.(*Device).closeEngine", "holdCaptures(others)", "holdCaptures(others[:0])"}},
		},
		{
			Name: "a copy to the host is not waited for as a capture begins", Package: "cuda", Run: "^TestACaptureBeginsBehindCalls$",
			Edits: []Edit{{"cuda.(*Context).settled", "c.outside(\"a copy that waits\", ", "c.open("}},
		},
		{
			Name: "a share's fence is told though a capture has it", Package: "cuda/share", Run: "^TestCapturesPastThePackage$",
			Edits: []Edit{{"cuda/share.uncaptured", "return work.Uncaptured(\"cuEventRecord\")", "_ = work\n	return nil"}},
		},
		{
			Name: "an error of a capture is of no kind", Package: "cuda", Run: "^TestErrorsOfACapture$",
			Edits: []Edit{{"streams.(*CaptureError).Is", "return target == ErrCapturing", "return target == nil"}},
		},
		{
			Name: "an event is queried though a capture may have it", Package: "cuda", Run: "^TestCapturesPastTheModule$",
			Edits: []Edit{{"cuda.(*submission).record", "return c.work.Uncaptured(function)", "return nil"}},
		},
		{
			Name: "a capture that came and went fails the wait for a mark", Package: "cuda/sleep", Run: "^TestACaptureThatComesAndGoes$",
			Edits: []Edit{{"streams.(*cudaStream).uncapturedMark", "errors.Is(err, fence.ErrCaptured)", "err == nil && errors.Is(err, fence.ErrCaptured)"}},
		},
		{
			Name: "a stream that waits for a captured event is not captured", Package: "cudadrv/sim", Run: "^TestCaptureConformance$",
			Edits: []Edit{{"cudadrv/sim.(*stream).follow", "		its.join(st, e.before)\n", ""}},
		},
		{
			Name: "a capture does not want to be joined", Package: "cudadrv/sim", Run: "^TestCaptureConformance$",
			Edits: []Edit{{"cudadrv/sim.(*gpu).endCapture", "case joined < len(k.graph.nodes):", "case joined < 0:"}},
		},
		{
			Name: "a question about a captured event does a capture no harm", Package: "cudadrv/sim", Run: "^TestCaptureConformance$",
			Edits: []Edit{{"cudadrv/sim.(*event).unasked", "	e.capture.invalid = true\n", ""}},
		},
		{
			Name: "fences are not looked at for callers of adopted streams", Package: "lab/simulation", Run: run,
			Edits: []Edit{{"streams.(*Control).Sweep", "range pendingFences {", "range pendingFences[:0] {"}},
		},
		{
			Name: "a Close returns while another one queries the driver about the handle", Package: "streams", Run: "^TestACloseThatAnotherOvertakesHasItsResult$",
			Edits: []Edit{{"streams.(*cudaStream).claimClose", "	defer h.done()\n", "	h.done()\n"}},
		},
		{
			Name: "a Close that another overtakes is refused for a capture", Package: "streams", Run: "^TestACloseThatAnotherOvertakesHasItsResult$",
			Edits: []Edit{{"streams.(*cudaStream).claimClose", "	if h.closing.Load() {\n		return false, nil\n	}\n", ""}},
		},
		{
			Name: "a Close that another overtakes hides its error", Package: "streams", Run: "^TestACloseThatAnotherOvertakesHasItsResult$",
			Edits: []Edit{{"streams.(*Stream).Close", "has overtaken this one\n	return s.closeErr", "has overtaken this one\n	return nil"}},
		},
	}
}
