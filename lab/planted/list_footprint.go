package planted

func pricedFootprint() Promise {
	return Promise{"footprint is a price, and unused memory goes back by age", []Bug{
		{
			Name: "growth is bought at no price", Package: "internal/pool/core", Run: "^TestGrowthIsBoughtAtItsPrice$",
			Edits: []Edit{{"internal/pool/core.(*budget).affords", "b.costNs >= b.priceNs(bytes, reservedBytes)", "b.costNs >= 0"}},
		},
		{
			Name: "all old memory goes back at one tick", Package: "internal/pool/core", Run: "^TestFreeMemoryAges$",
			Edits: []Edit{
				{"internal/pool/memory.(*Memory).Old", "if len(ids) == maxHandles {", "if len(ids) == -maxHandles {"},
			},
		},
		{
			Name: "an idle stream keeps its magazines", Package: "internal/stream/core", Run: "^TestAnIdleCoreDecays$",
			Edits: []Edit{
				{
					"internal/stream/core.(*Core).Decay",
					"runs = c.Release(^uint32(0), covered)",
					"runs = c.takeOut(^uint32(0), covered)",
				},
			},
		},
		{
			Name: "a new stream has no age limit", Package: "internal/acceptance", Run: "^TestMemoryOfASpikeIsReleased$",
			Edits: []Edit{{"vram.(*Device).openBy", "AgeTicks: settings.AgeTicks, ", ""}},
		},
	}}
}
