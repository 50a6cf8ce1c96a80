package hazard

import "github.com/go-vram/vram/cudadrv"

var _ cudadrv.CheckedSleep = (*Device)(nil)

// SleepBegins says that memory of the buffers that were allocated on a stream may be unmapped, though they live.
func (d *Device) SleepBegins(s cudadrv.Stream) {
	_ = d.checker.call(func() error { return nil }, func() { d.checker.core.SleepBegan(s) })
}

// SleepEnds says that it is mapped again, at the same addresses.
func (d *Device) SleepEnds(s cudadrv.Stream) {
	_ = d.checker.call(func() error { return nil }, func() { d.checker.core.SleepEnded(s) })
}
