package claims

// FenceWait is whether a stream has fences waited for that keep memory, its own or others'. The zero value waits for none.
type FenceWait struct {
	waits    bool // until Resume, and while it is carried out
	resuming bool // the delayed claims are being served
	failed   bool // the last wait has brought nothing: no other is begun for the stream's own pending memory before the next tick
}

// Begin begins a wait, and reports whether it was not begun before.
func (w *FenceWait) Begin() bool {
	begun := !w.waits
	w.waits = true
	return begun
}

// BeginForOthers is Begin where the stream keeps memory that others want.
func (w *FenceWait) BeginForOthers(pendingBytes int64) bool {
	return pendingBytes > 0 && !w.failed && w.Begin()
}

// Resume says that a wait has ended. False: there was none. The delayed claims are then served or refused, and Resumed ends that.
func (w *FenceWait) Resume() bool {
	w.resuming = w.waits
	return w.waits
}

// Resumed ends the wait; passed: a fence has.
func (w *FenceWait) Resumed(passed bool) { *w = FenceWait{failed: !passed} }

// Interrupted reports whether a turn panicked between Resume and Resumed: the rest of the claims are still to be served.
func (w *FenceWait) Interrupted() bool {
	interrupted := w.resuming
	w.resuming = false
	return interrupted
}

// Tick lets the next wait be begun, if the last has failed.
func (w *FenceWait) Tick() { w.failed = false }
