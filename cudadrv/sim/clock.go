package sim

import (
	"time"

	"github.com/go-vram/vram/cudadrv/internal/call"
)

// time returns the virtual time, which all GPUs of the Driver have; work that has ended by then is done. It runs under the
// mutex.
func (g *gpu) time() time.Duration {
	d := g.driver
	now := d.now
	if d.config.Clock == Running {
		now = time.Since(d.epoch)
	}
	d.perform(now)
	return now
}

// wait advances virtual time to t. The caller holds the mutex; on the running clock wait unlocks it while it sleeps, so the
// caller must check its state again. It fails if work failed.
func (g *gpu) wait(c call.Call, t time.Duration) error {
	if g.driver.config.Clock == Stepped {
		g.driver.now = max(g.driver.now, t)
	}
	for {
		left := t - g.time()
		if left <= 0 {
			return g.failed(c)
		}
		g.mu.Unlock()
		time.Sleep(left)
		g.mu.Lock()
	}
}

// Now returns the virtual time since New. All GPUs of a Driver have the same.
func (d *Device) Now() time.Duration {
	d.gpu.mu.Lock()
	defer d.gpu.mu.Unlock()
	return d.gpu.time()
}

// Advance moves the stepped clock of the Driver forwards by d. A negative d does nothing. On the running clock it does nothing.
func (d *Device) Advance(by time.Duration) {
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	g.driver.now = max(g.driver.now, later(g.driver.now, by))
	g.time()
}

// Drained returns the time when all work queued so far has finished, destroyed streams included. It is no driver call, and does
// not affect captures.
func (d *Device) Drained() time.Duration {
	d.gpu.mu.Lock()
	defer d.gpu.mu.Unlock()
	return d.gpu.drained
}

// AdvanceTo moves the stepped clock of the Driver forwards to t, if that is ahead. On the running clock it does
// nothing.
func (d *Device) AdvanceTo(t time.Duration) {
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	g.driver.now = max(g.driver.now, t)
	g.time()
}

// later returns t+by, or the end of time on overflow.
func later(t, by time.Duration) time.Duration {
	if sum := t + by; by <= 0 || sum > t {
		return sum
	}
	return 1<<63 - 1
}
