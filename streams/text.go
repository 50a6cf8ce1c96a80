package streams

import (
	"fmt"

	"github.com/go-vram/vram/internal/units"
)

// String says how long the buffer is, where it is, and whether it lives.
func (b Buffer) String() string {
	switch {
	case b.slot == nil:
		return "no buffer"
	case !b.Live():
		return fmt.Sprintf("buffer of %s, freed", units.Bytes(b.bytes))
	default:
		return fmt.Sprintf("buffer of %s at %v", units.Bytes(b.bytes), b.Ptr())
	}
}

// String counts the buffers.
func (b Batch) String() string {
	var sum int64
	for _, one := range b.buffers {
		sum += one.bytes
	}
	return fmt.Sprintf("batch of %s of %s", units.Count(len(b.buffers), "buffer"), units.Bytes(sum))
}

// String is the stream's number, and what sets it apart. It takes no turn.
func (s *Stream) String() string {
	if !s.opened() {
		return "no stream"
	}
	text := fmt.Sprintf("stream %d", s.ID())
	if s.adopted {
		text += fmt.Sprintf(", adopted (handle %#x)", uint64(s.handle))
	}
	if s.closing.Load() {
		text += ", closed"
	}
	return text
}

// String names the lane's stream. Unlike other calls it may overlap with those of the lane's goroutine.
func (l *Lane) String() string {
	if l == nil || l.stream == nil {
		return "no lane"
	}
	return "lane of " + l.stream.String()
}

// String says whose use it is.
func (u Use) String() string {
	switch {
	case u.own:
		return "use on the buffer's own stream"
	case u.line == nil:
		return "no use"
	default:
		return "use on another stream"
	}
}

// String is the figures that matter first, on one line.
func (s Stats) String() string {
	text := fmt.Sprintf("stream %d: live %s (peak %s), cached %s, pending %s; %s, %s, %d live", s.Stream, units.Bytes(s.LiveBytes),
		units.Bytes(s.PeakLiveBytes), units.Bytes(s.CachedBytes), units.Bytes(s.PendingBytes), units.Count(s.AllocCount, "allocation"),
		units.Count(s.FreeCount, "free"), s.LiveCount)
	if s.LaneCount > 0 {
		text += fmt.Sprintf("; %s with %s", units.Count(s.LaneCount, "lane"), units.Bytes(s.LaneBytes))
	}
	if s.Waiting > 0 {
		text += fmt.Sprintf("; %d waiting", s.Waiting)
	}
	return text
}
