package core

import (
	"sync/atomic"

	"github.com/go-vram/vram/internal/watermark/shared"
)

// Gauge sums the live bytes of the streams of a device that count exactly. The zero value is ready. It is
// safe for concurrent use.
type Gauge struct {
	live atomic.Int64
	peak shared.Mark
}

// PeakBytes returns the maximum since ResetPeak of the sums that the streams published in their turns. Blocks that
// callers have freed since their stream's last turn still count.
func (g *Gauge) PeakBytes() int64 { return g.peak.Peak() }

// ResetPeak restarts the peak at the present value.
func (g *Gauge) ResetPeak() { g.peak.Reset(g.live.Load()) }

// BeginScope begins a scope of the peak at the present value.
func (g *Gauge) BeginScope() *shared.Scope { return g.peak.Begin(g.live.Load()) }
