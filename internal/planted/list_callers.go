package planted

// callerBugs are those of what callers see: errors, texts, and calls from within the program's own functions.
func callerBugs() []Bug {
	return []Bug{
		{
			Name: "a Close in a function of Events waits for its own end", Package: ".", Run: "^TestAnEventFunctionClosesTheDevice$",
			Edits: []Edit{{"vram.(*Device).endClose", "case d.notices.calling():", "case false:"}},
		},
		{
			Name: "a second Close in a function of Events waits for its own end", Package: ".", Run: "^TestAnEventFunctionClosesTheDevice$",
			Edits: []Edit{{"vram.(*Device).awaitClose", "if d.notices.calling() {", "if false {"}},
		},
		{
			Name: "the error of a closed stream names the device", Package: ".", Run: "^TestARefusalSaysWhatIsClosed$",
			Edits: []Edit{{"streams.(*handle).closed", "&ClosedError{Stream: h.id}", "&ClosedError{}"}},
		},
	}
}
