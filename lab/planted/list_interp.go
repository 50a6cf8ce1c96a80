package planted

// interpBugs are those of the interpreter of PTX, and of the devices that use it.
func interpBugs() []Bug {
	const interp = "compute/ptx/interp"
	return []Bug{
		{
			Name: "a barrier orders nothing", Package: interp, Run: "^TestNoFaults$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).pass", "	w.order.seen.join(&bar.order)\n", ""}},
		},
		{
			Name: "threads of one warp never race", Package: interp, Run: "^TestFaults$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).sees", "clock <= o.together ||", "true ||"}},
		},
		{
			Name: "the last accesses of a block count as those of the next one", Package: interp, Run: "^TestBlocksOfOneWarpRace$|^TestRacesBetweenBlocks",
			Edits: []Edit{{"compute/ptx/interp.(*turns).past", "clock <= t.starts", "clock < t.starts"}},
		},
		{
			Name: "an access between blocks is told of the wrong one", Package: interp, Run: "^TestBlocksOfOneWarpRace$|^TestRacesBetweenBlocks",
			Edits: []Edit{{"compute/ptx/interp.(*turns).at", "n, _ := slices.BinarySearch(t.starts, clock)", "n, _ := slices.BinarySearch(t.starts, clock+1)"}},
		},
		{
			Name: "a store forgets the last load before it is compared", Package: interp, Run: "^TestFaults$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).conflict", "case a.write && unordered(c.load):", "case a.write && false:"}},
		},
		{
			Name: "a copy arrives when it begins", Package: interp, Run: "^TestFaults$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).begin1", "		b.inFlight[n>>6] |= 1 << (n & 63)\n", ""}},
		},
		{
			Name: "a wait delivers one group too many", Package: interp, Run: "^TestFaults$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).deliver", "len(a.groups) > keep", "len(a.groups) >= keep"}},
		},
		{
			Name: "a register counts as written in all threads", Package: interp, Run: "^TestFaults$",
			Edits: []Edit{{"compute/ptx/interp.(*frame).written", "f.defined[s] |= m", "f.defined[s] = full"}},
		},
		{
			Name: "a barrier waits for threads that have exited", Package: interp, Run: "^TestNoFaults$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).exit", "	w.block.completeBarriers()\n", ""}},
		},
		{
			Name: "the group that is first in the text always runs", Package: interp, Run: "^TestNoFaults$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).pick", "favoured != 0", "false"}},
		},
		{
			Name: "a warp that waits at a barrier executes without a limit", Package: interp, Run: "^TestLoopsAroundBarriers$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).advance", "			break\n", "			return\n"}},
		},
		{
			Name: "fma of single precision is rounded twice", Package: interp, Run: "^TestFmaIsRoundedOnce$",
			Edits: []Edit{{"compute/ptx/interp.fma32", "word&low != half &&", "(word&low != half || word != 0) &&"}},
		},
		{
			Name: "a shuffle down leaves its segment", Package: interp, Run: "^TestShuffles$",
			Edits: []Edit{{"compute/ptx/interp.shuffled", "		from = lane + b\n		inRange = from <= most\n", "		from = (lane + b) & 31\n		inRange = true\n"}},
		},
		{
			Name: "the halves of a matrix register are swapped", Package: interp, Run: "^TestMatrixInstructions$",
			Edits: []Edit{{"compute/ptx/interp.(*compiler).mma", "y[row+1][group] = element(f.regs[slot][n] >> 16)", "y[row+1][group] = element(f.regs[slot][n])"}},
		},
		{
			Name: "a number is cut, not clamped, when it becomes an integer", Package: interp, Run: "^TestArithmeticAgainstReferences$",
			Edits: []Edit{{"compute/ptx/interp.integer.fromFloat", "	case x >= limit:\n		return most\n", "	case x >= limit:\n		return least + 0*most\n"}},
		},
		{
			Name: "a comparison with NaN holds", Package: interp, Run: "^TestLogicAgainstReferences$",
			Edits: []Edit{{"compute/ptx/interp.floatComparison", "return value(a) >= value(b) }", "return !(value(a) < value(b)) }"}},
		},
		{
			Name: "a load that races hides behind that nobody had written", Package: interp, Run: "^TestFaults$",
			Edits: []Edit{{"compute/ptx/interp.(*block).verdict", "f.Line == s.Line || ", ""}},
		},
		{
			Name: "a kernel runs before the work in front of it", Package: "vramtest", Run: "^TestKernelsRunInTheOrderOfTheirStream$",
			Edits: []Edit{{"cudadrv/sim.(*gpu).executeLater", "ends: st.drained,", "ends: 0,"}},
		},
		{
			Name: "a kernel reaches every buffer", Package: "vramtest", Run: "^TestMistakesOfKernels$",
			Edits: []Edit{{"vramtest.(*owners).find", "(o.anyBuffer || arguments[b])", "true"}},
		},
		{
			Name: "a read of global memory that nobody wrote is none", Package: "vramtest", Run: "^TestReadsOfWhatNobodyWrote$",
			Edits: []Edit{{"vramtest.(*contents).made", "!c.all && c.written == nil", "c.written == nil && !true"}},
		},
		{
			Name: "a copy writes what was not written", Package: "vramtest", Run: "^TestReadsOfWhatNobodyWrote$",
			Edits: []Edit{{"vramtest.(*contents).copyFrom", "if words == nil {", "if words != nil {"}},
		},
		{
			Name: "a copy or fill is told of before it has happened", Package: "vramtest", Run: "^TestReadsOfWhatNobodyWrote$",
			Edits: []Edit{{"cudadrv/sim.(*gpu).followed", "return follower.Queued(t)", "if f := follower.Queued(t); f != nil {\n\t\tf()\n\t}\n\treturn nil"}},
		},
		{
			Name: "a kernel may write what it is said to read", Package: "vramtest", Run: "^TestDeclarationsOfLaunches$",
			Edits: []Edit{{"compute/ptx/interp.(*region).declares", "d.Write == write &&", ""}},
		},
		{
			Name: "a kernel that reads what it has written reads undeclared memory", Package: "vramtest", Run: "^TestReadsOfItsOwnStores$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).declared", "field&^*word != 0 && ", ""}},
		},
		{
			Name: "a module is checked at its first launch, not when it is loaded", Package: "vramtest", Run: "^TestModulesThatAreRefused$",
			Edits: []Edit{{"vramtest/ptxrun.(*Executor).Load", "err := refusal(m, ptx.Check(m)); err != nil", "err := refusal(m, ptx.Check(m)); err != nil && false"}},
		},
		{
			Name: "the simulated driver does not say in which line a text is wrong", Package: "vramtest", Run: "^TestModulesThatAreRefused$",
			Edits: []Edit{{"cudadrv/sim.(*reader).line", "last >= 0", "last < 0"}},
		},
		{
			Name: "a freed buffer may be touched", Package: "vramtest", Run: "^TestMistakesOfKernels$",
			Edits: []Edit{{"vramtest.(*owners).find", "b.contains(p) && b.ended != 0 && b.ended <= event", "false"}},
		},
		{
			Name: "a buffer that is freed behind the launch is gone for it", Package: "vramtest", Run: "^TestABufferFreedBehindItsLaunch$",
			Edits: []Edit{{"vramtest.(*owned).livedAt", "(o.ended == 0 || o.ended > event)", "o.ended == 0"}},
		},
	}
}
