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
	}
}
