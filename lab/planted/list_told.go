package planted

func nothingSilent() Promise {
	return Promise{"panics, failures, leaks and long waits are counted and told", []Bug{
		{
			Name: "an actor recovers and says nothing", Package: "actors", Run: "^TestEveryRecoveredPanicIsReported$",
			Edits: []Edit{{"actors.(*mailbox).fault", "\tb.panics.Report(err.report())\n\tp := Panic", "\tp := Panic"}},
		},
		{
			Name: "every denial panics, and the pool continues", Package: "internal/acceptance", Run: "^TestARefusalHidesNoPanic$",
			Edits: []Edit{
				{
					"pool.(*effects).deliver",
					"\t\tif !d.quiet {\n\t\t\te.observeDenial(d.err)\n\t\t}\n",
					"\t\tif !d.quiet {\n" +
						"\t\t\te.observeDenial(d.err)\n" +
						"\t\t}\n" +
						"\t\t_ = e.reclaims.Left()[len(e.reclaims.Left())]\n",
				},
			},
		},
		{
			Name: "a panicking driver goes unreported", Package: "internal/acceptance", Run: "^TestARecoveredPanicIsToldCountedAndLogged$",
			Edits: []Edit{{"pool.(*driver).guard", "\t\t\td.pool.panics.Here(\"vram-driver\", value)\n", ""}},
		},
		{
			Name: "a leak is told to nobody", Package: "internal/acceptance", Run: "^TestALeakIsTold$",
			Edits: []Edit{{"vram.(*Device).closeEngine", "\t\td.tellLeak(inUse)\n", ""}},
		},
		{
			Name: "a long wait is told at every tick", Package: "internal/acceptance", Run: "^TestALongWaitIsTold$",
			Edits: []Edit{{"streams.(*dispatcher).longWaits", "\t\tc.longReported = true\n", ""}},
		},
		{
			Name: "memory that is unmapped is not told", Package: "monitor/history", Run: "^TestMemory",
			Edits: []Edit{
				{"pool.(*Pool).report", "\t\t\tr.Mappings = append(r.Mappings, Mapping{p.at(op.Run.First), -bytes})\n", ""},
			},
		},
		{
			Name: "a refusal does not say whose request it was", Package: "internal/acceptance", Run: "^TestARefusalNamesItsRequest$",
			Edits: []Edit{
				{"streams.(*claim).sign", "short.Tag, short.Tenant = c.want.tag(), c.tenant.Name()", "_ = short"},
			},
		},
	}}
}
