package advice

import (
	"fmt"
	"strings"
	"time"
)

const (
	// leastNet is the least net gain of a recommended change. Not less: a handle more or less depends on timing.
	leastNet = 0.01
	// timeWeight is how many percent of the peak memory a percent of the recording's time is worth. Not less: a limit that
	// halves the memory and doubles the time would be a gain. Not more: a mode that saves a tenth of the memory for a percent
	// of the time would be none.
	timeWeight = 10
	// roundsPerStart is how many rounds a first round is spread over. Not fewer: a program runs for longer than its recording.
	roundsPerStart = 100
)

// scale is the base of gains and prices.
type scale struct {
	peakBytes int64         // of the live buffers
	duration  time.Duration // of the recording; 0: it has no times
}

// effect has the gains of a change, in shares of the scale; a price is negative.
type effect struct {
	memory float64 // reserved bytes, of the peak live bytes
	each   float64 // driver time of the last round, of the recording's time
	once   float64 // driver time of the first round, likewise
}

// effect compares two trials. A change after which more allocations fail costs all that there is.
func (s scale) effect(was, is *Trial) effect {
	if is.FailedCount > was.FailedCount {
		return effect{memory: -1, each: -1, once: -1}
	}
	return effect{
		memory: s.memory(was.PeakReservedBytes - is.PeakReservedBytes),
		each:   s.time(was.LastDriver - is.LastDriver),
		once:   s.time(was.FirstDriver - is.FirstDriver),
	}
}

func (s scale) memory(bytes int64) float64 { return float64(bytes) / float64(max(s.peakBytes, 1)) }

// time returns a share of the recording's time. Without times a saving counts nothing, and more time counts as the whole.
func (s scale) time(saved time.Duration) float64 {
	switch {
	case s.duration > 0:
		return float64(saved) / float64(s.duration)
	case rounded(saved) < 0:
		return -1
	}
	return 0
}

// lasting returns the effect in each round.
func (e effect) lasting() float64 { return e.memory + timeWeight*e.each }

// net returns the whole effect.
func (e effect) net() float64 { return e.lasting() + timeWeight*e.once/roundsPerStart }

// pays reports whether a change brings more than it costs.
func (e effect) pays() bool { return e.net() >= leastNet }

// starts reports whether a warm-up is worth it: it makes the first round shorter and costs nothing after it, or pays as any
// change.
func (e effect) starts() bool { return e.once >= leastNet && e.lasting() > -leastNet || e.pays() }

// principle returns the rule by which a change is recommended.
func (s scale) principle() string {
	recording := "has no times: only changes without driver time are recommended"
	if s.duration > 0 {
		recording = fmt.Sprintf("lasts %v", s.duration)
	}
	return fmt.Sprintf("Shares are of the %s that are live at the peak, and of the recording, which %s. A change must gain %.0f %% more than it costs:\n"+
		"1 %% of the time counts as %d %% of the memory, a first round as one round of %d. A warm-up need only make the first round shorter by %.0f %%.\n",
		precise(s.peakBytes), recording, 100*leastNet, timeWeight, roundsPerStart, 100*leastNet)
}

// differences returns the figures that are less in the second of two trials, and those that are more, each with its share.
func (s scale) differences(was, is *Trial) (gain, price string) {
	var gains, prices []string
	add := func(isLess bool, format, isText, wasText, shareText string) {
		switch text := fmt.Sprintf(format, isText, wasText, shareText); {
		case isText == wasText: // too little to show
		case isLess:
			gains = append(gains, text)
		default:
			prices = append(prices, text)
		}
	}
	e := s.effect(was, is)
	if is.FailedCount > was.FailedCount {
		prices = append(prices, fmt.Sprintf("%d allocations fail instead of %d", is.FailedCount, was.FailedCount))
		e = s.effect(was, &Trial{PeakReservedBytes: is.PeakReservedBytes, FirstDriver: is.FirstDriver, LastDriver: is.LastDriver, FailedCount: was.FailedCount})
	}
	timed := func(share float64, when string) string {
		if s.duration == 0 {
			return when
		}
		return percent(share) + " of the time, " + when
	}
	add(is.PeakReservedBytes < was.PeakReservedBytes, "reserves %s instead of %s (%s of the peak)",
		precise(is.PeakReservedBytes), precise(was.PeakReservedBytes), percent(e.memory))
	add(is.FirstDriver < was.FirstDriver, "%s of driver time in the first round instead of %s (%s)",
		rounded(is.FirstDriver).String(), rounded(was.FirstDriver).String(), timed(e.once, "once"))
	add(is.LastDriver < was.LastDriver, "%s in the last round instead of %s (%s)",
		rounded(is.LastDriver).String(), rounded(was.LastDriver).String(), timed(e.each, "in each round"))
	return strings.Join(gains, "; "), strings.Join(prices, "; ")
}

// percent returns a share without its sign.
func percent(share float64) string {
	switch p := max(share, -share) * 100; {
	case p < 0.1:
		return "<0.1 %"
	default:
		return fmt.Sprintf("%.1f %%", p)
	}
}
