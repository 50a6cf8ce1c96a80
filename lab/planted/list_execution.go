package planted

// executionBugs are those of the interpreter's rules: what threads wait for, what is a mistake of a kernel, and what is none.
func executionBugs() []Bug {
	const interp = "compute/ptx/interp"
	return []Bug{
		{
			Name: "threads that arrive together meet by the mask of the first one alone", Package: interp, Run: "^TestThreadsMeetByTheirOwnMasks$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).arrive", "	w.meetAll(m)\n", "	w.meetAt(next(m))\n"}},
		},
		{
			Name: "a shuffle makes what nobody wrote defined", Package: interp, Run: "^TestUndefinedRegistersThatMatter$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).bring", "	w.meet.undefined |= missing\n", ""}},
		},
		{
			Name: "a register with one undefined bit is undefined as a whole", Package: interp, Run: "^TestUndefinedRegistersThatNothingDependsOn$",
			Edits: []Edit{{"compute/ptx/interp.(*compiler).undefinedRule", "	to.carries = carriesBits(", "	to.carries = carriesAll\n	_ = carriesBits("}},
		},
		{
			Name: "a result is defined though an operand is not", Package: interp, Run: "^TestUndefinedRegistersThatMatter$",
			Edits: []Edit{{"compute/ptx/interp.(*frame).loseAll", "		bits = ^uint64(0)\n", ""}},
		},
		{
			Name: "results of and, or and xor are always defined", Package: interp, Run: "^TestDefinedResultsDoNotDependOnGarbage$",
			Edits: []Edit{{"compute/ptx/interp.carriesEach", "lost&ones&^decided", "lost&ones&^decided&^ones"}},
		},
		{
			Name: "an undefined value may be stored", Package: interp, Run: "^TestUndefinedRegistersThatMatter$",
			Edits: []Edit{{"compute/ptx/interp.carriesStore", "&mask(8*each) != 0", "&0 != 0"}},
		},
		{
			Name: "an undefined value that was stored in memory of the thread is defined", Package: interp, Run: "^TestUndefinedArguments$",
			Edits: []Edit{{"compute/ptx/interp.(*localMemory).lose", "			l.initialised[start+n] = false\n", ""}},
		},
		{
			Name: "a failed assertion does nothing", Package: interp, Run: "^TestFailedAssertion",
			Edits: []Edit{{"compute/ptx/interp.(*warp).assertFail", "	}, thread)\n	return false\n", "	}, thread)\n	w.fault = nil\n	return true\n"}},
		},
		{
			Name: "printf reads a text past its memory's end", Package: interp, Run: "^TestMistakesOfPrintf$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).text", "if len(from) < most {", "if false {"}, {"compute/ptx/interp.(*warp).text", "from[:most]", "from[:min(most, len(from))]"}},
		},
		{
			Name: "the output of a launch has no limit", Package: interp, Run: "^TestOutputOfPrintf$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).print", "r.launch.Output == nil || r.printed >= maxOutput", "r.launch.Output == nil"}},
		},
		{
			Name: "an atomic access hides those of others", Package: interp, Run: "^TestAtomicsThatAnotherOneHides$|^TestRacesBetweenBlocks",
			Edits: []Edit{{"compute/ptx/interp.(*warp).hides", "		return !w.sees(t, thread)\n", "		return false\n"}},
		},
		{
			Name: "an atomic access hides plain ones before it", Package: interp, Run: "^TestAtomicsThatAnotherOneHides$|^TestRacesBetweenBlocks",
			Edits: []Edit{{"compute/ptx/interp.(*warp).hides", "	return w.sees(t, thread) && !confirmed\n", "	_ = confirmed\n	return false\n"}},
		},
		{
			Name: "the load of a loop around atom.cas is a race", Package: interp, Run: "^TestLoopsAroundCompareAndSwap$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).guessed", "	if !b.kernel.swaps ||", "	if b.kernel.swaps ||"}},
		},
		{
			Name: "any atom.cas confirms what was loaded", Package: interp, Run: "^TestPlainAccessesBesideCompareAndSwap$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).confirm", "ok && g.value == compare&mask(8*a.bytes)", "ok && (g.value == compare&mask(8*a.bytes) || true)"}},
		},
		{
			Name: "a load that nothing confirms is no race in a kernel with atom.cas", Package: interp, Run: "^TestPlainAccessesBesideCompareAndSwap$",
			Edits: []Edit{{"compute/ptx/interp.(*guesses).wrong", "	return first.fault\n", "	return nil\n"}},
		},
		{
			Name: "a barrier does not stand for the fence behind an atomic access", Package: interp, Run: "^TestLastBlockReads$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).join", "!w.block.run.launch.Strict", "false"}},
		},
		{
			Name: "a volatile access is atomic in a strict launch", Package: interp, Run: "^TestVolatileAccesses$",
			Edits: []Edit{{"compute/ptx/interp.strength.in", "s.strong && (!s.volatile || !r.launch.Strict)", "s.strong && (!s.volatile || r != nil)"}},
		},
		{
			Name: "a block of a cooperative launch runs to its end", Package: interp, Run: "^TestBlocksOfACooperativeLaunchWait$",
			Edits: []Edit{{"compute/ptx/interp.(*run).together", "b.round(cooperativeSlice)", "b.execute()"}},
		},
		{
			Name: "a release lets others see what follows it", Package: interp, Run: "^TestRacesOfACooperativeLaunch$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).released", "	r.resume(w.block)\n	w.order.clock = r.tick()\n", ""}},
		},
		{
			Name: "a fault is told by the test and by each call", Package: "vramtest", Run: "^TestAFaultIsToldOnce$",
			Edits: []Edit{{"vramtest/ptxrun.(*Executor).keep", "if e.config.Reported {", "if false {"}},
		},
		{
			Name: "a race does not name the buffer", Package: "vramtest", Run: "^TestARaceNamesTheBuffer$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).race", "w.disorder(t) + w.whose(a)", "w.disorder(t)"}},
		},
		{
			Name: "a refused launch has no finding", Package: "vramtest", Run: "^TestRefusalsHaveTheFinding$",
			Edits: []Edit{{"cudadrv/sim.(*gpu).prepare", "&refusal{fail(c, cudadrv.NotSupported, \"%v\", err), err}", "fail(c, cudadrv.NotSupported, \"%v\", err)"}},
		},
		{
			Name: "reports name streams by their handles", Package: "vramtest", Run: "^TestReportsNumberStreams$",
			Edits: []Edit{{"cudadrv/hazard/internal/core.streamText", "id != 0", "false"}},
		},
	}
}
