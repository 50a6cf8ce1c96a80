package vram

import (
	"fmt"
)

// StatsLevel is how closely a device counts. Counts of allocations and frees, and the peak of
// reserved bytes, are exact at each level.
type StatsLevel uint8

// The levels of statistics.
const (
	// StatsOn samples the peak of live bytes: an upper bound, taken when a stream misses its
	// magazines and ten times a second.
	StatsOn StatsLevel = iota
	// StatsOff limits Device.Stats to figures that need no turn of a stream or the pool: the limit,
	// tenants, the driver's calls and their time. All other counts keep the value that they were read
	// with last, by the Reconfigure that switched statistics off or by a reading before; they rise when a
	// stream ends, and count the time in between once statistics are on again. Bytes by state,
	// peaks and the list of streams are missing. Nothing is sampled.
	StatsOff
	// StatsExact counts live bytes at each allocation. None is served by a magazine or a lane then:
	// each costs a turn of its stream in place of three atomic operations. The peak of live bytes
	// is exact for each stream; over several streams, buffers that were freed since a stream's last
	// turn still count. Switched on while buffers live, it counts the memory that small buffers
	// share as a whole until they are freed.
	StatsExact
)

var statsNames = [...]string{StatsOn: "on", StatsOff: "off", StatsExact: "exact"} //nolint:gochecknoglobals // constant table

// String is the level's name.
func (l StatsLevel) String() string { return nameOf(statsNames[:], int(l), "StatsLevel") }

// MarshalText implements encoding.TextMarshaler: the name.
func (l StatsLevel) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, as ParseStatsLevel reads.
func (l *StatsLevel) UnmarshalText(text []byte) (err error) {
	return unmarshal(text, l, ParseStatsLevel)
}

// ParseStatsLevel reads "on", "off" or "exact". The error is a *ConfigError.
func ParseStatsLevel(s string) (StatsLevel, error) {
	i, err := parseName(statsNames[:], s, "ParseStatsLevel", "on, off or exact")
	return StatsLevel(i), err
}

// Segments is the kind of memory that is held from the driver.
type Segments uint8

// The kinds of segments.
const (
	// SegmentsAuto takes virtual memory where the device has it, else plain segments.
	SegmentsAuto Segments = iota
	// SegmentsVMM maps handles into reserved address space (cuMemCreate, cuMemMap).
	SegmentsVMM
	// SegmentsPlain takes address space and memory in one (cuMemAlloc). A segment goes back when
	// all of it is free, by a call that waits for the whole device (cuMemFree); until then its
	// holes serve only requests that fit them.
	SegmentsPlain
)

var segmentsNames = [...]string{SegmentsAuto: "auto", SegmentsVMM: "vmm", SegmentsPlain: "plain"} //nolint:gochecknoglobals // constant table

// String is the kind's name.
func (s Segments) String() string { return nameOf(segmentsNames[:], int(s), "Segments") }

// MarshalText implements encoding.TextMarshaler: the name.
func (s Segments) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, as ParseSegments reads.
func (s *Segments) UnmarshalText(text []byte) (err error) { return unmarshal(text, s, ParseSegments) }

// ParseSegments reads "auto", "vmm" or "plain". The error is a *ConfigError.
func ParseSegments(s string) (Segments, error) {
	i, err := parseName(segmentsNames[:], s, "ParseSegments", "auto, vmm or plain")
	return Segments(i), err
}

func nameOf(names []string, i int, kind string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

func parseName(names []string, s, call, want string) (uint8, error) {
	for i, name := range names {
		if s == name {
			return uint8(i), nil
		}
	}
	return 0, badArgument(call, "name", s, want)
}

// unmarshal sets a value to the one that a text names; with an error it stays.
func unmarshal[T any](text []byte, value *T, parse func(string) (T, error)) error {
	v, err := parse(string(text))
	if err == nil {
		*value = v
	}
	return err
}
