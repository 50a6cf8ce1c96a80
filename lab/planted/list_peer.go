package planted

// peerBugs are those of work between devices.
func peerBugs() []Bug {
	const pkg, ordered, others = "cuda", "^TestCopyPeerIsOrderedOnBothDevices$", "^TestCopyPeerOfBuffersOfOtherStreams$"
	return []Bug{
		{
			Name: "a copy between devices is not behind the source's work", Package: pkg, Run: ordered,
			Edits: []Edit{{"streams.Submitter.Between", "if err := h.follows(o); err != nil {", "if err := error(nil); err != nil {"}},
		},
		{
			Name: "the source's stream is not behind a copy between devices", Package: pkg, Run: ordered,
			Edits: []Edit{{"streams.Submitter.Between", "return o.afterWork(h)", "return nil"}},
		},
		{
			Name: "a copy between devices is behind the wrong stream of the source's device", Package: pkg, Run: others,
			Edits: []Edit{{"cuda.(*Context).CopyPeer", "if !ownFrom {", "if ownFrom {"}},
		},
		{
			Name: "a copy between devices does not wait for the destination's stream", Package: pkg, Run: others,
			Edits: []Edit{{"cuda.(*Context).CopyPeer", "if !ownTo {", "if ownTo {"}},
		},
		{
			Name: "a copy between devices is not counted as work on the source", Package: pkg, Run: others,
			Edits: []Edit{{"cuda.(*Context).CopyPeer", "there.After()", "_ = there"}},
		},
		{
			Name: "a copy between devices that no stream waits for is not waited for", Package: pkg, Run: "^TestCopiesThatNoStreamWaitsFor$",
			Edits: []Edit{{"streams.(*cudaStream).afterWork", "failed := other.await()", "failed := error(nil)"}},
		},
		{
			Name: "a transfer between devices that fails keeps the new buffer", Package: pkg, Run: "^TestFailedTransfersLoseNothing$",
			Edits: []Edit{{"cuda.(*Context).TransferPeer", "errors.Join(err, to.Free())", "err"}},
		},
		{
			Name: "a transfer between devices keeps the source", Package: pkg, Run: "^TestTransferPeer$",
			Edits: []Edit{{"cuda.(*Context).TransferPeer", "err = b.Free()", "err = nil"}},
		},
		{
			Name: "a copy between devices is made in a capture of the source", Package: pkg, Run: "^TestCopiesBetweenDevicesAreNotCaptured$",
			Edits: []Edit{{"streams.Submitter.Between", "	if err := o.enter(\"cuStreamWaitEvent\"); err != nil {", "	o.announcement.word.Add(1)\n	if err := error(nil); err != nil {"}},
		},
		{
			Name: "memory that is mapped later is not accessible to peers", Package: "internal/acceptance", Run: "^TestPeerAccess$",
			Edits: []Edit{{"pool.(*peers).enable", "	d.share = x.share\n", ""}},
		},
		{
			Name: "memory that was mapped before is not accessible to peers", Package: "internal/acceptance", Run: "^TestPeerAccess$",
			Edits: []Edit{{"pool.(*peers).enable", "range mapped {", "range mapped[:0] {"}},
		},
		{
			Name: "unmapped pages are made accessible to peers", Package: "pool", Run: "^TestPeersGetAccessToEachMapping$",
			Edits: []Edit{{"internal/pool/memory.(*Memory).Mapped", "h == heap.None || m", "h != heap.None && m"}},
		},
		{
			Name: "a call for a peer waits for good when the pool fails", Package: "pool", Run: "^TestPeersOfAPoolThatHasFailed$",
			Edits: []Edit{{"pool.(*peers).turnEnds", "append(x.begun, x.wanted...) {", "x.begun {"}},
		},
		{
			Name: "of several peers that come before a job the last one gets access alone", Package: "pool", Run: "^TestSeveralPeersAtATime$",
			Edits: []Edit{{"pool.(*peers).turnEnds", "range wanted {", "range wanted[len(wanted)-1:] {"}},
		},
		{
			Name: "a peer gets access in the wrong direction", Package: "internal/acceptance", Run: "^TestPeerAccess$",
			Edits: []Edit{{"vram.(*Device).EnablePeerAccess", "other.pool.EnablePeer(ordinal)", "e.pool.EnablePeer(its)"}},
		},
		{
			Name: "a launch on a buffer of another device is made without access", Package: pkg, Run: "^TestForeignBuffersAreRefused$",
			Edits: []Edit{{"streams.Submitter.Reach", "|| !x.s.peers.reaches(s.peers) ||", "||"}},
		},
		{
			Name: "a launch takes a buffer of another device's graph", Package: pkg, Run: "^TestForeignBuffersAreRefused$",
			Edits: []Edit{{"streams.Submitter.Reach", "|| s.cuda.held.Load()", ""}},
		},
		{
			Name: "a launch is not ordered with the stream of a buffer of another device", Package: pkg, Run: "^TestLaunchesOnForeignBuffersAreOrdered$",
			Edits: []Edit{{"cuda.(*submission).ordered", "c.between(homes, work)", "c.between(homes[:0], work)"}},
		},
		{
			Name: "a launch is not behind work of others on a buffer of another device", Package: pkg, Run: "^TestLaunchesOnBuffersOfManyStreams$",
			Edits: []Edit{{"cuda.(*submission).behindForeign", "there.Before(b)", "error(nil)"}, {"cuda.(*submission).behindForeign", "there := home.Crossing()", ""}},
		},
		{
			Name: "a launch is ordered with one stream of another device alone", Package: pkg, Run: "^TestLaunchesOnBuffersOfManyStreams$",
			Edits: []Edit{{"cuda.(*submission).between", "c.between(homes[1:], submit)", "c.between(homes[:0], submit)"}},
		},
		{
			Name: "a launch that one stream cannot wait for is waited for by no other", Package: pkg, Run: "^TestForeignLaunchesThatCannotBeOrdered$",
			Edits: []Edit{{"cuda.(*submission).between", "late, err = err, nil", "late = err"}},
		},
		{
			Name: "a placement books nothing", Package: "internal/acceptance", Run: "^TestPlacementsAtTheSameTime$",
			Edits: []Edit{{"vram.(*Set).book", "next[number] += bytes", "_ = number"}},
		},
		{
			Name: "a booking ends with each call of Done", Package: "internal/acceptance", Run: "^TestSetsOfAnySize$",
			Edits: []Edit{{"vram.Placement.Done", "|| p.done.Swap(true)", ""}},
		},
		{
			Name: "memory that a device holds and nobody uses is no room", Package: "internal/acceptance", Run: "^TestPlacementsSeeTheWholeGPU$",
			Edits: []Edit{{"vram.(*Set).room", "seen.freeBytes + seen.reservedBytes", "seen.freeBytes"}},
		},
		{
			Name: "a stage copies from another device as from its own", Package: "examples/pipeline", Run: "^TestBytesArriveOnAnotherDevice$",
			Edits: []Edit{{"examples/pipeline.(*gpu).copy", "if p.on == g {", "if true {"}},
		},
		{
			Name: "a device does not count a wait for another device as work", Package: "cudadrv/sim", Run: "^TestStreamsWaitForEventsOfOtherDevices$",
			Edits: []Edit{{"cudadrv/sim.(*Device).StreamWaitEvent", "	g.drained = max(g.drained, st.drained)\n", ""}},
		},
	}
}
