package core

import (
	"fmt"
	"strings"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
)

// Kind is a kind of hazard.
type Kind uint8

// The kinds; see the package comment.
const (
	Unmapped Kind = iota
	UseAfterFree
	NeverAllocated
	Race
	EarlyReuse
	EarlyUnmap
	Overlap
)

// String returns the kind's name in reports.
func (k Kind) String() string {
	names := [...]string{
		Unmapped: "memory that is not mapped", UseAfterFree: "use after free", NeverAllocated: "memory that was never allocated",
		Race: "race", EarlyReuse: "early reuse", EarlyUnmap: "early unmap", Overlap: "overlapping buffers",
	}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", k)
}

// MarshalText makes the kind its name in JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Use is something that was done to memory.
type Use struct {
	What   string         // "kernel writes", "unmapped"; "" stands for no use
	Stream cudadrv.Stream // where it was queued; 0 with OnHost means nothing
	OnHost bool           // it was done by the host, not queued
	Place  site.Stack     // that asked for it

	StreamID uint32 // the allocator's number of the stream, in reports; 0 where it is not known
}

// String returns one line.
func (u Use) String() string {
	if u.OnHost {
		return fmt.Sprintf("%s at %s", u.What, u.Place)
	}
	return fmt.Sprintf("%s on %s at %s", u.What, streamText(u.Stream, u.StreamID), u.Place)
}

// Buffer is one allocation.
type Buffer struct {
	Ptr       cudadrv.Ptr
	Bytes     int64 // that were asked for
	Stream    cudadrv.Stream
	Tag       string
	Allocated site.Stack
	Freed     site.Stack // unknown while it lives
	StreamID  uint32     // the allocator's number of Stream; 0 where it is not known
}

// streamText names a stream by its number, or by its handle.
func streamText(s cudadrv.Stream, id uint32) string {
	if id != 0 {
		return fmt.Sprintf("stream %d", id)
	}
	return fmt.Sprintf("stream %#x", uint64(s))
}

// buffer is a Buffer with the state of the checker.
type buffer struct {
	Buffer
	freed bool
	loose *Use // of it on another stream, not before the free
}

// Report is one hazard. It does not change.
type Report struct {
	Kind   Kind
	Start  cudadrv.Ptr // of the first range where it showed
	Bytes  int64       // of that range
	Now    Use         // the use with the hazard
	Before Use         // the conflicting use; without a What for a missing call
	Buffer *Buffer     // that has the range, or had it last; nil for none
	Former *Buffer     // whose memory it was at Before, if that is another one; nil for none
	Hint   string      // advice, if there is any
}

// String returns the report as text of several lines, with both places.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s, [%#x,%#x)\n", r.Kind, r.Now.What, uint64(r.Start), uint64(r.Start)+uint64(r.Bytes))
	tell := func(what string, u Use) {
		where := "by the host"
		if !u.OnHost {
			where = "on " + streamText(u.Stream, u.StreamID)
		}
		fmt.Fprintf(&b, "  %s: %s, %s, at\n%s", what, u.What, where, u.Place.Trace("    "))
	}
	tell("now", r.Now)
	if r.Before.What != "" {
		tell("not ordered after", r.Before)
	}
	r.Buffer.tell(&b, "buffer")
	r.Former.tell(&b, "former buffer")
	if r.Hint != "" {
		fmt.Fprintf(&b, "  hint: %s\n", r.Hint)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (f *Buffer) tell(b *strings.Builder, what string) {
	if f == nil {
		return
	}
	fmt.Fprintf(b, "  %s: %d bytes at %#x of %s", what, f.Bytes, uint64(f.Ptr), streamText(f.Stream, f.StreamID))
	if f.Tag != "" {
		fmt.Fprintf(b, ", tag %q", f.Tag)
	}
	fmt.Fprintf(b, ", allocated at\n%s", f.Allocated.Trace("    "))
	if f.Freed.Known() {
		fmt.Fprintf(b, "   freed at\n%s", f.Freed.Trace("    "))
	}
}

// reports are the hazards found so far.
type reports struct {
	kept  []Report
	count uint64
	known map[string]bool // by kind and both places

	numbers map[cudadrv.Stream]uint32 // of streams, from NumberStream and Allocated
}

// number notes the allocator's number of a stream.
func (r *reports) number(s cudadrv.Stream, id uint32) {
	if r.numbers == nil {
		r.numbers = map[cudadrv.Stream]uint32{}
	}
	if id != 0 {
		r.numbers[s] = id
	}
}

// mostReports bounds the reports. Not fewer: a broken program shows several causes. Not more: nobody reads them, and a loop
// would fill the memory with its steps.
const mostReports = 100

// add keeps a report unless one of that kind with both places is known. The place of the free stands for an earlier use that there
// is not.
func (r *reports) add(report Report) {
	r.count++
	before := report.Before.Place
	if report.Before.What == "" && report.Buffer != nil {
		before = report.Buffer.Freed
	}
	key := fmt.Sprint(report.Kind, report.Now.What, report.Now.Place, report.Before.What, before)
	if len(r.kept) == mostReports || r.known[key] {
		return
	}
	if r.known == nil {
		r.known = map[string]bool{}
	}
	r.known[key] = true
	report.Now.StreamID, report.Before.StreamID = r.numbers[report.Now.Stream], r.numbers[report.Before.Stream]
	r.kept = append(r.kept, report)
}

// told returns a copy for a report.
func (b *buffer) told() *Buffer {
	if b == nil {
		return nil
	}
	copied := b.Buffer
	return &copied
}
