package planted

// tensorBugs are those of tensors, their layouts, and numbers of 16 bits.
func tensorBugs() []Bug {
	const (
		pkg, layouts, halves = "compute/tensor", "compute/tensor/layout", "compute/tensor/half"
		views, copies        = "^TestViewsAreThoseOfTheReference$", "^TestCopiesMoveEachElement$"
	)
	return []Bug{
		{
			Name: "a length of -1 that is there twice is another mistake", Package: "compute/tensor/layout", Run: "^TestShapesThatCannotBeAreRefused$",
			Edits: []Edit{{"compute/tensor/layout.(*Layout).completed", "slices.Contains(shape[open+1:], -1)", "slices.Contains(shape[open+1:], -2)"}},
		},
		{
			Name: "a view that is printed says that it is none", Package: "compute/tensor", Run: "^TestFormattedTensors$",
			Edits: []Edit{{"compute/tensor.(*Tensor).view", "of: t.of, isView: true}", "of: t.of}"}},
		},
		{
			Name: "a slice of a tensor has an index too few", Package: layouts, Run: views,
			Edits: []Edit{{"compute/tensor/layout.ceil", "(n-1)/by + 1", "n / by"}},
		},
		{
			Name: "a reshape makes a view where no strides do it", Package: layouts, Run: views,
			Edits: []Edit{{"compute/tensor/layout.Layout.Reshape", "left%n != 0", "left < 0"}},
		},
		{
			Name: "a broadcast dimension keeps its stride", Package: layouts, Run: views,
			Edits: []Edit{{"compute/tensor/layout.Layout.Broadcast", "case l.shape[i-lead] == 1:\n\t\t\tto.strides[i] = 0", "case l.shape[i-lead] == 1:\n\t\t\tto.strides[i] = l.strides[i-lead]"}},
		},
		{
			Name: "a view that repeats elements is said to have none twice", Package: layouts, Run: views,
			Edits: []Edit{{"compute/tensor/layout.Layout.MayOverlap", "a.stride <= reach", "a.stride < reach"}},
		},
		{
			Name: "the number of elements overflows", Package: layouts, Run: "^TestShapesThatCannotBeAreRefused$",
			Edits: []Edit{{"compute/tensor/layout.product", "hi != 0 || lo > math.MaxInt", "hi != 0 && lo > math.MaxInt"}},
		},
		{
			Name: "dimensions are merged by the strides of one layout", Package: layouts, Run: "^TestLayoutsAreCoalescedTogether$",
			Edits: []Edit{{"compute/tensor/layout.coalesce", "for i := range all {\n\t\t\tmerges", "for i := range all[:1] {\n\t\t\tmerges"}},
		},
		{
			Name: "far elements are indexed in 32 bits", Package: layouts, Run: "^TestLargeLayouts$",
			Edits: []Edit{{"compute/tensor/layout.Layout.Fits32", "end <= math.MaxInt32 && ", "end >= 0 && "}},
		},
		{
			Name: "elements are doubled before they are there", Package: layouts, Run: copies,
			Edits: []Edit{{"compute/tensor/layout.(*plan).repeat", "more := min(done, n-done)", "more := n - done"}},
		},
		{
			Name: "rows are further apart than the driver copies them", Package: layouts, Run: "^TestCopiesAreFew$",
			Edits: []Edit{{"compute/tensor/layout.(*plan).copy", " <= p.maxPitch", " <= p.maxPitch*2"}},
		},
		{
			Name: "a reversed dimension is copied from its wrong end", Package: layouts, Run: copies,
			Edits: []Edit{{"compute/tensor/layout.ordered", "dst.reversed(d), src.reversed(d)", "dst.reversed(d), src"}},
		},
		{
			Name: "bfloat16 rounds away from zero", Package: halves, Run: "^TestConversionsRoundToTheNearest$",
			Edits: []Edit{{"compute/tensor/half.NewBFloat16", "0x7fff + bits>>16&1", "0x8000"}},
		},
		{
			Name: "a bfloat16 that is no number becomes infinite", Package: halves, Run: "^TestConversionsRoundToTheNearest$",
			Edits: []Edit{{"compute/tensor/half.NewBFloat16", "bits>>16 | 1<<6", "bits >> 16 &^ 0x7f"}},
		},
		{
			Name: "a view in a slot leads out of the memory", Package: pkg, Run: "^TestMistakesWithSlots$",
			Edits: []Edit{{"compute/tensor.(*Slot).View", "l.Len() > 0 &&", "l.Len() < 0 &&"}},
		},
		{
			Name: "a slot keeps the tensor that it had", Package: pkg, Run: "^TestASlotHasOneTensorAtATime$",
			Edits: []Edit{{"compute/tensor.(*Slot).Clear", "s.storage.memory.Store(nil)", ""}},
		},
		{
			Name: "a view frees the storage", Package: pkg, Run: "^TestUseAfterFree$",
			Edits: []Edit{{"compute/tensor.(*Tensor).Free", "case t.owner != t:", "case t.owner == nil:"}},
		},
		{
			Name: "a freed tensor is used through a view", Package: pkg, Run: "^TestUseAfterFree$",
			Edits: []Edit{{"compute/tensor.(*storage).freed", "m != nil && !m.buffer.Live()", "m != nil && m.buffer.Bytes() == 0"}},
		},
		{
			Name: "a tensor that was freed before its first use allocates", Package: pkg, Run: "^TestMemoryIsAllocatedAtTheFirstUse$",
			Edits: []Edit{{"compute/tensor.(*storage).free", "s.memory.CompareAndSwap(nil, &memory{})", "s.memory.CompareAndSwap(nil, nil)"}},
		},
		{
			Name: "a first use that comes late keeps its memory", Package: pkg, Run: "^TestAFirstUseThatIsLate$",
			Edits: []Edit{{"compute/tensor.(*storage).buffer", "err := own.buffer.Free()", "err := error(nil)"}},
		},
		{
			Name: "zeros have the values of the memory", Package: pkg, Run: "^TestMemoryIsAllocatedAtTheFirstUse$",
			Edits: []Edit{{"compute/tensor.(*storage).allocate", "if s.zeroed {", "if false {"}},
		},
		{
			Name: "a number of 8 bytes is filled in by its lower half", Package: pkg, Run: "^TestElementsOfEachType$",
			Edits: []Edit{{"compute/tensor.fill", "word(0) == word(4)", "word(0) != word(4)+1"}},
		},
		{
			Name: "a scope that fails keeps its tensors", Package: pkg, Run: "^TestAScopeThatFailsFreesItsTensors$",
			Edits: []Edit{{"compute/tensor.Scoped", "	return f(s)\n", "	if err = f(s); err != nil {\n\t\ts.made = nil\n\t}\n\treturn err\n"}},
		},
		{
			Name: "a kept tensor belongs to no scope", Package: pkg, Run: "^TestNestedScopes$",
			Edits: []Edit{{"compute/tensor.(*Scope).Keep", "if around != nil {", "if around == s {"}},
		},
		{
			Name: "a scope confuses its tensors after some were freed", Package: pkg, Run: "^TestAScopeForgetsFreedTensors$",
			Edits: []Edit{{"compute/tensor.(*Scope).compact", "t.storage.index = i", "t.storage.index += i - i"}},
		},
		{
			Name: "the list of a scope grows with tensors that are freed", Package: pkg, Run: "^TestAScopeForgetsFreedTensors$",
			Edits: []Edit{{"compute/tensor.(*Scope).live", "t != nil && !t.storage.freed()", "t != nil"}},
		},
		{
			Name: "a tensor that could not be filled stays allocated", Package: pkg, Run: "^TestATensorThatCouldNotBeFilled$",
			Edits: []Edit{{"compute/tensor.filled", "errors.Join(err, t.Free())", "errors.Join(err, nil)"}},
		},
		{
			Name: "a copy writes over elements that it has yet to read", Package: pkg, Run: "^TestCopiesWithinAStorage$",
			Edits: []Edit{{"compute/tensor.Copy", "!layout.Meet(dst.layout, from)", "layout.Meet(dst.layout, from)"}},
		},
		{
			Name: "the buffer of a staged copy is not freed", Package: pkg, Run: "^TestCopiesWithinAStorage$",
			Edits: []Edit{{"compute/tensor.staged", "freed := stage.Free()", "freed := error(nil)"}},
		},
		{
			Name: "a copy of a repeated element reads the source on", Package: pkg, Run: "^TestProgramsDoTheirWork$",
			Edits: []Edit{{"compute/tensor.rows.copy", "if r.Again {", "if r.Again && r.Count > 1 {"}},
		},
		{
			Name: "a copy of contiguous elements begins where the storage does", Package: pkg, Run: "^TestProgramsDoTheirWork$",
			Edits: []Edit{{"compute/tensor.(*Tensor).part", "int64(t.layout.Offset())*size", "0"}},
		},
		{
			Name: "a copy of strided elements takes those that lie together", Package: pkg, Run: "^TestProgramsDoTheirWork$",
			Edits: []Edit{{"compute/tensor.Copy", "dst.layout.Contiguous() && from.Contiguous()", "dst.layout.Contiguous()"}},
		},
		{
			Name: "printing shows the middle of a large tensor", Package: pkg, Run: "^TestLargeTensorsAreElided$",
			Edits: []Edit{{"compute/tensor.texts", "p.dims[dim].length - edge, edge", "edge, edge"}},
		},
	}
}
