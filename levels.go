package vram

import (
	"fmt"
)

// StatsLevel is how closely a device counts.
type StatsLevel uint8

// The levels. Counts, and the peak of reserved bytes, are exact at each of them.
const (
	// StatsOn samples: the peak of live bytes is an upper bound, seen when streams take turns and at ticks.
	StatsOn StatsLevel = iota
	// StatsOff lets Stats answer only what costs nothing: the limit, the driver's calls and their time, and the
	// totals of streams that are no more. It takes no turn, and ticks sample nothing.
	StatsOff
	// StatsExact lets no magazine serve and no lane lease, so that every allocation takes its stream's turn, where what
	// lives is counted. The peak of live bytes is exact for each stream; over several, what was freed since a
	// stream's last turn still counts. Where it is switched on while buffers live, the memory that is shared by
	// small ones counts whole until they are gone. An allocation costs a turn in place of three atomic operations.
	StatsExact
)

var statsNames = [...]string{StatsOn: "on", StatsOff: "off", StatsExact: "exact"} //nolint:gochecknoglobals // constant table

// String is the level's name.
func (l StatsLevel) String() string { return nameOf(statsNames[:], int(l), "StatsLevel") }

// ParseStatsLevel knows "on", "off" and "exact".
func ParseStatsLevel(s string) (StatsLevel, error) {
	i, err := parseName(statsNames[:], s, "Stats", "on, off or exact")
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
	// SegmentsPlain takes address space and memory in one (cuMemAlloc). A segment is given back when all of it is
	// free, by a call that waits for the whole device; its holes serve only what fits them.
	SegmentsPlain
)

var segmentsNames = [...]string{SegmentsAuto: "auto", SegmentsVMM: "vmm", SegmentsPlain: "plain"} //nolint:gochecknoglobals // constant table

// String is the kind's name.
func (s Segments) String() string { return nameOf(segmentsNames[:], int(s), "Segments") }

// ParseSegments knows "auto", "vmm" and "plain".
func ParseSegments(s string) (Segments, error) {
	i, err := parseName(segmentsNames[:], s, "Segments", "auto, vmm or plain")
	return Segments(i), err
}

func nameOf(names []string, i int, kind string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

func parseName(names []string, s, field, want string) (uint8, error) {
	for i, name := range names {
		if s == name {
			return uint8(i), nil
		}
	}
	return 0, &ConfigError{field, s, want}
}
