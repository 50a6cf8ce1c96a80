package planted

// futureBugs are in the order of the steps of an answer, and in who may run whose functions.
func futureBugs() []Bug {
	return []Bug{
		{
			Name: "the gate opens before the answer is there", Package: "futures", Run: "^TestAnAnswerIsWrittenBeforeItIsPublished$",
			Edits: []Edit{{
				"futures.(*Promise).publish", "	first := p.seal(v, err)\n	p.openGate()", "	p.openGate()\n	first := p.seal(v, err)",
			}},
		},
		{
			Name: "a second waiter has a gate of its own", Package: "futures", Run: "^TestWaitersShareOneGate$",
			Edits: []Edit{{
				"futures.(*completion).done", "		if !p.gate.CompareAndSwap(nil, g) {\n			g = p.gate.Load()\n		}\n", "		p.gate.CompareAndSwap(nil, g)\n",
			}},
		},
		{
			Name: "a part of a whole counts before its value is there", Package: "futures", Run: "^TestAPartIsWrittenBeforeItCounts$",
			Edits: []Edit{{
				"futures.(*gathered).settle",
				"	w.values[part.index], part.failed = v, err != nil\n	failedFirst := err != nil && w.promise.Complete(nil, err)\n	last := w.left.Add(-1) == 0\n",
				"	last := w.left.Add(-1) == 0\n	w.values[part.index], part.failed = v, err != nil\n	failedFirst := err != nil && w.promise.Complete(nil, err)\n",
			}},
		},
		{
			Name: "the loser of a race is released by who completes it", Package: "futures", Run: "^TestForeignFunctionsNeverRunOnTheCompleter$",
			Edits: []Edit{{"futures.(*race).settle", "		do(func() { containPanic(func() { r.release(v) }) })", "		containPanic(func() { r.release(v) })"}},
		},
	}
}
