package planted

func heldLimits() Promise {
	return Promise{"limits and quotas hold to the page, and every tenant gets its share", []Bug{
		{
			Name: "the limit is off by a page", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/core.(*grower).growBy", "if !ok || !g.budget.fits(r, w.Missing) {", "if !ok || !g.budget.fits(r, max(w.Missing, 1)-1) {"}},
		},
		{
			Name: "growth beyond the budget breaks the limit", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{{"internal/pool/core.(*grower).overgrown", "return w, ok && g.budget.reservedWith(w.Missing) <= maxBytes", "return w, ok || g.budget.reservedWith(w.Missing) > maxBytes"}},
		},
		{
			Name:    "who borrows passes those within their share",
			Package: "internal/pool/admission", Run: "^TestEverySmallWorldOfTenants$",
			Edits: []Edit{
				{
					"internal/pool/admission.(*line).lets",
					"(!w.borrows || !l.within) && w.Bytes",
					"(!w.borrows || !l.within || true) && w.Bytes",
				},
			},
		},
		{
			Name: "a tenant's new request takes memory that others wait for", Package: "internal/acceptance", Run: "^TestATenantDoesNotJumpTheQueue$",
			Edits: []Edit{{"internal/stream/claims.Queues", "return waits && s.Demand", "return false"}},
		},
		{
			Name:    "a quota that comes too late is not refunded",
			Package: "streams", Run: "^TestAQuotaThatComesToACancelledClaimIsRefunded$",
			Edits: []Edit{
				{
					"internal/stream/claims.(*Bill).Pay",
					"\tif !wanted() {\n\t\tb.Refund()\n\t\treturn false, true\n\t}\n\treturn true, false",
					"\treturn true, false",
				},
			},
		},
		{
			Name: "the free of a handed buffer leaves it charged", Package: "internal/acceptance", Run: "^TestAHandedBufferGoesOn$",
			Edits: []Edit{{"internal/stream/magazine.(*Slot).returnAnnounced", "\ts.leaveHand(word, units)\n", ""}},
		},
		{
			Name:    "shared memory does not count in the limit",
			Package: "cuda/share", Run: "^TestSharedMemoryCountsInTheLimit$",
			Edits: []Edit{{"internal/pool/core.(*Core).lowerLimit", "c.limitBytes-c.memory.OutsideBytes()", "c.limitBytes"}},
		},
		{
			Name: "a wake passes the limit", Package: "cuda/sleep", Run: "^TestTheLimitLeavesNoRoomToWake$",
			Edits: []Edit{{"internal/pool/core.wakeWay.climb", "s.settings.LimitBytes", "1<<50"}},
		},
		{
			Name: "a limit of host memory allows a byte too many", Package: "host", Run: "^TestALimitIsExact$",
			Edits: []Edit{{"host.charge", "old > bound-amount", "old > bound-amount+1"}},
		},
	}}
}
