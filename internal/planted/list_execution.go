package planted

// executionBugs are those of the interpreter's rules: what threads wait for, what is a mistake of a kernel, and what is none.
func executionBugs() []Bug {
	const interp = "ptx/interp"
	return []Bug{
		{
			Name: "threads that arrive together meet by the mask of the first one alone", Package: interp, Run: "^TestThreadsMeetByTheirOwnMasks$",
			Edits: []Edit{{"ptx/interp.(*warp).arrive", "	w.meetAll(m)\n", "	w.meetAt(next(m))\n"}},
		},
	}
}
