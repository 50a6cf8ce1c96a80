package planted

// edgeBugs are those where callers and this module meet: configuration, the environment, texts.
func edgeBugs() []Bug {
	return []Bug{
		{
			Name: "a nil pointer is a logger", Package: "internal/acceptance", Run: "^TestNoLogger$",
			Edits: []Edit{{"vram.Open", "	cfg.Logger = loggerOf(cfg.Logger)\n", ""}},
		},
		{
			Name: "a size beyond the range wraps around", Package: "internal/acceptance", Run: "^TestParseBytesAtTheEndOfTheRange$",
			Edits: []Edit{{"vram.ParseBytes", "bytes >= 1<<62:", "bytes >= 1<<64:"}},
		},
		{
			Name: "a whole size beyond the range wraps around", Package: "internal/acceptance", Run: "^TestParseBytesAtTheEndOfTheRange$",
			Edits: []Edit{{"vram.ParseBytes", "wholeErr == nil && whole <= maxParsedBytes/scale", "wholeErr == nil && whole <= 2*maxParsedBytes/scale"}},
		},
		{
			Name: "a fraction of a byte is a size", Package: "internal/acceptance", Run: "^TestVariablesThatCouldMeanTwoThings$",
			Edits: []Edit{{"vram.ParseBytes", "case scale == 1 || value > 0 && bytes < 1:", "case value > 0 && bytes < 0.1:"}},
		},
		{
			Name: "a limit below a page opens a device", Package: "internal/acceptance", Run: "^TestALimitBelowAPageIsRefused$",
			Edits: []Edit{{"vram.(*Device).openDevice", "if err := c.checkLimit(info); err != nil {", "if err := c.checkLimit(info); err != nil && false {"}},
		},
		{
			Name: "a limit silences the environment's fraction", Package: "internal/acceptance", Run: "^TestAFractionFromTheEnvironmentReplacesTheLimitOfTheBase$",
			Edits: []Edit{{"vram.variables", "			c.LimitBytes = 0 // of the base; VRAM_MEMORY_LIMIT comes later\n", ""}},
		},
		{
			Name: "the command opens devices without a look at the environment", Package: "cmd/vram", Run: "^TestWrongVariablesAreNamed$",
			Edits: []Edit{{"cmd/vram.deviceFlags.device", "vram.ConfigFromEnv(vram.Config{}); err != nil {", "vram.ConfigFromEnv(vram.Config{}); err != nil && false {"}},
		},
		{
			Name: "top leaves the terminal in raw mode", Package: "cmd/vram", Run: "^TestTopGivesTheTerminalBack$",
			Edits: []Edit{{"cmd/vram.(*topCmd).show", "defer k.restore()", "_ = k.restore"}},
		},
		{
			Name: "a panic of what plays ends the process with the terminal in raw mode", Package: "cmd/vram", Run: "^TestTopGivesTheTerminalBack$",
			Edits: []Edit{{"cmd/vram.(*workload).run", "guarded(func() error { return w.play(ctx) })", "w.play(ctx)"}},
		},
		{
			Name: "Ctrl-C in raw mode does nothing", Package: "cmd/vram", Run: "^TestTopQuits$",
			Edits: []Edit{{"cmd/vram.awaitQuit", "case 'q', 'Q', ctrlC, ctrlD:", "case 'q', 'Q', ctrlD:"}},
		},
		{
			Name: "a hangup leaves the terminal in raw mode", Package: "cmd/vram", Run: "^TestTopQuits$",
			Edits: []Edit{{"cmd/vram.keysOf", "syscall.SIGTERM, syscall.SIGHUP,", "syscall.SIGTERM,"}},
		},
		{
			Name: "a normal pressure hides refusals in top", Package: "cmd/vram", Run: "^TestRefusalsShowBesideThePressure$",
			Edits: []Edit{{"cmd/vram.(*frame).rates", "f.refused = noMemory(now) -", "f.refused = 0 * noMemory(now) -"}},
		},
		{
			Name: "a device without allocations has a hit rate", Package: "cmd/vram", Run: "^TestNothingHasNoRates$",
			Edits: []Edit{{"cmd/vram.share", "if !there {", "if !there && of == 0 {"}},
		},
		{
			Name: "serve knows no call stacks", Package: "cmd/vram", Run: "^TestServeADemonstration$",
			Edits: []Edit{{"cmd/vram.(*serveCmd).Run", "c.open(p, serveSampleBytes)", "c.open(p, 0)"}},
		},
		{
			Name: "tables grow as wide as they like", Package: "cmd/vram", Run: "^TestTablesFit$",
			Edits: []Edit{{"cmd/vram.(*figures).print", "f.render(from, to+1)) <= mostColumns", "f.render(from, to+1)) <= 2*mostColumns"}},
		},
		{
			Name: "a client that does not read keeps its connection", Package: "examples/service", Run: "^TestClientsThatNeverReadAreCutOff$",
			Edits: []Edit{{"examples/service.(*timely).begin", "	if !w.begun {", "	if w.begun {"}},
		},
		{
			Name: "a leak alone is joined to nothing", Package: "internal/acceptance", Run: "^TestALeakAloneIsAValueOfJSON$",
			Edits: []Edit{{"vram.joined", "len(errs) == 1", "len(errs) < 0"}},
		},
		{
			Name: "a leak is told to nobody", Package: "internal/acceptance", Run: "^TestALeakIsTold$",
			Edits: []Edit{{"vram.(*Device).closeEngine", "		d.tellLeak(inUse)\n", ""}},
		},
		{
			Name: "a long wait is told at every tick", Package: "internal/acceptance", Run: "^TestALongWaitIsTold$",
			Edits: []Edit{{"streams.(*dispatcher).longWaits", "		c.longReported = true\n", ""}},
		},
		{
			Name: "an address in hexadecimal is a text in hexadecimal", Package: "cudadrv", Run: "^TestAddressesPrintInHexadecimal$",
			Edits: []Edit{{"cudadrv.Ptr.Format", "if verb == 's' || verb == 'v' {", "if verb != 'd' {"}},
		},
		{
			Name: "a tenant of another device is charged", Package: "internal/acceptance", Run: "^TestMisuseIsRefusedAtTheBoundary$",
			Edits: []Edit{{"pool.(*TenantControl).Of", "case t.pool.Load() != p:", "case t.pool.Load() != p && false:"}},
		},
		{
			Name: "a cache hit needs no context and a miss does", Package: "internal/acceptance", Run: "^TestANilContextIsRefused$",
			Edits: []Edit{{"streams.(*Stream).AllocAsync", "s != nil && ctx != nil && want.plain()", "s != nil && want.plain()"}},
		},
		{
			Name: "a byte order mark is part of the header", Package: "internal/trace", Run: "^TestReadTakesOtherLineEndsAndAByteOrderMark$",
			Edits: []Edit{{"internal/trace.Read", "_, _ = in.Discard(len(byteOrderMark))", "_, _ = in.Discard(0)"}},
		},
	}
}
