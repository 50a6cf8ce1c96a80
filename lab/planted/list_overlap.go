package planted

func exclusiveMemory() Promise {
	return Promise{"two live buffers never overlap", []Bug{
		{
			Name: "blocks merge over the end of their run", Package: "internal/heap", Run: "^TestHeapFollowsTheReference$",
			Edits: []Edit{{"internal/heap.(*Heap).Give", "case l.state == Free:", "case l.state != Used:"}},
		},
		{
			Name: "handles side by side are unmapped twice", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{
				{
					"internal/pool/memory.(*Job).unmap",
					"j.Ops[n-1].Run.Pages += r.Pages\n\t\treturn",
					"j.Ops[n-1].Run.Pages += r.Pages",
				},
			},
		},
		{
			Name: "segments touch and merge", Package: "pool", Run: "^TestWarmFreesSegmentsThatDoNotFit$",
			Edits: []Edit{
				{
					"internal/pool/memory.(*finder).place",
					"f.holes(count + 2)\n\treturn Window{Run: Run{First: run.First + 1,",
					"f.holes(count)\n\treturn Window{Run: Run{First: run.First,",
				},
			},
		},
		{
			Name:    "a free does not see that the magazine is closed",
			Package: "internal/stream/core", Run: "^TestCoreFollowsTheReference$",
			Edits: []Edit{{"internal/stream/magazine.put", "return handSlot\n", "return inMask\n"}},
		},
		{
			Name: "a slot is put back twice", Package: "internal/stream/magazine", Run: "^TestLooseSlots$",
			Edits: []Edit{
				{
					"internal/stream/magazine.(*Loose).SlotHome",
					"l.unused = append(l.unused, s)\n\treturn false",
					"l.unused = append(l.unused, s, s)\n\treturn false",
				},
			},
		},
		{
			Name:    "a block is taken back by one who has looked before it was taken",
			Package: "internal/stream/magazine", Run: "^TestEveryInterleavingIsLawful$",
			Edits: []Edit{
				{
					"internal/stream/magazine.nextPop",
					"return top&^nameMask + takenStep | entry&nameMask",
					"return top&^nameMask | entry&nameMask",
				},
			},
		},
		{
			Name:    "a block that others use is taken back",
			Package: "internal/stream/magazine", Run: "^TestTakeBackLeavesToTheOwner$",
			Edits: []Edit{{"internal/stream/magazine.(*Home).handSlot", "entry(0, uint32(head))", "entry(s.Units, uint32(head))"}},
		},
		{
			Name: "a sharded bucket serves another length", Package: "internal/stream/magazine", Run: "^TestABucketServesOneLength$",
			Edits: []Edit{
				{
					"internal/stream/magazine.(*bucket).takeShard",
					"\tm := b.shards.Load()[shardHint()].magazine.Load()\n" +
						"\tif m == nil || (units > sizeclass.MaxUnits && uint64(m.units) != units) {",
					"\tm := b.shards.Load()[shardHint()].magazine.Load()\n\tif m == nil {",
				},
			},
		},
	}}
}
