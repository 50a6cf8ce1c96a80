package planted

// captureBugs are those about streams that are being captured into graphs. The simulation finds most of them.
func captureBugs() []Bug {
	const run = "^TestNoPromiseIsBroken"
	return []Bug{
		{
			Name: "pages that a capture keeps are waited for", Package: "internal/simulation", Run: run,
			Edits: []Edit{{"streams.(*effects).record", "!errors.As(err, &captured) && h.", "(errors.As(err, &captured) || err != nil) && h."}},
		},
		{
			Name: "a captured stream is made to wait for another", Package: "internal/simulation", Run: run,
			Edits: []Edit{{"streams.(*cudaStream).precede", "err != nil {\n		return err", "err != nil && !h.adopted {\n		return err"}},
		},
		{
			Name: "a fence that a capture forbids counts as taken", Package: "internal/simulation", Run: run,
			Edits: []Edit{{
				"internal/fence.(*Timeline).take", "	if err := t.allowed(); err != nil {\n		return 0, false, err\n",
				"	if err := t.allowed(); err != nil {\n		t.Took(t.Begin())\n		return 0, false, err\n",
			}},
		},
		{
			Name: "a fence that a capture forbids counts as passed", Package: "internal/simulation", Run: run,
			Edits: []Edit{{
				"internal/fence.(*Timeline).take", "	if err := t.allowed(); err != nil {\n		return 0, false, err\n",
				"	if err := t.allowed(); err != nil {\n		number = t.Begin()\n		t.Took(number)\n		t.Pass(number)\n		return 0, false, err\n",
			}},
		},
		{
			Name: "what a capture has forbidden is blamed on it for ever", Package: "internal/simulation", Run: run,
			Edits: []Edit{{"streams.(*cudaStream).shortage", "h.forbiddenCalls.Load() != forbiddenCalls {", "h.forbiddenCalls.Load() != 0 {"}},
		},
		{
			Name: "the zeroing of a captured stream's memory is part of its graph", Package: "internal/simulation", Run: run,
			Edits: []Edit{{"streams.(*cudaStream).zero", "uncaptured(\"cuMemsetD8Async\"); err != nil {", "uncaptured(\"cuMemsetD8Async\"); err != nil && !h.adopted {"}},
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
			Edits: []Edit{{"internal/fence.(*Timeline).mark", "	if err := t.allowed(); err != nil {\n		t.lose(m)", "	if err := error(nil); err != nil {\n		t.lose(m)"}},
		},
		{
			Name: "an order without room does not ask whether it may record", Package: "internal/fence", Run: "^TestAnOrderWithoutRoomAsksBeforeItRecords$",
			Edits: []Edit{{"internal/fence.(*Timeline).Order", "	if err := t.allowed(); err != nil {\n		return 0, err\n	}\n", ""}},
		},
		{
			Name: "the fence of a return is asked about though a capture may have it", Package: ".", Run: "^TestACaptureThatBeginsAtAFence$",
			Edits: []Edit{{"streams.(*cudaStream).mark", "	if err = h.uncaptured(\"cuEventRecord\"); err != nil { // a capture", "	if err = nil; err != nil { // a capture"}},
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
			Name: "fences are not looked at for callers of adopted streams", Package: "internal/simulation", Run: run,
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
