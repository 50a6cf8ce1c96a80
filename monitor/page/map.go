package page

import (
	"context"
	"fmt"
	"time"

	"github.com/go-vram/vram"
)

// Map is the answer of map.json: where the memory of a device lies. See vram.MemoryMap.
type Map struct {
	Time            time.Time `json:"time"`
	PageBytes       int64     `json:"pageBytes"`
	ResolutionBytes int64     `json:"resolutionBytes"`
	ReservedBytes   int64     `json:"reservedBytes"`
	LimitBytes      int64     `json:"limitBytes"`
	UnmappedBytes   int64     `json:"unmappedBytes"`
	SharedBytes     int64     `json:"sharedBytes"`
	Total           Sums      `json:"total"`
	Segments        []Segment `json:"segments"`
}

// Segment is a range of address space that is held from the driver.
type Segment struct {
	Address     string  `json:"address"` // hexadecimal, as "0x7f0000000000": more digits than numbers of JavaScript have
	Bytes       int64   `json:"bytes"`
	HandleCount int     `json:"handleCount"`
	Total       Sums    `json:"total"`
	Ranges      []Range `json:"ranges"`
}

// Range is memory side by side in one state.
type Range struct {
	OffsetBytes int64  `json:"offsetBytes"` // in its segment
	Bytes       int64  `json:"bytes"`
	State       string `json:"state"` // see vram.MemoryState
	Asleep      bool   `json:"asleep,omitempty"`
	Stream      uint32 `json:"stream,omitempty"`
	Tag         string `json:"tag,omitempty"`
	BufferCount int    `json:"bufferCount,omitempty"`
	Mixed       *Sums  `json:"mixed,omitempty"`
}

// Sums are bytes by state; a state without any is left out.
type Sums struct {
	LiveBytes        int64 `json:"liveBytes,omitempty"`
	PendingBytes     int64 `json:"pendingBytes,omitempty"`
	CachedBlockBytes int64 `json:"cachedBlockBytes,omitempty"`
	CachedRangeBytes int64 `json:"cachedRangeBytes,omitempty"`
	FreeBytes        int64 `json:"freeBytes,omitempty"`
	SetAsideBytes    int64 `json:"setAsideBytes,omitempty"`
	BusyBytes        int64 `json:"busyBytes,omitempty"`
	LentBytes        int64 `json:"lentBytes,omitempty"`
	UnpassedBytes    int64 `json:"unpassedBytes,omitempty"`
	SleepingBytes    int64 `json:"sleepingBytes,omitempty"`
}

// ReadMap reads the memory map of a device: see vram.Device.MemoryMap.
func ReadMap(ctx context.Context, dev *vram.Device, resolutionBytes int64) (Map, error) {
	m, err := dev.MemoryMap(ctx, resolutionBytes)
	if err != nil {
		return Map{}, err //nolint:wrapcheck // complete
	}
	out := Map{
		Time: time.Now(), PageBytes: m.PageBytes, ResolutionBytes: m.ResolutionBytes, ReservedBytes: m.ReservedBytes,
		LimitBytes: m.LimitBytes, UnmappedBytes: m.UnmappedBytes, SharedBytes: m.SharedBytes, Total: Sums(m.Total), Segments: []Segment{},
	}
	for _, s := range m.Segments {
		seg := Segment{Address: fmt.Sprintf("%#x", uint64(s.Address)), Bytes: s.Bytes, HandleCount: s.HandleCount, Ranges: []Range{}}
		for _, r := range s.Ranges {
			x := Range{
				OffsetBytes: r.OffsetBytes, Bytes: r.Bytes, State: r.State.String(), Asleep: r.Asleep, Stream: r.Stream, Tag: r.Tag,
				BufferCount: r.BufferCount, Mixed: (*Sums)(r.Mixed),
			}
			seg.Total.add(&r)
			seg.Ranges = append(seg.Ranges, x)
		}
		out.Segments = append(out.Segments, seg)
	}
	return out, nil
}

// add adds a range.
func (s *Sums) add(r *vram.MemoryRange) {
	if m := r.Mixed; m != nil {
		s.LiveBytes += m.LiveBytes
		s.PendingBytes += m.PendingBytes
		s.CachedBlockBytes += m.CachedBlockBytes
		s.CachedRangeBytes += m.CachedRangeBytes
		s.FreeBytes += m.FreeBytes
		s.SetAsideBytes += m.SetAsideBytes
		s.BusyBytes += m.BusyBytes
		s.LentBytes += m.LentBytes
		s.UnpassedBytes += m.UnpassedBytes
		s.SleepingBytes += m.SleepingBytes
		return
	}
	if r.Asleep {
		s.SleepingBytes += r.Bytes
	}
	switch r.State {
	case vram.MemoryLive:
		s.LiveBytes += r.Bytes
	case vram.MemoryPending:
		s.PendingBytes += r.Bytes
	case vram.MemoryCachedBlock:
		s.CachedBlockBytes += r.Bytes
	case vram.MemoryCachedRange:
		s.CachedRangeBytes += r.Bytes
	case vram.MemoryFree:
		s.FreeBytes += r.Bytes
		if r.Stream != 0 {
			s.UnpassedBytes += r.Bytes
		}
	case vram.MemorySetAside:
		s.SetAsideBytes += r.Bytes
	case vram.MemoryBusy:
		s.BusyBytes += r.Bytes
	case vram.MemoryLent:
		s.LentBytes += r.Bytes
	case vram.MemoryMixed:
	}
}
