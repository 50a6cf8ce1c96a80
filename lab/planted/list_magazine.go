package planted

// magazineBugs are those of the words that callers and actors share.
func magazineBugs() []Bug {
	return []Bug{
		{
			Name: "a free leaves the generation as it was", Package: "internal/stream/magazine", Run: "^TestFreeAndItsRefusals$",
			Edits: []Edit{{"internal/stream/magazine.freed", "return word + generationStep", "return word"}},
		},
		{
			Name: "a free does not see that the magazine is closed", Package: "internal/stream/core", Run: "^TestCoreFollowsTheReference$",
			Edits: []Edit{{"internal/stream/magazine.put", "return handSlot\n", "return inMask\n"}},
		},
		{
			Name: "a magazine is used anew while a caller hands it over", Package: "internal/stream/magazine", Run: "^TestCloseIdleWaitsForTheHandOver$",
			Edits: []Edit{{"internal/stream/magazine.nextIdle", "whole || (mask&parkedBit != 0 && !handed) {", "whole {"}},
		},
		{
			Name: "a slot is put back twice", Package: "internal/stream/magazine", Run: "^TestLooseSlots$",
			Edits: []Edit{{
				"internal/stream/magazine.(*Loose).SlotHome", "l.unused = append(l.unused, s)\n	return false", "l.unused = append(l.unused, s, s)\n	return false",
			}},
		},
		{
			Name: "idle spans are looked for in the first class only", Package: "internal/stream/magazine", Run: "^TestIdleFindsEveryIdleMagazine$",
			Edits: []Edit{{"internal/stream/magazine.(*Spans).New", "o.classes |= 1 << class", "o.classes |= 1"}},
		},
		{
			Name: "a block is taken back by one who has looked before it was taken", Package: "internal/stream/magazine",
			Run:   "^TestEveryInterleavingIsLawful$",
			Edits: []Edit{{"internal/stream/magazine.nextPop", "return top&^nameMask + takenStep | entry&nameMask", "return top&^nameMask | entry&nameMask"}},
		},
		{
			Name: "a block that others use is taken back", Package: "internal/stream/magazine", Run: "^TestTakeBackLeavesToTheOwner$",
			Edits: []Edit{{"internal/stream/magazine.(*Home).handSlot", "entry(0, uint32(head))", "entry(s.Units, uint32(head))"}},
		},
		{
			Name: "blocks are taken back while memory grows", Package: "internal/stream/core", Run: "^TestBlocksAreTakenBackWhileDemandIsStable$",
			Edits: []Edit{{"internal/stream/core.(*stability).restart", "	s.owner.LetTakeBack(0)\n", ""}},
		},
	}
}
