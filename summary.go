package vram

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-vram/vram/internal/jsontext"
	"github.com/go-vram/vram/internal/units"
)

// String is a summary: the main figures on the first line, then, each on lines of their own and as
// far as there is any, the failures, the waits, the sizes, the streams, the tenants and the driver's
// functions that took the most time.
func (s Stats) String() string {
	text := []string{s.line()}
	add := func(format string, args ...any) { text = append(text, fmt.Sprintf("  "+format, args...)) }
	if s.RequestCounts != (RequestCounts{}) {
		add("out of memory %d, refused %d, tried again %d, bad frees %d, waits that their context ended %d", s.OutOfMemoryCount, s.RefusedCount, s.RetryCount,
			s.BadFreeCount, s.EndedWaitCount)
	}
	if s.Waits.Count > 0 {
		h := s.Waits.Durations
		add("waits: half of %d below %v, 99%% below %v", h.Count(), h.Quantile(0.5), h.Quantile(0.99))
	}
	if s.FreeBytes+s.CachedBytes > 0 && !s.Delta {
		add("fragmentation %.1f%%, longest free range %s; efficiency %.1f%%", 100*s.Fragmentation(), units.Bytes(s.LargestFreeBytes), 100*s.Efficiency())
	}
	for _, z := range s.Sizes {
		add("%v", z)
	}
	for _, n := range s.Streams {
		add("%v", n)
	}
	for _, n := range s.Tenants {
		add("%v", n)
	}
	for _, c := range s.costliest() {
		add("%v", c)
	}
	return strings.Join(text, "\n")
}

// costliestCount bounds the functions of the driver in a summary.
const costliestCount = 5

// costliest are the functions of the driver that took the most time, those first.
func (s *Stats) costliest() []CallStats {
	all := append([]CallStats(nil), s.Driver...)
	slices.SortStableFunc(all, func(a, b CallStats) int { return cmp.Compare(b.Time, a.Time) })
	return all[:min(costliestCount, len(all))]
}

// line has the main figures; the bytes by state of a Delta with their signs.
func (s *Stats) line() string {
	state := units.Bytes
	if s.Delta {
		state = units.Change
	}
	text := fmt.Sprintf("live %s (peak %s), cached %s, pending %s, free %s; reserved %s (peak %s) of a limit of %s; %s, %s, hit rate %.1f%%; %s in %v; %s",
		state(s.LiveBytes), units.Bytes(s.PeakLiveBytes), state(s.CachedBytes), state(s.PendingBytes), state(s.FreeBytes),
		state(s.ReservedBytes), units.Bytes(s.PeakReservedBytes), units.Bytes(s.LimitBytes),
		units.Count(s.AllocCount, "allocation"), units.Count(s.FreeCount, "free"), 100*s.HitRate(),
		units.Count(s.DriverCalls, "driver call"), s.DriverTime, units.Count(len(s.Streams), "stream"))
	if s.SetAsideBytes != 0 {
		text += "; set aside " + state(s.SetAsideBytes)
	}
	if s.SharedBytes != 0 {
		text += "; shared " + state(s.SharedBytes)
	}
	if s.SleepingBytes != 0 {
		text += "; asleep " + state(s.SleepingBytes)
	}
	if s.Waits.Count > 0 {
		text += "; " + s.Waits.String()
	}
	if s.Pressure != PressureNormal {
		text += fmt.Sprintf("; pressure %v", s.Pressure)
	}
	return text
}

// MarshalJSON implements json.Marshaler: keys are the fields' names in snake_case, durations are in
// seconds. HitRate, Fragmentation and Efficiency are part of it; of a Delta, Fragmentation is not.
func (s Stats) MarshalJSON() ([]byte, error) {
	if s.Delta {
		return jsontext.Object(s, "hit_rate", s.HitRate(), "efficiency", s.Efficiency())
	}
	return jsontext.Object(s, "hit_rate", s.HitRate(), "fragmentation", s.Fragmentation(), "efficiency", s.Efficiency())
}

// MarshalJSON implements json.Marshaler, as that of Stats does.
func (m Measurement) MarshalJSON() ([]byte, error) { return jsontext.Object(m) }

// MarshalJSON implements json.Marshaler, as that of Stats does.
func (m GPUMemory) MarshalJSON() ([]byte, error) { return jsontext.Object(m) }

// String has both figures.
func (m GPUMemory) String() string {
	return fmt.Sprintf("%s of %s free", units.Bytes(m.FreeBytes), units.Bytes(m.TotalBytes))
}
