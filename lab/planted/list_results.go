package planted

// resultBugs make an operation on tensors compute something else, or take tensors that it cannot.
func resultBugs() []Bug {
	const of = "compute/ops"
	return []Bug{
		{
			Name: "the number of elements of a mean is rounded to their type", Package: of, Run: "^TestLongRowsOfHalves$",
			Edits: []Edit{{"compute/kernel/expr.Expr.per", "typeOf(e), e, count)", "typeOf(e), e, count.Cast(typeOf(e)))"}},
		},
		{
			Name: "a number beside 16-bit elements is rounded to their type", Package: of, Run: "^TestNumbersBesideHalves$",
			Edits: []Edit{{"compute/kernel/expr.promoted", "b = b.typed(numberType(a.Type, b.number))", "b = b.rounded(numberType(a.Type, b.number))"}},
		},
		{
			Name: "a product is stored over what it reads", Package: of, Run: "^TestMatmulIntoAnOperand$",
			Edits: []Edit{{"cuda/gemm.Problem.CheckOperands", "if i == 0 || i == 1", "if i == 1"}},
		},
		{
			Name: "columns beside each other of one matrix are refused", Package: "compute/kernel/matmul", Run: "^TestOverlappingOperands$",
			Edits: []Edit{{"cuda/gemm.(*operand).overlaps", "pitch != y.pitchBytes", "pitch > 0"}},
		},
		{
			Name: "a gradient is made of one that was written before", Package: of, Run: "^TestGradientsOverOperands$",
			Edits: []Edit{{"compute/ops.(*step).unread", "shared || err != nil", "shared && err != nil"}},
		},
		{
			Name: "two gradients are written to one tensor", Package: of, Run: "^TestGradientsOverOperands$",
			Edits: []Edit{{"compute/ops.(*step).check", "apart(s.out, later[i].out)", "apart(nil, later[i].out)"}},
		},
		{
			Name: "a step of AdamW reads the gradient from the parameter", Package: of, Run: "^TestAdamWOverItsGradient$",
			Edits: []Edit{{"compute/ops.Optimizers.AdamW", "{s.Grad, rate, step}", "{rate, step}"}},
		},
		{
			Name: "one step changes a parameter twice", Package: of, Run: "^TestMistakesOfAdamWAll$",
			Edits: []Edit{{"compute/ops.(*routineFrame).separate", "s.first < written || s.written && s.first < all", "s.first > all"}},
		},
		{
			Name: "a weight of another length is repeated over the row", Package: of, Run: "^TestShapesOfWeights$",
			Edits: []Edit{{"compute/ops.fitsLast", "t.Dim(-d) != x.Dim(-d)", "t.Dim(-d) < 0"}},
		},
		{
			Name: "a floating-point number wraps around in a short integer", Package: of, Run: "^TestCastsTakeTheNearestNumber$",
			Edits: []Edit{{"compute/kernel/plan.(*element).cast", "e.nearest(to, v)", "e.narrow(to, v)"}},
		},
		{
			Name: "the last number of a range wraps around", Package: of, Run: "^TestNumbersThatAreNone$",
			Edits: []Edit{{"compute/ops.counts", "holds(out.Type(), last)", "holds(out.Type(), start)"}},
		},
		{
			Name: "random numbers have bounds in the wrong order", Package: of, Run: "^TestNumbersThatAreNone$",
			Edits: []Edit{{"compute/ops.Randoms.into", "!(scale >= 0)", "scale != scale"}},
		},
		{
			Name: "a tensor is cast to no type", Package: of, Run: "^TestNumbersThatAreNone$",
			Edits: []Edit{{"compute/ops.Makers.Cast", "x.Type().Valid() && !to.Valid()", "x.Type().Valid() && to > 99"}},
		},
		{
			Name: "a compiler that is frozen compiles", Package: of, Run: "^TestFreeze$",
			Edits: []Edit{{"compute/kernel.(*Compiler).Freeze", "c.prepared.Store(true)", "c.prepared.Store(false)"}},
		},
		{
			Name: "code of the store is not taken where nothing may be compiled", Package: of, Run: "^TestPreparedFromAStore$",
			Edits: []Edit{{"compute/kernel.(*Compiler).allowed", "case c.store == nil:", "case !known:"}},
		},
		{
			Name: "routines compile where nothing may be compiled", Package: of, Run: "^TestFreeze$",
			Edits: []Edit{{"compute/kernel.(*Compiler).Function", `function(c.allowed(nil, text), entry)`, "c.RawPTX(text, entry)"}},
		},
		{
			Name: "an operation that is repeated has another sum", Package: of, Run: "^TestEveryOperationRepeats$",
			Edits: []Edit{{"compute/kernel/plan.(*writer).lastBlock", `"st.global.b32 [%v], %v", ticket, w.Register(code.U32(0))`, `"ld.global.b32 %v, [%v]", w.New(code.B32), ticket`}},
		},
		{
			Name: "a loss beside an infinite logit is infinite", Package: of, Run: "^TestSpecialNumbersOfRows$",
			Edits: []Edit{{"compute/ops.(*key).row", "total.Log().Sub(picked.Sub(greatest))", "x.LogSumExp().Sub(picked)"}, {"compute/ops.(*key).row", "greatest, total := x.Exponentials()", ""}},
		},
		{
			Name: "the gradient of relu is NaN where the operand is negative", Package: of, Run: "^TestSpecialNumbersOfActivations$",
			Edits: []Edit{{"compute/ops.(*key).gradient", "expr.Select(x.Le(expr.Number(0)), expr.Number(0), g)", "expr.Select(x.Le(expr.Number(0)), g.Mul(expr.Number(0)), g)"}},
		},
		{
			Name: "the gradient of a broadcast divisor has the sign of the other", Package: of, Run: "^TestIntoOfViews$",
			Edits: []Edit{{"compute/ops.(*key).gradient", "k.summed(g.Neg().Mul(x.Div", "k.summed(g.Mul(x.Div"}},
		},
		{
			Name: "another name of a kernel makes a measurement worthless", Package: "compute/kernel", Run: "^TestTheTableHasTheCodeThatThereIs$",
			Edits: []Edit{{"compute/kernel.(*Kernel).text", "program.Code(", "program.Emit("}},
		},
		{
			Name: "kernels over different axes have one name", Package: "compute/kernel/plan", Run: "^TestNamesOfKernels$",
			Edits: []Edit{{"compute/kernel/plan.New", "g.mix(fmt.Append(nil, axes))", "g.mix(nil)"}},
		},
		{
			Name: "a failure has the name of another operation", Package: of, Run: "^TestNamesInFailures$",
			Edits: []Edit{{"compute/ops.renamed", "e.Op = op.String()", "_ = e"}},
		},
		{
			Name: "a replay takes deadlocks for want of memory", Package: "lab/replay", Run: "^TestACopyThatNeverFitsFails$",
			Edits: []Edit{{"lab/replay.(*player).failed", "		p.deadlocked++\n", ""}},
		},
	}
}
