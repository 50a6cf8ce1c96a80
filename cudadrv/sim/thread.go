package sim

import (
	"sync"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// threads are the modes of the operating system's threads that are not CaptureGlobal, as
// ThreadExchangeStreamCaptureMode set them. Where the system does not tell threads apart there is one mode for all.
type threads struct {
	mu    sync.Mutex // guards modes
	modes map[int]cudadrv.CaptureMode
}

func (t *threads) exchange(thread int, mode cudadrv.CaptureMode) (before cudadrv.CaptureMode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before = t.modes[thread]
	delete(t.modes, thread)
	if mode != cudadrv.CaptureGlobal {
		if t.modes == nil {
			t.modes = map[int]cudadrv.CaptureMode{}
		}
		t.modes[thread] = mode
	}
	return before
}

// ThreadExchangeStreamCaptureMode sets the mode of the calling thread, which the caller has locked, for all devices of the
// Driver. It returns the one before. Nothing here depends on it: see the package comment.
func (d *Device) ThreadExchangeStreamCaptureMode(mode cudadrv.CaptureMode) (cudadrv.CaptureMode, error) {
	const c = call.ThreadExchangeStreamCaptureMode
	return value(d, c, cudadrv.GraphLaunches, func(g *gpu) (cudadrv.CaptureMode, error) {
		if mode > cudadrv.CaptureRelaxed {
			return 0, fail(c, cudadrv.InvalidValue, "mode %d", mode)
		}
		return g.driver.threads.exchange(currentThread(), mode), nil
	})
}
