package planted

func balancedBooks() Promise {
	return Promise{"no memory is lost, through failures, cancellations and panics", []Bug{
		{
			Name: "a rollback forgets a handle", Package: "internal/pool/core", Run: "^TestTranscripts$",
			Edits: []Edit{
				{
					"internal/pool/memory.(*Memory).undoOps",
					"releases = append(releases, Op{",
					"releases = append(releases[:0], Op{",
				},
			},
		},
		{
			Name: "Close skips a handle", Package: "pool", Run: "^TestStreamsThatAreGoneAreForgotten$",
			Edits: []Edit{
				{
					"internal/pool/memory.(*Memory).PlanClose",
					"if !h.live {\n\t\t\tcontinue",
					"if !h.live || id == 1 {\n\t\t\tcontinue",
				},
			},
		},
		{
			Name: "the blocks of a batch that fails count as freed", Package: "streams", Run: "^TestAPanicCountsNoParts$",
			Edits: []Edit{{"streams.(*several).fail", "\t\t\tr.stream.parts.Drop(units)\n", "\t\t\t_ = units\n"}},
		},
		{
			Name:    "a reservation is freed once more after a close",
			Package: "internal/pool/core", Run: "^TestAReservationEndsDuringClose$",
			Edits: []Edit{{"internal/pool/core.(*Core).finishClose", "\t\t\tcl.reserved = nil\n", ""}},
		},
		{
			Name:    "drawn memory stays in the reservation",
			Package: "internal/pool/core", Run: "^TestCoreAgreesWithOnePageOneOwner$|^FuzzCore$",
			Edits: []Edit{
				{"internal/pool/core.(*answers).draw", "if from.reserved[i] = rest; rest.Pages == 0 {", "if rest.Pages == 0 {"},
			},
		},
		{
			Name: "a tenant pays for a refused request", Package: "internal/acceptance", Run: "^TestATenantIsRefunded$",
			Edits: []Edit{
				{"streams.(*claim).Fail", "\tc.Refund()\n", ""},
				{"streams.(*claim).cancelled", "\tc.Refund()\n", ""},
			},
		},
		{
			Name: "the runs of an answer that panics are lost", Package: "streams", Run: "^TestAPanicOfADonorLosesNoRuns$",
			Edits: []Edit{{"streams.(*lentMemory).pushReturn", "	l.state.inTransit.runs = runs\n", ""}},
		},
		{
			Name:    "the effects of a turn that panics twice are lost",
			Package: "streams", Run: "^TestAPanicAtTheEndOfATurnLosesNoEffects$",
			Edits: []Edit{
				{"streams.(*ending).detachPanicked", "e.detaching && e.failure.Load() != nil", "e.detaching && e.state.out == nil"},
			},
		},
		{
			Name:    "a request whose turn panicked is charged twice",
			Package: "pool", Run: "^TestAPanicChargesNoRequestTwice$",
			Edits: []Edit{
				{
					"pool.(*quotas).charge",
					"\t\tq.queued = slices.Delete(q.queued, at, at+1)\n" +
						"\t\tt.queued.Add(-1)\n" +
						"\t\tif taken {\n" +
						"\t\t\tready(x)\n" +
						"\t\t}\n",
					"\t\tif taken {\n" +
						"\t\t\tready(x)\n" +
						"\t\t}\n" +
						"\t\tq.queued = slices.Delete(q.queued, at, at+1)\n" +
						"\t\tt.queued.Add(-1)\n",
				},
			},
		},
		{
			Name: "a capture that fails keeps its memory", Package: "cuda", Run: "^TestACaptureThatFailsLeavesNothing$",
			Edits: []Edit{{"cuda.(*Context).Capture", "err = errors.Join(err, pool.leave(nil))", "_ = pool"}},
		},
		{
			Name: "a record that fails leaves its event", Package: "cuda", Run: "^TestAFailedCallLeavesNothing$",
			Edits: []Edit{{"cuda.(*Event).record", "if !recorded {", "if !recorded && false {"}},
		},
		{
			Name:    "a split reduction that fails keeps its scratch memory",
			Package: "compute/ops", Run: "^TestAFailedCallLeavesNothing$",
			Edits: []Edit{
				{
					"compute/kernel.(*ready).launchSplit",
					"if failed := scratch.Free(); failed != nil {",
					"if failed := error(nil); failed != nil {",
				},
			},
		},
		{
			Name:    "shared memory that cannot be mapped is lost",
			Package: "cuda/share", Run: "^TestNothingLeaksWhereACallFails$",
			Edits: []Edit{{"cuda/share.(*pages).place", "err = errors.Join(err, p.release())", "_ = p"}},
		},
		{
			Name: "a wake that fails leaves a part awake", Package: "internal/pool/memory", Run: "^TestASleepFailsAnywhere$",
			Edits: []Edit{{"internal/pool/memory.waking.finish", "\t\tm.PlanSleep(&out.Undo, b.client)\n", ""}},
		},
		{
			Name: "a block whose free the driver refused is lost", Package: "host", Run: "^TestAFailedRecordLosesNothing$",
			Edits: []Edit{{"host.(*Pool).freeUsed", "\t\t\ts.revive(word)\n", ""}},
		},
		{
			Name: "a scope that fails keeps its tensors", Package: "compute/tensor", Run: "^TestAScopeThatFailsFreesItsTensors$",
			Edits: []Edit{
				{
					"compute/tensor.Scoped",
					"\treturn f(s)\n",
					"\tif err = f(s); err != nil {\n\t\ts.made = nil\n\t}\n\treturn err\n",
				},
			},
		},
	}}
}
