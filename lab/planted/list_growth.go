package planted

// growthBugs are those about what a service that runs for days would collect.
func growthBugs() []Bug {
	return []Bug{
		{
			Name: "uses of streams that have ended stay listed", Package: "internal/stream/magazine", Run: "^TestUsesOfEndedStreamsAreDropped$",
			Edits: []Edit{{"internal/stream/magazine.(*note).add", "	n.drop()\n", ""}},
		},
		{
			Name: "a use of a stream that is open is dropped", Package: "internal/stream/magazine", Run: "^TestUsesOfEndedStreamsAreDropped$",
			Edits: []Edit{{"internal/stream/magazine.(*note).drop", "!u.line.Finished()", "u.line.Finished()"}},
		},
		{
			Name: "a buffer keeps the closed streams that used it", Package: "internal/fence", Run: "^TestAFinishedTimelineKeepsNothingOfItsStream$",
			Edits: []Edit{{"internal/fence.(*Timeline).Finish", "	t.access.Store(nil)\n", ""}},
		},
		{
			Name: "a stream names all streams that were ever handed its memory", Package: "streams", Run: "^TestEndedStreamsAreNoFreers$",
			Edits: []Edit{{"streams.(*suspensions).addFreer", "len(freers) >= max(minFreers, 2*p.kept)", "false"}},
		},
		{
			Name: "a turn that changes a stream's usage does not tell the pool", Package: "streams", Run: "^TestAStreamTellsOfEachChangeOfItsUsage$",
			Edits: []Edit{{"streams.(*peer).publish", "	if changed {\n", "	if changed && s.id == 0 {\n"}},
		},
		{
			Name: "a freed block that no turn has taken home is not told to the pool", Package: "internal/stream/magazine", Run: "^TestAnAlertIsToldOnce$",
			Edits: []Edit{{"internal/stream/magazine.(*Home).wakeOr", "		h.waker.Freed()\n", ""}},
		},
		{
			Name: "an alert is lost when requests begin to wait", Package: "internal/stream/magazine", Run: "^TestAnAlertIsToldOnce$",
			Edits: []Edit{{"internal/stream/magazine.(*Home).become", "uint32(to|old&alert)", "uint32(to)"}},
		},
		{
			Name: "what a client reports by a message is kept where its usage says something else", Package: "pool", Run: "^TestOnlyChangedUsageIsRead$",
			Edits: []Edit{{"pool.(*Pool).step", "	p.noteUsage(s.message)\n", ""}},
		},
		{
			Name: "a client that holds pages is not among those that are asked", Package: "internal/pool/core", Run: "^TestAllThatIsFreeGoesBackBeforeADenial$",
			Edits: []Edit{{"internal/pool/core.(*clients).hold", "	cs.count(cl)\n", ""}},
		},
		{
			Name: "a closed tenant that still has memory is dropped", Package: "internal/acceptance", Run: "^TestAClosedTenantIsAwaited$",
			Edits: []Edit{{"pool.(*quotas).drop", " || t.charged.Load() != 0", ""}},
		},
		{
			Name: "a closed tenant keeps its name", Package: "internal/acceptance", Run: "^TestAClosedTenantKeepsItsBuffers$",
			Edits: []Edit{{"pool.(*Tenant).Close", "		t.onClose()\n", ""}},
		},
		{
			Name: "places whose samples were freed stay", Package: "internal/stream/sampling", Run: "^TestPlacesWithoutLiveSamplesMakeRoom$",
			Edits: []Edit{{"internal/stream/sampling.(*Register).sweep", "s.live.CompareAndSwap(0, -1)", "false"}},
		},
		{
			Name: "a place with live samples is retired", Package: "internal/stream/sampling", Run: "^TestPlacesWithoutLiveSamplesMakeRoom$",
			Edits: []Edit{{"internal/stream/sampling.(*Register).sweep", "if s.live.CompareAndSwap(0, -1) {", "if s.live.Swap(-1) >= 0 {"}},
		},
		{
			Name: "what retired places have counted is lost", Package: "internal/stream/sampling", Run: "^TestPlacesWithoutLiveSamplesMakeRoom$",
			Edits: []Edit{{"internal/stream/sampling.(*Register).sweep", "		at.gather(s)\n", ""}},
		},
		{
			Name: "each swing of pressure is a line on the level Info", Package: "internal/acceptance", Run: "^TestSwingsOfPressureAreLoggedRarely$",
			Edits: []Edit{{"vram.(*pressureState).isDue", "now.Sub(p.loggedAt) < pressureLogInterval", "now.Before(p.loggedAt)"}},
		},
		{
			Name: "a level of pressure that lasts is not logged", Package: "internal/acceptance", Run: "^TestSwingsOfPressureAreLoggedRarely$",
			Edits: []Edit{{"vram.(*Device).updatePressure", "isDue || level != before", "level != before"}},
		},
		{
			Name: "a file of any length is read as a kernel", Package: "compute/kernel/store", Run: "^TestAFileLongerThanTheBoundIsNotRead$",
			Edits: []Edit{{"compute/kernel/store.disk.read", "info.Size() > limitBytes", "info.Size() > 1<<62"}},
		},
		{
			Name: "kernels are read from a folder that others may write to", Package: "compute/kernel/store", Run: "^TestAFolderOfOthersIsNotUsed$",
			Edits: []Edit{{"compute/kernel/store.disk.trust", "mode&othersWrite != 0", "mode&othersWrite < 0"}},
		},
	}
}
