package planted

// tapeBugs are those of tapes and of the plans that they play.
func tapeBugs() []Bug {
	const run = "^TestNoPromiseIsBroken"
	return []Bug{
		{
			Name: "a place of a plan is taken before those on it have left", Package: "internal/simulation", Run: run,
			Edits: []Edit{{"streams/tape.(*Plan).take", "if e.have != e.need || e.taken ||", "if e.taken ||"}},
		},
		{
			Name: "a place of a plan is taken before its memory has come", Package: "internal/simulation", Run: run,
			Edits: []Edit{{"streams/tape.(*Plan).take", "len(p.missing) > 0 && p.misses(e)", "len(p.missing) > len(p.entries) && p.misses(e)"}},
		},
		{
			Name: "of the buffers that live when a plan yields the last are forgotten", Package: "internal/simulation", Run: run,
			Edits: []Edit{{"streams/core.(*Core).leaveGround", "		if p.slot != nil {\n			live", "		if p.slot != nil && len(live) < 2 {\n			live"}},
		},
		{
			Name: "the memory of a plan is withheld from the pool", Package: "streams/core", Run: "^TestTheMemoryOfAPlanIsSurrendered$",
			Edits: []Edit{{"streams/core.(*Core).Surrender", "	c.YieldPlan()\n	return c.Spare", "	return c.Spare"}},
		},
		{
			Name: "a plan has its stream grow", Package: "streams/core", Run: "^TestPlanYieldsBeforeThePoolIsAsked$",
			Edits: []Edit{{"streams/core.(*Core).makeRoom", "return c.YieldPlan() && c.heap", "return c.waiting > 0 && c.YieldPlan() && c.heap"}},
		},
		{
			Name: "a plan begins whatever lives on its ground", Package: "streams/core", Run: "^TestPlanThatMissesTooMuchIsNotBegun$",
			Edits: []Edit{{"streams/core.(*Core).missesTooMuch", "return units > c.heap.FreeUnits()", "return units > c.heap.HeldUnits()"}},
		},
		{
			Name: "a place that a step leaves out is nobody's for ever", Package: "streams/tape", Run: "^TestNoOrderOfEventsBreaksThePromise$",
			Edits: []Edit{{"streams/tape.(*Plan).skip", "	e.have = 0\n	return p.pass(i, todo)", "	e.have = 0\n	return todo"}},
		},
		{
			Name: "a plan is made of what hardly repeats", Package: "streams/tape", Run: "^TestAStepThatDiffersMoreIsNone$",
			Edits: []Edit{{"streams/tape.(*finder).found", "f.bad > f.good/exactShare", "f.bad > f.good/strayShare"}},
		},
	}
}
