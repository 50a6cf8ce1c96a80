package planted

func caughtMisuse() Promise {
	return Promise{"misuse is a typed error, also when the block has another owner by then", []Bug{
		{
			Name: "a free leaves the generation as it was", Package: "internal/stream/magazine", Run: "^TestFreeAndItsRefusals$",
			Edits: []Edit{{"internal/stream/magazine.freed", "return word + generationStep", "return word"}},
		},
		{
			Name: "a buffer that was handed over is live", Package: "streams", Run: "^TestTransfer$",
			Edits: []Edit{
				{
					"internal/stream/magazine.matches",
					"return word>>flagBits == handle>>flagBits }",
					"return word>>generationShift == handle>>generationShift }",
				},
			},
		},
		{
			Name: "a tenant of another device is charged", Package: "internal/acceptance", Run: "^TestMisuseIsRefusedAtTheBoundary$",
			Edits: []Edit{{"pool.(*TenantControl).Of", "case t.pool.Load() != p:", "case t.pool.Load() != p && false:"}},
		},
		{
			Name: "a closed device makes tenants", Package: "internal/acceptance", Run: "^TestARefusalSaysWhatIsClosed$",
			Edits: []Edit{{"vram.(*Device).Tenant", "if d.closed.Load() {", "if false {"}},
		},
		{
			Name: "a stale buffer is launched with", Package: "cuda", Run: "^TestLaunchesAreRefused$",
			Edits: []Edit{{"streams.Submitter.Check", "!ok || !b.slot.Live(b.word)", "!ok"}},
		},
		{
			Name: "the arguments of a kernel are not counted", Package: "cuda", Run: "^TestLaunchesAreRefused$",
			Edits: []Edit{
				{
					"cuda.(*submission).place",
					"f.known && len(args) != len(f.params)",
					"f.known && len(args) > len(f.params)",
				},
			},
		},
		{
			Name: "a value with a pointer inside is passed", Package: "cuda", Run: "^TestValuesAreRefused$",
			Edits: []Edit{
				{
					"cuda.refusedInside",
					"if inside := refusedInside(field.Type); inside != nil {",
					"if inside := refusedInside(field.Type); inside != nil && false {",
				},
			},
		},
		{
			Name: "a second free of host memory succeeds", Package: "host", Run: "^TestOneFreeSucceeds$",
			Edits: []Edit{{"host.(*slot).end", "if s.word.CompareAndSwap(word, word+1) {", "if s.word.Add(1) > 0 {"}},
		},
		{
			Name: "a freed tensor is used through a view", Package: "compute/tensor", Run: "^TestUseAfterFree$",
			Edits: []Edit{{"compute/tensor.(*storage).freed", "m != nil && !m.buffer.Live()", "m != nil && m.buffer.Bytes() == 0"}},
		},
	}}
}
