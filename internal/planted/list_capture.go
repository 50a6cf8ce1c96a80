package planted

// captureBugs are those about streams that are being captured into graphs. The simulation finds them.
func captureBugs() []Bug {
	const run = "^TestNoPromiseIsBroken"
	return []Bug{
		{
			Name: "pages that a capture keeps are waited for", Package: "internal/simulation", Run: run,
			Edits: []Edit{{"streams/perform.go", "!errors.As(err, &captured) && s.guard(", "(errors.As(err, &captured) || err != nil) && s.guard("}},
		},
		{
			Name: "a captured stream is made to wait for another", Package: "internal/simulation", Run: run,
			Edits: []Edit{{"streams/follow.go", "err != nil {\n		return err", "err != nil && !s.adopted {\n		return err"}},
		},
		{
			Name: "a fence that a capture forbids counts as taken", Package: "internal/simulation", Run: run,
			Edits: []Edit{{
				"internal/fence/timeline.go", "	if err := t.allowed(); err != nil {\n", "	if err := t.allowed(); err != nil {\n		t.Took(t.Begin())\n",
			}},
		},
		{
			Name: "a fence that a capture forbids counts as passed", Package: "internal/simulation", Run: run,
			Edits: []Edit{{
				"internal/fence/timeline.go", "	if err := t.allowed(); err != nil {\n",
				"	if err := t.allowed(); err != nil {\n		number = t.Begin()\n		t.Took(number)\n		t.Pass(number)\n",
			}},
		},
		{
			Name: "what a capture has forbidden is blamed on it for ever", Package: "internal/simulation", Run: run,
			Edits: []Edit{{"streams/capture.go", "s.forbade.Load() != c.forbidden() {", "s.forbade.Load() != 0 {"}},
		},
		{
			Name: "the zeroing of a captured stream's memory is part of its graph", Package: "internal/simulation", Run: run,
			Edits: []Edit{{"streams/request.go", "uncaptured(\"cuMemsetD8Async\"); err != nil {", "uncaptured(\"cuMemsetD8Async\"); err != nil && !s.adopted {"}},
		},
		{
			Name: "fences are not looked at for callers of adopted streams", Package: "internal/simulation", Run: run,
			Edits: []Edit{{"streams/fences.go", "	s.core.Drain()\n	s.giveUp()\n	s.look()\n", "	s.core.Drain()\n	s.giveUp()\n	s.background()\n"}},
		},
	}
}
