package hazard

import "github.com/go-vram/vram/cudadrv"

var _ cudadrv.CheckedSleep = (*Device)(nil)

// SleepBegins declares that memory of live buffers that were allocated on a stream may be unmapped.
func (d *Device) SleepBegins(s cudadrv.Stream) {
	_ = d.checker.call(func() error { return nil }, func() { d.checker.core.SleepBegan(s) })
}

// SleepEnds declares that it is mapped again, at the same addresses.
func (d *Device) SleepEnds(s cudadrv.Stream) {
	_ = d.checker.call(func() error { return nil }, func() { d.checker.core.SleepEnded(s) })
}
