package core

// wanted is set while requests of the device wait for memory. Then every free wakes the owner: magazines of
// large blocks are closed, and magazines of classes are parked and serve inside turns only.
type wanted struct {
	on      bool
	came    bool // memory was freed since TakeCame
	retired bool // spans were retired since then, which no other event reports
}

// Note reports freed memory that did not pass through the core.
func (w *wanted) Note() { w.came = w.on }

// TakeCame reports whether memory was freed since the last call.
func (w *wanted) TakeCame() bool {
	came := w.came || w.retired
	w.came, w.retired = false, false
	return came
}
