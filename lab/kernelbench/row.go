package kernelbench

import (
	"slices"
	"strings"
)

// The paths that figures name; products have "own" or "library" before them.
const (
	PathLaunched = "launched"
	PathGraph    = "graph"
	PathRaw      = "raw" // the driver's call
)

// The verdicts.
const (
	Pass  = "pass"
	Short = "short"
)

// Row is a measured figure. The command prints its JSON form. Times are in microseconds.
type Row struct {
	Row    string  `json:"row"`
	Path   string  `json:"path"`
	Shape  []int   `json:"shape"`
	Clock  string  `json:"clock"` // of the figure: wall or event
	Micros float64 `json:"us"`    // the median; 0 where Missing is set
	P10    float64 `json:"p10_us"`
	P90    float64 `json:"p90_us"`
	Wall   float64 `json:"wall_us"`  // the median by the host's clock
	Event  float64 `json:"event_us"` // the median by the device's; 0: not taken
	// AllocsPerOp are objects on Go's heap for each operation, the median, too.
	AllocsPerOp float64 `json:"allocs_per_op"`

	GBPerSecond  float64 `json:"gb_per_s,omitempty"`
	TFlops       float64 `json:"tflop_per_s,omitempty"`
	TargetMicros float64 `json:"target_us,omitempty"`
	Verdict      string  `json:"verdict,omitempty"` // pass or short, where there is a target
	By           string  `json:"by,omitempty"`      // the way that a product took
	Missing      string  `json:"missing,omitempty"` // why there is no figure
	Simulated    bool    `json:"simulated,omitempty"`
}

// figure returns a row with the quantiles of its samples.
func (w workload) figure(path string, shape []int, samples []sample) Row {
	r := Row{Row: w.Row, Path: path, Shape: shape, Clock: w.Clock, TargetMicros: w.Targets[lastWord(path)]}
	if len(samples) == 0 {
		return r
	}
	var wall, event, allocs []float64
	for _, s := range samples {
		wall, event, allocs = append(wall, s.wallMicros), append(event, s.eventMicros), append(allocs, s.allocs)
	}
	for _, all := range [][]float64{wall, event, allocs} {
		slices.Sort(all)
	}
	r.Wall, r.Event, r.AllocsPerOp = quantile(wall, 0.5), quantile(event, 0.5), quantile(allocs, 0.5)
	counts := wall
	if w.Clock == clockEvent {
		counts = event
	}
	r.Micros, r.P10, r.P90 = quantile(counts, 0.5), quantile(counts, 0.1), quantile(counts, 0.9)
	if r.Micros > 0 {
		r.GBPerSecond = float64(w.bytesMoved(shape)) / r.Micros / 1e3
		r.TFlops = float64(w.flops(shape)) / r.Micros / 1e6
	}
	return r
}

// noAllocs is below one object in some hundred operations: the runtime's own allocations.
const noAllocs = 0.01

// judged returns a row of the workload with its verdict. The simulated device has none.
func (w workload) judged(r Row, simulated bool) Row {
	r.Simulated = simulated
	if simulated || r.TargetMicros == 0 || r.Missing != "" {
		return r
	}
	r.Verdict = Short
	if r.Micros <= r.TargetMicros && (w.Ratio == 0 || r.AllocsPerOp < noAllocs) {
		r.Verdict = Pass
	}
	return r
}

// lastWord returns a path without "own" and "library".
func lastWord(path string) string { return path[strings.LastIndexByte(path, ' ')+1:] }

// quantile picks from sorted values, between two of them where it lies there.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}
