package planted

// opsBugs are those of operations on tensors.
func opsBugs() []Bug {
	const of = "ops"
	return []Bug{
		{
			Name: "a gradient is summed along the wrong axis", Package: of, Run: "^TestGradientsOfBroadcasts$",
			Edits: []Edit{{"ops.broadcastAxes", "1 << (len(shape) - 1 - d)", "1 << d"}},
		},
		{
			Name: "numbers of a kernel are not part of its key", Package: of, Run: "^TestSpecialNumbers$",
			Edits: []Edit{{"ops.clamp", "numbers: [4]uint64{math.Float64bits(low), math.Float64bits(high)}", "numbers: [4]uint64{math.Float64bits(low)}"}},
		},
		{
			Name: "the greatest of no elements is a number", Package: of, Run: "^TestReductions$",
			Edits: []Edit{{"ops.reduction", "reducedLen(x, along) == 0", "reducedLen(x, along) < 0"}},
		},
		{
			Name: "a floating-point sum is stored as an integer", Package: of, Run: "^TestTypesOfResults$",
			Edits: []Edit{{"ops.(*set).build", "family(k.out) < family(own)", "family(k.out) > family(own)"}},
		},
		{
			Name: "a class that there is not has a loss", Package: of, Run: "^TestCrossEntropy$",
			Edits: []Edit{{"ops.(*key).row", "expr.Number(math.NaN())", "expr.Number(0)"}},
		},
		{
			Name: "a batch with a gap is multiplied as if it had none", Package: of, Run: "^TestMatmul$",
			Edits: []Edit{{"ops.product.matrix", "!first && stride != next", "!first && next < 0"}},
		},
		{
			Name: "the bias of a moment is not corrected", Package: of, Run: "^TestAdamW$",
			Edits: []Edit{{"ops.(*key).adamW", "v.Div(correction(beta2)).Sqrt()", "v.Sqrt()"}},
		},
		{
			Name: "a kernel is made anew for each call", Package: of, Run: "^TestAWarmOperationAllocatesNothing$",
			Edits: []Edit{{"ops.(*set).entry", "e := (*s.entries.Load())[k]; e != nil", "e := (*s.entries.Load())[k]; e != nil && k.op == 0"}},
		},
	}
}
