package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/go-vram/vram"
)

// The plot: modelled driver time of the first round to the right, a decade every decade pixels, and memory held over memory that lives
// upwards.
const (
	width, height = 720.0, 420.0
	left, bottom  = 60.0, 370.0
	leastMs       = 1.0
	decade        = 250.0 // pixels
	leastRatio    = 1.0
	hundredth     = 15.0 // pixels
)

// color is one for each mode.
func color(mode vram.Footprint) string {
	switch mode {
	case vram.Fast:
		return "#c2410c"
	case vram.Lean:
		return "#15803d"
	case vram.Balanced:
	}
	return "#1d4ed8"
}

// svg is the plot: a line for each trace through its modes.
func svg(points []point) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="11">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" fill="white"/>`+"\n", width, height)
	for ms := leastMs; ms <= 1000; ms *= 10 {
		fmt.Fprintf(&b, `<text x="%.0f" y="%.0f" text-anchor="middle">%.0f ms</text>`+"\n", right(ms), bottom+18, ms)
	}
	for r := 1.0; r < 1.215; r += 0.05 {
		fmt.Fprintf(&b, `<line x1="%.0f" y1="%.1f" x2="%.0f" y2="%.1f" stroke="#ddd"/><text x="%.0f" y="%.1f" text-anchor="end">%.2f</text>`+"\n",
			left, up(r), width-10, up(r), left-6, up(r)+4, r)
	}
	fmt.Fprintf(&b, `<text x="%.0f" y="%.0f">modelled driver time of the first round; upwards: reserved over live</text>`+"\n", left, height-10)
	for i, mode := range modes() {
		fmt.Fprintf(&b, `<circle cx="%.0f" cy="14" r="4" fill="%s"/><text x="%.0f" y="18">%s</text>`+"\n",
			left+90*float64(i), color(mode), left+8+90*float64(i), mode)
	}
	for i := range points {
		p := &points[i]
		x, y := p.at()
		if i > 0 && points[i-1].result.Trace == p.result.Trace {
			x0, y0 := points[i-1].at()
			fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#999"/>`+"\n", x0, y0, x, y)
		} else {
			fmt.Fprintf(&b, `<text x="%.1f" y="%.1f">%s</text>`+"\n", x+6, y-4, p.result.Trace)
		}
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", x, y, color(p.mode))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// at is the place of a point.
func (p *point) at() (x, y float64) {
	return right(p.cold.driver * float64(p.result.EventCount) / 1e6), up(p.result.ReservedOverLive)
}

func right(ms float64) float64 { return left + decade*math.Log10(max(ms, leastMs)/leastMs) }

func up(ratio float64) float64 { return bottom - hundredth*100*(ratio-leastRatio) }
