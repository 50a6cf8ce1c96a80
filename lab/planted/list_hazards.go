package planted

func foundHazards() Promise {
	return Promise{"the simulated device keeps the order of work, and the checker sees every access", []Bug{
		{
			Name: "work changes bytes when it is submitted", Package: "cudadrv/sim", Run: "^TestWorkRunsInItsTime$",
			Edits: []Edit{{"cudadrv/sim.(*gpu).submit", "w.ends = st.drained", "w.ends = g.time()"}},
		},
		{
			Name:    "captured work is booked as if it ran at once",
			Package: "cudadrv/hazard", Run: "^TestACaptureTouchesNothing$",
			Edits: []Edit{
				{
					"cudadrv/hazard/internal/core.(*Core).Work",
					"\t\tc.capture(k, s, step{what: what, from: from, accesses: accesses})\n\t\treturn\n",
					"\t\tc.capture(k, s, step{what: what, from: from, accesses: accesses})\n",
				},
			},
		},
		{
			Name: "launches of a graph have no order", Package: "cudadrv/hazard", Run: "^TestLaunchesOfAGraphAreInOrder$",
			Edits: []Edit{
				{"cudadrv/hazard/internal/core.(*Core).GraphLaunched", "\tc.order.reach(s).point.join(e.last)\n", ""},
			},
		},
		{
			Name: "a wait in a capture orders nothing", Package: "cudadrv/hazard", Run: "^TestARaceInsideAGraph$",
			Edits: []Edit{
				{"cudadrv/hazard/internal/core.(*Core).StreamWaits", "\t\tev.in.order.reach(s).point.join(ev.point)\n", ""},
			},
		},
		{
			Name:    "two halves of a cell share their reads",
			Package: "cudadrv/hazard/internal/core", Run: "^TestHalvesOfACellHaveStoriesOfTheirOwn$",
			Edits: []Edit{{"cudadrv/hazard/internal/core.(*memory).split", "\tupper.reads = slices.Clone(c.reads)\n", ""}},
		},
	}}
}
