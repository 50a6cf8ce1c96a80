package planted

func checkedText() Promise {
	return Promise{"the checker refuses PTX that a driver refuses", []Bug{
		{
			Name: "a load reaches past the end of a variable", Package: "compute/ptx", Run: "^TestMistakesInInstructions$",
			Edits: []Edit{{"compute/ptx.(*visible).placeMisfit", "o.Offset+size > end", "o.Offset > end"}},
		},
		{
			Name: "an instruction is too new for the architecture", Package: "compute/ptx", Run: "^TestMistakesInInstructions$",
			Edits: []Edit{{"compute/ptx.(*reporter).has", " && t.SM >= n.sm", ""}},
		},
		{
			Name: "a body runs past its end after a guarded return", Package: "compute/ptx", Run: "^TestMistakesInDeclarations$",
			Edits: []Edit{{"compute/ptx.(*declarations).ends", "leaves && last.Guard.Kind == OperandNone", "leaves"}},
		},
		{
			Name: "a constant out of its limits is accepted", Package: "compute/ptx", Run: "^TestNeighbours$",
			Edits: []Edit{{"compute/ptx.(*limits).misfit", "value < l.low || value > high", "value < l.low"}},
		},
	}}
}
