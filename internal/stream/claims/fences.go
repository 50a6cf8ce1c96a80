package claims

// FenceWait records whether a stream waits for fences of pending memory, its own or others'. The
// zero value waits for none.
type FenceWait struct {
	waits    bool // until Resume, and while the delayed claims are served
	resuming bool // the delayed claims are being served
	failed   bool // no fence passed in the last wait: the next tick allows another
}

// Begin begins a wait, and reports whether none had begun before.
func (w *FenceWait) Begin() bool {
	begun := !w.waits
	w.waits = true
	return begun
}

// BeginForOthers is Begin for pending memory that other streams need.
func (w *FenceWait) BeginForOthers(pendingBytes int64) bool {
	return pendingBytes > 0 && !w.failed && w.Begin()
}

// Resume ends a wait; false: there was none. The delayed claims are then served or refused, and
// after that Resumed is called.
func (w *FenceWait) Resume() bool {
	w.resuming = w.waits
	return w.waits
}

// Resumed ends the serving of delayed claims; passed: a fence has passed.
func (w *FenceWait) Resumed(passed bool) { *w = FenceWait{failed: !passed} }

// Interrupted reports whether a turn panicked between Resume and Resumed: the remaining claims must still be
// served.
func (w *FenceWait) Interrupted() bool {
	interrupted := w.resuming
	w.resuming = false
	return interrupted
}

// Tick allows another wait after one that failed.
func (w *FenceWait) Tick() { w.failed = false }
