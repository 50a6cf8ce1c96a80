package planted

// holderBugs are those of the lists of who holds memory and who waits for it.
func holderBugs() []Bug {
	return []Bug{
		{
			Name: "the live buffers of one stream alone are listed", Package: "internal/acceptance", Run: "^TestTheListIsWhatLives$",
			Edits: []Edit{{"vram.(*Device).LiveBuffers", "buffers = append(buffers, all...)", "buffers = all"}},
		},
		{
			Name: "pending memory is listed as live", Package: "internal/stream/core", Run: "^TestLiveHasNoPendingBlocks$",
			Edits: []Edit{{"internal/stream/core.(*Core).Live", "if freed[s] {", "if freed[s] && s == nil {"}},
		},
		{
			Name: "a refusal names a buffer that was freed", Package: "internal/acceptance", Run: "^TestARefusalNamesTheLargestBuffers$",
			Edits: []Edit{{"streams.(*listing).buffers", "x.Slot.Live(x.Word) && ", ""}},
		},
		{
			Name: "a refusal names buffers of long before", Package: "internal/acceptance", Run: "^TestARefusalNamesTheLargestBuffers$",
			Edits: []Edit{{"streams.(*Control).Tick", "	c.peers.expire()\n", ""}},
		},
		{
			Name: "the largest blocks are in the wrong order", Package: "internal/stream/core", Run: "^TestLargestIsAsASortedList$",
			Edits: []Edit{{"internal/stream/core.(*Largest).add", "l.Blocks[at-1].Units < x.Units", "l.Blocks[at-1].Units > x.Units"}},
		},
		{
			Name: "magazines of equal blocks are passed over", Package: "internal/stream/core", Run: "^TestLiveHasNoPendingBlocks$",
			Edits: []Edit{{"internal/stream/core.(*Core).Largest", "units != 0 && units <= l.smallest()", "units != 0"}},
		},
		{
			Name: "pending memory is among the largest live blocks", Package: "internal/stream/core", Run: "^TestLiveHasNoPendingBlocks$",
			Edits: []Edit{{"internal/stream/core.(*Core).Largest", "!freed[s]", "(!freed[s] || s != nil)"}},
		},
		{
			Name: "the handler gets a refusal without the largest buffers", Package: "internal/acceptance", Run: "^TestARefusalNamesTheLargestBuffers$",
			Edits: []Edit{{"streams.(*wiring).consult", "	w.peers.fill(c.largest, w.host, true)\n", "	if c.refused != nil {\n		w.peers.fill(c.largest, w.host, true)\n	}\n"}},
		},
		{
			Name: "the tags of a batch that has waited are lost", Package: "internal/acceptance", Run: "^TestTagsAndTenantsAreKnownOnEveryWay$",
			Edits: []Edit{{"streams.(*several).deliver", "	r.name(dst...)\n", ""}},
		},
		{
			Name: "a refusal waits for other streams in place of its own one", Package: "streams", Run: "^TestARefusalWaitsOffItsStream$",
			Edits: []Edit{{"streams.(*effects).finish", "w.spawn(func() { w.consult(c) })", "w.consult(c)"}},
		},
		{
			Name: "the size of a charged buffer is not remembered", Package: "internal/acceptance", Run: "^TestTagsAndTenantsAreKnownOnEveryWay$",
			Edits: []Edit{{"internal/stream/magazine.(*Slot).SetCharge", "requestedBytes: requestedBytes, ", ""}},
		},
		{
			Name: "the waiters of one stream alone are listed", Package: "internal/acceptance", Run: "^TestWaitersAreInTheOrderOfTheQueue$",
			Edits: []Edit{{"vram.(*Device).Waiters", "w.Requests = append(w.Requests, all...)", "w.Requests = all"}},
		},
		{
			Name: "waiters are listed by age", Package: "internal/acceptance", Run: "^TestWaitersAreInTheOrderOfTheQueue$",
			Edits: []Edit{{"vram.(*Waiters).rank", "cmp.Compare(a.Position, b.Position), ", ""}},
		},
		{
			Name: "parties that wait for each other by a third are no circle", Package: "internal/acceptance", Run: "^TestACircleIsSeenBeforeItIsADeadlock$",
			Edits: []Edit{{"vram.Waiters.reached", "				due = append(due, e.To)\n", ""}},
		},
		{
			Name: "a wait by a Handover is not drawn", Package: "internal/acceptance", Run: "^TestACircleIsSeenBeforeItIsADeadlock$",
			Edits: []Edit{{"vram.(*Device).Waiters", "len(waits) > 0", "false"}},
		},
		{
			Name: "the end of a wait does not name the request directly ahead", Package: "internal/acceptance", Run: "^TestTheEndOfAWaitSaysBehindWhom$",
			Edits: []Edit{{"internal/pool/core.(*Core).PlaceOf", "if place > 1 {", "if place > 2 {"}},
		},
		{
			Name: "a deferred close loses the function's own error", Package: "internal/acceptance", Run: "^TestCloseIntoKeepsBothErrors$",
			Edits: []Edit{{"vram.CloseInto", "joined(*err, c.Close())", "errors.Join(c.Close())"}},
		},
		{
			Name: "the free of a handed buffer leaves it charged", Package: "internal/acceptance", Run: "^TestAHandedBufferGoesOn$",
			Edits: []Edit{{"internal/stream/magazine.(*Slot).returnAnnounced", "	s.leaveHand(word, units)\n", ""}},
		},
		{
			Name: "a handed buffer is charged to all who had it", Package: "internal/acceptance", Run: "^TestAHandedBufferGoesOn$",
			Edits: []Edit{{"internal/stream/magazine.(*Slot).Move", "		held.hand.Load().add(-units)\n", ""}},
		},
		{
			Name: "a closed stream keeps what it was handed", Package: "internal/acceptance", Run: "^TestAHandedBufferGoesOn$",
			Edits: []Edit{{"streams.(*Peers).Handed", "= !other.line.Finished()", "= true"}},
		},
		{
			Name: "a refusal charges the stream of the memory", Package: "internal/acceptance", Run: "^TestWhoHasAHandedBuffer$",
			Edits: []Edit{{"pool.(*Pool).charged", "e.Streams = chargeHoldings(e.Streams, p.handedOver())", "_ = e"}},
		},
		{
			Name: "an ended wait charges the stream of the memory", Package: "internal/acceptance", Run: "^TestWhoHasAHandedBuffer$",
			Edits: []Edit{{"streams.(*Peers).holders", "p.Handed()", "nil"}},
		},
		{
			Name: "a closed stream waits for no fence though others wait for memory", Package: "internal/acceptance", Run: "^TestWhoHasAHandedBuffer$",
			Edits: []Edit{{"streams.(*turn).detachOutdated", "t.state.draining && t.state.core.Waits()", "t.state.draining && t.state.wanted"}},
		},
		{
			Name: "live buffers of a closed stream are not live in a refusal", Package: "internal/acceptance", Run: "^TestLiveBuffersOfAClosedStreamInARefusal$",
			Edits: []Edit{{"internal/pool/core.(*client).buffersBytes", "	if cl.gone {\n		return cl.leftBytes\n	}\n", ""}},
		},
	}
}
