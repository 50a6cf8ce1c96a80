package planted

func preparedKernels() Promise {
	return Promise{"compiling and tuning happen when they are allowed; a store serves only what it was given", []Bug{
		{
			Name: "a variant is compiled for each kernel", Package: "compute/kernel", Run: "^TestAVariantIsCompiledOnce$",
			Edits: []Edit{{"compute/kernel.(*Compiler).claim", "known && !c.closed {", "known && !c.closed && p.Pending() {"}},
		},
		{
			Name: "a run compiles a kernel that was not prepared", Package: "compute/kernel", Run: "^TestPreparedKernels$",
			Edits: []Edit{{"compute/kernel.(*Compiler).allowed", "!c.prepared.Load()", "c.on != nil"}},
		},
		{
			Name: "the contents of a stored kernel are not checked", Package: "compute/kernel/store", Run: "^TestDamagedEntries$",
			Edits: []Edit{{"compute/kernel/store.decode", "if !bytes.Equal(line, seal(contents)) {", "if len(line) == 0 {"}},
		},
		{
			Name: "a stored kernel serves another driver", Package: "compute/kernel/store", Run: "^TestKeysDiffer$",
			Edits: []Edit{
				{"compute/kernel/store.Key.appendHeader", "k.Emitter, k.Options, k.Driver,", `k.Emitter, k.Options, "",`},
			},
		},
		{
			Name: "all processes write their files under one name", Package: "compute/kernel/store", Run: "^TestManyProcesses$",
			Edits: []Edit{
				{
					"compute/kernel/store.disk.create",
					`os.CreateTemp(folder, "*"+temporary)`,
					`os.OpenFile(folder+"/one"+temporary, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)`,
				},
			},
		},
		{
			Name: "a wrong variant is told and taken", Package: "compute/kernel", Run: "^TestAWrongVariantIsDisqualified$",
			Edits: []Edit{{"compute/kernel.(*trial).verifyAll", "m.disqualify(i, state, err)", "m.rows[i].Why = err.Error()"}},
		},
	}}
}
