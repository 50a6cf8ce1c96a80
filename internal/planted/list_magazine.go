package planted

// magazineBugs are those of the words that callers and actors share.
func magazineBugs() []Bug {
	return []Bug{
		{
			Name: "a free leaves the generation as it was", Package: "streams/magazine", Run: "^TestFreeAndItsRefusals$",
			Edits: []Edit{{"streams/magazine.freed", "return word + generationStep", "return word"}},
		},
		{
			Name: "a free does not see that the magazine is closed", Package: "streams/core", Run: "^TestCoreFollowsTheReference$",
			Edits: []Edit{{"streams/magazine.put", "return handSlot\n", "return inMask\n"}},
		},
		{
			Name: "a magazine is used anew while a caller hands it over", Package: "streams/magazine", Run: "^TestCloseIdleWaitsForTheHandOver$",
			Edits: []Edit{{"streams/magazine.nextIdle", "whole || (mask&parkedBit != 0 && !handed) {", "whole {"}},
		},
		{
			Name: "a slot is put back twice", Package: "streams/magazine", Run: "^TestLooseSlots$",
			Edits: []Edit{{
				"streams/magazine.(*Loose).SlotHome", "l.unused = append(l.unused, s)\n	return false", "l.unused = append(l.unused, s, s)\n	return false",
			}},
		},
		{
			Name: "a free by others comes home to a lane twice", Package: "streams/magazine/lane", Run: "^TestStrayBitsMeanNothing$",
			Edits: []Edit{{"streams/magazine.(*Owner).isHome", "if !ok || o.keeps(s, w) {", "if s.aside.Load() == 0 && !ok {"}},
		},
		{
			Name: "a lane keeps a block of another lane", Package: "streams/magazine/lane", Run: "^TestALaneRefusesWhatIsNotItsOwn$",
			Edits: []Edit{{"streams/magazine/lane.(*Lane).Free", "m.Lessee.Load() != &l.Lessee {", "m.Lessee.Load() == nil {"}},
		},
		{
			Name: "idle spans are looked for in the first class only", Package: "streams/magazine", Run: "^TestIdleFindsEveryIdleMagazine$",
			Edits: []Edit{{"streams/magazine.(*Spans).New", "o.classes |= 1 << class", "o.classes |= 1"}},
		},
		{
			Name: "a block is taken back by one who has looked before it was taken", Package: "streams/magazine",
			Run:   "^TestEveryInterleavingIsLawful$",
			Edits: []Edit{{"streams/magazine.nextPop", "return top&^nameMask + takenStep | entry&nameMask", "return top&^nameMask | entry&nameMask"}},
		},
		{
			Name: "a block that others use is taken back", Package: "streams/magazine", Run: "^TestTakeBackLeavesToTheOwner$",
			Edits: []Edit{{"streams/magazine.(*Home).handSlot", "entry(0, uint32(head))", "entry(s.Units, uint32(head))"}},
		},
		{
			Name: "blocks are taken back while memory grows", Package: "streams/core", Run: "^TestBlocksAreTakenBackWhileDemandIsStable$",
			Edits: []Edit{{"streams/core.(*stability).restart", "	s.owner.LetTakeBack(0)\n", ""}},
		},
	}
}
