package planted

// panicBugs are those by which a panic in a turn costs more than the answer that the turn was at.
func panicBugs() []Bug {
	return []Bug{
		{
			Name: "an offer that waits for runs is lost in a panic", Package: "streams", Run: "^TestAPanicForgetsNoOfferThatIsOwed$",
			Edits: []Edit{{"streams.(*ending).panicked", "e.state.claims.TakeOffers() {", "e.state.claims.TakeOffers()[:0] {"}},
		},
		{
			Name: "offers behind one that panicked are lost", Package: "streams", Run: "^TestAPanicInAnOfferForgetsNoOther$",
			Edits: []Edit{{
				"streams.(*dispatcher).reoffer",
				"o, due := d.state.claims.DueOffer(); due; o, due = d.state.claims.DueOffer() {\n		taken := d.answerOffer(o)\n		if d.state.claims.Answered(o); taken",
				"_, o := range d.state.claims.TakeOffers() {\n		if d.answerOffer(o)",
			}},
		},
		{
			Name: "a panic that parks a request fails nobody", Package: "streams", Run: "^TestAPanicWhileABatchIsParkedFailsIt$",
			Edits: []Edit{{"streams.(*dispatcher).serve", "		d.park(c)\n", "		d.current = nil\n		d.park(c)\n"}},
		},
		{
			Name: "a panic in a grant fails nobody", Package: "streams", Run: "^TestAPanicInAGrantFailsItsRequest$",
			Edits: []Edit{{"streams.(*turn).granted", "	t.dispatch.current = c //", "	//"}},
		},
		{
			Name: "a request that a panic failed counts as waiting", Package: "streams", Run: "^TestAPanicInAGrantFailsItsRequest$",
			Edits: []Edit{{"streams.(*ending).panicked", "		e.dispatch.endWaiting(c)\n", ""}},
		},
		{
			Name: "a request that was served waits until the excess is returned", Package: "streams", Run: "^TestAPanicBehindATakenOffer$",
			Edits: []Edit{{
				"streams.(*dispatcher).serveOffer", "	d.endWaiting(c)\n	return true\n",
				"	d.lent.returnExcess(forCaller)\n	d.endWaiting(c)\n	return true\n",
			}},
		},
		{
			Name: "a panic of a stream's audit is not counted", Package: "streams", Run: "^TestAPanicAtTheEndOfATurnLosesNoEffects$",
			Edits: []Edit{{"streams.(*ending).panicked", "			e.wiring.panics.Here(e.wiring.ref.Name(), value)\n", ""}},
		},
		{
			Name: "the effects of a turn that panics twice are lost", Package: "streams", Run: "^TestAPanicAtTheEndOfATurnLosesNoEffects$",
			Edits: []Edit{{"streams.(*ending).detachPanicked", "e.detaching && e.failure.Load() != nil", "e.detaching && e.state.out == nil"}},
		},
		{
			Name: "the effects of a turn whose end panics are lost", Package: "streams", Run: "^TestAPanicAtTheEndOfATurnLosesNoEffects$",
			Edits: []Edit{{"streams.(*ending).stopped", "	defer e.performLeft() //", "	//"}},
		},
		{
			Name: "an offer that was taken is refused after a panic", Package: "streams", Run: "^TestAPanicBehindATakenOffer$",
			Edits: []Edit{{"streams.(*dispatcher).offered", "if m.answered = true; taken {", "if taken {"}},
		},
		{
			Name: "decisions of a step that panicked are lost", Package: "pool", Run: "^TestAPanicOfThePoolLosesNoDecision$",
			Edits: []Edit{{"pool.(*Pool).Panicked", "!fx.Empty() {", "fx == nil {"}},
		},
		{
			Name: "a request granted by the step that broke the books gets no answer", Package: "pool", Run: "^TestQuarantinedPoolLeavesMemoryAlone$",
			Edits: []Edit{{"pool.(*Pool).Stopped", "	p.denyLeft(cause)\n", ""}},
		},
		{
			Name: "a request whose turn panicked is charged twice", Package: "pool", Run: "^TestAPanicChargesNoRequestTwice$",
			Edits: []Edit{{
				"pool.(*quotas).charge",
				"		q.queued = slices.Delete(q.queued, at, at+1)\n		t.queued.Add(-1)\n		if taken {\n			ready(x)\n		}\n",
				"		if taken {\n			ready(x)\n		}\n		q.queued = slices.Delete(q.queued, at, at+1)\n		t.queued.Add(-1)\n",
			}},
		},
		{
			Name: "a request that the pool's panic denied goes on waiting", Package: "pool", Run: "^TestAPanicOfThePoolEndsTheWaitOfItsRequest$",
			Edits: []Edit{{"pool.(*Pool).Panicked", "if m, ok := s.message.(core.Refill); ok {", "if m, ok := s.message.(core.Refill); ok && m.Token == 0 {"}},
		},
	}
}
