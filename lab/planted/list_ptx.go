package planted

// ptxBugs are those of the package of PTX.
func ptxBugs() []Bug {
	return []Bug{
		{
			Name: "a version of PTX that does not exist is accepted", Package: "compute/ptx", Run: "^TestMistakesInDeclarations$",
			Edits: []Edit{{"compute/ptx.(*checker).checkTarget", "!known || m.Version.Minor > last", "false && !known && last > 0"}},
		},
		{
			Name: "an architecture that the table does not cover has no remark", Package: "compute/ptx", Run: "^TestMistakesInDeclarations$",
			Edits: []Edit{{"compute/ptx.(*checker).remark", "m.Target.SM < oldest.sm", "m.Target.SM < 0"}},
		},
		{
			Name: "a register of an inner scope is that of the outer one", Package: "compute/ptx", Run: "^TestScopes$",
			Edits: []Edit{{"compute/ptx.(*parser).openScope", "newScope(p.scope)", "p.scope"}},
		},
		{
			Name: "a branch out of a scope finds no label behind it", Package: "compute/ptx", Run: "^TestScopes$",
			Edits: []Edit{{"compute/ptx.(*parser).closeScope", "		p.resolveLater(o)\n", ""}},
		},
		{
			Name: "a number of a register may begin with zeros", Package: "compute/ptx", Run: "^TestNamesAreResolved$",
			Edits: []Edit{{"compute/ptx.(*parser).register", ` && (digits == "0" || digits[0] != '0')`, ""}},
		},
		{
			Name: "a negative floating-point number loses its sign", Package: "compute/ptx", Run: "^TestOperands$",
			Edits: []Edit{{"compute/ptx.(*Operand).negate", "o.Value ^= 1 << 31", "o.Value ^= 0"}},
		},
		{
			Name: "an offset below zero is printed as a difference", Package: "compute/ptx", Run: "^TestOperands$",
			Edits: []Edit{{"compute/ptx.offsetText", `fmt.Sprintf("+%d", offset)`, `fmt.Sprintf("%+d", offset)`}},
		},
		{
			Name: "a saturating conversion cannot saturate", Package: "compute/ptx", Run: "^TestMistakesInInstructions$",
			Edits: []Edit{{"compute/ptx/table_logic.go", `".sat.s64.u64"`, `".sat.s64.<u64|u32>"`}},
		},
		{
			Name: "a comment of several lines moves the places behind it", Package: "compute/ptx", Run: "^TestPlacesBehindComments$",
			Edits: []Edit{{"compute/ptx.(*lexer).skipLines", "			l.newLine()\n", ""}},
		},
		{
			Name: "a load reaches past the end of a variable", Package: "compute/ptx", Run: "^TestMistakesInInstructions$",
			Edits: []Edit{{"compute/ptx.(*checker).placeMisfit", "o.Offset+size > end", "o.Offset > end"}},
		},
		{
			Name: "an instruction is too new for the architecture", Package: "compute/ptx", Run: "^TestMistakesInInstructions$",
			Edits: []Edit{{"compute/ptx.(*checker).has", " && t.SM >= n.sm", ""}},
		},
		{
			Name: "a floating-point register stands in an operation of integers", Package: "compute/ptx", Run: "^TestMistakesInInstructions$",
			Edits: []Edit{{"compute/ptx.fits", "return untyped || integers", "return untyped || integers || want != have"}},
		},
		{
			Name: "a body runs past its end behind a guarded return", Package: "compute/ptx", Run: "^TestMistakesInDeclarations$",
			Edits: []Edit{{"compute/ptx.(*checker).ends", "leaves && last.Guard.Kind == OperandNone", "leaves"}},
		},
		{
			Name: "a kernel's header is older than its instructions", Package: "compute/ptx", Run: "^TestTheHeaderFollowsTheInstructions$",
			Edits: []Edit{{"compute/ptx.(*checker).raise", "least = least.and(forms[0].needsOf(i))", "least = least.and(needs{})"}},
		},
	}
}
