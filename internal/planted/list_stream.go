package planted

// streamBugs are those of streams and their core.
func streamBugs() []Bug {
	return []Bug{
		{
			Name: "the fence is taken before the memory", Package: "internal/simulation", Run: "^TestNoPromiseIsBroken",
			Edits: []Edit{
				{"streams/stream.go", "	closing atomic.Bool\n", "	early   fence.Mark\n	closing atomic.Bool\n"},
				{
					"streams/stream.go", "	s.ref.Call(&asked{stream: s, runsGranted: runsGranted})",
					"	s.early, _ = s.fences.Record(s.handle)\n	s.ref.Call(&asked{stream: s, runsGranted: runsGranted})",
				},
				{
					"streams/perform.go", "	mark, err := s.mark()\n",
					"	if !s.early.Zero() {\n		mark, s.early = s.early, fence.Mark{}\n		return mark\n	}\n	mark, err := s.mark()\n",
				},
			},
		},
		{
			Name: "a single run goes back without a fence", Package: "streams", Run: "^TestPagesWithoutAFenceStayWithTheirStream$",
			Edits: []Edit{{"streams/turn.go", "case len(r.Runs) == 0 || s.synced.Load():", "case len(r.Runs) <= 1 || s.synced.Load():"}},
		},
		{
			Name: "a grant is lost while others wait", Package: "internal/simulation", Run: "^TestNoPromiseIsBroken",
			Edits: []Edit{{"streams/turn.go", "r := s.take(g.token); r != nil {", "r := s.take(g.token); r != nil && len(s.waiting) == 0 {"}},
		},
		{
			Name: "a cancelled request keeps its block", Package: "streams", Run: "^TestCancelWhenTheBlockIsTaken$",
			Edits: []Edit{{"streams/request.go", "s.core.Undo(slot) // cancelled meanwhile", "_ = slot"}},
		},
		{
			Name: "a cancelled batch keeps half", Package: "streams", Run: "^TestABatchThatIsCancelledInItsTurn$",
			Edits: []Edit{{
				"streams/batch.go", "for i := range r.dst {\n		if slot := r.dst[i].slot; slot != nil {\n			s.core.",
				"for i := range r.dst[len(r.dst)/2:] {\n		if slot := r.dst[i].slot; slot != nil {\n			s.core.",
			}},
		},
		{
			Name: "the budget counts what is kept twice", Package: "streams/core", Run: "^TestCheckSeesWhatIsWrong$|^TestLengthThatComesBackIsKept$",
			Edits: []Edit{{"streams/core/keep.go", "c.keptUnits += uint64(units)", "c.keptUnits += 2 * uint64(units)"}},
		},
		{
			Name: "lanes are not asked back", Package: "streams", Run: "^TestLaneIsAskedBack$",
			Edits: []Edit{{"streams/turn.go", "	s.core.AskLanes()\n	r := poolcore", "	r := poolcore"}},
		},
		{
			Name: "memory that shall be zero is not", Package: "streams", Run: "^TestZeroIsOneMemset$",
			Edits: []Edit{{"streams/request.go", "if !want.Zero || b.bytes == 0 {", "if !want.Zero || b.bytes >= 0 {"}},
		},
	}
}
