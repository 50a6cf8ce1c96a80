package planted

// hostBugs are those of the allocators of package host.
func hostBugs() []Bug {
	return []Bug{
		{
			Name: "host memory is reused before the copy from it has passed", Package: "host", Run: "^TestReuseWaitsForTheCopy$",
			Edits: []Edit{{"host.(*Pool).freeIn", "if s.used() {", "if s.used() && false {"}},
		},
		{
			Name: "a second free of host memory succeeds", Package: "host", Run: "^TestOneFreeSucceeds$",
			Edits: []Edit{{"host.(*slot).end", "if s.word.CompareAndSwap(word, word+1) {", "if s.word.Add(1) > 0 {"}},
		},
		{
			Name: "a limit of host memory allows a byte too many", Package: "host", Run: "^TestALimitIsExact$",
			Edits: []Edit{{"host.charge", "old > bound-amount", "old > bound-amount+1"}},
		},
		{
			Name: "a limit is charged for requests that failed", Package: "host", Run: "^TestAFailedRequestIsNotCharged$",
			Edits: []Edit{{"host.(*Limit).request", "served = err == nil", "served = true"}},
		},
		{
			Name: "a cache of host memory keeps more than its bound", Package: "host", Run: "^TestTheBound$",
			Edits: []Edit{{"host.(*Pool).home", "if !sh.within() {", "if false {"}},
		},
		{
			Name: "a class of host memory keeps the allowance that it does not use", Package: "host", Run: "^TestTheBound$",
			Edits: []Edit{{"host.(*bound).grant", "case !b.reclaim(granted+sh.bytes-keep, all):", "case true:"}},
		},
		{
			Name: "a look asks about every block of a stream that is behind", Package: "host", Run: "^TestAnEndlessStreamHoldsUpNoOtherBlocks$",
			Edits: []Edit{{"host.(*Pool).passed", "				*behind = append(*behind, one.stream)\n", ""}},
		},
		{
			Name: "an event of a graph guards a block", Package: "host", Run: "^TestACapturedStreamRefusesTheFree$",
			Edits: []Edit{{"host.(*Pool).stamp", "err != nil { // the event may", "err != nil && false { // the event may"}},
		},
		{
			Name: "a block whose free the driver refused is lost", Package: "host", Run: "^TestAFailedRecordLosesNothing$",
			Edits: []Edit{{"host.(*Pool).freeUsed", "			s.revive(word)\n", ""}},
		},
		{
			Name: "a panic in a look loses the blocks behind it", Package: "host", Run: "^TestAPanicInALookLosesNothing$",
			Edits: []Edit{{"host.(*Pool).look", "		for left != nil {", "		for left != nil && false {"}},
		},
		{
			Name: "a batch of frees records an event for each block", Package: "host", Run: "^TestABatchOfFreesSharesEvents$",
			Edits: []Edit{{"host.(*batch).find", "if b == nil {", "if true {"}},
		},
		{
			Name: "a block goes back past its wrapper", Package: "host", Run: "^TestForeignBlocks$",
			Edits: []Edit{{"host.Block.reown", "if b.owner != from {", "if false {"}},
		},
		{
			Name: "zeroed memory of a cache has the bytes of before", Package: "host", Run: "^TestZeros$",
			Edits: []Edit{{"host.(*Pool).AllocZeroed", "			clear(b.Bytes())\n", ""}},
		},
		{
			Name: "a request fails while the cache keeps memory", Package: "host", Run: "^TestMemoryRunsOut$",
			Edits: []Edit{{"host.(*Pool).seek", "	p.sweep()\n", ""}},
		},
		{
			Name: "a block that is freed after Close stays in the cache", Package: "host", Run: "^TestABlockThatOutlivesItsPool$",
			Edits: []Edit{{"host.(*Pool).Close", "	p.bound.keep.Store(0)\n", ""}, {"host.(*Pool).settle", "		if p.closed.Load() {", "		if false {"}},
		},
	}
}
