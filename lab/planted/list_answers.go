package planted

func oneAnswer() Promise {
	return Promise{"every accepted request gets exactly one answer, also through panics, failures and Close", []Bug{
		{
			Name: "two completions win", Package: "futures", Run: "^TestCancel$",
			Edits: []Edit{
				{
					"futures.(*completion).claim",
					"func (p *completion) claim() bool { return p.claimed.CompareAndSwap(false, true) }",
					"func (p *completion) claim() bool { p.claimed.Store(true); return true }",
				},
			},
		},
		{
			Name: "an immediate stop waits for queued messages", Package: "actors", Run: "^TestStopNowFailsWhatIsQueued$",
			Edits: []Edit{
				{"actors.(*Ref).StopNow", "StopNow() { r.box.framework.stop() }", "StopNow() { r.box.stop(nil) }"},
			},
		},
		{
			Name: "the last of several refusals is not told", Package: "lab/simulation", Run: "^TestNoPromiseIsBroken",
			Edits: []Edit{
				{
					"pool.(*Pool).collect",
					"for d := range fx.Denials.Popped() {\n",
					"for d := range fx.Denials.Popped() {\n\t\tif len(fx.Denials.Left()) == 0 {\n\t\t\tbreak\n\t\t}\n",
				},
			},
		},
		{
			Name: "a grant is lost while others wait", Package: "lab/simulation", Run: "^TestNoPromiseIsBroken",
			Edits: []Edit{{"streams.(*turn).granted", "c != nil {\n		t.dispatch.endWaiting(c)", "c != nil && t.state.claims.Len() < 2 {\n		t.dispatch.endWaiting(c)"}},
		},
		{
			Name: "a cancelled request keeps its block", Package: "streams", Run: "^TestCancelWhenTheBlockIsTaken$",
			Edits: []Edit{{"streams.(*single).undo", "s.state.core.Undo(slot)", "_ = slot"}},
		},
		{
			Name: "a cancelled batch keeps half", Package: "streams", Run: "^TestABatchThatIsCancelledInItsTurn$",
			Edits: []Edit{
				{"streams.(*several).putBack", "for i := range r.dst {\n", "for i := range r.dst[len(r.dst)/2:] {\n"},
			},
		},
		{
			Name: "a cancelled request keeps waiting", Package: "internal/acceptance", Run: "^TestAWaitEndsWithItsContext$",
			Edits: []Edit{{"streams.(*dispatcher).changed", "\t\td.unpark(c)\n", ""}},
		},
		{
			Name:    "the gate opens before the answer is there",
			Package: "futures", Run: "^TestAnAnswerIsWrittenBeforeItIsPublished$",
			Edits: []Edit{
				{
					"futures.(*Promise).publish",
					"\tfirst := p.seal(v, err)\n\tp.openGate()",
					"\tp.openGate()\n\tfirst := p.seal(v, err)",
				},
			},
		},
		{
			Name:    "an answer loses against the end of the context",
			Package: "futures", Run: "^TestAnAnswerComesBeforeTheEndOfTheContext$",
			Edits: []Edit{
				{
					"futures.(*completion).await",
					"\tend()\n\treturn p.completed()\n",
					"\tend()\n\treturn p.completed() && ctx.Err() == nil\n",
				},
			},
		},
		{
			Name:    "an actor is through before its last effects",
			Package: "actors", Run: "^TestTheLastEffectsComeBeforeDone$",
			Edits: []Edit{{"actors.(*mailbox).finish", "\t\tdefer b.worker.End()\n", "\t\tb.worker.End()\n"}},
		},
		{
			Name:    "a panic that parks a request fails nobody",
			Package: "streams", Run: "^TestAPanicWhileABatchIsParkedFailsIt$",
			Edits: []Edit{{"streams.(*dispatcher).serve", "\t\td.park(c)\n", "\t\td.current = nil\n\t\td.park(c)\n"}},
		},
		{
			Name: "a panic in a grant fails nobody", Package: "streams", Run: "^TestAPanicInAGrantFailsItsRequest$",
			Edits: []Edit{{"streams.(*turn).granted", "	t.dispatch.current = c //", "	//"}},
		},
		{
			Name:    "an offer that was taken is refused after a panic",
			Package: "streams", Run: "^TestAPanicBehindATakenOffer$",
			Edits: []Edit{{"streams.(*dispatcher).offered", "if m.answered = true; taken {", "if taken {"}},
		},
		{
			Name: "decisions of a step that panicked are lost", Package: "pool", Run: "^TestAPanicOfThePoolLosesNoDecision$",
			Edits: []Edit{{"pool.(*Pool).Panicked", "!fx.Empty() {", "fx == nil {"}},
		},
	}}
}
