package planted

func foundFaults() Promise {
	return Promise{"the interpreter finds races, undefined values and accesses out of bounds", []Bug{
		{
			Name: "a barrier orders nothing", Package: "compute/ptx/interp", Run: "^TestNoFaults$",
			Edits: []Edit{{"compute/ptx/interp.passBarrier", "\tw.order.seen.join(&bar.order)\n", ""}},
		},
		{
			Name: "threads of one warp never race", Package: "compute/ptx/interp", Run: "^TestFaults$",
			Edits: []Edit{{"compute/ptx/interp.(*warpOrder).sees", "clock <= o.together ||", "true ||"}},
		},
		{
			Name:    "the last accesses of a block count as those of the next one",
			Package: "compute/ptx/interp", Run: "^TestBlocksOfOneWarpRace$|^TestRacesBetweenBlocks",
			Edits: []Edit{{"compute/ptx/interp.(*turns).past", "clock <= t.starts", "clock < t.starts"}},
		},
		{
			Name: "a wait delivers one group too many", Package: "compute/ptx/interp", Run: "^TestFaults$",
			Edits: []Edit{{"compute/ptx/interp.(*copier).deliver", "len(a.groups) > keep", "len(a.groups) >= keep"}},
		},
		{
			Name: "a register counts as written in all threads", Package: "compute/ptx/interp", Run: "^TestFaults$",
			Edits: []Edit{{"compute/ptx/interp.(*frame).written", "f.defined[s] |= m", "f.defined[s] = full"}},
		},
		{
			Name:    "a read of global memory that nobody wrote is none",
			Package: "vramtest", Run: "^TestReadsOfWhatNobodyWrote$",
			Edits: []Edit{{"vramtest.(*contents).made", "!c.all && c.written == nil", "c.written == nil && !true"}},
		},
		{
			Name: "a kernel may write to arguments declared as read", Package: "vramtest", Run: "^TestDeclarationsOfLaunches$",
			Edits: []Edit{{"compute/ptx/interp.(*region).declares", "d.Write == write &&", ""}},
		},
		{
			Name: "a freed buffer may be touched", Package: "vramtest", Run: "^TestMistakesOfKernels$",
			Edits: []Edit{{"vramtest.(*owners).find", "b.contains(p) && b.ended != 0 && b.ended <= event", "false"}},
		},
		{
			Name:    "a shuffle makes undefined values defined",
			Package: "compute/ptx/interp", Run: "^TestUndefinedRegistersThatMatter$",
			Edits: []Edit{{"compute/ptx/interp.bring", "\tw.meet.undefined |= missing\n", ""}},
		},
		{
			Name:    "an atomic access hides plain ones before it",
			Package: "compute/ptx/interp", Run: "^TestAtomicsThatAnotherOneHides$|^TestRacesBetweenBlocks",
			Edits: []Edit{
				{
					"compute/ptx/interp.(*detector).hides",
					"\treturn d.order.sees(t, thread) && !confirmed\n",
					"\t_ = confirmed\n\treturn false\n",
				},
			},
		},
		{
			Name: "a phase of an mbarrier orders nothing", Package: "compute/ptx/interp", Run: "^TestMbarriersHandOver$",
			Edits: []Edit{{"compute/ptx/interp.lowerMbarrierWait", "w.order.seen.join(done)", "_ = done"}},
		},
	}}
}
