package advice

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/lab/analysis"
)

// Recommendation is something to set, or to leave as it is.
type Recommendation struct {
	Topic   string   `json:"topic"`
	Advice  string   `json:"advice"`
	Change  bool     `json:"change"`              // false: the trials showed no gain that is worth its price
	OnTopOf []string `json:"on_top_of,omitempty"` // the other changes that it was tried with
	Because []string `json:"because"`             // the figures
	Gain    string   `json:"gain,omitempty"`      // figures that become less with the change, whether it is recommended or not
	Price   string   `json:"price,omitempty"`     // figures that become more
	Paste   string   `json:"paste,omitempty"`
}

// leastTime is the least share of real time that counts as saved. Not less: it is noisy.
const leastTime = 0.10

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

// footprint chooses among the modes: the one that brings most beyond its price, and balanced where none pays.
func footprint(s scale, trials []Trial) (chosen int, r Recommendation) {
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
	most := 0.0
	for i := range trials {
		if e := s.effect(&trials[balanced], &trials[i]); i != balanced && e.pays() && e.net() > most {
			chosen, most = i, e.net()
		}
	}
	if chosen == balanced {
		r.Advice = "Leave Footprint at balanced: no other mode is worth its price."
		return chosen, r
	}
	is := &trials[chosen]
	r.Change = true
	r.Advice = fmt.Sprintf("Set Footprint to %s.", is.Name)
	r.Gain, r.Price = s.differences(&trials[balanced], is)
	r.Paste = fmt.Sprintf("Footprint: vram.%s,", strings.ToUpper(is.Name[:1])+is.Name[1:])
	return chosen, r
}

// warmUp compares a first round with mapped memory to one without.
func warmUp(s scale, without, with *Trial, demands []vram.Demand) Recommendation {
	r := Recommendation{Topic: "warm-up", Because: []string{
		fmt.Sprintf("without: %s", without.driverText()),
		fmt.Sprintf("with %s mapped ahead: %s, %s reserved", units.Count(len(demands), "demand"), with.driverText(), units.Bytes(with.PeakReservedBytes)),
	}}
	r.Gain, r.Price = s.differences(without, with)
	if !s.effect(without, with).starts() {
		r.Advice = "Leave Warm empty: it does not shorten the first round enough."
		return r
	}
	r.Change = true
	r.Advice = "Map the buffers of the peak before the first step or while the program loads: the driver time of the mapping moves to the start."
	r.Paste = paste(demands)
	return r
}

// paste returns a demand as a field of vram.Config.
func paste(demands []vram.Demand) string {
	var b strings.Builder
	b.WriteString("Warm: []vram.Demand{\n")
	for _, d := range demands {
		fmt.Fprintf(&b, "\t{Bytes: %d, Count: %d},\n", d.Bytes, d.Count)
	}
	b.WriteString("},")
	return b.String()
}

const limitTopic = "limit"

// limitTrial is a limit that was tried.
type limitTrial struct {
	limitBytes  int64
	trial       Trial // in the recorded order
	failedCount int   // with a goroutine for each stream: see builder.parallel
}

// limit compares runs under limits to one without. The first limit under which nothing fails is judged.
func limit(s scale, without *Trial, leastBytes int64, tried []limitTrial) (chosen int, r Recommendation) {
	r = Recommendation{Topic: limitTopic, Because: []string{
		fmt.Sprintf("in the recorded order all rounds survive %s; without a limit %s are reserved", units.Bytes(leastBytes), units.Bytes(without.PeakReservedBytes)),
	}}
	chosen = -1
	for i := range tried {
		t := &tried[i]
		text := fmt.Sprintf("with %s: %s reserved, %s, %s failed", units.Bytes(t.limitBytes), units.Bytes(t.trial.PeakReservedBytes), t.trial.driverText(),
			units.Count(t.trial.FailedCount, "allocation"))
		if t.failedCount >= 0 {
			text += fmt.Sprintf("; %d in the worst of %d replays with a goroutine for each stream", t.failedCount, parallelRuns)
		}
		r.Because = append(r.Because, text)
		if chosen < 0 && t.trial.FailedCount == 0 && t.failedCount <= 0 {
			chosen = i
		}
	}
	if chosen < 0 {
		r.Advice = "Leave LimitBytes at 0: allocations failed under each limit that was tried. A limit of the recorded order alone does not hold."
		return chosen, r
	}
	t := &tried[chosen]
	r.Gain, r.Price = s.differences(without, &t.trial)
	if !s.effect(without, &t.trial).pays() {
		r.Advice = fmt.Sprintf("Leave LimitBytes at 0, unless others need the memory: %s is enough, but not worth its cost.", units.Bytes(t.limitBytes))
		return chosen, r
	}
	r.Change = true
	r.Advice = fmt.Sprintf("Set LimitBytes to %s: %s more than the least limit of the recorded order.", units.Bytes(t.limitBytes), units.Bytes(t.limitBytes-leastBytes))
	r.Paste = fmt.Sprintf("LimitBytes: %d,", t.limitBytes)
	return chosen, r
}

// cacheBound compares bounds of the streams' caches to none.
func cacheBound(s scale, without *Trial, with []Trial, bounds []int64) (best int, r Recommendation) {
	r = Recommendation{Topic: "stream cache", Because: []string{fmt.Sprintf("without a bound: %s reserved, %s", units.Bytes(without.PeakReservedBytes), without.driverText())}}
	best = -1
	most := 0.0
	for i := range with {
		t := &with[i]
		r.Because = append(r.Because, fmt.Sprintf("%s a stream: %s reserved, %s", units.Bytes(bounds[i]), units.Bytes(t.PeakReservedBytes), t.driverText()))
		if e := s.effect(without, t); e.pays() && e.net() > most {
			best, most = i, e.net()
		}
	}
	if best < 0 {
		r.Advice = "Leave StreamCacheBytes at 0: no bound is worth its price."
		return best, r
	}
	r.Change = true
	r.Advice = fmt.Sprintf("Set StreamCacheBytes to %s.", units.Bytes(bounds[best]))
	r.Gain, r.Price = s.differences(without, &with[best])
	r.Paste = fmt.Sprintf("StreamCacheBytes: %d,", bounds[best])
	return best, r
}

// waits compares growth to waits on the device, while work on buffers lasts after their frees.
func waits(s scale, without, with *Trial) Recommendation {
	r := Recommendation{Topic: "waits", Because: []string{
		fmt.Sprintf("never, with kernels of %v before each free: %s reserved, %s", lag, units.Bytes(without.PeakReservedBytes), without.driverText()),
		fmt.Sprintf("avoid-growth, likewise: %s reserved, %s", units.Bytes(with.PeakReservedBytes), with.driverText()),
	}}
	r.Gain, r.Price = s.differences(without, with)
	const price = "streams wait for each other on the device, which no replay times"
	if !s.effect(without, with).pays() {
		r.Advice = "Leave Waits at never: waiting does not save enough memory."
		return r
	}
	r.Change = true
	r.Advice = "Set Waits to avoid-growth if all kernels end soon, and measure the steps: a stream waits on the device rather than grow."
	r.Price = strings.TrimPrefix(r.Price+"; "+price, "; ")
	r.Paste = "Waits: vram.WaitsAvoidGrowth,"
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
	r = Recommendation{Topic: "growth", Advice: "Find the owner of these buffers: no setting limits a program that grows.", Because: []string{
		fmt.Sprintf("live memory grows by %s in each %s, from %s to %s", units.Bytes(g.PartBytes), part, units.Bytes(g.FirstBytes), units.Bytes(g.LastBytes)),
	}}
	for _, s := range g.Sizes[:min(4, len(g.Sizes))] {
		r.Because = append(r.Because, fmt.Sprintf("%s more of %s", units.Count(s.Count, "buffer"), units.Bytes(s.EachBytes)))
	}
	return r, true
}
