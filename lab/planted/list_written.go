package planted

// writtenBugs are those of texts that other compilers write, and of texts that the driver's compiler refuses.
func writtenBugs() []Bug {
	const interp, neighbours = "compute/ptx/interp", "^TestNeighbours$"
	return []Bug{
		{
			Name: "modifiers stand in one order alone", Package: "compute/ptx", Run: neighbours,
			Edits: []Edit{{"compute/ptx.(*slot).take", "passed[kind] = kind == KindSpace || kind == KindLayout", "passed[kind] = true"}},
		},
		{
			Name: "two layouts stand in any order", Package: "compute/ptx", Run: neighbours,
			Edits: []Edit{{"compute/ptx.(*slot).take", "kind == KindSpace || kind == KindLayout", "kind == KindSpace"}},
		},
		{
			Name: "a part of the opcode stands anywhere", Package: "compute/ptx", Run: neighbours,
			Edits: []Edit{{"compute/ptx.(*Instruction).setName", "(n == 0 || !leads(op, m))", "(n == 0 || !leads(op, m) || true)"}},
		},
		{
			Name: "a load has no vector of one element", Package: "compute/ptx", Run: neighbours,
			Edits: []Edit{{"compute/ptx.(*checker).operandMisfit", "s.vector && o.Kind == OperandVector", "false && o.Kind == OperandVector"}},
		},
		{
			Name: "an address has a difference", Package: "compute/ptx", Run: neighbours,
			Edits: []Edit{{"compute/ptx.(*parser).parseAddend", "if p.isMark(\"-\") {", "if p.isMark(\"-\") && false {"}, {"compute/ptx.(*parser).parseAddend", "if p.accept(\"+\") {", "if p.accept(\"+\") || p.isMark(\"-\") {"}},
		},
		{
			Name: "WARP_SZ is a number of 32 bits", Package: "compute/ptx", Run: neighbours,
			Edits: []Edit{{"compute/ptx.(*checker).valueMisfit", "!t.IsInteger() && t.Class() != Untyped", "t.Bits() != 32 || !t.IsInteger() && t.Class() != Untyped"}},
		},
		{
			Name: "a register of f32 is loaded as a number of f64", Package: "compute/ptx", Run: neighbours,
			Edits: []Edit{{"compute/ptx.fits", "return have.Class() == Untyped && isStored(want)", "return isStored(want)"}},
		},
		{
			Name: "a constant out of its limits is accepted", Package: "compute/ptx", Run: neighbours,
			Edits: []Edit{{"compute/ptx.(*limits).misfit", "value < l.low || value > high", "value < l.low"}},
		},
		{
			Name: "a barrier is for part of a warp", Package: "compute/ptx", Run: neighbours,
			Edits: []Edit{{"compute/ptx.(*limits).misfit", "l.multiple > 0 && value%l.multiple != 0", "false && value%l.multiple != 0"}},
		},
		{
			Name: "a body may declare a parameter again", Package: "compute/ptx", Run: neighbours,
			Edits: []Edit{{"compute/ptx.(*Function).names", "names.singles[v.Name] = true", "_ = v.Name"}},
		},
		{
			Name: "an array has no elements", Package: "compute/ptx", Run: neighbours,
			Edits: []Edit{{"compute/ptx.(*checker).checkVariable", "case dim == 0 || dim < Unsized:", "case dim < Unsized:"}},
		},
		{
			Name: "constant memory has no end", Package: "compute/ptx", Run: neighbours,
			Edits: []Edit{{"compute/ptx.(*checker).checkConstants", "v.after(size); size > maxConstBytes {", "v.after(size); size < 0 {"}},
		},
		{
			Name: "an entry has no body", Package: "compute/ptx", Run: neighbours,
			Edits: []Edit{{"compute/ptx.(*checker).checkUndefined", "case f.Entry:", "case f.Entry && f.Body != nil:"}, {"compute/ptx.(*checker).checkUndefined", "f.Linkage != Extern &&", "!f.Entry && f.Linkage != Extern &&"}},
		},
		{
			Name: "a call goes to a function that nobody has", Package: "compute/ptx", Run: neighbours,
			Edits: []Edit{{"compute/ptx.(*checker).callMisfit", "f.Linkage == Extern && !isSystem(f.Name)", "f.Linkage == Extern && false"}},
		},
		{
			Name: "a declaration does not hold its definition", Package: "compute/ptx", Run: neighbours,
			Edits: []Edit{{"compute/ptx.conflict", "v.Type != other.Type ||", "v.Type.Bits() != other.Type.Bits() ||"}},
		},
		{
			Name: "an instruction that is not known refuses its module", Package: "vramtest", Run: "^TestAKernelThatIsNotKnown$",
			Edits: []Edit{{"vramtest/ptxrun.refusal", "!ok || !finding.Lacking ||", "!ok || !finding.Lacking || finding.Function != \"\" ||"}},
		},
		{
			Name: "a launch checks the whole module", Package: "compute/ptx", Run: "^TestOneFunctionIsCheckedAlone$",
			Edits: []Edit{{"compute/ptx.(*checker).checkModule", "c.only == nil || c.only[f]", "c.only == nil || c.only[f] || f.Body != nil"}},
		},
		{
			Name: "a chain loses its carry", Package: interp, Run: "^TestCarryChains$",
			Edits: []Edit{{"compute/ptx/interp.integer.add", "out = sum >> t.width", "out = 0"}},
		},
		{
			Name: "a comparison of a pair looks at one half", Package: interp, Run: "^TestSetOfHalves$",
			Edits: []Edit{{"compute/ptx/interp.(*compiler).set", "fn(a>>16, b>>16)", "fn(a, b)"}},
		},
		{
			Name: "a matrix in columns is read by rows", Package: interp, Run: "^TestProductsInFragments$",
			Edits: []Edit{{"compute/ptx/interp.(*compiler).eachElement", "major, minor = minor, major", "_ = minor"}},
		},
		{
			Name: "a phase of an mbarrier orders nothing", Package: interp, Run: "^TestMbarriersHandOver$",
			Edits: []Edit{{"compute/ptx/interp.(*compiler).mbarrierWait", "w.order.seen.join(done)", "_ = done"}},
		},
		{
			Name: "an mbarrier does not count bytes", Package: interp, Run: "^TestMbarriersHandOver$",
			Edits: []Edit{{"compute/ptx/interp.(*compiler).mbarrierArrive", "case s.pending == 0 && s.tx == 0:", "case s.pending == 0:"}},
		},
	}
}
