package planted

// samplingBugs are those of sampled allocations.
func samplingBugs() []Bug {
	return []Bug{
		{
			Name: "a stream's magazines sample nothing", Package: "streams", Run: "^TestEveryWayIsSampledOnce$",
			Edits: []Edit{{"internal/stream/magazine.(*Cache).Alloc", "share != 0 && share", "share == 0 && share"}},
		},
		{
			Name: "a new rate is not told", Package: "internal/acceptance", Run: "^TestSamplingIsSwitchedWhileInUse$",
			Edits: []Edit{{"internal/stream/magazine.(*Owner).SetShare", "		o.home.share.Store(uint32(share))\n", ""}},
		},
		{
			Name: "a share is not lowered", Package: "streams", Run: "^TestSamplesBetweenTicksAreBounded$",
			Edits: []Edit{{"streams.(*sampler).limit", "taken >= wholeSamples", "taken < 1"}},
		},
		{
			Name: "a sample is weighed by the whole share", Package: "streams", Run: "^TestSamplesBetweenTicksAreBounded$",
			Edits: []Edit{{"streams.(*sampler).decide", "chance = share.Threshold(units)\n		return chance, draw < chance", "return magazine.Share(w.profile.share.Load()).Threshold(units), draw < share.Threshold(units)"}},
		},
		{
			Name: "where everything is sampled the share is lowered", Package: "internal/stream/magazine", Run: "^TestAllocTellsWhatIsSampled$",
			Edits: []Edit{{"internal/stream/magazine.(*Home).LowerShare", "case 0, Everything:", "case 0:"}},
		},
		{
			Name: "a late limit brings samples back that were switched off", Package: "internal/stream/magazine", Run: "^TestAllocTellsWhatIsSampled$",
			Edits: []Edit{{"internal/stream/magazine.(*Home).LowerShare", "case 0, Everything:", "case Everything:"}},
		},
		{
			Name: "a tick does not end the limit of samples", Package: "streams", Run: "^TestSamplesBetweenTicksAreBounded$",
			Edits: []Edit{{"streams.(*sampler).tick", "w.taken.Swap(0) >= wholeSamples", "w.taken.Load() > 1<<30"}},
		},
		{
			Name: "a request that is a message is sampled twice", Package: "streams", Run: "^TestEveryWayIsSampledOnce$",
			Edits: []Edit{{"streams.(*single).deliver", "s.wiring.sampler.allocated(b, r.Tag, r.tenant, r.chance, r.from)", `s.wiring.sampler.allocated(b, r.Tag, r.tenant, r.chance, r.from)
		s.wiring.sampler.sampled(b, r.Tag, r.tenant)`}},
		},
		{
			Name: "draws of one slot follow each other evenly instead of at random", Package: "internal/stream/magazine", Run: "^TestDrawsAreSpreadEvenly$",
			Edits: []Edit{{"internal/stream/magazine.draw", "(high ^ low) >> (64 - drawBits)", "(z + high&low&0) >> (64 - drawBits)"}},
		},
		{
			Name: "the generation does not count for a draw", Package: "internal/stream/magazine", Run: "^TestOneSlotIsSampledAtItsRate$",
			Edits: []Edit{{"internal/stream/magazine.Draw", "handle>>generationShift", "handle>>generationShift*0"}},
		},
		{
			Name: "the free of a sampled buffer is not counted", Package: "streams", Run: "^TestEveryWayIsSampledOnce$",
			Edits: []Edit{{"streams.(*freedWatcher).Freed", "	h.Sample.End()\n", ""}},
		},
		{
			Name: "the free of a sampled buffer is not told", Package: "streams", Run: "^TestEveryWayIsSampledOnce$",
			Edits: []Edit{{"internal/stream/magazine.(*Slot).Watch", "	_ = s.Announce(handle, Watched) // the handle is the caller's alone, so it is live\n", ""}},
		},
		{
			Name: "a sample has half its weight", Package: "streams", Run: "^TestSamplesEstimateWhatWasAllocated$",
			Edits: []Edit{{"internal/stream/sampling.(*Sample).count", "chance < all {", "chance < all/2 {\n		chance *= 2"}},
		},
		{
			Name: "a claim is weighed as if the stream's rate were the profile's", Package: "internal/acceptance", Run: "^TestDebugDoesNotChangeTheProfile$",
			Edits: []Edit{{"streams.(*sampler).decide", "magazine.Share(w.profile.share.Load()).Threshold(", "w.home.Share().Threshold("}},
		},
		{
			Name: "a tag does not tell places apart", Package: "internal/stream/sampling", Run: "^TestTotalsByPlace$",
			Edits: []Edit{{"internal/stream/sampling.(*Labels).equal", " && l.Tag == other.Tag", ""}, {"internal/stream/sampling.hash", "labels.Tag + labels.Tenant", "labels.Tenant"}},
		},
		{
			Name: "a warm and a cold request of one place are two records", Package: "internal/acceptance", Run: "^TestAWarmAndAColdRequestAreOnePlace$",
			Edits: []Edit{{"internal/stream/sampling.(*Register).Read", "merged(read(r.tree.Load().all(nil)))", "read(r.tree.Load().all(nil))"}},
		},
		{
			Name: "the allocator's own calls take from the calls that are shown", Package: "internal/acceptance", Run: "^TestAWarmAndAColdRequestAreOnePlace$",
			Edits: []Edit{{"cudadrv/site.Stack.Frames", "min(len(all), first+programDepth)", "len(all)"}},
		},
		{
			Name: "a goroutine of the allocator alone is shown from inside", Package: "internal/acceptance", Run: "^TestThePlaceOfAGoroutineOfTheAllocatorAlone$",
			Edits: []Edit{{"cudadrv/site.Stack.Frames", "first = entry", "first = 0 * entry"}},
		},
		{
			Name: "the number of places has no bound", Package: "internal/stream/sampling", Run: "^TestPlacesAreBounded$",
			Edits: []Edit{{"internal/stream/sampling.(*Register).Site", "t.count.Load() >= SiteLimit", "t.count.Load() < 0"}},
		},
		{
			Name: "a buffer from before an observer is freed untold", Package: "internal/acceptance", Run: "^TestObserveWhileInUse$",
			Edits: []Edit{{"internal/stream/magazine.(*Slot).Adopt", "if s.Announce(handle, Watched) != nil {", "if !s.Live(handle) {"}},
		},
		{
			Name: "a trace forgets the buffers from before the recording", Package: "monitor/history", Run: "^TestLostEvents$",
			Edits: []Edit{{"monitor/history.(*Snapshot).before", "	for _, e := range s.Live {\n", "	for _, e := range s.Live[:0] {\n"}},
		},
		{
			Name: "of several observers none is told of mapped memory", Package: "internal/acceptance", Run: "^TestObserveWhileInUse$",
			Edits: []Edit{{"vram.(*Device).together", "o.Mapped(at, changeBytes)", "_ = changeBytes"}},
		},
		{
			Name: "pages that lie apart are one mapped range", Package: "monitor/history", Run: "^TestMemory",
			Edits: []Edit{{"pool.(*JobReport).mapped", "last.At+cudadrv.Ptr(last.ChangeBytes) == at", "last.At != at"}},
		},
		{
			Name: "memory that is unmapped is not told", Package: "monitor/history", Run: "^TestMemory",
			Edits: []Edit{{"pool.(*Pool).report", "			r.Mappings = append(r.Mappings, Mapping{p.at(op.Run.First), -bytes})\n", ""}},
		},
		{
			Name: "the end of a plain segment is not told", Package: "monitor/history", Run: "^TestMemory",
			Edits: []Edit{{"pool.(*Pool).report", "			r.Mappings = append(r.Mappings, Mapping{op.Address, -bytes})\n", ""}},
		},
		{
			Name: "a full ring keeps the oldest events", Package: "monitor/history", Run: "^TestLostEvents$",
			Edits: []Edit{{"monitor/history.(*Recorder).enter", "old != nil && old.Number > e.Number", "old != nil"}},
		},
	}
}
