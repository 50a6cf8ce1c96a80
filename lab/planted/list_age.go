package planted

// ageBugs are those of memory that is released for its age, from the configuration to the pool.
func ageBugs() []Bug {
	const spike, after, atRunTime = "^TestMemoryOfASpikeIsReleased$", "^TestReleaseAfter$", "^TestReleaseAfterAtRunTime$"
	return []Bug{
		{
			Name: "VRAM_RELEASE_AFTER is read and ignored", Package: "internal/acceptance", Run: "^TestReleaseAfterOfTheEnvironment$|^TestConfigFromEnvReadsEveryVariable$",
			Edits: []Edit{{"vram.variables", "c.ReleaseAfter, err = time.ParseDuration(value)\n			if err == nil && c.ReleaseAfter <= 0", "after, err := time.ParseDuration(value)\n			if err == nil && after <= 0"}},
		},
		{
			Name: "VRAM_RELEASE_AFTER takes zero and negative times", Package: "internal/acceptance", Run: "^TestReleaseAfterOfTheEnvironment$",
			Edits: []Edit{{"vram.variables", "if err == nil && c.ReleaseAfter <= 0 {", "if false {"}},
		},
		{
			Name: "Reconfigure ignores ReleaseAfter", Package: "internal/acceptance", Run: atRunTime,
			Edits: []Edit{{"vram.(*Settings).appliedTo", "	set(&c.ReleaseAfter, s.ReleaseAfter)\n", ""}},
		},
		{
			Name: "a mode of another mode's age", Package: "internal/acceptance", Run: after,
			Edits: []Edit{{"vram.Footprint.releaseAfter", "case Lean:\n		return 1500 * time.Millisecond\n	case Fast:", "case Fast:"}},
		},
		{
			Name: "a negative ReleaseAfter is the shortest", Package: "internal/acceptance", Run: after,
			Edits: []Edit{{"vram.(*Config).ageTicks", "max(0, min(", "max(1, min("}},
		},
		{
			Name: "a new stream has no age limit", Package: "internal/acceptance", Run: spike,
			Edits: []Edit{{"vram.(*Device).openBy", "AgeTicks: settings.AgeTicks, ", ""}},
		},
		{
			Name: "a change of the age limit does not reach open streams", Package: "internal/acceptance", Run: "^TestReleaseAfterOfAStreamAtRunTime$",
			Edits: []Edit{{"streams.(*turn).configure", "	t.state.core.SetSettings(s)\n", "	s.AgeTicks = 0\n	t.state.core.SetSettings(s)\n"}},
		},
		{
			Name: "a surplus is lent back whole", Package: "internal/acceptance", Run: "^TestASurplusIsNotLentToAStreamThatGrows$",
			Edits: []Edit{{"internal/pool/core.(*Core).takeBack", "cl.thriftTicks = 2 * c.settings.AgeTicks", "cl.thriftTicks = 0"}},
		},
		{
			Name: "a stream that pauses is lent all that is free", Package: "internal/acceptance", Run: "^TestMemoryOfASpikeIsReleasedBesidePauses$",
			Edits: []Edit{{"internal/pool/core.(*answers).lendPages", "if cl.wakingTicks > 0 && a.budget.tooMuch() {", "if false {"}},
		},
		{
			Name: "a stream that pauses is lent little of what it may need", Package: "internal/acceptance", Run: "^TestALoopWithPausesKeepsItsMemory$",
			Edits: []Edit{{"internal/pool/core.(*answers).lendPages", "if cl.wakingTicks > 0 && a.budget.tooMuch() {", "if cl.wakingTicks > 0 {"}},
		},
		{
			Name: "a stream that wakes up is lent no more than it asks for", Package: "internal/pool/core", Run: "^TestAClientThatPauses",
			Edits: []Edit{{"internal/pool/core.(*answers).lendPages", "n = min(n, cl.lackedPages(a.memory.PageBytes()))", "n = 0"}},
		},
		{
			Name: "warmed memory gets old before its use", Package: "internal/acceptance", Run: "^TestWarmMemoryIsKeptUntilItIsUsed$",
			Edits: []Edit{{"internal/pool/memory.(*table).Keep", "entries[i].since = kept", "entries[i].since = t.now"}},
		},
		{
			Name: "only free ranges count before a refusal", Package: "internal/acceptance", Run: "^TestCrumbsOfFourStreamsBecomeOneBlock$|^TestMemoryOutlivesItsStream$",
			Edits: []Edit{{"internal/pool/core.(*grower).asksAll", "return g.clients.anyHolder(func(cl *client) bool { return cl.id != r.client && cl.mayReturn() })", "return len(g.asks.richest(r)) > 0"}},
		},
		{
			Name: "Lean buys growth as Fast does", Package: "lab/replay", Run: "^TestTheModesAreInOrder$",
			Edits: []Edit{{"vram.Footprint.policy", "p = core.Policy{HandlePages: 1, Slack: 12}", "p = core.Policy{HandlePages: 1, Slack: 350, SharedSlack: 500, PageWorth: 4}"}},
		},
		{
			Name: "old memory is never released", Package: "lab/simulation", Run: "^TestNoPromiseIsBrokenWhateverHappensNext$",
			Edits: []Edit{{"internal/pool/core.(*shrinker).age", "!s.jobs.release(nil, ", "!s.jobs.release(nil, nil) || 0 > len("}},
		},
		{
			Name: "old memory stays with an adopted stream after a Trim", Package: "lab/simulation", Run: "^TestARestBeginsAnewAfterAFree$",
			Edits: []Edit{{"streams.(*turn).returnFree", "t.state.core.Release(^uint32(0), false)", "t.state.core.Release(^uint32(0), true)"}},
		},
		{
			Name: "the simulation goes on with a rest in which memory was freed", Package: "lab/simulation", Run: "^TestARestBeginsAnewAfterAFree$",
			Edits: []Edit{{"lab/simulation.(*world).rest", "len(w.held) < liveCount", "len(w.held) > liveCount"}},
		},
	}
}
