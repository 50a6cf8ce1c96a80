package planted

// shareBugs are those of memory that two processes share.
func shareBugs() []Bug {
	const pkg = "cuda/share"
	return []Bug{
		{
			Name: "a context does not wait for the peer's event", Package: pkg, Run: "^TestAwaitOrdersTheDevice$",
			Edits: []Edit{{"cuda/share.(*Memory).follow", "return m.wait(c, l)", "return nil"}},
		},
		{
			Name: "a fence is not behind the earlier ones of its process", Package: pkg, Run: "^TestAFenceCoversEarlierOnes$",
			Edits: []Edit{{"cuda/share.(*Memory).fence", "l.last != nil && l.last != stream", "false"}},
		},
		{
			Name: "Publish without events does not wait for the work", Package: pkg, Run: "^TestPublishByHostWaits$",
			Edits: []Edit{{"cuda/share.(*Memory).fence", "err := c.Synchronize(context.Background())", "err := error(nil)"}},
		},
		{
			Name: "shared memory is unmapped before its work has finished", Package: pkg, Run: "^TestCloseWaitsForWork$",
			Edits: []Edit{{"cuda/share.(*Memory).Close", "err := m.settle()", "err := error(nil)"}},
		},
		{
			Name: "a fence of a peer that died counts", Package: pkg, Run: "^TestFencesOfADeadPeerAreLost$",
			Edits: []Edit{{"cuda/share.(*Memory).follow", "case why != nil:", "case false:"}},
		},
		{
			Name: "a process closes shared memory without a goodbye", Package: pkg, Run: "^TestClosedMemoryRefusesCalls$",
			Edits: []Edit{{"cuda/share.(*link).close", "failed = errors.Join(failed, l.goodbye())", ""}},
		},
		{
			Name: "descriptors of an import stay open", Package: pkg, Run: "^TestOffersAreChecked$",
			Edits: []Edit{{"cuda/share.(*Memory).receive", "err = errors.Join(err, f.Close())", "_ = f"}},
		},
		{
			Name: "an offer's size is not compared with its handle's", Package: pkg, Run: "^TestOffersAreChecked$",
			Edits: []Edit{{"cuda/share.checkOffer", "rounded != offer.roundedBytes", "rounded < 0"}},
		},
		{
			Name: "memory of another GPU is imported", Package: pkg, Run: "^TestOffersAreChecked$",
			Edits: []Edit{{"cuda/share.checkOffer", "offer.gpu != info.UUID || ", ""}},
		},
		{
			Name: "shared memory that cannot be mapped is lost", Package: pkg, Run: "^TestNothingLeaksWhereACallFails$",
			Edits: []Edit{{"cuda/share.(*pages).place", "err = errors.Join(err, p.release())", "_ = p"}},
		},
		{
			Name: "an export that failed keeps its event", Package: pkg, Run: "^TestAnswersAreChecked$",
			Edits: []Edit{{"cuda/share.(*link).abandon", ", l.destroy(&l.own)", ""}},
		},
		{
			Name: "a stranded stream counts as finished", Package: pkg, Run: "^TestCloseAfterTheDeathOfThePeer$",
			Edits: []Edit{{"streams.(*cudaStream).unlessFinished", "return &StrandedError{Stream: h.id}", "return nil"}},
		},
		{
			Name: "a stream that came past the event of a dead peer is stranded", Package: pkg, Run: "^TestWorkBehindAnEventThatWasReached$",
			Edits: []Edit{{"cuda/share.(*Memory).advance", "if err != nil || !passed {", "if err != nil || !passed || len(q.all) > 0 {"}},
		},
		{
			Name: "work between two waits for a peer counts as a wait", Package: pkg, Run: "^TestWorkAheadOfTheEventOfADeadPeer$",
			Edits: []Edit{{"cuda/share.(*Memory).strand", "w.came, _ = m.device.EventQuery(w.before)", "w.came = true"}},
		},
		{
			Name: "a wait for a peer whose mark failed has passed", Package: pkg, Run: "^TestAWaitWithoutItsMarkIsStranded$",
			Edits: []Edit{{"cuda/share.(*Memory).wait", "w.open = err != nil", "w.open = false"}},
		},
		{
			Name: "a stream stays stranded when the event has come", Package: pkg, Run: "^TestALaterWaitIsStranded$",
			Edits: []Edit{{"cuda/share.(*Memory).advance", "tail.Unstrand()", "_ = tail"}},
		},
		{
			Name: "shared memory keeps streams that were closed", Package: pkg, Run: "^TestStreamsThatWereClosedAreForgotten$",
			Edits: []Edit{{"cuda/share.(*Memory).uses", "delete(m.used, other)", "_ = other"}},
		},
		{
			Name: "shared memory keeps marks of streams that were closed", Package: pkg, Run: "^TestStreamsThatWereClosedAreForgotten$",
			Edits: []Edit{{"cuda/share.(*Memory).forgetPassed", "delete(m.marked, tail)", "_ = tail"}},
		},
		{
			Name: "an importer takes whatever descriptors come", Package: pkg, Run: "^TestDescriptorsInManyMessages$",
			Edits: []Edit{{"cuda/share/descriptor_linux.go", "const maxDescriptors = 2", "const maxDescriptors = 40"}},
		},
		{
			Name: "shared memory does not count in the limit", Package: pkg, Run: "^TestSharedMemoryCountsInTheLimit$",
			Edits: []Edit{{"internal/pool/core.(*Core).lowerLimit", "c.limitBytes-c.memory.OutsideBytes()", "c.limitBytes"}},
		},
		{
			Name: "a limit that changes forgets shared memory", Package: pkg, Run: "^TestSharedMemoryCountsInTheLimit$",
			Edits: []Edit{{"internal/pool/core.(*Core).SetSettings", "	c.lowerLimit()\n", ""}},
		},
		{
			Name: "free memory stays where shared memory wants it", Package: pkg, Run: "^TestSharedMemoryCountsInTheLimit$",
			Edits: []Edit{{"internal/pool/core.chargeWay.climb", "		s.jobs.shrink(r, over)\n", ""}},
		},
		{
			Name: "shared memory counts after its Close", Package: pkg, Run: "^TestSharedMemoryCountsInTheLimit$",
			Edits: []Edit{{"cuda/share.(*pages).release", "		p.home.Uncharge(p.bytes)\n", ""}},
		},
		{
			Name: "a fence may be left out", Package: pkg, Run: "^TestNotesAreChecked$",
			Edits: []Edit{{"cuda/share.(*link).take", "n.number != last+1", "n.number <= last"}},
		},
	}
}
