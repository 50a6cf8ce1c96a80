package planted

// dynamicBugs are in what a call leaves behind, and in the flags of what is made.
func dynamicBugs() []Bug {
	return []Bug{
		{
			Name: "a frame remembers that a context failed", Package: "cudadrv/dynamic", Run: "^TestAFrameForgetsItsCall$|^TestAFailureSaysNothingOfEarlierOnes$",
			Edits: []Edit{{"cudadrv/dynamic.(*gate).leave", "f.keep, f.failing = nil, false", "f.keep = nil"}},
		},
		{
			Name: "a frame keeps the memory of its last call", Package: "cudadrv/dynamic", Run: "^TestAFrameForgetsItsCall$",
			Edits: []Edit{{"cudadrv/dynamic.(*gate).leave", "f.keep, f.failing = nil, false", "f.failing = false"}},
		},
		{
			Name: "the context stays current after a call that failed", Package: "cudadrv/dynamic", Run: "^TestContextsStayCurrentAfterAFailure$",
			Edits: []Edit{{
				"cudadrv/dynamic.(*device).callCurrent", "	r := d.lib.call(fn, f, n)\n	f.current[0]",
				"	r := d.lib.call(fn, f, n)\n	if r != 0 {\n		return r\n	}\n	f.current[0]",
			}},
		},
		{
			Name: "host memory is for one context only", Package: "cudadrv/dynamic", Run: "^TestWhatIsMadeHasItsFlags$",
			Edits: []Edit{{"cudadrv/dynamic/layout.go", "portableHost  = 1", "portableHost  = 0"}},
		},
		{
			Name: "events keep time", Package: "cudadrv/dynamic", Run: "^TestWhatIsMadeHasItsFlags$",
			Edits: []Edit{{"cudadrv/dynamic/layout.go", "disableTiming = 2", "disableTiming = 0"}},
		},
		{
			Name: "a feature that is missing costs a frame", Package: "cudadrv/dynamic", Run: "^TestARefusedCallGivesItsFrameBack$",
			Edits: []Edit{{
				"cudadrv/dynamic.(*device).enterFeature", "		d.gate.leave(f)\n		return nil, d.unsupported(c, feature)", "		return nil, d.unsupported(c, feature)",
			}},
		},
		{
			Name: "a call without an event costs a frame", Package: "cudadrv/dynamic", Run: "^TestARefusedCallGivesItsFrameBack$",
			Edits: []Edit{{"cudadrv/dynamic.(*device).enterEvent", "		d.gate.leave(f)\n		return nil, refuse", "		return nil, refuse"}},
		},
		{
			Name: "a launch changes the current context", Package: "cudadrv/dynamic", Run: "^TestALaunchMakesNoContextCurrent$",
			Edits: []Edit{{"cudadrv/dynamic.(*device).LaunchKernel", "d.callOn(s, cuLaunchKernel, f, 11)", "d.callCurrent(cuLaunchKernel, f, 11)"}},
		},
		{
			Name: "a descriptor loses its last word", Package: "cudadrv/dynamic", Run: "^TestADescriptorIsPassedByValue$",
			Edits: []Edit{{"cudadrv/dynamic.(*device).IpcOpenEventHandle", "f.args[registerArgs])) = from", "f.args[registerArgs-1])) = from"}},
		},
		{
			Name: "a cubin is the link's", Package: "cudadrv/dynamic", Run: "^TestConformanceOnTheFake$",
			Edits: []Edit{{
				"cudadrv/dynamic.(*device).link", "return bytes.Clone(unsafe.Slice((*byte)(f.address()), f.out[1])), nil",
				"return unsafe.Slice((*byte)(f.address()), f.out[1]), nil",
			}},
		},
		{
			Name: "a fat binary is linked as a text", Package: "cudadrv/dynamic", Run: "^TestALinkThatFailsIsDestroyed$",
			Edits: []Edit{{"cudadrv/dynamic.(*device).link", "kind = fatBinaryInput", "_ = image"}},
		},
		{
			Name: "a link goes on on another thread", Package: "cudadrv/dynamic", Run: "^TestALinkStaysOnItsThread$",
			Edits: []Edit{{"cudadrv/dynamic.(*device).LinkImages", "	runtime.LockOSThread()\n	defer runtime.UnlockOSThread()\n", ""}},
		},
		{
			Name: "the loader is asked for a reason on another thread", Package: "cudadrv/dynamic/library", Run: "^TestEachFailureHasItsOwnReason$",
			Edits: []Edit{{"cudadrv/dynamic/library.lockThread", "	runtime.LockOSThread()\n	return runtime.UnlockOSThread\n", "	_ = runtime.NumCPU\n	return func() {}\n"}},
		},
		{
			Name: "a link that fails is left", Package: "cudadrv/dynamic", Run: "^TestALinkThatFailsIsDestroyed$",
			Edits: []Edit{{
				"cudadrv/dynamic.(*device).LinkImages", "	cubin, err := d.link(f, link, c, images)\n",
				"	cubin, err := d.link(f, link, c, images)\n	if err != nil {\n		return nil, err\n	}\n",
			}},
		},
		{
			Name: "a capture of the device does not count", Package: "cudadrv/dynamic", Run: "^TestCallsWhileTheDeviceCaptures$",
			Edits: []Edit{{"cudadrv/dynamic.(*captures).begin", "	c.underWay.Add(1)\n", ""}},
		},
		{
			Name: "a capture that the wrong thread has ended counts on", Package: "cudadrv/dynamic", Run: "^TestCapturesCountUntilTheyEnd$",
			Edits: []Edit{{
				"cudadrv/dynamic.(*device).StreamEndCapture", "r != cudadrv.CaptureUnmatched {", "r != cudadrv.CaptureUnmatched && r != cudadrv.CaptureWrongThread {",
			}},
		},
		{
			Name: "the capture of a stream that was destroyed counts on", Package: "cudadrv/dynamic", Run: "^TestCapturesCountUntilTheyEnd$",
			Edits: []Edit{{"cudadrv/dynamic.(*device).StreamDestroy", "		d.lib.captures.forget(s)\n", ""}},
		},
		{
			Name: "a call that another capture refuses is not made again", Package: "cudadrv/dynamic", Run: "^TestCallsWhileOthersCapture$",
			Edits: []Edit{{"cudadrv/dynamic.(*device).outside", "	f.failing = false\n	return d.relaxed(by, fn, f, n)", "	return r"}},
		},
		{
			Name: "a graph is destroyed in the mode of the thread", Package: "cudadrv/dynamic", Run: "^TestCallsWhileTheDeviceCaptures$",
			Edits: []Edit{{"cudadrv/dynamic.(*device).onGraph", "d.outside(inContext, fn, f, 1)", "d.callCurrent(fn, f, 1)"}},
		},
		{
			Name: "the suite asks for a stream that was destroyed", Package: "cudadrv/dynamic", Run: "^TestConformanceOnTheFake$",
			Edits: []Edit{{
				"cudadrv/drivertest.testGraphsInGraphs", "	b.graphsInGraphs(g, a, other)\n", "	defer drop(g, a.stream)\n	b.graphsInGraphs(g, a, other)\n",
			}},
		},
		{
			Name: "a thread stays in relaxed mode", Package: "cudadrv/dynamic", Run: "^TestAFailureLeavesTheModeOfTheThread$",
			Edits: []Edit{{"cudadrv/dynamic.(*device).relaxed", "	_ = d.exchange(f) //", "	//"}},
		},
	}
}
