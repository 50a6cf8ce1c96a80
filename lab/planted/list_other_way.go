package planted

// otherWayBugs are at the second of two ways to the same end: the rest on the other side, the path that fails, the moment behind the
// answer.
func otherWayBugs() []Bug {
	return []Bug{
		{
			Name: "a sharded bucket serves another length", Package: "internal/stream/magazine", Run: "^TestABucketServesOneLength$",
			Edits: []Edit{{
				"internal/stream/magazine.(*bucket).takeShard",
				"	m := b.shards.Load()[shardHint()].magazine.Load()\n	if m == nil || (units > sizeclass.MaxUnits && uint64(m.units) != units) {",
				"	m := b.shards.Load()[shardHint()].magazine.Load()\n	if m == nil {",
			}},
		},
		{
			Name: "a batch is served by another length", Package: "internal/stream/magazine", Run: "^TestABucketServesOneLength$",
			Edits: []Edit{{
				"internal/stream/magazine.(*Cache).TakeMany",
				"		m = b.magazine.Load()\n	}\n	if m == nil || (units > sizeclass.MaxUnits && uint64(m.units) != units) {",
				"		m = b.magazine.Load()\n	}\n	if m == nil {",
			}},
		},
		{
			Name: "the rest before a part is under no fence", Package: "internal/pool/memory", Run: "^TestFreePagesKeepTheirTags$",
			Edits: []Edit{{"internal/pool/memory.(*table).takeFree", "Pages: r.First - first}, tag)", "Pages: r.First - first}, Tag{tag.Client, 0})"}},
		},
		{
			Name: "the rest behind a part is under no fence", Package: "internal/pool/memory", Run: "^TestFreePagesKeepTheirTags$",
			Edits: []Edit{{"internal/pool/memory.(*table).takeFree", "Pages: run.End() - r.End()}, tag)", "Pages: run.End() - r.End()}, Tag{tag.Client, 0})"}},
		},
		{
			Name: "what a trial gives back is clean", Package: "internal/pool/core", Run: "^TestATrialGivesBack",
			Edits: []Edit{{"internal/pool/core.(*answers).putBack", "a.memory.FreeParts(r.parts, run)", "a.memory.FreeParts(nil, run)"}},
		},
		{
			Name: "a window that a trial gives back is clean", Package: "internal/pool/core", Run: "^TestATrialGivesBackAWindowAsItWas$",
			Edits: []Edit{{"internal/pool/core.(*answers).grantWindow", "	r.keep(parts...)\n", "	_ = parts\n"}},
		},
		{
			Name: "a fence that passes during a trial is not heard of", Package: "internal/pool/core", Run: "^TestAFencePassesDuringATrial$",
			Edits: []Edit{{"internal/pool/core.(*Core).passed", "	c.queue.pass(p)\n", ""}},
		},
		{
			Name: "a deadlock is believed though somebody went on", Package: "internal/pool/admission", Run: "^TestAnyChangeEndsAStandstill$",
			Edits: []Edit{{
				"internal/pool/admission.(*Table).Block", "		t.queue[at].Blocked = blocked\n		t.stage = moving\n", "		t.queue[at].Blocked = blocked\n",
			}},
		},
		{
			Name: "a deadlock is believed though an account stood up", Package: "internal/pool/admission", Run: "^TestAnyChangeEndsAStandstill$",
			Edits: []Edit{{
				"internal/pool/admission.(*Table).Suspend", "		t.still[at].waits = waits\n	}\n	t.stage = moving\n",
				"		t.still[at].waits = waits\n	}\n",
			}},
		},
		{
			Name: "a quota that comes too late is not refunded", Package: "streams", Run: "^TestAQuotaThatComesToACancelledClaimIsRefunded$",
			Edits: []Edit{{"internal/stream/claims.(*Bill).Pay", "	if !wanted() {\n		b.Refund()\n		return false, true\n	}\n	return true, false", "	return true, false"}},
		},
		{
			Name: "a stream without buffers lets its memory", Package: "streams", Run: "^TestAStreamLetsWhatLivesThere$",
			Edits: []Edit{{"streams.(*turnState).tenantsOnly", "	some, only := false, true", "	some, only := true, true"}},
		},
		{
			Name: "a panic in the answer of a batch frees it", Package: "streams", Run: "^TestAPanicInTheAnswerOfABatch$",
			Edits: []Edit{{"streams.(*several).deliver", "r.unbook()\n	r.dst = nil\n", "r.unbook()\n"}},
		},
		{
			Name: "a panic in the answer of a request frees it", Package: "streams", Run: "^TestAPanicInTheAnswerOfARequest$",
			Edits: []Edit{{"streams.(*single).deliver", "	s.state.inTransit.slot = nil // from", "	// from"}},
		},
	}
}
