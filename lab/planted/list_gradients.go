package planted

// gradientBugs are those of gradients of operations on tensors.
func gradientBugs() []Bug {
	const of = "compute/ops"
	return []Bug{
		{
			Name: "the gradient of rsqrt has the wrong sign", Package: of, Run: "^TestGradientsOfFunctions$",
			Edits: []Edit{{"compute/ops.(*key).derivative", "expr.Number(-0.5)", "expr.Number(0.5)"}},
		},
		{
			Name: "the gradient of sqrt lacks its factor", Package: of, Run: "^TestGradientsOfFunctions$",
			Edits: []Edit{{"compute/ops.(*key).derivative", "g.Div(y.Mul(expr.Number(2)))", "g.Div(y)"}},
		},
		{
			Name: "the gradient of abs at 0 is that of a positive number", Package: of, Run: "^TestSpecialNumbersOfGradients$",
			Edits: []Edit{{"compute/ops.(*key).derivative", "x.Gt(none)", "x.Ge(none)"}},
		},
		{
			Name: "a clamp passes no gradient at its bound", Package: of, Run: "^TestSpecialNumbersOfGradients$",
			Edits: []Edit{{"compute/ops.(*key).derivative", "x.Ge(expr.Number(k.number(0)))", "x.Gt(expr.Number(k.number(0)))"}},
		},
		{
			Name: "both operands of a choice have its gradient", Package: of, Run: "^TestGradientsOfWhere$",
			Edits: []Edit{{"compute/ops.(*key).derivative", "expr.Select(x, none, g)", "expr.Select(x, g, g)"}},
		},
		{
			Name: "the gradient of a broadcast choice is not summed", Package: of, Run: "^TestGradientsOfWhere$",
			Edits: []Edit{{"compute/ops.(*key).derivative", "k.summed(expr.Select(x, none, g))", "expr.Select(x, none, g)"}},
		},
		{
			Name: "each of the greatest elements has the whole gradient", Package: of, Run: "^TestGradientsOfReductions$",
			Edits: []Edit{{"compute/ops.shared", "g.Div(chosen.Sum())", "g"}},
		},
		{
			Name: "the gradient of a mean is not divided by the number of elements", Package: of, Run: "^TestGradientsOfReductions$",
			Edits: []Edit{{"compute/ops.(*set).spread", "float64(reducedLen(dx, along))", "1"}},
		},
		{
			Name: "the gradient of another reduction is taken for that of this one", Package: of, Run: "^TestMistakesOfGradientsOfReductions$",
			Edits: []Edit{{"compute/ops.restored", "result.Dim(d) != n", "result.Dim(d) < n"}},
		},
		{
			Name: "the gradient of a shared matrix is the greatest one of the batch", Package: of, Run: "^TestGradientsOfMatmul$",
			Edits: []Edit{{"compute/ops.(*batchedProduct).added", "summedInto(p.at, key{op: opSum}", "summedInto(p.at, key{op: opMax}"}},
		},
		{
			Name: "matrices that lie apart are multiplied as if they lay one below the other", Package: of, Run: "^TestGradientsOfMatmul",
			Edits: []Edit{{"compute/ops.(*batchedProduct).stack", "!first && stride != next", "!first && next < 0"}},
		},
		{
			Name: "gradients of a batch are rounded to 16 bits before they are added", Package: of, Run: "^TestGradientsOfMatmulOfTypes$",
			Edits: []Edit{{"compute/ops.(*batchedProduct).added", "accumulator(p.of)", "p.of"}},
		},
		{
			Name: "the gradient of a product is submitted before the overlap of the other one is seen", Package: of, Run: "^TestGradientsOfMatmulOverOperands$",
			Edits: []Edit{{"compute/ops.Gradients.matmul", "apart(out[i], t)", "apart(nil, t)"}},
		},
		{
			Name: "a product has the gradients of another precision", Package: of, Run: "^TestPrecisionOfGradientsOfMatmul$",
			Edits: []Edit{{"compute/ops.(*batchedProduct).multiply", "p.how)", "Product{Choice: p.how.Choice})"}},
		},
	}
}
