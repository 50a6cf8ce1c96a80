package planted

// numberBugs lose the sign of a zero, or a result that is a number where a step on the way to it is none.
func numberBugs() []Bug {
	const of = "compute/ops"
	return []Bug{
		{
			Name: "tanh of -0 is +0", Package: "compute/kernel/elementary", Run: "^TestSpecialNumbersOfFunctions$",
			Edits: []Edit{{
				"compute/kernel/elementary.BuildTanh", "m.signed(m.pick(m.lt(t, number(0.55)), near, far), x)",
				"m.pick(m.lt(t, number(0.55)), m.fma(m.mul(near, number(0)), x, m.pick(m.lt(x, number(0)), m.neg(near), near)), m.signed(far, x))",
			}},
		},
		{
			Name: "the divisor's gradient multiplies before it divides", Package: of, Run: "^TestGradientsDoNotOverflowBetween$",
			Edits: []Edit{{"compute/ops.(*key).gradient", "g.Neg().Mul(x.Div(y).Div(y))", "g.Neg().Mul(x).Div(y).Div(y)"}},
		},
		{
			Name: "the gradient of rsqrt takes a cube of its own", Package: of, Run: "^TestGradientsDoNotOverflowBetween$",
			Edits: []Edit{{"compute/ops.(*key).derivative", ".Mul(y).Mul(y).Mul(y)", ".Mul(y.Square().Mul(y))"}},
		},
		{
			Name: "the gradient of GELU by tanh multiplies 0 by an infinity", Package: of, Run: "^TestGradientsDoNotOverflowBetween$",
			Edits: []Edit{{"compute/ops.(*key).gradient", "x.Square().Minimum(expr.Number(1e30))", "x.Square()"}},
		},
		{
			Name: "the gradient of softmax subtracts before it multiplies", Package: of, Run: "^TestGradientsDoNotOverflowBetween$",
			Edits: []Edit{{"compute/ops.(*key).gradientOfRows", "expr.Fma(g, x, x.Mul(g.Mul(x).Sum().Neg()))", "x.Mul(g.Sub(g.Mul(x).Sum()))"}},
		},
		{
			Name: "the mean of equal elements is rounded", Package: of, Run: "^TestLayerNormOfEqualElements$",
			Edits: []Edit{{"compute/kernel/expr.Expr.center", ".Mul(Number(nearSample))", ".Mul(Number(0))"}},
		},
		{
			Name: "an infinite sum is the mean", Package: of, Run: "^TestLayerNormOfEqualElements$",
			Edits: []Edit{{"compute/kernel/expr.Expr.center", "Select(far.And(mean.Abs().Lt(Number(math.Inf(1)))), mean, sample)", "Select(far, mean, sample)"}},
		},
		{
			Name: "the mean of the distances is not taken from the variance", Package: "compute/kernel/plan", Run: "^TestMomentsOfHardRows$",
			Edits: []Edit{{"compute/kernel/expr.Expr.Moments", "Fma(d.Sum().Neg(), d.Mean(), d.Square().Sum())", "d.Square().Sum()"}},
		},
		{
			Name: "an epsilon of 0 divides by 0", Package: of, Run: "^TestTheZeroConfigurationOfAdamW$",
			Edits: []Edit{{"compute/ops.AdamWConfig.filled", "a.Epsilon = usualEpsilon", "a.Epsilon = 1e-45"}},
		},
		{
			Name: "an index out of range is not told", Package: of, Run: "^TestAnIndexOutOfRangeTraps$",
			Edits: []Edit{{"compute/ptx/interp.(*warp).trapped", "before.writePreds[0] != in.guard", "before.writePreds[0] == in.guard"}},
		},
		{
			Name: "a buffer that is not live has no call", Package: "cuda", Run: "^TestABufferThatIsNotLiveIsNamed$",
			Edits: []Edit{{"cuda.named", "ok && e.Call == \"\"", "ok && e.Call != \"\""}},
		},
		{
			Name: "a wrong index names a kernel and no operation", Package: of, Run: "^TestAnIndexOutOfRangeTraps$",
			Edits: []Edit{{"compute/kernel/routine.Kernel.Entry", `k.For == ""`, `k.For != ""`}},
		},
	}
}
