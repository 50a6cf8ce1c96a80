package core

import "sync/atomic"

// Gauge sums the live bytes of the streams of a device that count exactly. The zero value is ready. Any
// number of goroutines may use it.
type Gauge struct{ live, peak atomic.Int64 }

// PeakBytes is the maximum since ResetPeak, as the streams published it at their turns: blocks that callers
// have freed since their stream's last turn still count.
func (g *Gauge) PeakBytes() int64 { return g.peak.Load() }

// ResetPeak restarts the peak at the present value.
func (g *Gauge) ResetPeak() { g.peak.Store(g.live.Load()) }

func (g *Gauge) add(bytes int64) {
	live := g.live.Add(bytes)
	for peak := g.peak.Load(); live > peak && !g.peak.CompareAndSwap(peak, live); peak = g.peak.Load() {
	}
}
