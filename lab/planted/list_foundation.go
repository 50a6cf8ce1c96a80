package planted

// foundationBugs are those of actors, futures and the heap.
func foundationBugs() []Bug {
	return []Bug{
		{
			Name: "an actor recovers and says nothing", Package: "actors", Run: "^TestEveryRecoveredPanicIsReported$",
			Edits: []Edit{{"actors.(*mailbox).fault", "	b.panics.Report(err.report())\n	p := Panic", "	p := Panic"}},
		},
		{
			Name: "who leaves a turn does not look for mail", Package: "lab/simulation", Run: "^TestNoPromiseIsBroken",
			Edits: []Edit{{"actors.(*mailbox).leave", "b.system.Load() != nil || d.rest == idle && b.waiting()", "b.system.Load() != nil"}},
		},
		{
			Name: "a turn that was entered and quarantined is left idle", Package: "actors", Run: "^TestAQuarantinedTurnIsHandedOver$",
			Edits: []Edit{{"actors.(*mailbox).mustHandOver", "b.takenSystem != nil || b.system.Load() != nil", "b.takenSystem != nil"}},
		},
		{
			Name: "a refused message keeps its link", Package: "actors", Run: "^TestARefusedMessageBringsNobodyAlong$",
			Edits: []Edit{{"actors.(*mailbox).push", "l.next, l.message = nil, nil // An attempt", "l.message = nil // An attempt"}},
		},
		{
			Name: "two completions win", Package: "futures", Run: "^TestCancel$",
			Edits: []Edit{{
				"futures.(*completion).claim", "func (p *completion) claim() bool { return p.claimed.CompareAndSwap(false, true) }",
				"func (p *completion) claim() bool { p.claimed.Store(true); return true }",
			}},
		},
		{
			Name: "the values of a failed whole are lost", Package: "futures", Run: "^TestEveryValueIsReleased",
			Edits: []Edit{{"futures.(*gathered).settle", "if last && !w.deliver() && w.release != nil {", "if last && !w.deliver() && w.release == nil {"}},
		},
		{
			Name: "blocks merge over the end of their run", Package: "internal/heap", Run: "^TestHeapFollowsTheReference$",
			Edits: []Edit{{"internal/heap.(*Heap).Give", "case l.state == Free:", "case l.state != Used:"}},
		},
		{
			Name: "a level of pressure is left at the mark where it began", Package: "internal/pressure", Run: "^TestTheTable$|^TestLevelsFollowTheUse$",
			Edits: []Edit{{"internal/pressure.Mark.Next", "before >= High && used >= m-gap", "before >= High && used >= m"}},
		},
		{
			Name: "an aligned block is a unit longer than its place", Package: "internal/heap", Run: "^TestHeapFollowsTheReference$",
			Edits: []Edit{{
				"internal/heap.(*Heap).alignedFit", "uint64(f)+uint64(units) <= uint64(h.nodes[i].units)", "uint64(f)+uint64(units) <= uint64(h.nodes[i].units)+1",
			}},
		},
		{
			Name: "the built-in framework ends an actor without a word to its behavior", Package: "actors", Run: "^TestStopHandlesWhatIsQueued$",
			Tags:  "vram_builtin",
			Edits: []Edit{{"actors.(*linkedFramework).receivePoison", "receivePoison() { f.box.close() }", "receivePoison() { f.box.stopped = true }"}},
		},
		{
			Name: "the built-in framework receives on a goroutine of its own", Package: "actors", Run: "^TestCallRunsOnTheCallerWhenIdle$",
			Tags:  "vram_builtin",
			Edits: []Edit{{"actors.(*linkedFramework).receive", "{ f.box.behavior.Receive(m) }", "{ go f.box.behavior.Receive(m) }"}},
		},
		{
			Name: "the built-in framework brings a handler along", Package: "actors", Run: "^TestHandlersThatImportingRegisters$",
			Tags:  "vram_builtin",
			Edits: []Edit{{"actors/builtin.go", "package actors\n", "package actors\n\nimport _ \"expvar\"\n"}},
		},
		{
			Name: "a stop at once waits for what is queued", Package: "actors", Run: "^TestStopNowFailsWhatIsQueued$",
			Edits: []Edit{{"actors.(*Ref).StopNow", "StopNow() { r.box.framework.stop() }", "StopNow() { r.box.stop(nil) }"}},
		},
	}
}
