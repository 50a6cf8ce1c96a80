package planted

// cudaBugs are those of work on streams, and of graphs.
func cudaBugs() []Bug {
	const pkg, kept = "cuda", "^TestAGraphKeepsFreedBuffers$"
	return []Bug{
		{
			Name: "a stale buffer is launched with", Package: pkg, Run: "^TestLaunchesAreRefused$",
			Edits: []Edit{{"streams.Submitter.Check", "!ok || !b.slot.Live(b.word)", "!ok"}},
		},
		{
			Name: "work is not behind that of the buffer's own stream", Package: pkg, Run: "^TestWorkOnBuffersOfOtherStreams$",
			Edits: []Edit{{"streams.(*Crossing).Before", "if err := c.waitHome(home); err != nil {", "if err := error(nil); err != nil {"}},
		},
		{
			Name: "work of other streams on a buffer is not counted", Package: pkg, Run: "^TestWorkOnBuffersOfOtherStreams$",
			Edits: []Edit{{"streams.(*Crossing).After", "Add(1)", "Add(0)"}},
		},
		{
			Name: "streams wait for each other without a common buffer", Package: pkg, Run: "^TestOtherBuffersAreNotWaitedFor$",
			Edits: []Edit{{"streams.Submitter.Check", "return !b.slot.Shared(), nil", "return false, nil"}, {"streams.(*Crossing).Before", "if !b.slot.Shared() {", "if false {"}},
		},
		{
			Name: "a graph does not announce its use of a buffer", Package: pkg, Run: kept,
			Edits: []Edit{{"cuda.(*capture).touch", "if err := p.keep(b); err != nil {", "if err := error(nil); err != nil {"}},
		},
		{
			Name: "fences of a hold pass", Package: pkg, Run: kept,
			Edits: []Edit{{"streams.Submitter.NewHold", "	s.cuda.held.Store(true)\n", ""}},
		},
		{
			Name: "pages leave a hold", Package: pkg, Run: kept,
			Edits: []Edit{{"streams.Submitter.NewHold", "Keep(true)", "Keep(false)"}},
		},
		{
			Name: "a branch of a capture has what another one has freed that it is not behind", Package: pkg, Run: "^TestBranchesUseMemoryAgainBehindAJoin$",
			Edits: []Edit{{"cuda.(*capture).take", "|| !p.order.free(stream, memory)", ""}},
		},
		{
			Name: "random branches have memory of each other", Package: pkg, Run: "^TestProgramsDoWhatTheirWorkDoes$",
			Edits: []Edit{{"cuda.(*reuse).behind", ">= count", ">= count || stream != by"}},
		},
		{
			Name: "memory of a branch is not used again behind a join", Package: pkg, Run: "^TestBranchesUseMemoryAgainBehindAJoin$",
			Edits: []Edit{{"cuda.(*capture).wait", "	p.order.wait(stream, before)\n", ""}},
		},
		{
			Name: "a free in a capture is no use", Package: pkg, Run: "^TestWorkPastThePackageIsBeforeAFree$",
			Edits: []Edit{{"cuda.(*capture).settle", "p.order.use(one.by, spanOf(one.buffer))", "_ = one"}},
		},
		{
			Name: "work of a branch may be before the allocation of its buffer", Package: pkg, Run: "^TestABranchIsBehindTheAllocationOfItsBuffers$",
			Edits: []Edit{{"cuda.(*capture).touch", "!p.order.behind(stream, one.by, one.count)", "false"}},
		},
		{
			Name: "work of a branch on another one's buffer is no use of its memory", Package: pkg, Run: "^TestReuseInACaptureIsBehindAllUses$",
			Edits: []Edit{{"cuda.(*capture).touch", "	p.order.use(stream, memory)\n", ""}},
		},
		{
			Name: "a take forgets uses beside its memory", Package: pkg, Run: "^TestReuseIsThatOfAllUses$",
			Edits: []Edit{{"cuda.(*reuse).take", "if m.end < u.memory.end {", "if false {"}},
		},
		{
			Name: "a wait takes over the count of one stream alone", Package: pkg, Run: "^TestReuseIsThatOfAllUses$",
			Edits: []Edit{{"cuda.(*reuse).wait", "max(r.positions[stream][i], count)", "count"}},
		},
		{
			Name: "a hold ends before its last launch has finished", Package: pkg, Run: "^TestAGraphIsClosedWhileItRuns$",
			Edits: []Edit{{"streams.Hold.End", "failed = errors.Join(failed, h.s.WaitStream(s))", "_ = s"}},
		},
		{
			Name: "a graph is not behind work that had its memory", Package: pkg, Run: "^TestAGraphIsBehindWorkThatHadItsMemory$",
			Edits: []Edit{{"cuda.(*Graph).first", "g.pool.hold.Precede(s)", "error(nil)"}},
		},
		{
			Name: "work on a result of a graph is not in order with its launches", Package: pkg, Run: "^TestResultsOfAGraph$",
			Edits: []Edit{{"cuda.(*Graph).before", "crossing.BeforeHold(g.pool.hold.Stream())", "error(nil)"}},
		},
		{
			Name: "a capture is not seen by other contexts of its stream", Package: pkg, Run: "^TestContextsOfOneStream$",
			Edits: []Edit{{"streams.Submitter.Attached", "return x.s.attached.Load()", "return first()"}},
		},
		{
			Name: "a module goes while a graph has its kernel", Package: pkg, Run: "^TestWhatAGraphNeedsStays$",
			Edits: []Edit{{"cuda.(*Module).Unload", "m.graphs.Load() > 0", "false"}},
		},
		{
			Name: "the arguments of a kernel are not counted", Package: pkg, Run: "^TestLaunchesAreRefused$",
			Edits: []Edit{{"cuda.(*submission).place", "f.known && len(args) != len(f.params)", "f.known && len(args) > len(f.params)"}},
		},
		{
			Name: "a kernel with many parameters is launched with fewer", Package: pkg, Run: "^TestAKernelWithTooManyParameters$",
			Edits: []Edit{{"cuda.(*Function).askParams", "f.known = true", "f.known = f.paramBytes <= maxParamBytes"}},
		},
		{
			Name: "an upload breaks a capture", Package: pkg, Run: "^TestBranchesOfACapture$",
			Edits: []Edit{{"cuda.(*Graph).Upload", "c.outside(\"cuGraphUpload\", func() error {", "c.open(func() error {"}},
		},
		{
			Name: "graphs of a pool run at the same time", Package: pkg, Run: "^TestGraphsShareNothingButAPool$",
			Edits: []Edit{{"cuda.(*Graph).launch", "	crossing.After()\n", ""}},
		},
		{
			Name: "a capture that fails keeps its memory", Package: pkg, Run: "^TestACaptureThatFailsLeavesNothing$",
			Edits: []Edit{{"cuda.(*Context).Capture", "err = errors.Join(err, pool.leave(nil))", "_ = pool"}},
		},
		{
			Name: "a zeroed buffer of a graph is zeroed once", Package: pkg, Run: "^TestAGraphZeroesItsMemoryAtEachLaunch$",
			Edits: []Edit{{"cuda.(*Context).AllocZeroed", "c.Fill8(Whole(b), 0)", "c.device.MemsetD8Async(b.Ptr(), 0, b.Bytes(), 0)"}},
		},
		{
			Name: "the driver is asked for a parameter too many", Package: "cuda", Run: "^TestNoParameterIsAskedForThatIsNotThere$",
			Edits: []Edit{{"cuda.(*Function).askParams", "count, counted := f.module.paramCounts[f.name]", "count, counted := 0, false"}},
		},
		{
			Name: "a closed context works as before", Package: "cuda", Run: "^TestAClosedContextIsRefused$",
			Edits: []Edit{{"cuda.(*Context).Close", "c.ended.Store(true)", ""}},
		},
		{
			Name: "arguments of a graph change while it is launched", Package: pkg, Run: "^TestArgumentsChangeBetweenLaunches$",
			Edits: []Edit{{"cuda.(*gate).alone", "for g.state.Load() != mark {", "for range 0 {"}},
		},
		{
			Name: "a graph is launched while its arguments change", Package: pkg, Run: "^TestArgumentsChangeBetweenLaunches$",
			Edits: []Edit{{"cuda.(*gate).enter", "g.state.Add(1) < changingGate", "g.state.Add(1) < closedGate"}},
		},
		{
			Name: "a launch is not behind the work on new arguments", Package: pkg, Run: "^TestNewArgumentsAreInOrder$",
			Edits: []Edit{{"cuda.(*Graph).replace", "k.Geometry, k.homes = geometry, held.homes", "k.Geometry = geometry"}},
		},
		{
			Name: "the checker is not told of new arguments", Package: pkg, Run: "^TestNewArgumentsAreChecked$",
			Edits: []Edit{{"cuda.(*Graph).setParams", "if g.on.checked != nil {", "if false {"}},
		},
		{
			Name: "a client that stays keeps the clients that have left", Package: pkg, Run: "^TestAGraphForgetsStreams$",
			Edits: []Edit{{"pool.(*Pool).tellUsage", "			r.next = nil          // else a client that stays keeps those that have left\n", ""}},
		},
		{
			Name: "a wait covers work that was submitted after it", Package: pkg, Run: "^TestAWaitCoversWhatWasSubmittedBefore$",
			Edits: []Edit{{"streams.(*Crossing).wait", "return w.count, nil", "return other.crossings.count.Load(), nil"}},
		},
		{
			Name: "a graph keeps the streams that launched it", Package: pkg, Run: "^TestAGraphForgetsStreams$",
			Edits: []Edit{{"cuda.(*Graph).note", "all = unfinished(*old)", "all = slices.Clone(*old)"}},
		},
		{
			Name: "a pool keeps the streams that launched its graphs", Package: pkg, Run: "^TestAGraphForgetsStreams$",
			Edits: []Edit{{"cuda.(*Pool).leave", "	p.launched = unfinished(p.launched)\n", ""}},
		},
		{
			Name: "a graph that is not instantiated keeps its workspaces", Package: pkg, Run: "^TestAFailedCallLeavesNothing$",
			Edits: []Edit{{"cuda.(*Context).instantiate", "			p.drop()\n", ""}},
		},
		{
			Name: "a capture that fails keeps its workspaces", Package: pkg, Run: "^TestAFailedCallLeavesNothing$",
			Edits: []Edit{{"cuda.(*Context).capturing", "			p.drop()\n", ""}},
		},
		{
			Name: "an event that cannot be destroyed leaves the graph of its capture", Package: pkg, Run: "^TestAFailedCallLeavesNothing$",
			Edits: []Edit{{"cuda.(*Context).capturing", "err = errors.Join(err, c.destroyGraph(g))", "_ = g"}},
		},
		{
			Name: "a record that fails leaves its event", Package: pkg, Run: "^TestAFailedCallLeavesNothing$",
			Edits: []Edit{{"cuda.(*Event).record", "if !recorded {", "if !recorded && false {"}},
		},
		{
			Name: "a buffer that is not zeroed stays", Package: pkg, Run: "^TestAFailedCallLeavesNothing$",
			Edits: []Edit{{"cuda.(*Context).AllocZeroed", "if !filled {", "if !filled && false {"}},
		},
		{
			Name: "a launch that fails leaves its events of a profile", Package: pkg, Run: "^TestAFailedCallLeavesNothing$",
			Edits: []Edit{{"cuda.(*Profile).launch", "p.destroy(*one)", "_ = one"}},
		},
		{
			Name: "a wait that fails leaves its event", Package: pkg, Run: "^TestAFailedCallLeavesNothing$",
			Edits: []Edit{{"streams.(*cudaStream).follows", "	defer other.discard(m)\n", ""}},
		},
		{
			Name: "a fence whose record panics leaves its event", Package: pkg, Run: "^TestAFailedCallLeavesNothing$",
			Edits: []Edit{{"internal/fence.(*Events).Record", "if !recorded {", "if !recorded && false {"}},
		},
		{
			Name: "a value with a pointer inside is passed", Package: pkg, Run: "^TestValuesAreRefused$",
			Edits: []Edit{{"cuda.refusedInside", "if inside := refusedInside(field.Type); inside != nil {", "if inside := refusedInside(field.Type); inside != nil && false {"}},
		},
		{
			Name: "the bytes of a struct are not passed", Package: pkg, Run: "^TestStructsByValue$",
			Edits: []Edit{{"cuda.(*params).put", "copy(p.bytes[at:], a.long.bytes)", "_ = at"}},
		},
		{
			Name: "a device with a fault keeps its addresses", Package: "vramtest", Run: "^TestManyDevices",
			Edits: []Edit{{"vramtest.(*Device).Close", "broken != nil", "broken != nil && false"}},
		},
		{
			Name: "page-locked memory without an address of the device stays", Package: "host", Run: "^TestAFailedCallLeavesNothing$",
			Edits: []Edit{{"host.(*PageLockedMemory).make", "if !kept {", "if !kept && false {"}},
		},
		{
			Name: "a copy that fails keeps its stage", Package: "compute/ops", Run: "^TestAFailedCallLeavesNothing$",
			Edits: []Edit{{"compute/tensor.staged", "if freed := stage.Free(); freed != nil {", "if freed := error(nil); freed != nil {"}},
		},
		{
			Name: "a split reduction that fails keeps its scratch memory", Package: "compute/ops", Run: "^TestAFailedCallLeavesNothing$",
			Edits: []Edit{{"compute/kernel.(*frame).launchSplit", "if failed := scratch.Free(); failed != nil {", "if failed := error(nil); failed != nil {"}},
		},
		{
			Name: "a buffer that is not handed over to another device leaves its copy", Package: pkg, Run: "^TestAFailedCallBetweenDevicesLeavesNothing$",
			Edits: []Edit{{"cuda.(*Context).TransferPeer", "if !handedOver {", "if !handedOver && false {"}},
		},
		{
			Name: "a device whose addresses cannot be reserved stays open", Package: "internal/acceptance", Run: "^TestAFailedCallLeavesNothing$",
			Edits: []Edit{{"vram.(*Device).openDevice", "if !opened {", "if !opened && false {"}},
		},
	}
}
