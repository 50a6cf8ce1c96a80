package planted

func undisturbedCaptures() Promise {
	return Promise{"no capture is disturbed, and no work is lost in one", []Bug{
		{
			Name: "a captured stream is recorded on", Package: "internal/acceptance", Run: "^TestFreesDuringACapture$",
			Edits: []Edit{
				{
					"streams.(*cudaStream).captured",
					"return err == nil && status != cudadrv.CaptureNone, err",
					"return err == nil && status > cudadrv.CaptureInvalidated, err",
				},
			},
		},
		{
			Name:    "a fence that a capture forbids counts as taken",
			Package: "lab/simulation", Run: "^TestNoPromiseIsBroken",
			Edits: []Edit{
				{
					"internal/fence.(*Timeline).take",
					"\tif err != nil {\n\t\treturn 0, false, err\n\t}\n\tdefer access",
					"\tif err != nil {\n\t\tt.Took(t.Begin())\n\t\treturn 0, false, err\n\t}\n\tdefer access",
				},
			},
		},
		{
			Name:    "a fence that went into a graph counts as taken",
			Package: "internal/fence", Run: "^TestAFenceThatWentIntoAGraphIsOwedAgain$",
			Edits: []Edit{{"internal/fence.(*Timeline).settle", "\t\tt.Lose(number)\n", ""}},
		},
		{
			Name:    "a record does not check that a capture has begun since",
			Package: "internal/fence", Run: "^TestACaptureThatBeginsAtARecordGoesOn$",
			Edits: []Edit{
				{
					"internal/fence.(*Timeline).mark",
					"\tif err := access.Check(); err != nil {",
					"\tif err := error(nil); err != nil {",
				},
			},
		},
		{
			Name:    "the fence of a return is asked about though a capture may have it",
			Package: "internal/acceptance", Run: "^TestACaptureThatBeginsAtAFence$",
			Edits: []Edit{
				{
					"streams.(*cudaStream).record",
					`	if err = h.uncaptured("cuEventRecord"); err != nil { // a capture`,
					"\tif err = nil; err != nil { // a capture",
				},
			},
		},
		{
			Name:    "a capture that is announced turns no call away",
			Package: "lab/simulation", Run: "^TestNoPromiseIsBroken",
			Edits: []Edit{{"streams.(*announcement).enter", "a.word.Add(1) < announcedBit", "a.word.Add(1) != 0"}},
		},
		{
			Name:    "a stream joins a capture while calls are made on it",
			Package: "cuda", Run: "^TestAJoiningStreamIsAnnounced$",
			Edits: []Edit{
				{
					"cuda.(*capture).join",
					"\treturn c.work.BeginCapture(func() error {",
					"\tbegin := func(f func() error) error { return f() }\n\treturn begin(func() error {",
				},
			},
		},
		{
			Name:    "work that began before a capture becomes part of it",
			Package: "cuda", Run: "^TestACaptureBeginsBehindCalls$",
			Edits: []Edit{
				{
					"streams.Submitter.Enter",
					"\t\tentered = h.announcement.enter()\n",
					"\t\tentered = h.announcement.enter() || h.announcement.word.Add(1) != 0\n",
				},
			},
		},
		{
			Name:    "the close of a device ends captures of others",
			Package: "cuda", Run: "^TestTheCloseOfADeviceSparesCapturesOfOthers$",
			Edits: []Edit{{"vram.(*Device).closeEngine", "holdCaptures(others)", "holdCaptures(others[:0])"}},
		},
		{
			Name:    "a stream that waits for a captured event is not captured",
			Package: "cudadrv/sim", Run: "^TestCaptureConformance$",
			Edits: []Edit{{"cudadrv/sim.(*stream).follow", "\t\tits.join(st, e.before)\n", ""}},
		},
		{
			Name:    "a call that another capture refuses is not made again",
			Package: "cudadrv/dynamic", Run: "^TestCallsWhileOthersCapture$",
			Edits: []Edit{
				{
					"cudadrv/dynamic.(*device).outside",
					"\tf.failing = false\n\treturn d.relaxed(by, fn, f, n)",
					"\treturn r",
				},
			},
		},
	}}
}
