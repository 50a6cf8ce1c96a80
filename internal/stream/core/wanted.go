package core

// wanted is set while requests of the device wait for memory. Then no block comes home unseen: magazines of
// large blocks are closed, those of classes are parked and serve inside turns only, and every block that comes home wakes the owner.
type wanted struct {
	on      bool
	came    bool // memory has come home since TakeCame
	retired bool // spans were retired since then, which no other event reports
}

// Note reports memory that came home without passing through the core.
func (w *wanted) Note() { w.came = w.on }

// TakeCame reports whether memory came home since the last call.
func (w *wanted) TakeCame() bool {
	came := w.came || w.retired
	w.came, w.retired = false, false
	return came
}
