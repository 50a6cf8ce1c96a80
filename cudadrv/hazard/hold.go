package hazard

import "github.com/go-vram/vram/cudadrv"

var _ cudadrv.CheckedHolds = (*Device)(nil)

// HoldBegins declares that memory allocated on a stream stays with graphs, freed or not.
func (d *Device) HoldBegins(s cudadrv.Stream) {
	_ = d.checker.call(func() error { return nil }, func() { d.checker.core.HoldBegan(s) })
}

// HoldEnds declares that no graph with the memory is launched any more.
func (d *Device) HoldEnds(s cudadrv.Stream) {
	_ = d.checker.call(func() error { return nil }, func() { d.checker.core.HoldEnded(s) })
}

// GraphKeeps declares that the memory of a graph is not reused until it is destroyed, even if its buffers are freed.
func (d *Device) GraphKeeps(x cudadrv.GraphExec) {
	_ = d.checker.call(func() error { return nil }, func() { d.checker.core.GraphKeeps(x) })
}
