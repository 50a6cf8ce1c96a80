package vram

import (
	"fmt"
	"strings"

	"github.com/go-vram/vram/internal/memorymap"
	"github.com/go-vram/vram/internal/units"
)

// MemoryState is the use of a range of a MemoryMap.
type MemoryState uint8

// The states of memory.
const (
	MemoryLive        MemoryState = iota // in buffers, each rounded up to its block
	MemoryPending                        // freed, while announced uses on other streams have not finished
	MemoryCachedBlock                    // cached by a stream: free blocks in its magazines and lanes
	MemoryCachedRange                    // cached by a stream: its free ranges
	MemoryFree                           // free in the pool
	MemorySetAside                       // of a reservation, not drawn yet
	MemoryBusy                           // part of a driver job that has not ended, or that the driver did not take back
	// MemoryLent is lent to a stream that has not reported its use: it was on its way between pool and stream when
	// the two were read, or the stream has failed.
	MemoryLent
	MemoryMixed // short neighbours of several states: see MemoryRange.Mixed
)

// stateNames are the names of the states, by number.
var stateNames = [...]string{ //nolint:gochecknoglobals // constant table
	"live", "pending", "cached-block", "cached-range", "free", "set-aside", "busy", "lent", "mixed",
}

// String is the state's name.
func (s MemoryState) String() string { return nameOf(stateNames[:], int(s), "MemoryState") }

// MarshalText implements encoding.TextMarshaler: the name.
func (s MemoryState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. The error is a *ConfigError.
func (s *MemoryState) UnmarshalText(text []byte) error {
	i, err := parseName(stateNames[:], string(text), "MemoryState", "live, pending, cached-block, cached-range, free, set-aside, busy, lent or mixed")
	if err == nil {
		*s = MemoryState(i)
	}
	return err
}

// MemoryBytes are bytes by state.
type MemoryBytes struct {
	LiveBytes        int64
	PendingBytes     int64
	CachedBlockBytes int64 // with CachedRangeBytes they are Stats.CachedBytes
	CachedRangeBytes int64
	FreeBytes        int64
	SetAsideBytes    int64
	BusyBytes        int64
	LentBytes        int64
	UnpassedBytes    int64 // of FreeBytes: for the stream alone that returned them, until its work has finished
	SleepingBytes    int64 // of all but UnpassedBytes: asleep, and not held from the driver; see package cuda/sleep
}

// MemoryRange is memory side by side in one state.
type MemoryRange struct {
	OffsetBytes int64 // from the beginning of its segment
	Bytes       int64
	State       MemoryState
	Asleep      bool // it has no physical memory: see package cuda/sleep
	// Stream is the number of the stream, or of the reservation, that has the memory; of free memory the stream that alone may have it
	// until its work has finished. 0: none, or several.
	Stream      uint32
	Tag         string       // of its buffers: Request.Tag; "" where they have none or several
	BufferCount int          // live buffers that begin in it
	Mixed       *MemoryBytes // of MemoryMixed; else nil
}

// MemorySegment is a range of address space that is held from the driver, with nothing held on either side of it.
type MemorySegment struct {
	Address     Ptr
	Bytes       int64
	HandleCount int           // physical allocations that begin in it
	Ranges      []MemoryRange // in order; they cover the segment
}

// MemoryMap is where the memory of a device lies, and the use of each part of it.
type MemoryMap struct {
	Segments        []MemorySegment // in order of their addresses, or, of plain segments, of their numbers
	PageBytes       int64
	ResolutionBytes int64       // shorter ranges may be part of mixed ones
	Total           MemoryBytes // of all segments
	// UnmappedBytes are held from the driver and lie in no segment: a driver job has made them, or is about to release them, or the
	// driver did not take them back.
	UnmappedBytes int64
	ReservedBytes int64 // all segments and UnmappedBytes, without sleeping and shared memory
	LimitBytes    int64 // of ReservedBytes
}

// add adds sums.
func (b *MemoryBytes) add(s *memorymap.Sums) {
	b.LiveBytes += s.Bytes[memorymap.Live]
	b.PendingBytes += s.Bytes[memorymap.Pending]
	b.CachedBlockBytes += s.Bytes[memorymap.CachedBlock]
	b.CachedRangeBytes += s.Bytes[memorymap.CachedRange]
	b.FreeBytes += s.Bytes[memorymap.Free]
	b.SetAsideBytes += s.Bytes[memorymap.SetAside]
	b.BusyBytes += s.Bytes[memorymap.Busy]
	b.LentBytes += s.Bytes[memorymap.Lent]
	b.UnpassedBytes += s.UnpassedBytes
	b.SleepingBytes += s.AsleepBytes
}

// String has the sums by state, on one line.
func (m MemoryMap) String() string {
	t := m.Total
	parts := []string{fmt.Sprintf("%s: live %s, pending %s, cached %s in magazines and %s in ranges, free %s",
		units.Count(len(m.Segments), "segment"), units.Bytes(t.LiveBytes), units.Bytes(t.PendingBytes), units.Bytes(t.CachedBlockBytes),
		units.Bytes(t.CachedRangeBytes), units.Bytes(t.FreeBytes))}
	for _, part := range []struct {
		name  string
		bytes int64
	}{
		{"set aside", t.SetAsideBytes},
		{"busy", t.BusyBytes},
		{"lent", t.LentBytes},
		{"asleep", t.SleepingBytes},
		{"unmapped", m.UnmappedBytes},
	} {
		if part.bytes > 0 {
			parts = append(parts, part.name+" "+units.Bytes(part.bytes))
		}
	}
	return strings.Join(parts, "; ")
}
