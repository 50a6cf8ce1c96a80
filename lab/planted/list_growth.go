package planted

func boundedObjects() Promise {
	return Promise{"nothing grows with what it once met", []Bug{
		{
			Name:    "uses of streams that have ended stay listed",
			Package: "internal/stream/magazine", Run: "^TestUsesOfEndedStreamsAreDropped$",
			Edits: []Edit{{"internal/stream/magazine.(*note).add", "\tn.drop()\n", ""}},
		},
		{
			Name:    "a buffer keeps the closed streams that used it",
			Package: "internal/fence", Run: "^TestAFinishedTimelineKeepsNothingOfItsStream$",
			Edits: []Edit{{"internal/fence.(*Timeline).Finish", "\tt.access.Store(nil)\n", ""}},
		},
		{
			Name:    "a stream names all streams that were ever handed its memory",
			Package: "streams", Run: "^TestEndedStreamsAreNoFreers$",
			Edits: []Edit{{"streams.(*suspensions).addFreer", "len(freers) >= max(minFreers, 2*p.kept)", "false"}},
		},
		{
			Name: "a closed tenant that still has memory is dropped", Package: "internal/acceptance", Run: "^TestAClosedTenantIsAwaited$",
			Edits: []Edit{{"pool.(*quotas).drop", " || t.charged.Load() != 0", ""}},
		},
		{
			Name: "the pool counts for streams that are gone", Package: "pool", Run: "^TestStreamsThatAreGoneAreForgotten$",
			Edits: []Edit{{"pool.(*Pool).collect", "\t\tdelete(p.granted, id)\n", ""}},
		},
		{
			Name: "a graph keeps the streams that launched it", Package: "cuda", Run: "^TestAGraphForgetsStreams$",
			Edits: []Edit{{"cuda.(*Graph).note", "all = unfinished(*old)", "all = slices.Clone(*old)"}},
		},
		{
			Name:    "shared memory keeps streams that were closed",
			Package: "cuda/share", Run: "^TestStreamsThatWereClosedAreForgotten$",
			Edits: []Edit{{"cuda/share.(*Memory).uses", "delete(m.used, other)", "_ = other"}},
		},
		{
			Name: "the number of places has no bound", Package: "internal/stream/sampling", Run: "^TestPlacesAreBounded$",
			Edits: []Edit{{"internal/stream/sampling.(*Register).Site", "t.count.Load() >= SiteLimit", "t.count.Load() < 0"}},
		},
	}}
}
