package planted

// kernelBugs are those of expressions, plans of kernels, elementary functions, and runs of kernels.
func kernelBugs() []Bug {
	const (
		plans, functions, kernels    = "compute/kernel/plan", "compute/kernel/elementary", "compute/kernel"
		elements, reductions, errors = "^TestRandomExpressionsOnRandomLayouts$", "^TestRandomReductionsOfRandomLayouts$", "^TestErrors$"
	)
	return []Bug{
		{
			Name: "a thread leaves out the last of the elements that it keeps", Package: "compute/kernel/plan", Run: "^TestSchedulesComputeTheSame$",
			Edits: []Edit{{"compute/kernel/plan.(*writer).keepRow", "range int(w.v.Repeat)", "range max(int(w.v.Repeat)-1, 1)"}},
		},
		{
			Name: "a vector is loaded from an address that is not aligned", Package: plans, Run: "^TestElementsOfContiguousTensors$",
			Edits: []Edit{{"compute/kernel/plan.(*Program).aligned", "addresses[k]%uint64(piece) != 0 || ", ""}},
		},
		{
			Name: "a dimension is merged where one operand alone allows it", Package: plans, Run: elements,
			Edits: []Edit{{"compute/kernel/plan.merged", "joins = joins && strides", "joins = strides"}},
		},
		{
			Name: "the last elements of a long row are left out", Package: plans, Run: "^TestSumsOfRows$",
			Edits: []Edit{{"compute/kernel/plan.(*writer).scan", "if vector == 1 || w.v.Outer > 0", "if vector >= 1 || w.v.Outer > 0"}},
		},
		{
			Name: "of equal elements the last one is the greatest", Package: plans, Run: reductions,
			Edits: []Edit{{"compute/kernel/plan.(*reduction).combineArg", "code.LtS64, b[1], a[1]", "code.GtS64, b[1], a[1]"}},
		},
		{
			Name: "a NaN is not the maximum", Package: plans, Run: reductions,
			Edits: []Edit{{"compute/kernel/plan.(*element).extreme", "code.U32(0x7fffffff), v, e.Op2(code.NanF32", "v, v, e.Op2(code.NanF32"}},
		},
		{
			Name: "all blocks of a split row make its values", Package: plans, Run: "^TestSumsOfSplitRows$",
			Edits: []Edit{{"compute/kernel/plan.(*writer).lastBlock", `last := w.Op2(code.EqS32,`, `last := w.Op2(code.LeS32,`}},
		},
		{
			Name: "the tickets of a split row are not put back", Package: plans, Run: "^TestSumsOfSplitRows$",
			Edits: []Edit{{"compute/kernel/plan.(*writer).lastBlock", `"st.global.b32 [%v], %v", ticket, w.Register(code.U32(0))`, `"ld.global.b32 %v, [%v]", w.New(code.B32), ticket`}},
		},
		{
			Name: "the lines of a tile begin at the same bank", Package: plans, Run: "^TestTilesHaveNoBankConflicts$",
			Edits: []Edit{{"compute/kernel/plan.tilePitch", "side*size + max(size, 4)", "side*size + 0*max(size, 4)"}},
		},
		{
			Name: "a tile is read before all of it was written", Package: plans, Run: "^TestTransposedCopies$",
			Edits: []Edit{{"compute/kernel/plan.(*writer).tiled", `w.Line("bar.sync 0")`, ""}},
		},
		{
			Name: "a tile reads beyond the last row", Package: plans, Run: "^TestTransposedCopies$",
			Edits: []Edit{{"compute/kernel/plan.(*tile).inside", "t.w.less(at[last-1], t.rows)", "t.w.less(at[last], t.cols)"}},
		},
		{
			Name: "an int8 does not wrap around", Package: plans, Run: elements,
			Edits: []Edit{{"compute/kernel/plan.(*element).cast", "e.rounded(to, e.narrow(to, v))", "e.rounded(to, v)"}},
		},
		{
			Name: "an exponential has a wrong coefficient", Package: functions, Run: errors,
			Edits: []Edit{{"compute/kernel/elementary.m.expReduced", "1.66664720e-1", "1.66664000e-1"}},
		},
		{
			Name: "a large sine is reduced like a small one", Package: functions, Run: errors,
			Edits: []Edit{{"compute/kernel/elementary.m.reduced", "number(nearLimit)", "number(1e9)"}},
		},
		{
			Name: "an odd power of a negative number is positive", Package: functions, Run: "^TestPowOfSpecialNumbers$",
			Edits: []Edit{{"compute/kernel/elementary.BuildPow", "m.pick(odd, m.signed(", "m.pick(m.and(odd, code.Bool(false)), m.signed("}},
		},
		{
			Name: "an output may overlap an input", Package: kernels, Run: "^TestOperandsThatDoNotFit$",
			Edits: []Edit{{"compute/kernel.(*frame).overlaps", "f.layouts[out] == f.layouts[other] && a == b", "a == b"}},
		},
		{
			Name: "an output may overlap an input in a warm run", Package: kernels, Run: "^TestAWarmRunChecksItsTensors$",
			Edits: []Edit{{"compute/kernel.(*frame).again", "e.aligned(f) && !r.overlap(f)", "e.aligned(f)"}},
		},
		{
			Name: "a warm run takes a tensor of another type", Package: kernels, Run: "^TestAWarmRunChecksItsTensors$",
			Edits: []Edit{{"compute/tensor.(*Tensor).Has", "t.of == of && ", ""}},
		},
		{
			Name: "a run makes its launch anew", Package: kernels, Run: "^TestAWarmRunAllocatesNothing$",
			Edits: []Edit{{"compute/kernel.(*frame).ready", "f.kept.ready.Store(r)", ""}},
		},
		{
			Name: "split rows have the tickets of another context", Package: kernels, Run: "^TestTicketsAreOfAContext$",
			Edits: []Edit{{"compute/kernel.(*ready).ticketsOf", "|| t.on != c ", ""}},
		},
		{
			Name: "a variant is compiled for each kernel", Package: kernels, Run: "^TestAVariantIsCompiledOnce$",
			Edits: []Edit{{"compute/kernel.(*Compiler).claim", "known && !c.closed {", "known && !c.closed && p.Pending() {"}},
		},
		{
			Name: "a run compiles what was not prepared", Package: kernels, Run: "^TestPreparedKernels$",
			Edits: []Edit{{"compute/kernel.(*Compiler).allowed", "!c.prepared.Load()", "c.on != nil"}},
		},
	}
}
