package planted

func oneOwner() Promise {
	return Promise{"state has one owner; it moves by message or by one atomic operation, and a notice is never lost", []Bug{
		{
			Name: "who leaves a turn does not look for mail", Package: "lab/simulation", Run: "^TestNoPromiseIsBroken",
			Edits: []Edit{
				{
					"actors.(*mailbox).leave",
					"b.system.Load() != nil || d.rest == idle && b.waiting()",
					"b.system.Load() != nil",
				},
			},
		},
		{
			Name:    "a turn that was entered and quarantined is left idle",
			Package: "actors", Run: "^TestAQuarantinedTurnIsHandedOver$",
			Edits: []Edit{
				{
					"actors.(*mailbox).mustHandOver",
					"b.takenSystem != nil || b.system.Load() != nil",
					"b.takenSystem != nil",
				},
			},
		},
		{
			Name:    "the pool is not told of a freed block that no turn has collected",
			Package: "internal/stream/magazine", Run: "^TestAnAlertIsToldOnce$",
			Edits: []Edit{{"internal/stream/magazine.(*Home).wakeOr", "\t\th.waker.Freed()\n", ""}},
		},
		{
			Name:    "an alert is lost when requests begin to wait",
			Package: "internal/stream/magazine", Run: "^TestAnAlertIsToldOnce$",
			Edits: []Edit{{"internal/stream/magazine.(*Home).become", "uint32(to|old&alert)", "uint32(to)"}},
		},
		{
			Name:    "a report of returned memory is not counted as sent",
			Package: "streams", Run: "^TestAnAnswerCountsTheReportBeforeIt$",
			Edits: []Edit{{"streams.(*lentMemory).reportCame", "\t\tl.sent++\n", ""}},
		},
		{
			Name:    "arguments of a graph change while it is launched",
			Package: "cuda", Run: "^TestArgumentsChangeBetweenLaunches$",
			Edits: []Edit{{"cuda.(*gate).alone", "for g.state.Load() != mark {", "for range 0 {"}},
		},
		{
			Name:    "sleep does not wait for a launch that has begun",
			Package: "cuda/sleep", Run: "^TestALaunchThatHasBegunHoldsUpSleep$",
			Edits: []Edit{{"streams.(*gate).shut", "for g.word.Load() != shutBit {", "for false {"}},
		},
	}}
}
