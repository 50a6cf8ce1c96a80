package planted

// storeBugs are those of compiled kernels on disk, and of their use.
func storeBugs() []Bug {
	const (
		store, kernels = "compute/kernel/store", "compute/kernel"
		damage, bound  = "^TestDamagedEntries$", "^TestTheBoundIsKept$"
	)
	return []Bug{
		{
			Name: "the contents of a stored kernel are not checked", Package: store, Run: damage,
			Edits: []Edit{{"compute/kernel/store.decode", "if !bytes.Equal(line, seal(contents)) {", "if len(line) == 0 {"}},
		},
		{
			Name: "a damaged kernel stays in the store", Package: store, Run: damage,
			Edits: []Edit{{"compute/kernel/store.(*Store).read", "_ = s.remove(path) // counted", "_ = path"}},
		},
		{
			Name: "a stored kernel serves another driver", Package: store, Run: "^TestKeysDiffer$",
			Edits: []Edit{{"compute/kernel/store.Key.appendHeader", "k.Emitter, k.Options, k.Driver,", `k.Emitter, k.Options, "",`}},
		},
		{
			Name: "a view leaves out the compute capability", Package: store, Run: "^TestViews$",
			Edits: []Edit{{"compute/kernel/store.(*Store).On", "Emitter: emitter, Compute: device.Compute,", "Emitter: emitter,"}},
		},
		{
			Name: "an entry with the name of another key is taken", Package: store, Run: "^TestKeysDiffer$",
			Edits: []Edit{{
				"compute/kernel/store.decode", "image, ok := bytes.CutPrefix(contents, header)",
				"image, ok := contents[min(len(header), len(contents)):], true",
			}},
		},
		{
			Name: "a stored kernel is written where it is read", Package: store, Run: "^TestAFullDisk$",
			Edits: []Edit{
				{"compute/kernel/store.(*Store).write", "err = s.files.rename(f.Name(), filepath.Join(s.path, name))", "err = nil"},
				{
					"compute/kernel/store.(*Store).write", "f, err := s.files.create(s.path)",
					"f, err := s.files.create(s.path)\n\tif err == nil {\n\t\terr = s.files.rename(f.Name(), filepath.Join(s.path, name))\n\t}",
				},
			},
		},
		{
			Name: "all processes write their files under one name", Package: store, Run: "^TestManyProcesses$",
			Edits: []Edit{{
				"compute/kernel/store.disk.create", `os.CreateTemp(folder, "*"+temporary)`,
				`os.OpenFile(folder+"/one"+temporary, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)`,
			}},
		},
		{
			Name: "a store leaves files that it could not write", Package: store, Run: "^TestAFullDisk$",
			Edits: []Edit{{"compute/kernel/store.(*Store).write", "_ = s.remove(f.Name()) // counted", "_ = name"}},
		},
		{
			Name: "a store exceeds its bound", Package: store, Run: bound,
			Edits: []Edit{{"compute/kernel/store.(*Store).evict", "if held <= s.bound.limitBytes {", "if held <= 2*s.bound.limitBytes {"}},
		},
		{
			Name: "a store does not count the entries of other processes", Package: store, Run: "^TestFilesOfOthers$",
			Edits: []Edit{{"compute/kernel/store.(*Store).keepBound", " && b.uncountedBytes <= b.limitBytes/countAgain", ""}},
		},
		{
			Name: "the most recently used kernel is evicted first", Package: store, Run: "^TestTheLeastRecentlyUsedGoFirst$",
			Edits: []Edit{{"compute/kernel/store.(*Store).evict", "a.ModTime().Compare(b.ModTime())", "b.ModTime().Compare(a.ModTime())"}},
		},
		{
			Name: "the use of a stored kernel is not noted", Package: store, Run: "^TestUseIsNoted$",
			Edits: []Edit{{"compute/kernel/store.(*Store).read", "time.Since(changed) > touchAfter", "time.Since(changed) < 0"}},
		},
		{
			Name: "each hit of the store writes", Package: store, Run: "^TestUseIsNoted$",
			Edits: []Edit{{"compute/kernel/store.(*Store).read", "time.Since(changed) > touchAfter", "time.Since(changed) > 0"}},
		},
		{
			Name: "an eviction removes files that are not of the store", Package: store, Run: "^TestFilesOfOthers$",
			Edits: []Edit{{"compute/kernel/store.(*Store).evict", "case isEntry(info.Name()):", `case strings.HasSuffix(info.Name(), "l") || strings.HasSuffix(info.Name(), "t"):`}},
		},
		{
			Name: "a store tries a folder that it cannot write again and again", Package: store, Run: "^TestAReadOnlyFolder$",
			Edits: []Edit{{"compute/kernel/store.(*Store).disable", "s.disabled.CompareAndSwap(nil, &reason)", "_ = reason"}},
		},
		{
			Name: "a store that is off is read", Package: store, Run: "^TestTheVariableNamesTheFolder$",
			Edits: []Edit{{"compute/kernel/store.openOn", "s.path = \"\"\n", "\n"}},
		},
		{
			Name: "a lost kernel is logged each time", Package: store, Run: "^TestAFileInThePlaceOfTheFolder$",
			Edits: []Edit{{"compute/kernel/store.(*Store).warn", "!s.logged.Swap(true)", "!s.logged.Load()"}},
		},
		{
			Name: "a compiler puts the code of one text under another", Package: store, Run: "^TestALaterProcessCompilesNothing$",
			Edits: []Edit{{"compute/kernel.(*Compiler).loadOr", "c.store.Put(key, image)", "c.store.Put(key[:len(key)-1], image)"}},
		},
		{
			Name: "an image of the store that the driver refuses is an error", Package: kernels, Run: "^TestARefusedImage",
			Edits: []Edit{{"compute/kernel.(*Compiler).loadOr", "refused = true", "return nil, err"}},
		},
		{
			Name: "code of included files is stored", Package: kernels, Run: "^TestRawCUDA$",
			Edits: []Edit{{"compute/kernel.storeKey", "if includes(source) ||", "if"}},
		},
	}
}
