package planted

// computeBugs are those of kernels, graphs and copies on the simulated device, and of the checker that looks at them.
func computeBugs() []Bug {
	return append(simulatedComputeBugs(), checkedComputeBugs()...)
}

func simulatedComputeBugs() []Bug {
	const sim = "cudadrv/sim"
	return []Bug{
		{
			Name: "launches of a graph run side by side", Package: sim, Run: "^TestGraphsAgainstAModel$",
			Edits: []Edit{{"cudadrv/sim.(*Device).GraphLaunch", "	st.drained = max(st.drained, exec.drained)\n", ""}},
		},
		{
			Name: "a graph that can be launched shares the nodes of its graph", Package: sim, Run: "^TestNewParametersOfAGraph$",
			Edits: []Edit{{"cudadrv/sim.(*Device).GraphInstantiate", "slices.Clone(found.nodes)", "found.nodes"}},
		},
		{
			Name: "an update of a graph looks at kinds alone", Package: sim, Run: "^TestNewParametersOfAGraph$",
			Edits: []Edit{{"cudadrv/sim.alike", " && slices.Equal(m.behind, n.behind)", ""}},
		},
		{
			Name: "a capture goes on that the wrong thread has ended", Package: sim, Run: "^TestCallsDuringCaptures$",
			Edits: []Edit{{"cudadrv/sim.(*gpu).endCapture", "		k.end()\n		return nil, fail", "		return nil, fail"}},
		},
		{
			Name: "a graph is launched in a capture", Package: sim, Run: "^TestConformance$",
			Edits: []Edit{{"cudadrv/sim.(*Device).GraphLaunch", "g.unwaitable(c, st)", "g.implicit(c.String(), st)"}},
		},
		{
			Name: "an event with timing tells when its stream last had work", Package: sim, Run: "^TestTheTimeBetweenTwoEvents$",
			Edits: []Edit{{"cudadrv/sim.(*Device).EventRecord", "max(st.drained, g.time())", "st.drained"}},
		},
		{
			Name: "a parameter lies right behind the one before", Package: sim, Run: "^TestDeclarationsOfKernels$",
			Edits: []Edit{{"cudadrv/sim.(*reader).param", "max(alignBytes, elementBytes)", "max(alignBytes, 1)"}},
		},
		{
			Name: "a wide fill writes bytes", Package: sim, Run: "^TestWideWorkAgainstASlice$",
			Edits: []Edit{{"cudadrv/sim.fill", "element[:unit]", "element[:1]"}},
		},
		{
			Name: "a copy between devices reads its own device", Package: sim, Run: "^TestBytesBetweenDevices$",
			Edits: []Edit{{"cudadrv/sim.(*gpu).do", "g.orElse(w.srcGPU).bytesAt", "g.bytesAt"}},
		},
	}
}

func checkedComputeBugs() []Bug {
	const checker = "cudadrv/hazard"
	return []Bug{
		{
			Name: "rows without a pitch touch nothing", Package: checker, Run: "^TestRowsWithoutAPitchAreAccesses$",
			Edits: []Edit{{"cudadrv/hazard.rows", "pitch != 0 && pitch < c.WidthBytes", "pitch < c.WidthBytes"}},
		},
		{
			Name: "captured work is booked as if it ran at once", Package: checker, Run: "^TestACaptureTouchesNothing$",
			Edits: []Edit{{
				"cudadrv/hazard/internal/core.(*Core).Work", "		c.capture(k, s, step{what: what, from: from, accesses: accesses})\n		return\n",
				"		c.capture(k, s, step{what: what, from: from, accesses: accesses})\n",
			}},
		},
		{
			Name: "launches of a graph have no order", Package: checker, Run: "^TestLaunchesOfAGraphAreInOrder$",
			Edits: []Edit{{"cudadrv/hazard/internal/core.(*Core).GraphLaunched", "	c.order.reach(s).point.join(e.last)\n", ""}},
		},
		{
			Name: "a wait in a capture orders nothing", Package: checker, Run: "^TestARaceInsideAGraph$",
			Edits: []Edit{{"cudadrv/hazard/internal/core.(*Core).StreamWaits", "		ev.in.order.reach(s).point.join(ev.point)\n", ""}},
		},
		{
			Name: "streams that have joined a capture never leave it", Package: checker, Run: "^TestARaceInsideAGraph$",
			Edits: []Edit{{"cudadrv/hazard/internal/core.(*graphs).end", "if of == k {", "if of == k && s == k.origin {"}},
		},
		{
			Name: "a kernel with new parameters is thought to touch what it did", Package: checker, Run: "^TestAGraphWithNewParameters$",
			Edits: []Edit{{"cudadrv/hazard/internal/core.(*Core).NodeChanged", "		one.accesses = nil\n", "		_ = one\n"}},
		},
		{
			Name: "what a kernel touches is not known after its arguments were set", Package: checker, Run: "^TestArgumentsOfANodeAreAccesses$",
			Edits: []Edit{{"cudadrv/hazard/internal/core.(*Core).NodeTouches", "accesses = slices.Clone(accesses)", "accesses = nil"}},
		},
		{
			Name: "the steps of a graph change with one that was made of it", Package: checker, Run: "^TestAGraphWithNewParameters$",
			Edits: []Edit{{"cudadrv/hazard/internal/core.(*Core).GraphInstantiated", "slices.Clone(made.steps)", "made.steps"}},
		},
		{
			Name: "a capture that failed goes on", Package: checker, Run: "^TestACaptureThatFails$",
			Edits: []Edit{{"cudadrv/hazard.(*Device).StreamEndCapture", "			d.checker.core.CaptureDropped(s)\n", ""}},
		},
		{
			Name: "a capture that the wrong thread has ended goes on", Package: checker, Run: "^TestACaptureEndedOnTheWrongThread$",
			Edits: []Edit{{
				"cudadrv/hazard.(*Device).StreamEndCapture", "errors.Is(err, cudadrv.CaptureUnmatched):",
				"errors.Is(err, cudadrv.CaptureUnmatched), errors.Is(err, cudadrv.CaptureWrongThread):",
			}},
		},
		{
			Name: "what lies between rows is copied, too", Package: checker, Run: "^TestWideFillsAndRowsAreAccesses$",
			Edits: []Edit{{
				"cudadrv/hazard.rows", "pitch == c.WidthBytes || c.Rows == 1:\n		return append(to, Access{Ptr: p, Bytes: c.WidthBytes * c.Rows,",
				"pitch >= c.WidthBytes:\n		return append(to, Access{Ptr: p, Bytes: (c.Rows-1)*pitch + c.WidthBytes,",
			}},
		},
		{
			Name: "memory stays another device's when it is unmapped", Package: checker, Run: "^TestMemoryOfAnotherDevice$",
			Edits: []Edit{{"cudadrv/hazard.(*Device).MemUnmap", "		d.unmappedForPeers(p, bytes, from)\n", ""}},
		},
		{
			Name: "a captured copy of pageable memory has none at the launch", Package: "cuda", Run: "^TestAGraphCopiesPageableMemory$",
			Edits: []Edit{{"cudadrv/sim.(*gpu).submit", "w.pageable = w.host != nil", "w.pageable = st.capture == nil && w.host != nil"}},
		},
	}
}
