package planted

// warpgroupBugs are those of the products of warpgroups: in the checker of PTX, and in its interpreter.
func warpgroupBugs() []Bug {
	const interp, faults, none = "compute/ptx/interp", "^TestFaultsOfWarpgroups$", "^TestNoFaultsOfWarpgroups$"
	return []Bug{
		{
			Name: "a later architecture has the instructions of sm_90a", Package: "compute/ptx", Run: "^TestMistakesInInstructionsOfWarpgroups$",
			Edits: []Edit{{"compute/ptx.(*checker).has", "t.SM == n.sm && t.Variant == n.variant", "t.SM >= n.sm && t.Variant == n.variant"}},
		},
		{
			Name: "the header of a kernel lacks the variant", Package: "compute/ptx", Run: "^TestTheHeaderFollowsAVariant$",
			Edits: []Edit{{"compute/ptx.needs.and", "	n.variant = max(n.variant, other.variant)\n", ""}},
		},
		{
			Name: "the simulated device runs text for a newer architecture", Package: "cudadrv/sim", Run: "^TestImagesThatAreNone$",
			Edits: []Edit{{"cudadrv/sim.(*reader).target", "sm > architecture", "sm > architecture && false"}},
		},
		{
			Name: "a swizzle counts bits of the line, not of the address", Package: interp, Run: "^TestProductsOfWarpgroups$",
			Edits: []Edit{{"compute/ptx/interp.(*descriptor).swizzled", "address>>7&", "(address-d.start)>>7&"}},
		},
		{
			Name: "the offsets of a matrix across memory are exchanged", Package: interp, Run: "^TestProductsOfWarpgroups$",
			Edits: []Edit{{"compute/ptx/interp.(*descriptor).across", "n/each*d.leading + k%8*d.lineBytes + k/8*d.stride", "n/each*d.stride + k%8*d.lineBytes + k/8*d.leading"}},
		},
		{
			Name: "each warp of a warpgroup multiplies the first rows of A", Package: interp, Run: "^TestProductsOfWarpgroups$",
			Edits: []Edit{{"compute/ptx/interp.(*products).multiply", "rowsA*(w.index%warpgroupWarps)", "0"}},
		},
		{
			Name: "D is added where it is not asked for", Package: interp, Run: "^TestProductsOfWarpgroups$",
			Edits: []Edit{{"compute/ptx/interp.(*products).multiply", "		if accumulate {", "		if accumulate || true {"}},
		},
		{
			Name: "a result arrives at once", Package: interp, Run: faults,
			Edits: []Edit{{"compute/ptx/interp.(*registerUse).inFlight", "return u.last[slot]", "return nil"}},
		},
		{
			Name: "a register of a product may be written before the wait", Package: interp, Run: faults,
			Edits: []Edit{{"compute/ptx/interp.(*products).touch", "q != nil && !w", "q != nil && false && !w"}},
		},
		{
			Name: "a wait for products delivers one group too many", Package: interp, Run: faults,
			Edits: []Edit{{"compute/ptx/interp.(*products).deliver", "len(s.groups) > keep", "len(s.groups) >= max(keep, 1)"}},
		},
		{
			Name: "a product of another shape adds to a result on its way", Package: interp, Run: faults,
			Edits: []Edit{{"compute/ptx/interp.(*products).admit", "q.form.depth != p.depth ||", ""}},
		},
		{
			Name: "registers need no fence before a product", Package: interp, Run: faults,
			Edits: []Edit{{"compute/ptx/interp.(*products).touch", "		f.use.touched[slot] |= m\n", ""}},
		},
		{
			Name: "a product is never behind a fence of registers", Package: interp, Run: none,
			Edits: []Edit{{"compute/ptx/interp.(*products).fence", "clear(f.use.touched)", "_ = f.use.touched"}},
		},
		{
			Name: "a proxy fence counts for stores behind it", Package: interp, Run: faults,
			Edits: []Edit{{"compute/ptx/interp.(*products).fencedAt", "s.proxies[n].clock >= clock", "true || s.proxies[n].clock >= clock"}},
		},
		{
			Name: "a proxy fence behind the barrier is one before it", Package: interp, Run: faults,
			Edits: []Edit{{"compute/ptx/interp.(*products).proxied", "at != 0 && w.sees(", "at != 0 || w.sees("}},
		},
		{
			Name: "the proxy fence of one thread is that of all", Package: interp, Run: faults,
			Edits: []Edit{{"compute/ptx/interp.(*products).fencedAt", "p.threads>>thread&1 != 0", "p.threads != 0 || thread < 0"}},
		},
		{
			Name: "the memory of a product on its way may be stored to", Package: interp, Run: faults,
			Edits: []Edit{{"compute/ptx/interp.(*products).begin", "		b.reading[chunk]++\n", "		_ = chunk\n"}, {"compute/ptx/interp.(*products).arrive", "		b.reading[chunk]--\n", ""}},
		},
		{
			Name: "a warp races with its own product that has ended", Package: interp, Run: none,
			Edits: []Edit{{"compute/ptx/interp.(*warp).raced", "found = w.products.beside(c, found, a, thread, since)", "_ = w.products.beside"}},
		},
		{
			Name: "warps of a warpgroup multiply what they like", Package: interp, Run: faults,
			Edits: []Edit{{"compute/ptx/interp.(*products).sameProduct", "first.left == now.left", "true"}},
		},
		{
			Name: "nobody misses a warp of a warpgroup", Package: interp, Run: faults,
			Edits: []Edit{{"compute/ptx/interp.(*block).end", "b.verdict(b.lonely())", "b.verdict(nil)"}},
		},
	}
}
