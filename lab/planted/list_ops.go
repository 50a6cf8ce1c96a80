package planted

// opsBugs are those of operations on tensors.
func opsBugs() []Bug {
	const of = "compute/ops"
	return []Bug{
		{
			Name: "a gradient is summed along the wrong axis", Package: of, Run: "^TestGradientsOfBroadcasts$",
			Edits: []Edit{{"compute/ops.broadcastAxes", "1 << (rank - 1 - d)", "1 << d"}},
		},
		{
			Name: "numbers of a kernel are not part of its key", Package: of, Run: "^TestSpecialNumbers$",
			Edits: []Edit{{"compute/ops.clamp", "numbers: [4]uint64{math.Float64bits(low), math.Float64bits(high)}", "numbers: [4]uint64{math.Float64bits(low)}"}},
		},
		{
			Name: "the greatest of no elements is a number", Package: of, Run: "^TestReductions$",
			Edits: []Edit{{"compute/ops.reduction", "reducedLen(x, along) == 0", "reducedLen(x, along) < 0"}},
		},
		{
			Name: "a floating-point sum is stored as an integer", Package: of, Run: "^TestTypesOfResults$",
			Edits: []Edit{{"compute/ops.(*set).build", "family(k.out) < family(own)", "family(k.out) > family(own)"}},
		},
		{
			Name: "a class that there is not has a loss", Package: of, Run: "^TestCrossEntropy$",
			Edits: []Edit{{"compute/ops.(*key).row", "expr.Number(math.NaN())", "expr.Number(0)"}},
		},
		{
			Name: "each run takes new memory for its temporary tensors from Go's heap", Package: of, Run: "^TestAWarmOperationAllocatesNothing$",
			Edits: []Edit{{"compute/ops.releaseSlot", "slots.Put(s)", ""}},
		},
		{
			Name: "a product is planned each time", Package: of, Run: "^TestAWarmOperationAllocatesNothing$",
			Edits: []Edit{{"compute/ops.(*set).way", "w != nil", "w != nil && w.of == 0"}},
		},
		{
			Name: "a product is computed beside its strided output", Package: of, Run: "^TestMatmul$",
			Edits: []Edit{{"compute/ops.(*product).with", "p.all[i] = packed", "p.all[max(i, 1)] = packed"}},
		},
		{
			Name: "a vector on the left of a product is a column", Package: of, Run: "^TestMatmulOfVectors$",
			Edits: []Edit{{"compute/ops.(*vectors).row", "v.matrix(t, v.x, 0)", "v.matrix(t, v.x, -1)"}},
		},
		{
			Name: "a batch with a gap is multiplied as if it had none", Package: of, Run: "^TestMatmulOfBatchesWithGaps$",
			Edits: []Edit{{"compute/ops.batch.matrix", "!first && stride != next", "!first && next < 0"}},
		},
		{
			Name: "the bias of a moment is not corrected", Package: of, Run: "^TestAdamW$",
			Edits: []Edit{{"compute/ops.(*key).adamW", "v.Div(correction(beta2)).Sqrt()", "v.Sqrt()"}},
		},
		{
			Name: "a kernel is made anew for each call", Package: of, Run: "^TestAWarmOperationAllocatesNothing$",
			Edits: []Edit{
				{"compute/ops.(*set).entry", "known.key == *k", "known.key == *k && k.op == 0"},
				{"compute/ops.(*set).entry", "e := (*s.entries.Load())[*k]; e != nil", "e := (*s.entries.Load())[*k]; e != nil && k.op == 0"},
			},
		},
		{
			Name: "tensors with gaps make a step as if they had none", Package: of, Run: "^TestAdamWAll$",
			Edits: []Edit{{"compute/ops.(*AdamWState).dense", "end-first == one.Len()", "end-first >= one.Len()"}},
		},
		{
			Name: "tensors in different orders make a step as if they had one", Package: of, Run: "^TestAdamWAll$",
			Edits: []Edit{{"compute/ops.(*AdamWState).dense", "same && l.Stride(d) == one.Stride(d)", "same && l.Stride(d) == l.Stride(d)"}},
		},
		{
			Name: "tensors of another type make no step", Package: of, Run: "^TestAdamWAll$",
			Edits: []Edit{{"compute/ops.Optimizers.AdamWAll", "first < i", "first < i || i > 0"}},
		},
		{
			Name: "a block of many tensors belongs to the one before", Package: of, Run: "^TestAdamWAll$",
			Edits: []Edit{{"compute/kernel/routine.(*writer).search", "code.LtU32, block, w.loadParam(slots[half].begin, 4)", "code.GeU32, w.loadParam(slots[half].begin, 4), block"}},
		},
		{
			Name: "a graph of an optimizer makes the same step again", Package: of, Run: "^TestAdamWAllInAGraph$",
			Edits: []Edit{{"compute/kernel/routine.(*writer).adamWStep", "step := w.loadWord(stepAt)", "step := code.F32(1)"}},
		},
		{
			Name: "an index below zero reads memory", Package: of, Run: "^TestAnIndexOutOfRangeTraps$",
			Edits: []Edit{{"compute/kernel/routine.(*writer).checked", "code.GeU64, index, length", "code.GeS64, index, length"}},
		},
		{
			Name: "an index at the end reads memory", Package: of, Run: "^TestAnIndexOutOfRangeTraps$",
			Edits: []Edit{{"compute/kernel/routine.(*writer).checked", "w.Op2(code.GeU64, index, length)", "w.Op2(code.LtU64, length, index)"}},
		},
		{
			Name: "indices have the width of others", Package: of, Run: "^TestGather$",
			Edits: []Edit{{"compute/kernel/routine.(*writer).loadIndex", "of == tensor.Int64", "of != tensor.Int64"}},
		},
		{
			Name: "wide elements are read at places that are not aligned for them", Package: of, Run: "^TestEmbeddingOfColumns$",
			Edits: []Edit{{"compute/ops.(*routineFrame).widened", "ok = ok && strides[k]%by == 0", "ok = ok && strides[k] >= 0"}},
		},
		{
			Name: "keys of a sum are sorted by their lowest digit alone", Package: of, Run: "^TestScatterAddOfManyIndices$",
			Edits: []Edit{{"compute/ops.(*sum).run", "shift += routine.DigitBits", "shift += 4 * routine.DigitBits"}},
		},
		{
			Name: "a sort does not keep the order of equal keys", Package: of, Run: "^TestScatterAddOfManyIndices$",
			Edits: []Edit{{
				"compute/kernel/routine.(*writer).each", "w.loop(t.count, 1, func(at value) {",
				"w.loop(t.count, 1, func(at value) {\n\t\tat = w.Op2(code.SubS32, w.Op2(code.SubS32, t.count, code.U32(1)), at)",
			}},
		},
		{
			Name: "tiles of a sort do not know of those before", Package: of, Run: "^TestScatterAddOfManyIndices$",
			Edits: []Edit{{"compute/kernel/routine.(*writer).scan", "w.Op2(code.SubS32, up, own)", "w.Op2(code.SubS32, up, up)"}},
		},
		{
			Name: "each index of a row begins its sum anew", Package: of, Run: "^TestScatterAdd$",
			Edits: []Edit{{"compute/kernel/routine.(*writer).segments", "w.Op2(code.EqS32, w.Get(here), key)", "w.Op2(code.NeS32, w.Get(here), w.Get(here))"}},
		},
		{
			Name: "rows in other dimensions have the same key", Package: of, Run: "^TestScatterAdd$",
			Edits: []Edit{{"compute/ops.(*set).scatter", "sum.factor *= n", "sum.factor *= 1"}},
		},
		{
			Name: "a table's gradient begins with what was there", Package: of, Run: "^TestEmbedding$",
			Edits: []Edit{{"compute/ops.(*sum).zero", "s.zeroed == nil", "s.zeroed == nil || s.frame.items.rank > 0"}},
		},
		{
			Name: "random numbers have nine rounds", Package: "compute/kernel/routine", Run: "^TestPhiloxKnownAnswers$",
			Edits: []Edit{{"compute/kernel/routine/random.go", "philoxRounds = 10", "philoxRounds = 9"}},
		},
		{
			Name: "the stream is not part of a random counter", Package: of, Run: "^TestUniformHasTheKnownAnswers$",
			Edits: []Edit{{"compute/kernel/routine.standard", "low[0], low[1], high[0], high[1]", "low[0], low[1], low[0], high[1]"}},
		},
		{
			Name: "a graph makes the same random numbers again", Package: of, Run: "^TestAfterAndAhead$",
			Edits: []Edit{{"compute/kernel/routine.(*writer).random", "code.AddS64, offset, more", "code.AddS64, offset, code.U64(0)"}},
		},
		{
			Name: "the next random numbers are some of those before", Package: of, Run: "^TestAfterAndAhead$",
			Edits: []Edit{{"compute/ops.Random.After", "uint64(elements+1) / 2", "uint64(elements+1) / 4"}},
		},
		{
			Name: "random numbers are written without regard to the layout", Package: of, Run: "^TestRandomNumbersAreThoseOfTheHost$",
			Edits: []Edit{{"compute/ops.Randoms.into", "l.Contiguous() && ", ""}},
		},
		{
			Name: "joined tensors overwrite each other", Package: of, Run: "^TestConcat$",
			Edits: []Edit{{"compute/ops.Makers.concat", "from += n", "from += 0 * n"}},
		},
		{
			Name: "an operand is overwritten by another one before it is joined", Package: of, Run: "^TestMistakesOfConcat$",
			Edits: []Edit{{"compute/ops.(*set).apartFrom", "f.operands[0].overlaps(&f.operands[1])", "f.operands[0].overlaps(&f.operands[1]) && len(all) > 9"}},
		},
		{
			Name: "the class that is ignored has a gradient", Package: of, Run: "^TestCrossEntropyIgnores$",
			Edits: []Edit{{"compute/ops.(*key).gradientOfRows", "k.unlessIgnored(k.input(2), ", "k.summed("}},
		},
		{
			Name: "the gradient of a norm leaves out the mean", Package: of, Run: "^TestGradientsOfRows$",
			Edits: []Edit{{"compute/ops.(*key).gradientOfRows", "rest := weighted.Sub(weighted.Mean())", "rest := weighted.Sub(expr.Number(0))"}},
		},
	}
}
