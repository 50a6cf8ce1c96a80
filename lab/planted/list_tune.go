package planted

// tuneBugs are those of measured variants: their tables, their choice, and the compilation of lists.
func tuneBugs() []Bug {
	const of, kernels, plans = "compute/kernel/tune", "compute/kernel", "compute/kernel/plan"
	const columns = "^TestColumnsOfOddSizes$"
	const capture, choice, results, schedules = "^TestNothingIsMeasuredInACapture$", "^TestTablesChoose$", "^TestResultsAreCompared$", "^TestSchedulesComputeTheSame$"
	return []Bug{
		{
			Name: "a variant that is as fast replaces the rule's", Package: of, Run: "^TestRank$",
			Edits: []Edit{{"compute/kernel/tune.Row.beats", "gain > reference.Median*MarginPercent/100", "gain >= 0"}},
		},
		{
			Name: "a wrong variant is ranked", Package: of, Run: "^TestRank$",
			Edits: []Edit{{"compute/kernel/tune.Row.timed", "r.State == Verified && ", ""}},
		},
		{
			Name: "slow variants are timed to the end", Package: of, Run: "^TestContest$",
			Edits: []Edit{{"compute/kernel/tune.(*Contest).dropSlow", "median*10 > best*slowTenths", "median*10 > best*best"}},
		},
		{
			Name: "the rule's variant is not timed to the end", Package: of, Run: "^TestContest$",
			Edits: []Edit{{"compute/kernel/tune.(*Contest).dropSlow", "!c.rows[i].Reference && ", ""}},
		},
		{
			Name: "one variant is always timed first", Package: of, Run: "^TestContest$",
			Edits: []Edit{{"compute/kernel/tune.(*Contest).Next", "(c.at + c.round) %", "c.at %"}},
		},
		{
			Name: "a key that is there twice replaces the first", Package: of, Run: "^TestTextsThatAreNoTables$",
			Edits: []Edit{{"compute/kernel/tune.(*parser).line", "twice {", "twice && p.table == nil {"}},
		},
		{
			Name: "a row of other code is taken", Package: kernels, Run: choice,
			Edits: []Edit{{"compute/kernel.(*Kernel).schedules", "|| hash(k.text(g, s)) != r.Code", ""}},
		},
		{
			Name: "a row of another size is taken", Package: kernels, Run: "^TestTheFastestVariantIsTaken$",
			Edits: []Edit{{"compute/kernel.classOf", "uint8(tune.SizeClass(g.Cols))", "12"}},
		},
		{
			Name: "bytes behind an output may change", Package: kernels, Run: results,
			Edits: []Edit{{"compute/kernel.operand.same", " || i >= o.end)", ")"}},
		},
		{
			Name: "a NaN is as good as a number", Package: kernels, Run: results,
			Edits: []Edit{{"compute/kernel.operand.same", "a != a && b != b", "a != a || b != b"}},
		},
		{
			Name: "a wrong variant is told and taken", Package: kernels, Run: "^TestAWrongVariantIsDisqualified$",
			Edits: []Edit{{"compute/kernel.(*trial).verifyAll", "m.disqualify(i, state, err)", "m.rows[i].Why = err.Error()"}},
		},
		{
			Name: "a run in a capture measures", Package: kernels, Run: capture,
			Edits: []Edit{{"compute/kernel.(*Kernel).tuneFirst", "cuda.Capturing(c) || cuda.Capturing(t.on())", "c == nil"}},
		},
		{
			Name: "a geometry is kept that is to be measured", Package: kernels, Run: capture,
			Edits: []Edit{{"compute/kernel.(*Kernel).fit", " && !f.untuned", ""}},
		},
		{
			Name: "a run does not take the winner", Package: kernels, Run: "^TestTheFastestVariantIsTaken$",
			Edits: []Edit{{"compute/kernel.(*Kernel).settle", "k.fitted.Store(&[]*fitted{})", "k.fitted.Store(k.fitted.Load())"}},
		},
		{
			Name: "a compiler of prepared kernels measures", Package: kernels, Run: "^TestTuningIsRefused$",
			Edits: []Edit{{"compute/kernel.(*Kernel).look", " && !k.by.prepared.Load()", ""}},
		},
		{
			Name: "a measurement that failed is repeated by each run", Package: kernels, Run: "^TestBoundsOfMeasurements$",
			Edits: []Edit{{"compute/kernel.(*Kernel).unmeasured", "CompareAndSwap(measuring, settled)", "CompareAndSwap(measuring, open)"}},
		},
		{
			Name: "code of the store counts as compiled", Package: kernels, Run: "^TestStatsOfCode$",
			Edits: []Edit{{"compute/kernel.(*counts).loaded", "from == Stored", "from == Known"}},
		},
		{
			Name: "a driver's line is not shown", Package: kernels, Run: "^TestARefusedTextShowsItsLine$",
			Edits: []Edit{{"compute/kernel.(*SourceError).Lines", "found[1] + found[2]", "found[2]"}},
		},
		{
			Name: "a lack of memory is called a mistake of the text", Package: kernels, Run: "^TestARefusedKernelIsNamed$",
			Edits: []Edit{{"compute/kernel.refusedText", "errors.Is(err, r)", "errors.Is(err, r) || r == cudadrv.InvalidPTX"}},
		},
		{
			Name: "a need that failed has no error", Package: kernels, Run: "^TestAListIsPrepared$",
			Edits: []Edit{{"compute/kernel.(*Compiler).WarmUp", "failed = append(failed, &NeedError{p.Need, p.Err})", "failed = nil"}},
		},
		{
			Name: "a list is warmed up before what a caller waits for", Package: kernels, Run: "^TestAPreparedKernelGoesBeforeAList$",
			Edits: []Edit{{"compute/kernel.(*Compiler).work", "if len(c.queue) == 0 {", "if len(c.queue) == 0 || len(c.later) > 0 {"}},
		},
		{
			Name: "what waits of a list is forgotten when the compiler is closed", Package: kernels, Run: "^TestAPreparedKernelGoesBeforeAList$",
			Edits: []Edit{{"compute/kernel.(*Compiler).Close", "slices.Concat(c.queue, c.later)", "slices.Concat(c.queue)"}},
		},
		{
			Name: "an index counts the lines of rows from the line of the key", Package: of, Run: "^TestAnIndexOfAWrongText$",
			Edits: []Edit{{"compute/kernel/tune.NewIndex", "section{rest, number + 1}", "section{rest, number}"}},
		},
		{
			Name: "a part of an expression is visited wherever it is used", Package: plans, Run: "^TestAWalkVisitsEachNodeOnce$",
			Edits: []Edit{{"compute/kernel/plan.walk", "		if seen[n] {\n			return\n		}\n", ""}},
		},
		{
			Name: "the text of an expression has no end", Package: "compute/kernel/expr", Run: "^TestALongTextIsCut$",
			Edits: []Edit{{"compute/kernel/expr.Expr.String", "if len(text) > MaxText {", "if len(text) == 0 {"}},
		},
		{
			Name: "programs with long texts are taken for each other", Package: plans, Run: "^TestSharedPartsAreOneAndTheTextIsBounded$",
			Edits: []Edit{{"compute/kernel/plan.(*Program).String", "if !whole {", "if !whole && p.hash == 0 {"}},
		},
		{
			Name: "a compiler has one thread more", Package: kernels, Run: "^TestThreadsOfTheCompiler$",
			Edits: []Edit{{"compute/kernel.(*Compiler).begin", "c.threads-c.working", "c.threads+1-c.working"}},
		},
		{
			Name: "the last vectors of a thread are the first ones", Package: plans, Run: schedules,
			Edits: []Edit{{"compute/kernel/plan.(*writer).elementwise", "from = w.add(at, w.index.constant(i*far))", "from = w.add(at, w.index.constant(i*0))"}},
		},
		{
			Name: "rows that lie across are counted by warps", Package: plans, Run: columns,
			Edits: []Edit{{"compute/kernel/plan.(*writer).turned", "code.U32(warpLanes*beside)", "code.U32(warpLanes)"}},
		},
		{
			Name: "a sum of floating-point numbers is said to have one order", Package: plans, Run: "^TestProgramsInWords$",
			Edits: []Edit{{"compute/kernel/plan.(*Program).Exact", "r.kind.Kind() == tensor.Floating", "r.kind.Kind() == tensor.Boolean"}},
		},
		{
			Name: "more rows are split than have tickets", Package: plans, Run: "^TestSchedulesOfOtherSizes$",
			Edits: []Edit{{"compute/kernel/plan.(*Geometry).Allows", "rows <= MaxSplitRows", "rows <= 2*MaxSplitRows"}},
		},
		{
			Name: "the last elements of a column are left out", Package: plans, Run: columns,
			Edits: []Edit{{"compute/kernel/plan.(*writer).scanTurned", "[]int{repeat, 1}", "[]int{repeat}"}},
		},
		{
			Name: "a vector of columns is loaded from an address that is not aligned", Package: plans, Run: columns,
			Edits: []Edit{{"compute/kernel/plan.(*Program).alignedBeside", "addresses[k]%uint64(piece) != 0 || ", ""}},
		},
		{
			Name: "a vector of columns goes beyond the last one", Package: plans, Run: columns,
			Edits: []Edit{{"compute/kernel/plan.(*Program).alignedBeside", "g.OuterShape[last]%rows != 0", "g.OuterShape[last]%rows > rows"}},
		},
		{
			Name: "warps write states before the last ones have been read", Package: plans, Run: columns,
			Edits: []Edit{{"compute/kernel/plan.(*writer).acrossWarps", `w.Line("bar.sync 0") // the last states have been read`, ""}},
		},
		{
			Name: "a thread without columns reads the results of another group", Package: plans, Run: columns,
			Edits: []Edit{{"compute/kernel/plan.(*writer).restore", "splits = w.Op3(", "_ = w.Op3("}},
		},
		{
			Name: "a group of columns takes the ticket of its first column", Package: plans, Run: columns,
			Edits: []Edit{{"compute/kernel/plan.(*writer).lastBlock", `w.special("ctaid.x"), w.Op2`, "row, w.Op2"}},
		},
		{
			Name: "a ticket orders no memory", Package: plans, Run: columns,
			Edits: []Edit{{"compute/kernel/plan.(*writer).lastBlock", "atom.acq_rel.gpu", "atom.relaxed.gpu"}},
		},
		{
			Name: "columns of a thread do not share an operand", Package: plans, Run: "^TestColumnsBesideOtherOperands$",
			Edits: []Edit{{"compute/kernel/plan.(*writer).same", "w.v.Shared>>operand&1 != 0", "w.v.Shared>>operand&1 > 1"}},
		},
		{
			Name: "each reduction of columns has shared memory of its own", Package: plans, Run: "^TestSharedMemoryOfColumns$",
			Edits: []Edit{{"compute/kernel/plan.(*writer).exchangeBytes", "bytes = max(bytes, size*len(w.rows)*w.v.BlockThreads())", "bytes += size * len(w.rows) * w.v.BlockThreads()"}},
		},
		{
			Name: "rows with gaps are turned", Package: plans, Run: "^TestRowsWithGapsAreNotTurned$",
			Edits: []Edit{{"compute/kernel/plan.(*Program).rowsNear", "g.Steps[k] == Any && ", "g.Steps[k] == Fixed && "}},
		},
		{
			Name: "launches of a graph have the same tickets", Package: kernels, Run: "^TestAStockOfTicketsIsRenewed$",
			Edits: []Edit{{"compute/kernel.(*contextTickets).take", "s.used += bytes", "s.used += 0 * bytes"}},
		},
		{
			Name: "the tickets of a capture are not set to 0", Package: kernels, Run: "^TestTicketsOfAGraphAreNotFilled$",
			Edits: []Edit{{"compute/kernel.(*contextTickets).renew", "c.AllocZeroed(graphTickets)", "c.Alloc(graphTickets)"}},
		},
		{
			Name: "a graph fills its tickets at each launch", Package: kernels, Run: "^TestTicketsOfAGraphAreNotFilled$",
			Edits: []Edit{{"compute/kernel.capturedTickets", "if err == nil {", "if err != nil {"}},
		},
	}
}
