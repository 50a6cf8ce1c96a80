package pool

import (
	"fmt"

	"github.com/go-vram/vram/internal/units"
)

// RemedyKind is a kind of action against a shortage of memory.
type RemedyKind uint8

// The remedies.
const (
	// RaiseLimit: set a limit (Settings.LimitBytes) that is higher by Remedy.Bytes at least: with
	// all free memory that is enough.
	RaiseLimit RemedyKind = iota + 1
	// FreeElsewhere: free Remedy.Bytes in other programs or other allocators of the GPU: the driver
	// has refused, and not the limit.
	FreeElsewhere
	// AwaitFences: wait, or synchronise Remedy.Stream: so many bytes that it returned are free, and
	// its work still uses them.
	AwaitFences
	// Coalesce: merge free memory: enough is free, and Remedy.Bytes is the longest range.
	// Device.Coalesce helps, the lean footprint makes ranges that can be moved, and with plain
	// segments only Device.Trim helps.
	Coalesce
	// TrimStream: make a request, or call Stream.Trim, on Remedy.Stream, which was adopted: it
	// keeps so many bytes until one of the two.
	TrimStream
	// ReleaseReservation: release a reservation that has so many bytes.
	ReleaseReservation
	// WaitForFrees: set Request.Wait: so many bytes are live and come back when they are freed.
	WaitForFrees
	// RetryAfterFrees: call Reserve again, which does not wait, once some of so many live bytes
	// were freed.
	RetryAfterFrees
	// UseFewerStreams: allocate on fewer streams: so many bytes, enough for the request, are free within pages that
	// streams use in part. Streams do not share pages.
	UseFewerStreams
)

// kindNames are the names of the remedies, by number.
var kindNames = [...]string{ //nolint:gochecknoglobals // constant table
	"no remedy", RaiseLimit: "raise-limit", FreeElsewhere: "free-elsewhere", AwaitFences: "await-fences", Coalesce: "coalesce",
	TrimStream: "trim-stream", ReleaseReservation: "release-reservation", WaitForFrees: "wait-for-frees",
	RetryAfterFrees: "retry-after-frees", UseFewerStreams: "use-fewer-streams",
}

// String returns the kind's name.
func (k RemedyKind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("RemedyKind(%d)", uint8(k))
}

// MarshalText implements encoding.TextMarshaler: the kind's name.
func (k RemedyKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *RemedyKind) UnmarshalText(text []byte) error {
	for i, name := range kindNames {
		if name == string(text) {
			*k = RemedyKind(i) //nolint:gosec // one of a short table
			return nil
		}
	}
	return fmt.Errorf("vram: %q is no kind of remedy, want one of %q", text, kindNames[1:])
}

// Remedy is one action that would help a refused request.
type Remedy struct {
	Kind   RemedyKind `json:"kind"`
	Bytes  int64      `json:"bytes"`
	Stream uint32     `json:"stream"` // of the memory, if it is one stream's
}

// String returns the advice in words.
func (r Remedy) String() string {
	switch r.Kind {
	case RaiseLimit:
		return "a LimitBytes higher by at least " + units.AtLeast(r.Bytes)
	case FreeElsewhere:
		return units.AtLeast(r.Bytes) + " of the GPU's that others have: the driver refuses"
	case AwaitFences:
		return fmt.Sprintf("the end of stream %d's work, which uses %s that are free", r.Stream, units.Bytes(r.Bytes))
	case Coalesce:
		return "Coalesce, or the lean footprint: the longest free range has " + units.Bytes(r.Bytes)
	case TrimStream:
		return fmt.Sprintf("Trim on stream %d, which keeps %s", r.Stream, units.Bytes(r.Bytes))
	case ReleaseReservation:
		return "releasing a reservation of " + units.Bytes(r.Bytes)
	case WaitForFrees:
		return fmt.Sprintf("Request.Wait, for frees of the %s that are live", units.Bytes(r.Bytes))
	case RetryAfterFrees:
		return fmt.Sprintf("frees of the %s that are live, and another Reserve after them", units.Bytes(r.Bytes))
	case UseFewerStreams:
		return fmt.Sprintf("fewer streams: %s are free within pages that streams use in part", units.Bytes(r.Bytes))
	}
	return r.Kind.String()
}

// Remedies returns the actions that would help, from the cheapest to the most expensive, by the figures
// of the refusal. Each helps in part: it may take several.
func (e *OutOfMemoryError) Remedies() (all []Remedy) {
	if e == nil {
		return nil
	}
	add := func(kind RemedyKind, bytes int64, stream uint32) {
		if bytes > 0 {
			all = append(all, Remedy{kind, bytes, stream})
		}
	}
	var liveBytes, partBytes, parts int64
	for _, s := range e.Streams {
		if s.Reservation {
			add(ReleaseReservation, s.HeldBytes, 0)
			continue
		}
		add(AwaitFences, s.UnpassedBytes, s.Stream)
		add(TrimStream, s.UncoveredBytes, s.Stream)
		liveBytes += min(s.LiveBytes, s.HeldBytes)
		if part := s.HeldBytes - s.LiveBytes - s.UncoveredBytes; part > 0 {
			partBytes, parts = partBytes+part, parts+1
		}
	}
	if e.MissingBytes <= e.FreeBytes && e.LargestFreeBytes < e.MissingBytes {
		add(Coalesce, e.LargestFreeBytes, 0)
	}
	if !e.Waited && e.MissingBytes <= e.LimitBytes {
		kind := WaitForFrees
		if e.reserves {
			kind = RetryAfterFrees
		}
		add(kind, liveBytes, 0)
	}
	if parts > 1 && partBytes >= e.MissingBytes {
		add(UseFewerStreams, partBytes, 0)
	}
	if e.Cause != nil {
		add(FreeElsewhere, e.MissingBytes-e.FreeBytes-max(0, e.DriverBytes-e.ReservedBytes), 0)
	}
	add(RaiseLimit, e.MissingBytes-e.FreeBytes-max(0, e.LimitBytes-e.ReservedBytes), 0)
	return all
}
