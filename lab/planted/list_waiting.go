package planted

func servedWaiters() Promise {
	return Promise{"no request waits longer than it must, and none is refused while memory is free", []Bug{
		{
			Name:    "a request goes without the memory of clients that have published none",
			Package: "internal/pool/core", Run: "^TestNothingIsRefusedThatIsThere$|^TestAnAnswerWaitsForWhatItOvertook$",
			Edits: []Edit{
				{
					"internal/pool/core.(*grower).asksAll",
					"cl.id != r.client && cl.mayReturn()",
					"cl.id != r.client && cl.usage.FreePages > 0",
				},
			},
		},
		{
			Name:    "a request is refused though only fences keep memory",
			Package: "streams", Run: "^TestPendingMemoryIsWaitedForBeforeARefusal$",
			Edits: []Edit{
				{"streams.(*dispatcher).refuse", "!last && d.wiring.peers.anyPending()", "!last && !d.wiring.peers.anyPending()"},
			},
		},
		{
			Name:    "a stream waits on the device for another by default",
			Package: "internal/acceptance", Run: "^TestNobodyWaitsForAKernelWhileThereIsMemory$",
			Edits: []Edit{{"internal/pool/core.(*grower).lend", "g.settings.Waits == WaitsNever || ", ""}},
		},
		{
			Name:    "a request that waits for a fence delays later requests",
			Package: "internal/acceptance", Run: "^TestARequestAtTheLimitWaitsForTheFirstFence$",
			Edits: []Edit{
				{
					"pool.(*driver).watch",
					`actors.Go(d.pool.host, "", func() { d.awaitMark(w) })`,
					"actors.Yield(d.pool.host)\n\t\t\td.awaitMark(w)",
				},
			},
		},
		{
			Name: "a request that only a fence keeps from memory is refused", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/core.(*ladder).hold", "	l.fences.held = append(l.fences.held, r)\n	return leave", "	return onward"}},
		},
		{
			Name:    "a wait for a fence gives up while another goroutine looks at it",
			Package: "streams", Run: "^TestAWaitOutlastsALookAtItsFence$",
			Edits: []Edit{
				{
					"internal/fence.(*Timeline).Wait",
					"return t.whenSettled(), nil",
					"return nil, nil //nolint:nilnil // planted",
				},
			},
		},
		{
			Name:    "a request that waits is passed without end",
			Package: "internal/pool/admission", Run: "^TestNobodyIsPassedForEver$",
			Edits: []Edit{
				{"internal/pool/admission.(*entry).pass", "e.passedBytes += served.Bytes", "e.passedBytes += 0 * served.Bytes"},
			},
		},
		{
			Name: "a trial that began before a change counts", Package: "internal/pool/admission", Run: "^TestEverySmallWorld$",
			Edits: []Edit{{"internal/pool/admission.(*Table).Failed", ".tried = t.tryFrom == t.epoch", ".tried = true"}},
		},
		{
			Name:    "a deadlock is declared before all was collected",
			Package: "internal/pool/admission", Run: "^TestEverySmallWorld$",
			Edits: []Edit{
				{"internal/pool/admission.(*Table).Stuck", "\tcase lifted:\n\t\treturn Confirm, 0\n", "\tcase lifted:\n"},
			},
		},
		{
			Name: "a stream is suspended for the first wait only", Package: "internal/acceptance", Run: "^TestAStreamIsSuspendedForAllWaits$",
			Edits: []Edit{
				{
					"internal/pool/core.(*Core).park",
					"\t\tfor _, cl := range c.clients.all {\n\t\t\tcl.dirty = true\n",
					"\t\tfor id, cl := range c.clients.all {\n" +
						"\t\t\tcl.dirty = true\n" +
						"\t\t\tc.waiters.table.Suspend(admission.Account(id), nil)\n",
				},
			},
		},
		{
			Name: "memory that a wait did not use is kept from others", Package: "internal/acceptance", Run: "^TestWhatAWaitDidNotUseServesOthers$",
			Edits: []Edit{{"streams.(*turn).granted", "\t\tt.state.core.NoteSpare()\n", ""}},
		},
		{
			Name:    "the second refusal of the driver is final",
			Package: "internal/pool/core", Run: "^TestAllThatIsFreeGoesBackBeforeADenial$",
			Edits: []Edit{{"internal/pool/core.(*ladder).jobFailed", "r.refusals < maxRefusals", "!r.capped"}},
		},
		{
			Name: "who was sent a buffer is not taken to free it", Package: "internal/acceptance", Run: "^TestASentValueIsNoDeadlock$",
			Edits: []Edit{{"streams.(*Handover).Send", "\t\th.from.suspensions.addFreer(h.receiverID())\n", ""}},
		},
		{
			Name:    "a deadlock is believed though somebody went on",
			Package: "internal/pool/admission", Run: "^TestAnyChangeEndsAStandstill$",
			Edits: []Edit{
				{
					"internal/pool/admission.(*Table).Block",
					"\t\tt.queue[at].Blocked = blocked\n\t\tt.stage = moving\n",
					"\t\tt.queue[at].Blocked = blocked\n",
				},
			},
		},
	}}
}
