package planted

// growthBugs are those about what a service that runs for days would collect.
func growthBugs() []Bug {
	return []Bug{
		{
			Name: "uses of streams that have ended stay listed", Package: "streams/magazine", Run: "^TestUsesOfEndedStreamsAreDropped$",
			Edits: []Edit{{"streams/magazine.(*note).add", "	n.drop()\n", ""}},
		},
		{
			Name: "a use of a stream that is open is dropped", Package: "streams/magazine", Run: "^TestUsesOfEndedStreamsAreDropped$",
			Edits: []Edit{{"streams/magazine.(*note).drop", "!u.line.Finished()", "u.line.Finished()"}},
		},
		{
			Name: "a buffer keeps the closed streams that used it", Package: "internal/fence", Run: "^TestAFinishedTimelineKeepsNothingOfItsStream$",
			Edits: []Edit{{"internal/fence.(*Timeline).Finish", "	t.allow.Store(nil)\n", ""}},
		},
		{
			Name: "a stream names all streams that were ever handed its memory", Package: "streams", Run: "^TestEndedStreamsAreNoFreers$",
			Edits: []Edit{{"streams.(*suspensions).addFreer", "len(freers) >= max(minFreers, 2*p.kept)", "false"}},
		},
	}
}
