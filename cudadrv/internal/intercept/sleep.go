package intercept

import "github.com/go-vram/vram/cudadrv"

var _ cudadrv.CheckedSleep = (*Device)(nil)

// SleepBegins notifies the wrapped checker, if there is one. It does not call the hook: it is no driver call.
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
