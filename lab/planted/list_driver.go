package planted

// driverBugs are those of the simulated device, by which the tests above it judge, and of fences.
func driverBugs() []Bug {
	return []Bug{
		{
			Name: "a wait for an event adds nothing on the default stream", Package: "cudadrv/sim", Run: "^TestAWaitOnTheDefaultStreamIsInItsOrder$",
			Edits: []Edit{{"cudadrv/sim.(*Device).StreamWaitEvent", "	g.synchronise(st)\n	st.drained = max(st.drained, ev.passes)\n", "	st.drained = max(st.drained, ev.passes)\n"}},
		},
		{
			Name: "work changes bytes when it is submitted", Package: "cudadrv/sim", Run: "^TestWorkRunsInItsTime$",
			Edits: []Edit{{"cudadrv/sim.(*gpu).submit", "w.ends = st.drained", "w.ends = g.time()"}},
		},
		{
			Name: "bytes stay at their address", Package: "cudadrv/sim", Run: "^TestOrderedWorkIsAsIfDoneAtOnce$",
			Edits: []Edit{{
				"cudadrv/sim.(*gpu).show", "show(r.hostAt(p), h.bytes, h.offsetBytes)", "show(r.hostAt(p), h.bytes, int64(p-r.start))",
			}},
		},
		{
			Name: "an event passes before its work", Package: "internal/fence", Run: "^TestMarkPassesWithTheWorkBeforeIt$",
			Edits: []Edit{{"cudadrv/sim.(*Device).EventRecord", "ev.passes = st.drained", "ev.passes = min(st.drained, g.time())"}},
		},
		{
			Name: "an event is spare while it is recorded", Package: "internal/fence", Run: "^TestMarksAreNotShared$",
			Edits: []Edit{{
				"internal/fence.(*Events).Record", "	if err := e.device.EventRecord(event, s); err != nil {",
				"	_ = e.Release(Mark{event: event})\n	if err := e.device.EventRecord(event, s); err != nil {",
			}},
		},
	}
}
