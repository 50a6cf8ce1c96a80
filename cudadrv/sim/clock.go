package sim

import "time"

// time is the device's virtual time. It runs under the mutex.
func (g *gpu) time() time.Duration {
	if g.driver.config.Clock == Running {
		return time.Since(g.epoch)
	}
	return g.now
}

// wait lets virtual time reach t. It runs under the mutex; on the running clock it lets go of it while
// it sleeps, so that the caller looks again at what it knew.
func (g *gpu) wait(t time.Duration) {
	if g.driver.config.Clock == Stepped {
		g.now = max(g.now, t)
		return
	}
	for {
		left := t - time.Since(g.epoch)
		if left <= 0 {
			return
		}
		g.mu.Unlock()
		time.Sleep(left)
		g.mu.Lock()
	}
}

// Now is the GPU's virtual time since New.
func (d *Device) Now() time.Duration {
	d.gpu.mu.Lock()
	defer d.gpu.mu.Unlock()
	return d.gpu.time()
}

// Advance moves the stepped clock forwards by d. Time never goes back: a negative d does nothing. On
// the running clock it does nothing.
func (d *Device) Advance(by time.Duration) {
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now = max(g.now, later(g.now, by))
}

// AdvanceTo moves the stepped clock forwards to t, if that is ahead. On the running clock it does
// nothing.
func (d *Device) AdvanceTo(t time.Duration) {
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now = max(g.now, t)
}

// later is t+by, or the end of time where that does not fit.
func later(t, by time.Duration) time.Duration {
	if sum := t + by; by <= 0 || sum > t {
		return sum
	}
	return 1<<63 - 1
}
