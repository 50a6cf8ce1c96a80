package planted

func warmPath() Promise {
	return Promise{"a warm path makes no driver call and no heap allocation; a miss asks no more than it needs", []Bug{
		{
			Name:    "a miss asks all clients for all",
			Package: "internal/pool/core", Run: "^TestAMissAsksTheRichestForARun$|^TestTheCostOfAMissDoesNotGrowWithTheClients$",
			Edits: []Edit{{"internal/pool/core.(*asks).take", "\t\t\t\ta.ask(r, cl, r.pages)\n", "\t\t\t\ta.askEach(r, everyone)\n"}},
		},
		{
			Name:    "every message searches for all waiting requests",
			Package: "internal/pool/core", Run: "^TestRefusalsAtOnceSearchNoMoreThanOne$",
			Edits: []Edit{{"internal/pool/core.(*queue).serve", "\tif q.searchedAt != inserts() {\n", "\t{\n"}},
		},
		{
			Name: "a run makes its launch again", Package: "compute/kernel", Run: "^TestAWarmRunAllocatesNothing$",
			Edits: []Edit{{"compute/kernel.(*frame).ready", "f.kept.ready.Store(r)", ""}},
		},
		{
			Name: "each hit of the store writes", Package: "compute/kernel/store", Run: "^TestUseIsNoted$",
			Edits: []Edit{{"compute/kernel/store.(*Store).read", "time.Since(changed) > touchAfter", "time.Since(changed) > 0"}},
		},
		{
			Name:    "each run takes new memory for its temporary tensors from Go's heap",
			Package: "compute/ops", Run: "^TestAWarmOperationAllocatesNothing$",
			Edits: []Edit{{"compute/ops.releaseSlot", "slots.Put(s)", ""}},
		},
		{
			Name: "a kernel is made again for each call", Package: "compute/ops", Run: "^TestAWarmOperationAllocatesNothing$",
			Edits: []Edit{
				{"compute/ops.(*set).entry", "known.key == *k", "known.key == *k && k.op == 0"},
				{
					"compute/ops.(*set).entry",
					"e := (*s.entries.Load())[*k]; e != nil",
					"e := (*s.entries.Load())[*k]; e != nil && k.op == 0",
				},
			},
		},
	}}
}
