package planted

// matmulBugs are those of products of matrices, and of the work of libraries.
func matmulBugs() []Bug {
	const ordered = "cuda.(*submission).ordered"
	return []Bug{
		{
			Name: "work on another stream's buffer is not behind the stream", Package: "cuda", Run: "^TestWorkOfALibrary$",
			Edits: []Edit{{ordered, "err = crossing.Before(args[i].buffer)", "_ = crossing"}},
		},
		{
			Name: "a graph does not keep what a library touches", Package: "cuda", Run: "^TestWorkOfALibraryInAGraph$",
			Edits: []Edit{{ordered, "err = held.touch(c, args[i].buffer)", "_ = held"}},
		},
		{
			Name: "a library gets a part that is not within the buffer", Package: "cuda", Run: "^TestWorkOfALibrary$",
			Edits: []Edit{{"cuda.(*Context).LaunchWith", "err = within(a.buffer, a.offset, a.bytes)", "_ = a"}},
		},
		{
			Name: "the library adds parts of 16-bit products in their type", Package: "cuda/cublaslt", Run: "^TestLongSumsOf16BitsAreFloat32$",
			Edits: []Edit{{"cuda/cublaslt.(*Handle).ask", "Out.Bytes() == halfBytes", "Out.Bytes() < halfBytes"}},
		},
		{
			Name: "each product of the library takes new memory from Go's heap", Package: "cuda/cublaslt", Run: "^TestAWarmProductAllocatesNothing$",
			Edits: []Edit{{"cuda/cublaslt.(*submission).release", "submissions.Put(s)", ""}},
		},
		{
			Name: "a library is called in the context of somebody else", Package: "cudadrv/dynamic", Run: "^TestOtherLibrariesHaveTheContext$",
			Edits: []Edit{{"cudadrv/dynamic.(*device).WithContext", "fr.args[0] = d.context", "fr.args[0] = fr.args[0]"}},
		},
		{
			Name: "the bytes of a matrix overflow", Package: "cuda/gemm", Run: "^TestOverflows$",
			Edits: []Edit{{"cuda/gemm.product", "a != 0 && b > math.MaxInt64/a", "false"}},
		},
		{
			Name: "an operand is read where there is nothing to sum up", Package: "cuda/gemm", Run: "^TestExtents$",
			Edits: []Edit{{"cuda/gemm.Problem.Check", "{\"A\", p.rowsA(), p.columnsA(), p.LDA, p.StrideA, in, false, !p.Empty() && p.K > 0}", "{\"A\", p.rowsA(), p.columnsA(), p.LDA, p.StrideA, in, false, true}"}},
		},
		{
			Name: "a plan that fails leaves its descriptors", Package: "cuda/cublaslt", Run: "^TestFailingCalls$",
			Edits: []Edit{{"cuda/cublaslt.(*Handle).make", "err = errors.Join(err, h.drop(plan))", "_ = plan"}},
		},
		{
			Name: "plans are kept without a bound", Package: "cuda/cublaslt", Run: "^TestPlansAreKept$",
			Edits: []Edit{{"cuda/cublaslt.(*Handle).Plan", "h.recent.Len() > MaxPlans", "false"}},
		},
		{
			Name: "a product is launched with a plan that is gone", Package: "cuda/cublaslt", Run: "^TestPlansAreKept$",
			Edits: []Edit{{"cuda/cublaslt.(*Handle).multiply", "if plan.dropped {", "if false {"}},
		},
		{
			Name: "products pass the compiler by, and its store", Package: "compute/kernel/matmul", Run: "^TestStoredProducts$",
			Edits: []Edit{{"compute/kernel/matmul.New", "newKernels(c, s.compiler)", "newKernels(c, nil)"}},
		},
		{
			Name: "a product compiles kernels that were not prepared", Package: "compute/kernel/matmul", Run: "^TestPreparedProducts$",
			Edits: []Edit{{"compute/kernel/matmul.(*kernels).prepare", "u.kernel, ahead)", "u.kernel, ahead || true)"}},
		},
		{
			Name: "own kernels compute what the library alone may", Package: "compute/kernel/matmul", Run: "^TestTheLibraryAlone$",
			Edits: []Edit{{"compute/kernel/matmul.(*Multiplier).multiply", "err != nil && choice == Library", "false"}},
		},
		{
			Name: "the last part of a sum is left out", Package: "compute/kernel/matmul", Run: "^TestProductsInGraphs$",
			Edits: []Edit{{"compute/kernel/matmul.(*kernels).launch", "int64(l.parts), l.flags", "int64(l.parts)-1, l.flags"}},
		},
		{
			Name: "a flag of the kernels has another number", Package: "compute/kernel/matmul", Run: "^TestNumbersOfTheSources$",
			Edits: []Edit{{"compute/kernel/matmul/choose.go", "transposeA uint32 = 1 << iota", "transposeA uint32 = 2 << iota"}},
		},
		{
			Name: "a known product is that of other alignments", Package: "compute/kernel/matmul", Run: "^TestOneProblemAtTwoPlaces$",
			Edits: []Edit{{"compute/kernel/matmul.(*kernels).plan", "planned{p, a}", "planned{p, alignment{}}"}},
		},
		{
			Name: "a tile wants more shared memory than the device has", Package: "compute/kernel/matmul", Run: "^TestTilesFitTheDevice$",
			Edits: []Edit{{"compute/kernel/matmul.processor.tileOf", "variants[of].SharedBytes > d.sharedBytes()", "false"}},
		},
		{
			Name: "a device without asynchronous copies gets a kernel that has them", Package: "compute/kernel/matmul", Run: "^TestOlderDevices$",
			Edits: []Edit{{"compute/kernel/matmul.processor.plain", "p.In == gemm.Float32 && d.capability >= 80", "p.In == gemm.Float32"}},
		},
	}
}
