package advice

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/analysis"
	"github.com/go-vram/vram/internal/units"
)

// Recommendation is something to set, or to leave as it is.
type Recommendation struct {
	Topic   string   `json:"topic"`
	Advice  string   `json:"advice"`
	Change  bool     `json:"change"`          // false: the trials showed no gain
	Because []string `json:"because"`         // the figures
	Gain    string   `json:"gain,omitempty"`  // figures that became less; only where Change is set
	Price   string   `json:"price,omitempty"` // figures that became more
	Paste   string   `json:"paste,omitempty"`
}

const (
	// leastGain is the least share of bytes or modelled time that counts as saved. Not less: a handle more or less comes of timing.
	leastGain = 0.01
	// leastTime is the same of real time, which is noisy.
	leastTime = 0.10
)

// less reports whether b is less than a by the share.
func less[N int64 | uint64 | time.Duration | float64](a, b N, share float64) bool {
	return float64(b) < float64(a)*(1-share)
}

func (t *Trial) driverText() string {
	return fmt.Sprintf("%s in the first round (%v), %d in the last (%v)", units.Count(t.FirstCalls, "driver call"),
		rounded(t.FirstDriver), t.LastCalls, rounded(t.LastDriver))
}

// precise is bytes with so many digits that a percent shows.
func precise(bytes int64) string {
	if bytes < 1<<30 {
		return units.Bytes(bytes)
	}
	return fmt.Sprintf("%.2f GiB", float64(bytes)/(1<<30))
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// footprint chooses among the modes: of those that make no driver call once they have settled the one that holds least, and where none
// does the one whose driver calls take least.
func footprint(trials []Trial) (chosen int, r Recommendation) {
	r = Recommendation{Topic: "footprint"}
	balanced := 0
	for i := range trials {
		t := &trials[i]
		if t.Name == vram.Balanced.String() {
			balanced = i
		}
		r.Because = append(r.Because, fmt.Sprintf("%s reserves %s (%.3f of live) with %s", t.Name, units.Bytes(t.PeakReservedBytes), t.ReservedOverLive, t.driverText()))
	}
	chosen = balanced
	for i := range trials {
		if better(&trials[chosen], &trials[i]) {
			chosen = i
		}
	}
	was, is := &trials[balanced], &trials[chosen]
	if chosen == balanced {
		r.Advice = "Leave Footprint at balanced: no other mode reserves less, or takes less driver time, without more of the other."
		return chosen, r
	}
	r.Change = true
	r.Advice = fmt.Sprintf("Set Footprint to %s.", is.Name)
	r.Gain, r.Price = differences(was, is)
	r.Paste = fmt.Sprintf("Footprint: vram.%s,", strings.ToUpper(is.Name[:1])+is.Name[1:])
	return chosen, r
}

// better reports whether another trial is to be preferred.
func better(a, b *Trial) bool {
	switch {
	case b.FailedCount > 0:
		return false
	case (a.LastCalls == 0) != (b.LastCalls == 0):
		return b.LastCalls == 0
	case a.LastCalls == 0:
		return less(a.PeakReservedBytes, b.PeakReservedBytes, leastGain) ||
			!less(b.PeakReservedBytes, a.PeakReservedBytes, leastGain) && less(a.FirstDriver, b.FirstDriver, leastTime)
	}
	return less(a.LastDriver, b.LastDriver, leastTime)
}

// differences are the figures that are less in the second of two trials, and those that are more.
func differences(was, is *Trial) (gain, price string) {
	var gains, prices []string
	add := func(isLess bool, format, isText, wasText string) {
		switch text := fmt.Sprintf(format, isText, wasText); {
		case isText == wasText: // too little to show
		case isLess:
			gains = append(gains, text)
		default:
			prices = append(prices, text)
		}
	}
	add(is.PeakReservedBytes < was.PeakReservedBytes, "reserves %s instead of %s", precise(is.PeakReservedBytes), precise(was.PeakReservedBytes))
	add(is.FirstDriver < was.FirstDriver, "%s of driver time in the first round instead of %s", rounded(is.FirstDriver).String(), rounded(was.FirstDriver).String())
	add(is.LastDriver < was.LastDriver, "%s in the last round instead of %s", rounded(is.LastDriver).String(), rounded(was.LastDriver).String())
	return strings.Join(gains, "; "), strings.Join(prices, "; ")
}

// warmUp compares a first round with mapped memory to one without.
func warmUp(without, with *Trial, demands []vram.Demand) Recommendation {
	r := Recommendation{Topic: "warm-up", Because: []string{
		fmt.Sprintf("without: %s", without.driverText()),
		fmt.Sprintf("with %s mapped ahead: %s, %s reserved", units.Count(len(demands), "demand"), with.driverText(), units.Bytes(with.PeakReservedBytes)),
	}}
	gain, price := differences(without, with)
	if !less(without.FirstDriver, with.FirstDriver, leastTime) || gain == "" || with.FailedCount > without.FailedCount {
		r.Advice = "Leave Warm empty: the first round is no faster with it."
		return r
	}
	r.Change = true
	r.Advice = "Map ahead what is live at the peak, before the first step or while the program loads."
	r.Gain = gain
	r.Price = strings.TrimPrefix(price+"; the driver time of the mapping, which moves to the start", "; ")
	r.Paste = paste(demands)
	return r
}

// paste is a demand as a field of vram.Config.
func paste(demands []vram.Demand) string {
	var b strings.Builder
	b.WriteString("Warm: []vram.Demand{\n")
	for _, d := range demands {
		fmt.Fprintf(&b, "\t{Bytes: %d, Count: %d},\n", d.Bytes, d.Count)
	}
	b.WriteString("},")
	return b.String()
}

// Variable is a demand as VRAM_WARMUP has it.
func Variable(demands []vram.Demand) string {
	var parts []string
	for _, d := range demands {
		parts = append(parts, fmt.Sprintf("%d:%d", d.Bytes, d.Count))
	}
	return strings.Join(parts, ",")
}

// limit compares a run under a limit to one without.
func limit(without, with *Trial, limitBytes int64) Recommendation {
	r := Recommendation{Topic: "limit", Because: []string{
		fmt.Sprintf("the least limit that all rounds survive is %s; without one %s are reserved", units.Bytes(without.LeastLimitBytes), units.Bytes(without.PeakReservedBytes)),
		fmt.Sprintf("with %s: %s reserved, %s, %s failed", units.Bytes(limitBytes), units.Bytes(with.PeakReservedBytes), with.driverText(), units.Count(with.FailedCount, "allocation")),
	}}
	switch {
	case with.FailedCount > 0:
		r.Advice = "Set no limit: allocations failed under the one that was tried."
	case !less(without.PeakReservedBytes, with.PeakReservedBytes, leastGain):
		r.Advice = fmt.Sprintf("LimitBytes is enough at %s, and lowers nothing: set it only to keep the program from growing.", units.Bytes(limitBytes))
	default:
		r.Change = true
		r.Advice = fmt.Sprintf("Set LimitBytes to %s where others need the memory: the least limit and a headroom of %s.", units.Bytes(limitBytes),
			units.Bytes(limitBytes-without.LeastLimitBytes))
		r.Gain, r.Price = differences(without, with)
		r.Paste = fmt.Sprintf("LimitBytes: %d,", limitBytes)
	}
	return r
}

// cacheBound compares bounds of the streams' caches to none.
func cacheBound(without *Trial, with []Trial, bounds []int64) Recommendation {
	r := Recommendation{Topic: "stream cache", Because: []string{fmt.Sprintf("without a bound: %s reserved, %s", units.Bytes(without.PeakReservedBytes), without.driverText())}}
	best := -1
	for i := range with {
		t := &with[i]
		r.Because = append(r.Because, fmt.Sprintf("%s a stream: %s reserved, %s", units.Bytes(bounds[i]), units.Bytes(t.PeakReservedBytes), t.driverText()))
		lower := less(without.PeakReservedBytes, t.PeakReservedBytes, leastGain) && t.LastCalls <= without.LastCalls && t.FailedCount == 0
		if lower && (best < 0 || t.PeakReservedBytes < with[best].PeakReservedBytes) {
			best = i
		}
	}
	if best < 0 {
		r.Advice = "Leave StreamCacheBytes at 0: no bound lowered what is reserved without more driver calls."
		return r
	}
	r.Change = true
	r.Advice = fmt.Sprintf("Set StreamCacheBytes to %s.", units.Bytes(bounds[best]))
	r.Gain, r.Price = differences(without, &with[best])
	r.Paste = fmt.Sprintf("StreamCacheBytes: %d,", bounds[best])
	return r
}

// growth is advice on a floor that rises, which no setting mends.
func growth(p *analysis.Pattern) (r Recommendation, grows bool) {
	g := p.Growth
	if g == nil {
		return r, false
	}
	part := "tenth of the trace"
	if g.Steps {
		part = "step"
	}
	r = Recommendation{Topic: "growth", Advice: "Look for what keeps these buffers: no setting holds a program that grows.", Because: []string{
		fmt.Sprintf("what stays live rises by %s in each %s, from %s to %s", units.Bytes(g.PartBytes), part, units.Bytes(g.FirstBytes), units.Bytes(g.LastBytes)),
	}}
	for _, s := range g.Sizes[:min(4, len(g.Sizes))] {
		r.Because = append(r.Because, fmt.Sprintf("%s more of %s", units.Count(s.Count, "buffer"), units.Bytes(s.EachBytes)))
	}
	return r, true
}
