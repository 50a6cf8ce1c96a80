package planted

// callerBugs are those of what callers see: errors, texts, and calls from within the program's own functions.
func callerBugs() []Bug {
	return []Bug{
		{
			Name: "waiters at the close of a device hear of their stream", Package: "internal/acceptance", Run: "^TestWaitersHearThatTheDeviceIsClosed$",
			Edits: []Edit{{"streams.(*Peers).End", "p.ended.Store(true)", ""}},
		},
		{
			Name: "a closed device makes tenants", Package: "internal/acceptance", Run: "^TestARefusalSaysWhatIsClosed$",
			Edits: []Edit{{"vram.(*Device).Tenant", "if d.closed.Load() {", "if false {"}},
		},
		{
			Name: "a refusal does not say whose request it was", Package: "internal/acceptance", Run: "^TestARefusalNamesItsRequest$",
			Edits: []Edit{{"streams.(*claim).sign", "short.Tag, short.Tenant = c.want.tag(), c.tenant.Name()", "_ = short"}},
		},
		{
			Name: "a handler is not told whose request was refused", Package: "internal/acceptance", Run: "^TestARefusalNamesItsRequest$",
			Edits: []Edit{{"streams.(*dispatcher).refuse", "c.sign(short)", "_ = short"}},
		},
		{
			Name: "memory within pages that are used in part is not counted", Package: "internal/acceptance", Run: "^TestARefusalCountsWhatIsFreeWithinPages$",
			Edits: []Edit{{"pool.(*OutOfMemoryError).Remedies", "partBytes+part, parts+1", "partBytes, parts+1"}},
		},
		{
			Name: "a Close in a function of Events waits for its own end", Package: "internal/acceptance", Run: "^TestAnEventFunctionClosesTheDevice$",
			Edits: []Edit{{"vram.(*Device).endClose", "case d.notices.calling():", "case false:"}},
		},
		{
			Name: "a second Close in a function of Events waits for its own end", Package: "internal/acceptance", Run: "^TestAnEventFunctionClosesTheDevice$",
			Edits: []Edit{{"vram.(*Device).awaitClose", "if d.notices.calling() {", "if false {"}},
		},
		{
			Name: "the error of a closed stream names the device", Package: "internal/acceptance", Run: "^TestARefusalSaysWhatIsClosed$",
			Edits: []Edit{{"streams.(*cudaStream).closed", "&ClosedError{Stream: h.id}", "&ClosedError{}"}},
		},
		{
			Name: "a share may be more than the limit", Package: "internal/acceptance", Run: "^TestQuotasThatCannotBe$",
			Edits: []Edit{{"pool.CheckQuota", "q.ShareBytes > q.LimitBytes", "false"}},
		},
		{
			Name: "a refused Reserve advises a wait that it has not", Package: "pool", Run: "^TestRemedies$",
			Edits: []Edit{{"pool.(*OutOfMemoryError).Remedies", "			kind = RetryAfterFrees\n", ""}},
		},
		{
			Name: "nobody knows that it is Reserve which is refused", Package: "internal/acceptance", Run: "^TestReservationsThatCannotBe$",
			Edits: []Edit{{"pool.(*quotas).denialError", "if _, e.reserves = to.(*reservationClient); !e.reserves {", "if _, is := to.(*reservationClient); !is {"}},
		},
		{
			Name: "a tenant is listed beside the streams that its buffers are in", Package: "internal/acceptance", Run: "^TestAWaitErrorSays",
			Edits: []Edit{{"pool.(*Pool).EndWait", "e.Tenants = p.quotas.holders()", "e.Holders = append(e.Holders, p.quotas.holders()...)"}},
		},
		{
			Name: "an Await that is given up has the error of its context alone", Package: "internal/acceptance", Run: "^TestAnAwaitThatEndsSaysWhatTheRequestWaitsFor$",
			Edits: []Edit{{"futures.(*Promise).await", "return none, p.explain(ctx.Err())", "return none, ctx.Err()"}},
		},
		{
			Name: "a request that goes on is said to have ended", Package: "internal/acceptance", Run: "^TestAnAwaitThatEndsSaysWhatTheRequestWaitsFor$",
			Edits: []Edit{{"streams.(*claim).givenUp", "	e.Pending = true\n", ""}},
		},
		{
			Name: "an Await of a future of Then that is given up has the error of its context alone", Package: "futures", Run: "^TestADerivedFutureHasTheErrorOfItsSource$",
			Edits: []Edit{{"futures.(*chain).gaveUp", "return source.explain(ended)", "return ended"}},
		},
		{
			Name: "a future of All says what its first part waits for, which has come", Package: "futures", Run: "^TestADerivedFutureHasTheErrorOfItsSource$",
			Edits: []Edit{{"futures.(*gathered).gaveUp", "source != nil && !source.completed()", "source != nil"}},
		},
		{
			Name: "a leak is named by the buffer that was found first", Package: "internal/acceptance", Run: "^TestALeakNamesTheLargestBuffer$",
			Edits: []Edit{{"vram.(*InUseError).sum", "list := inventory.Of(e.Buffers)", "list := inventory.Of(append([]LiveBuffer(nil), e.Buffers...))\n	list.Buffers = e.Buffers"}},
		},
		{
			Name: "a leak of which some places are known says how to see them", Package: "internal/acceptance", Run: "^TestALeakSaysHowToSeeItsPlaces$",
			Edits: []Edit{{"vram.(*InUseError).placeless", "return !slices.ContainsFunc(e.Buffers,", "return !slices.ContainsFunc(e.Buffers[len(e.Buffers)-1:],"}},
		},
		{
			Name: "a refused argument is said to be of a Config", Package: "internal/acceptance", Run: "^TestARefusedArgumentNamesItsCall$",
			Edits: []Edit{{"vram.badArgument", ", Call: call}", "}"}},
		},
		{
			Name: "a wait for a quota that ends blames the device", Package: "internal/acceptance", Run: "^TestAWaitForAQuotaBlamesTheQuota$",
			Edits: []Edit{{"streams.(*claim).waitError", "if c.Owes() {", "if !c.Waits {"}},
		},
		{
			Name: "an ended wait for a quota lists others' buffers", Package: "internal/acceptance", Run: "^TestAWaitForAQuotaBlamesTheQuota$",
			Edits: []Edit{{"pool.(*Pool).EndWait", "return b.Tenant != t.name", "return b.Bytes < 0"}},
		},
		{
			Name: "a deadlock for a quota blames the device", Package: "internal/acceptance", Run: "^TestADeadlockForAQuotaBlamesTheQuota$",
			Edits: []Edit{{"pool.(*quotas).deadlockError", "w.Unready && w.ID ==", "!w.Unready && w.ID =="}},
		},
	}
}
