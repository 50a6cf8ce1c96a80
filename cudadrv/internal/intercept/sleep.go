package intercept

import "github.com/go-vram/vram/cudadrv"

var _ cudadrv.CheckedSleep = (*Device)(nil)

// SleepBegins tells the checker behind, if there is one. The hook does not hear of it: it is no driver call.
func (d *Device) SleepBegins(s cudadrv.Stream) {
	if t, ok := find[cudadrv.CheckedSleep](d.inner); ok {
		t.SleepBegins(s)
	}
}

// SleepEnds likewise.
func (d *Device) SleepEnds(s cudadrv.Stream) {
	if t, ok := find[cudadrv.CheckedSleep](d.inner); ok {
		t.SleepEnds(s)
	}
}
