package planted

func namedPrecision() Promise {
	return Promise{"each operation keeps its error bound and reads and writes its own elements only", []Bug{
		{
			Name: "a NaN is not the maximum", Package: "compute/kernel/plan", Run: "^TestRandomReductionsOfRandomLayouts$",
			Edits: []Edit{
				{"compute/kernel/plan.(*element).extreme", "code.U32(0x7fffffff), v, e.Op2(code.NanF32", "v, v, e.Op2(code.NanF32"},
			},
		},
		{
			Name: "an int8 does not wrap around", Package: "compute/kernel/plan", Run: "^TestRandomExpressionsOnRandomLayouts$",
			Edits: []Edit{{"compute/kernel/plan.(*element).cast", "e.rounded(to, e.narrow(to, v))", "e.rounded(to, v)"}},
		},
		{
			Name: "a large sine is reduced like a small one", Package: "compute/kernel/elementary", Run: "^TestErrors$",
			Edits: []Edit{{"compute/kernel/elementary.m.reduced", "number(nearLimit)", "number(1e9)"}},
		},
		{
			Name:    "a vector is loaded from an address that is not aligned",
			Package: "compute/kernel/plan", Run: "^TestElementsOfContiguousTensors$",
			Edits: []Edit{{"compute/kernel/plan.(*Program).aligned", "addresses[k]%uint64(piece) != 0 || ", ""}},
		},
		{
			Name: "the last elements of a long row are left out", Package: "compute/kernel/plan", Run: "^TestSumsOfRows$",
			Edits: []Edit{
				{"compute/kernel/plan.(*writer).scan", "if vector == 1 || w.v.Outer > 0", "if vector >= 1 || w.v.Outer > 0"},
			},
		},
		{
			Name: "all blocks of a split row make its values", Package: "compute/kernel/plan", Run: "^TestSumsOfSplitRows$",
			Edits: []Edit{{"compute/kernel/plan.(*writer).lastBlock", "last := w.Op2(code.EqS32,", "last := w.Op2(code.LeS32,"}},
		},
		{
			Name: "a tile reads beyond the last row", Package: "compute/kernel/plan", Run: "^TestTransposedCopies$",
			Edits: []Edit{{"compute/kernel/plan.(*tile).inside", "t.w.Less(at[last-1], t.rows)", "t.w.Less(at[last], t.cols)"}},
		},
		{
			Name: "the bias of a moment is not corrected", Package: "compute/ops", Run: "^TestAdamW$",
			Edits: []Edit{{"compute/ops.(*key).adamW", "v.Div(correction(beta2)).Sqrt()", "v.Sqrt()"}},
		},
		{
			Name: "an index below zero reads memory", Package: "compute/ops", Run: "^TestAnIndexOutOfRangeTraps$",
			Edits: []Edit{{"compute/kernel/routine.(*writer).checked", "code.GeU64, index, length", "code.GeS64, index, length"}},
		},
		{
			Name: "fma of single precision is rounded twice", Package: "compute/ptx/interp", Run: "^TestFmaIsRoundedOnce$",
			Edits: []Edit{{"compute/ptx/interp.fma32", "word&low != half &&", "(word&low != half || word != 0) &&"}},
		},
		{
			Name:    "a reshape makes a view where no strides do it",
			Package: "compute/tensor/layout", Run: "^TestViewsAreThoseOfTheReference$",
			Edits: []Edit{{"compute/tensor/layout.Layout.Reshape", "left%n != 0", "left < 0"}},
		},
		{
			Name:    "a copy writes over elements that it has yet to read",
			Package: "compute/tensor", Run: "^TestCopiesWithinAStorage$",
			Edits: []Edit{{"compute/tensor.Copy", "!layout.Meet(dst.layout, from)", "layout.Meet(dst.layout, from)"}},
		},
		{
			Name: "an output may overlap an input", Package: "compute/kernel", Run: "^TestOperandsThatDoNotFit$",
			Edits: []Edit{{"compute/kernel.(*frame).overlaps", "f.layouts[out] == f.layouts[other] && a == b", "a == b"}},
		},
	}}
}
